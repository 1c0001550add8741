package table

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// FindingKind names a kind of error in stored data.
type FindingKind string

const (
	Unreadable     FindingKind = "cannot be read"
	Malformed      FindingKind = "malformed row or entry"
	BadCopy        FindingKind = "wrong columnar copy" // found by package columnar
	BadValue       FindingKind = "value that its column may not have"
	WrongGenerated FindingKind = "wrong value of a generated column"
	BrokenCheck    FindingKind = "row that breaks a CHECK constraint"
	Orphan         FindingKind = "row without its parent row"
	BrokenForeign  FindingKind = "row that refers to a row that does not exist"
	MissingEntry   FindingKind = "row without its index entry"
	WrongEntry     FindingKind = "index entry that differs from its row"
	SurplusEntry   FindingKind = "index entry without its row"
	DuplicateEntry FindingKind = "two entries of a UNIQUE index with one key"
)

// Finding is one error in stored data.
type Finding struct {
	Kind   FindingKind
	Object string // the name of the table or index
	Detail string // the key, and what else is known about the error
}

// Verifier checks that the rows of tables fit the schema and their index entries, and that each parent row and each
// referenced row that they need exists. It reads each row and each entry once and looks up related rows by key, so
// its memory does not grow with the data. It continues after a finding.
type Verifier struct {
	View   View
	Tables *Descriptors
	Now    time.Time
	Report func(Finding)
}

// Rows verifies the rows of a table and returns their number.
func (v *Verifier) Rows(ctx context.Context, t *schema.Table) (rows int64, err error) {
	d, err := v.Tables.of(t)
	if err != nil {
		return 0, err
	}
	r := rowVerifier{Verifier: v, target: newTarget(d, true)}
	return v.each(ctx, r.layout, func(s Stored) { r.row(ctx, s) })
}

// Entries verifies that each entry of an index belongs to a row. It returns the number of entries.
func (v *Verifier) Entries(ctx context.Context, x *schema.Index) (entries int64, err error) {
	d, err := v.Tables.of(x.Table)
	if err != nil {
		return 0, err
	}
	e := entryVerifier{Verifier: v, target: newTarget(d, true), x: newIndexTarget(x)}
	return v.each(ctx, e.x.layout, func(s Stored) { e.entry(ctx, s) })
}

// each calls f for every row or entry of a layout and returns how many there were. f must not keep its argument.
func (v *Verifier) each(ctx context.Context, l *Layout, f func(Stored)) (n int64, err error) {
	span, _ := l.Space()
	cur, err := v.View.Scan(ctx, span, ScanOptions{})
	if err != nil {
		return 0, err
	}
	defer cur.Close()
	var offsets [maxStoredParts]int
	for cur.Next() {
		if err := ctx.Err(); err != nil {
			return n, err
		}
		switch at := l.walk(cur.Key(), offsets[:len(l.Key)]); at.where {
		case ownKey:
			n++
			f(Stored{Key: cur.Key(), Value: cur.Value()})
		case badKey:
			v.report(Malformed, l, "key %x", cur.Key())
		default:
			cur.SkipTo(l.appendSkip(nil, cur.Key(), at))
		}
	}
	if err := cur.Err(); err != nil {
		v.report(Unreadable, l, "behind %d rows: %v", n, err)
	}
	return n, nil
}

func (v *Verifier) report(kind FindingKind, l *Layout, format string, args ...any) {
	v.Report(Finding{Kind: kind, Object: l.Name(), Detail: fmt.Sprintf(format, args...)})
}

// rowVerifier verifies the rows of one table.
type rowVerifier struct {
	*Verifier
	*target
	key, val []byte
}

func (r *rowVerifier) row(ctx context.Context, s Stored) {
	if err := r.decode(r.target.row, s); err != nil {
		r.report(Malformed, r.layout, "%s: %v", r.layout.storedText(s.Key), err)
		return
	}
	r.values(s.Key)
	r.constraints(ctx, s.Key)
	for _, x := range r.indexes {
		r.entry(ctx, s.Key, x)
	}
}

// values verifies that each column may hold its value in this row.
func (r *rowVerifier) values(key []byte) {
	row, check := r.target.row, Changes{tables: r.Tables, now: r.Now}
	for _, c := range r.table.Columns {
		if err := check.checkAs(r.table, c, row[c.Ordinal]); err != nil {
			r.report(BadValue, r.layout, "%s: %v", r.layout.storedText(key), err)
		}
	}
	for _, c := range r.computed {
		want, err := r.evaluate(c.Generated, row)
		if err != nil || value.Compare(row[c.Ordinal], want, c.Type) != 0 {
			r.report(WrongGenerated, r.layout, "%s: column %s", r.layout.storedText(key), c.Name)
		}
	}
	for _, k := range r.table.Checks {
		if ok, err := r.passes(k, row); err != nil || !ok {
			r.report(BrokenCheck, r.layout, "%s: %s", r.layout.storedText(key), k.Name)
		}
	}
}

// constraints verifies that the row's parent row and the rows to which it refers exist.
func (r *rowVerifier) constraints(ctx context.Context, key []byte) {
	row := r.target.row
	if r.parent != nil {
		r.key = r.parent.AppendKey(r.key[:0], keyOf(row, r.table.Key[:len(r.table.Parent.Key)]))
		if _, ok, err := r.View.Get(ctx, r.key, LockShared); err != nil {
			r.report(Unreadable, r.parent, "%s: %v", r.parent.storedText(r.key), err)
		} else if !ok {
			r.report(Orphan, r.layout, "%s", r.layout.storedText(key))
		}
	}
	for _, fk := range r.foreign {
		vals, ok := foreignValues(fk.Columns, row)
		if !ok {
			continue
		}
		if ok, err := (reference{fk: fk, values: vals}).found(ctx, r.View); err != nil {
			r.report(Unreadable, fk.to.layout, "%s: %v", keyText(vals), err)
		} else if !ok {
			r.report(BrokenForeign, r.layout, "%s: %s", r.layout.storedText(key), fk.Name)
		}
	}
}

// entry verifies that an index has an entry for the row, with the values of the row.
func (r *rowVerifier) entry(ctx context.Context, key []byte, x *indexTarget) {
	if !x.holds(r.target.row) {
		return
	}
	r.key, _ = x.layout.appendRowKey(r.key[:0], r.target.row, nil)
	stored, ok, err := r.View.Get(ctx, r.key, LockShared)
	if err != nil {
		r.report(Unreadable, x.layout, "%s: %v", x.layout.storedText(r.key), err)
		return
	}
	if !ok {
		r.report(MissingEntry, x.layout, "row %s of %s", r.layout.storedText(key), r.table.FullName())
		return
	}
	r.val, _ = x.appendValue(r.val[:0], r.target.row, nil)
	if same, err := sameFields(stored, r.val, x.exact); err != nil {
		r.report(Malformed, x.layout, "%s: %v", x.layout.storedText(r.key), err)
	} else if !same {
		r.report(WrongEntry, x.layout, "%s", x.layout.storedText(r.key))
	}
}

// sameFields reports whether two stored values hold the same bytes in each of the given columns. It ignores other
// columns, because an entry may still hold STORING columns that were dropped.
func sameFields(a, b []byte, columns []*schema.Column) (bool, error) {
	ids := make([]schema.ColumnID, len(columns))
	for i, c := range columns {
		ids[i] = c.ID
	}
	inA, inB := make([]field, len(ids)), make([]field, len(ids))
	if err := findFields(a, ids, inA); err != nil {
		return false, err
	}
	if err := findFields(b, ids, inB); err != nil {
		return false, err
	}
	for i := range ids {
		if inA[i].isNull() != inB[i].isNull() || !bytes.Equal(inA[i].of(a), inB[i].of(b)) {
			return false, nil
		}
	}
	return true, nil
}

// entryVerifier verifies the entries of one index.
type entryVerifier struct {
	*Verifier
	*target
	x        *indexTarget
	key      []byte
	declared []byte // the declared key of the previous entry
}

func (e *entryVerifier) entry(ctx context.Context, s Stored) {
	l := e.x.layout
	parts, err := l.DecodeKey(nil, s.Key)
	if err != nil {
		e.report(Malformed, l, "%v", err)
		return
	}
	e.unique(s.Key, parts)
	vals := make([]value.Value, len(e.table.Key))
	for i, p := range e.table.Key {
		vals[i] = parts[l.columns[p.Column.Ordinal]]
	}
	e.key = e.layout.AppendKey(e.key[:0], vals)
	val, ok, err := e.View.Get(ctx, e.key, LockShared)
	switch {
	case err != nil:
		e.report(Unreadable, e.layout, "%s: %v", e.layout.storedText(e.key), err)
		return
	case !ok:
		e.report(SurplusEntry, l, "%s", l.storedText(s.Key))
		return
	}
	if err := e.decode(e.row, Stored{e.key, val}); err != nil {
		return // Verifier.Rows reports the malformed row
	}
	if e.key, _ = l.appendRowKey(e.key[:0], e.row, nil); !e.x.holds(e.row) || !bytes.Equal(e.key, s.Key) {
		e.report(SurplusEntry, l, "%s: its row has other values", l.storedText(s.Key))
	}
}

// unique reports a duplicate if the entry at key and the previous entry have the same declared key. The parameter parts
// holds the decoded parts of key.
func (e *entryVerifier) unique(key []byte, parts []value.Value) {
	if !e.x.index.Unique || len(e.x.index.Suffix) == 0 {
		return
	}
	declared := e.x.layout.appendPrefix(nil, parts[:len(e.x.index.Key)])
	if bytes.Equal(declared, e.declared) {
		e.report(DuplicateEntry, e.x.layout, "%s", e.x.layout.storedText(key))
	}
	e.declared = declared
}

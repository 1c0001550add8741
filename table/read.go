package table

import (
	"context"
	"fmt"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Read describes a read of rows of a table or entries of an index, in key order. READ requests use it, and so do SQL
// queries that only scan.
type Read struct {
	*Projection
	Spans   []Span // sorted and disjoint, as Layout.Spans returns them
	Limit   int64  // the largest number of rows; 0 is no limit
	Reverse bool
	// Deleted permits a read of ranges to return deleted rows, too, as long as the store still has their keys. A caller
	// that searches for the next value of a key part sets Deleted: otherwise the caller would have to wait while the
	// read passes many deleted rows. The Projection must have key columns only, and Reverse must be false.
	Deleted bool
	// Partial says that the caller may stop before the end of the spans, even without a Limit. It affects what is
	// locked (see ScanOptions).
	Partial bool
	Lock    Lock
	// AllowPending permits rows with commit timestamps that are not known yet. Rows.Values returns such a timestamp as
	// a pending value. Without AllowPending, Next fails if a column that is read has such a timestamp.
	AllowPending bool
	// Memory is the request's memory account. Rows charges a large row to a second account of the same budget. If
	// Memory is nil, Rows charges nothing.
	Memory *memory.Account
}

// A stored row of more than LargeRow bytes is charged with largeRowFactor times its size, from when it is found until
// the next row is found. One half of the charge is for the storage engine, which keeps the block with the row in
// memory outside of Go's heap. The other half is for the copy that Get or Values makes. If memory is short, a charge of
// at most maxWaiting bytes waits for free memory, and a larger charge fails at once (see Rows.hold).
const (
	LargeRow       = 64 << 10
	largeRowFactor = 2
	maxWaiting     = 1 << 20
)

// Open begins the read. The caller must close the returned Rows.
func (r Read) Open(ctx context.Context, view View) *Rows {
	rows := &Rows{ctx: ctx, view: view, read: r, left: r.Limit}
	rows.row.init(r.Projection)
	if r.Limit == 0 {
		rows.left = -1
	}
	return rows
}

// Reopen begins the read again over other spans and reuses the memory of r. limit means the same as Read.Limit.
func (r *Rows) Reopen(spans []Span, limit int64) error {
	err := r.closeCursor()
	r.read.Spans, r.read.Limit = spans, limit
	r.next, r.err, r.left = 0, err, limit
	if limit == 0 {
		r.left = -1
	}
	return err
}

// Rows walks over the rows of a Read. It decodes a row only when a method asks for columns, and directly into the form
// that this method returns. The current row is valid until the next call of a method of Rows or of the View.
type Rows struct {
	ctx    context.Context
	view   View
	read   Read
	row    located
	next   int    // the number of spans whose reading has begun
	cursor Cursor // the cursor over the current span, or nil
	left   int64  // how many rows may still be returned; -1 for all
	skip   []byte // buffer for the argument of SkipTo
	err    error
	kept   []byte          // a copy of the current row, made by Release
	large  *memory.Account // charged for the current row if that row is large; nil before the first large row
	ahead  *ahead          // rows that ReadAhead has read before Reopen asks for them; nil before the first Expect
}

// Next moves to the next row. It returns false at the end.
func (r *Rows) Next() (bool, error) {
	if r.err != nil || r.left == 0 {
		return false, r.err
	}
	ok, err := r.advance()
	if ok && !r.read.AllowPending {
		if c := r.row.pendingColumn(); c != nil {
			err = usererror.PendingCommitTimestamp(r.read.Table.FullName(), c.Name)
		}
	}
	if err != nil {
		r.err = err
		return false, err
	}
	if !ok {
		r.left = 0
		r.large.Close()
		return false, nil
	}
	if r.left > 0 {
		r.left--
	}
	return true, nil
}

func (r *Rows) advance() (bool, error) {
	for {
		if r.cursor != nil {
			if ok, err := r.advanceCursor(); ok || err != nil {
				return ok, err
			}
			if err := r.closeCursor(); err != nil {
				return false, err
			}
		}
		if r.next == len(r.read.Spans) {
			return false, nil
		}
		span := r.read.Spans[r.next]
		if r.read.Reverse {
			span = r.read.Spans[len(r.read.Spans)-1-r.next]
		}
		r.next++
		if span.IsPoint() {
			if ok, err := r.get(span.Start); ok || err != nil {
				return ok, err
			}
			continue
		}
		var err error
		if r.cursor, err = r.view.Scan(r.ctx, span, r.read.scanOptions()); err != nil {
			r.cursor = nil
			return false, err
		}
	}
}

func (r *Read) scanOptions() ScanOptions {
	return ScanOptions{Lock: r.Lock, Reverse: r.Reverse, Deleted: r.Deleted, Partial: r.Partial || r.Limit > 0}
}

func (r *Rows) get(key []byte) (bool, error) {
	val, ok, read := r.ahead.pop(key)
	if !read {
		var err error
		if val, ok, err = r.view.Get(r.ctx, key, r.read.Lock); err != nil {
			return false, err
		}
	}
	if !ok {
		return false, nil
	}
	if at := r.read.walk(key, r.row.offsets); at.where != ownKey {
		return false, r.corrupt(key)
	}
	return true, r.locate(key, val)
}

// locate makes the row at key the current row. walk must have stored the offsets of the key's parts in r.row.offsets.
func (r *Rows) locate(key, val []byte) error {
	if r.read.Deleted && len(val) == 0 {
		r.row.locateDeleted(key)
		return nil
	}
	if len(val) > LargeRow || r.large != nil {
		if err := r.hold(len(val)); err != nil {
			return err
		}
	}
	return r.row.locate(key, val)
}

// hold charges the request's memory for a row of n bytes and releases the charge for the previous row. It keeps the
// old charge if that fits the new row, so that a scan of large rows does not make a new charge for each row. If memory
// is short, a charge of more than maxWaiting bytes fails at once instead of waiting, because the engine would keep the
// block with the row in memory during the wait.
func (r *Rows) hold(n int) error {
	need := int64(n) * largeRowFactor
	if charged := r.large.Used(); n > LargeRow && need <= charged && need > charged/2 {
		return nil
	}
	r.large.Close()
	if n <= LargeRow {
		return nil
	}
	if r.large == nil {
		r.large = r.read.Memory.Beside(memory.Stream)
	}
	if need <= maxWaiting {
		return r.large.Grow(r.ctx, need)
	}
	if !r.large.TryGrow(need) {
		return r.large.Refusal(need)
	}
	return nil
}

// StoredSize returns the size of the current row's key and value in bytes.
func (r *Rows) StoredSize() int { return len(r.row.key) + len(r.row.val) }

// IsLarge reports whether the value of the current row has more than LargeRow bytes.
func (r *Rows) IsLarge() bool { return len(r.row.val) > LargeRow }

// advanceCursor moves to the next key of the layout in the current span. It skips the keys of other tables and indexes.
func (r *Rows) advanceCursor() (bool, error) {
	for r.cursor.Next() {
		key := r.cursor.Key()
		at := r.read.walk(key, r.row.offsets)
		switch {
		case at.where == ownKey:
			return true, r.locate(key, r.cursor.Value())
		case at.where == badKey:
			return false, r.corrupt(key)
		case !r.read.Reverse:
			r.skip = r.read.appendSkip(r.skip[:0], key, at)
			r.cursor.SkipTo(r.skip)
		}
	}
	return false, r.cursor.Err()
}

// SkipPrefix skips the following rows that have the same first key parts as the current row; the parameter parts is the
// number of these parts. It works only in a forward read of ranges.
func (r *Rows) SkipPrefix(parts int) {
	if r.cursor == nil {
		return
	}
	r.skip = appendBound(r.skip[:0], r.row.key[:r.read.PrefixLen(r.row.key, parts)], afterPrefix)
	r.cursor.SkipTo(r.skip)
}

// AppendKeyPart appends the encoded bytes of one part of the current row's key. These bytes sort as the part sorts in
// the key, or in the opposite order if inverted is set.
func (r *Rows) AppendKeyPart(dst []byte, part int, inverted bool) []byte {
	bytes := r.row.key[r.row.offsets[part]:]
	p := r.read.Key[part]
	rest, err := value.SkipKey(bytes, p.Column.Type, p.Desc)
	if err != nil {
		return dst // this cannot happen: Next has already found every part of the key
	}
	from := len(dst)
	dst = append(dst, bytes[:len(bytes)-len(rest)]...)
	if inverted {
		for i := range dst[from:] {
			dst[from+i] = ^dst[from+i]
		}
	}
	return dst
}

func (r *Rows) corrupt(key []byte) error {
	return fmt.Errorf("malformed key in %s: %x", r.read.Name(), key)
}

// AppendWire appends the values of the current row in wire form, directly from the stored bytes. Each value becomes an
// element of the field `values` of google.spanner.v1.PartialResultSet.
func (r *Rows) AppendWire(dst []byte) []byte { return r.row.appendWire(dst, r.row.p.sources) }

// AppendColumn is AppendWire for one column.
func (r *Rows) AppendColumn(dst []byte, i int) []byte {
	return r.row.appendWire(dst, r.row.p.sources[i:i+1])
}

// Size estimates how many bytes AppendWire would append for the current row. For a row that is large or has computed
// columns, the estimate is an upper bound.
func (r *Rows) Size() int {
	n := len(r.row.key) + len(r.row.val)
	if n <= LargeRow && len(r.row.virtual) == 0 {
		return n
	}
	n = 0
	for i := range r.row.p.sources {
		n += r.ColumnSize(i)
	}
	return n
}

// ColumnSize returns an upper bound of the number of bytes that AppendColumn would append.
func (r *Rows) ColumnSize(i int) int {
	s := &r.row.p.sources[i]
	kind, place := r.row.from(s)
	switch kind {
	case fromKey:
		return value.RowWireSize(len(r.row.key), s.typ)
	case fromValue:
		return value.RowWireSize(len(r.row.fields[place].of(r.row.val)), s.typ)
	}
	return r.row.virtual[place].WireSize()
}

// DataSize returns the total data size in bytes of the values that AppendWire, AppendColumn and Fill have appended so
// far. The data size of a value does not include the overhead of its encoding.
func (r *Rows) DataSize() int64 { return r.row.data }

// Values appends the values of the current row to dst. The values do not refer to the row's bytes. If a value is
// malformed, the next call of Next returns the error.
func (r *Rows) Values(dst []value.Value) []value.Value {
	for i := range r.row.p.sources {
		v, err := r.row.decode(r.row.p.sources[i])
		if err != nil {
			r.err = err
		}
		dst = append(dst, v)
	}
	return dst
}

// Key returns the stored key of the current row. It is valid until the next move. A caller can pass it to the function
// After, to continue a read after this row, and to Changes.Get if the read is of a table.
func (r *Rows) Key() []byte { return r.row.key }

// Version returns the timestamp of the commit that wrote the current row. It is 0 if unknown, as for a row that Get
// has read.
func (r *Rows) Version() mvcc.Timestamp {
	if r.cursor == nil {
		return 0
	}
	return r.cursor.Version()
}

// Stored returns a copy of the current row in its stored form.
func (r *Rows) Stored() Stored {
	b := make([]byte, len(r.row.key)+len(r.row.val))
	n := copy(b, r.row.key)
	copy(b[n:], r.row.val)
	return Stored{Key: b[:n:n], Value: b[n:]}
}

// Stored is a row in its stored form. Layout describes the form of the key, and the comment of rowVersion that of the
// value.
type Stored struct{ Key, Value []byte }

// Release lets the storage engine free the resources that a snapshot read of ranges holds. Call it before a long wait.
// The current row stays valid, and Next continues after it. In a read-write transaction, Release does nothing.
func (r *Rows) Release() {
	c, ok := r.cursor.(interface{ Release() })
	if !ok {
		return
	}
	n := len(r.row.key)
	r.row.keepVirtual()
	r.kept = append(append(r.kept[:0], r.row.key...), r.row.val...)
	r.row.key, r.row.val = r.kept[:n:n], r.kept[n:]
	c.Release()
}

func (r *Rows) closeCursor() error {
	if r.cursor == nil {
		return nil
	}
	c := r.cursor
	r.cursor = nil
	return c.Close()
}

// Close ends the read.
func (r *Rows) Close() error {
	r.large.Close()
	return r.closeCursor()
}

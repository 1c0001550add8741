package schema

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema/descriptor"
	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Values that are computed from a row are stored and used in many places. Stored columns, keys and index entries
// contain such values, CHECK constraints were checked with them, and columnar copies and open transactions rely on
// them. The values stay valid as long as they are computed from the same sources. An origin describes these sources, so
// that two versions of an expression can be compared. It does not include the database's default time zone, which can
// change only while the database has no tables.

// origin describes the sources from which the values of an expression are computed, as hashes. If two expressions have
// the same origin, they have the same value in the same row. Hashes keep origins short. Without them, in a chain of
// columns each of which reads all columns before it, each origin would be twice as long as the one before.
type origin struct {
	text  string // a hash of the expression, of the columns that it reads and of the functions that it calls
	types string // a hash of the definitions of the PROTO and ENUM types that it may read; "" if none
}

// computedFrom returns the origin of an expression; the zero origin if the expression is nil. The caller must have
// compiled the expression and the expressions of the columns that it reads.
func (e *Expr) computedFrom() origin {
	if e == nil {
		return origin{}
	}
	if known := e.origin.Load(); known != nil {
		return *known
	}
	var text, types strings.Builder
	text.WriteString(syntax.Canonical(e.SQL))
	for _, c := range slices.SortedFunc(slices.Values(e.Uses), func(a, b *Column) int { return cmp.Compare(a.ID, b.ID) }) {
		of := c.computedFrom()
		text.WriteString("\n" + strconv.Itoa(int(c.ID)) + " " + of.text)
		types.WriteString(of.types)
	}
	for _, f := range e.Functions {
		text.WriteString("\n" + strconv.Itoa(int(f.ID)) + " " + syntax.Canonical(f.Text()))
	}
	types.WriteString(e.definitions())
	o := origin{hashOf(text.String()), hashOf(types.String())}
	e.origin.Store(&o)
	return o
}

// hashOf returns the SHA-256 hash of text in hexadecimal; "" for "".
func hashOf(text string) string {
	if text == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// computedFrom returns the origin of a column's values. If the values are stored in the row or its key, the origin is
// only the column's type, because a read does not compute them.
func (c *Column) computedFrom() origin {
	o := origin{text: c.Type.String()}
	if c.Generated != nil && !c.Stored && c.KeyOrdinal < 0 {
		of := c.Generated.computedFrom()
		o.text, o.types = o.text+" AS "+of.text, of.types
	}
	return o
}

// ComputedFrom returns the type of a column's values and, for a column whose values are not stored, a hash of the
// sources from which they are computed. If the result is the same for two versions of a column, both have the same value in
// the same row.
func (c *Column) ComputedFrom() string {
	o := c.computedFrom()
	return o.text + o.types
}

// compareComputed compares the expressions of t, a table of the draft, with those of its old version. It refuses a
// change of values that are stored in rows, keys or index entries. For changed CHECK constraints it adds validations
// of existing rows.
func (d *draft) compareComputed(t *Table) error {
	before := d.old.TableByID(t.ID)
	for _, c := range t.Columns {
		old := before.columnByID(c.ID)
		if old == nil || old.Generated == nil || c.Generated == nil || !before.holds(old) {
			continue
		}
		was, is := old.Generated.computedFrom(), c.Generated.computedFrom()
		switch {
		case was == is:
		case was.text != is.text || descriptor.Redefined(old.Generated.roots(), c.Generated.bundle.Type):
			return usererror.ChangeGeneratedExpression(t.FullName() + "." + c.Name)
		default: // a type that the expression reads has gained or lost fields or numbers, so values may differ
			d.validate(ValidateComputed, t, c, old)
		}
	}
	for _, ck := range t.Checks {
		at := slices.IndexFunc(before.Checks, func(old *Check) bool { return sameName(old.Name, ck.Name) })
		if at >= 0 && before.Checks[at].Expr.computedFrom() != ck.Expr.computedFrom() {
			d.change.Validations = append(d.change.Validations, Validation{Kind: ValidateCheck, Table: t, Check: ck, Replaces: before.Checks[at]})
		}
	}
	return nil
}

// roots returns the PROTO and ENUM types that an expression may read: the types of the columns that the expression
// reads, and all types whose names seem to occur in its text or in the text of a function that it calls. It does not
// return the types of the fields of these types.
func (e *Expr) roots() (list []*value.Type) {
	if e.bundle == nil {
		return nil
	}
	names := e.bundle.namedIn(e.SQL)
	for _, f := range e.Functions {
		names = append(names, e.bundle.namedIn(f.Text())...)
	}
	for _, c := range e.Uses {
		if name := elementOf(c.Type).Name; name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if t := e.bundle.Type(name); t != nil {
			list = append(list, t)
		}
	}
	return list
}

// definitions returns a hash of the definitions of all types that an expression may read; "" if there are none.
func (e *Expr) definitions() string {
	if e.bundle == nil {
		return ""
	}
	return hashOf(e.bundle.types.Definitions(e.roots()))
}

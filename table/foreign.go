package table

import (
	"context"
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// foreignKey is a foreign key with the layouts and column orders that its checks need.
type foreignKey struct {
	*schema.ForeignKey
	from, to side
}

func newForeignKey(fk *schema.ForeignKey) *foreignKey {
	return &foreignKey{fk, newSide(fk.Table, fk.Index, fk.Columns), newSide(fk.Referenced, fk.ReferencedIndex, fk.ReferencedColumns)}
}

// newForeignKeys makes a foreignKey for each foreign key of list that is enforced.
func newForeignKeys(list []*schema.ForeignKey) (enforced []*foreignKey) {
	for _, fk := range list {
		if !fk.NotEnforced {
			enforced = append(enforced, newForeignKey(fk))
		}
	}
	return enforced
}

// side is the referencing or the referenced side of a foreign key. It says in which table or index to look up the rows
// with certain values in the foreign key's columns, and how to order the values for this look-up.
type side struct {
	layout *Layout // of the table or index; its key begins with the foreign key's columns, in any order
	order  []int   // order[i] is the position in the foreign key of the column in key part i
}

func newSide(t *schema.Table, index *schema.Index, columns []*schema.Column) side {
	s := side{layout: TableLayout(t)}
	if index != nil {
		s.layout = IndexLayout(index)
	}
	for _, p := range s.layout.Key[:len(columns)] {
		s.order = append(s.order, slices.Index(columns, p.Column))
	}
	return s
}

func (s side) span(values []value.Value) Span {
	var room [4]value.Value
	parts := room[:0]
	for _, i := range s.order {
		parts = append(parts, values[i])
	}
	span, _ := s.layout.keySpan(parts, nil)
	return span
}

// reference is a foreign key together with the values of one key to which it refers.
type reference struct {
	fk *foreignKey
	// values holds the values of the foreign key's columns, in the order of the foreign key; none is NULL.
	values []value.Value
	gone   bool // true if the referenced row was deleted, false if it was only updated
}

// foreignValues returns the values of columns in row. ok is false if a value is NULL; then the row refers to nothing.
func foreignValues(columns []*schema.Column, row []value.Value) (vals []value.Value, ok bool) {
	vals = make([]value.Value, len(columns))
	for i, c := range columns {
		vals[i] = row[c.Ordinal]
		if vals[i].IsNull() {
			return nil, false
		}
	}
	return vals, true
}

// referencing returns the span of the rows that refer to the key of r, and the layout of the table or index in which
// the span lies.
func (r reference) referencing() (*Layout, Span) {
	span := r.fk.from.span(r.values)
	if span.IsPoint() {
		span.End = afterKey(span.Start)
	}
	return r.fk.from.layout, span
}

// found reports whether the row to which r refers exists.
func (r reference) found(ctx context.Context, view View) (bool, error) {
	span := r.fk.to.span(r.values)
	if span.IsPoint() {
		_, ok, err := view.Get(ctx, span.Start, LockCheck)
		return ok, err
	}
	n, err := keysIn(ctx, view, r.fk.to.layout, span, LockCheck, nil, 1)
	return n > 0, err
}

// checkForeignKeys checks that the rows to which g.row refers exist. If old had values to which other rows refer, and
// g.row no longer has them, it calls releaseReference, which deletes or checks the referring rows.
func (c *Changes) checkForeignKeys(ctx context.Context, g *target, old []value.Value) error {
	for _, fk := range g.foreign {
		if !anyChanged(fk.Columns, g.changed) {
			continue
		}
		if vals, ok := foreignValues(fk.Columns, g.row); ok {
			if err := c.checkReferenced(ctx, reference{fk: fk, values: vals}); err != nil {
				return err
			}
		}
	}
	if old == nil {
		return nil
	}
	for _, r := range c.referencesTo(g, old, g.row) {
		if err := c.releaseReference(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// checkReferenced checks that the row to which r refers exists. If the row is missing, Finish checks again, since a
// later change may write it.
func (c *Changes) checkReferenced(ctx context.Context, r reference) error {
	if ok, err := r.found(ctx, c.w); ok || err != nil {
		return err
	}
	c.later(func(ctx context.Context) error {
		l, span := r.referencing()
		if n, err := keysIn(ctx, c.w, l, span, LockCheck, nil, 1); n == 0 || err != nil {
			return err
		}
		if ok, err := r.found(ctx, c.w); ok || err != nil {
			return err
		}
		return usererror.ForeignKeyMissing(r.fk.Name, r.fk.Table.FullName(), r.fk.Referenced.FullName(), keyText(r.values))
	})
	return nil
}

// referencesTo lists the keys that foreign keys can refer to and that the row old has, but its replacement does not
// have. The parameter row is the replacement; it is nil if the row old was deleted.
func (c *Changes) referencesTo(g *target, old, row []value.Value) []reference {
	var list []reference
	for _, fk := range g.referencedBy {
		vals, ok := foreignValues(fk.ReferencedColumns, old)
		if !ok || row != nil && sameValues(fk.ReferencedColumns, old, row) {
			continue
		}
		list = append(list, reference{fk: fk, values: vals, gone: row == nil})
	}
	return list
}

func sameValues(columns []*schema.Column, a, b []value.Value) bool {
	for _, c := range columns {
		if value.Compare(a[c.Ordinal], b[c.Ordinal], c.Type) != 0 {
			return false
		}
	}
	return true
}

// releaseReference handles the rows that refer to values that a row no longer has. If the row was deleted and the
// foreign key is ON DELETE CASCADE, releaseReference deletes the referring rows. Otherwise, if there are referring
// rows, Finish checks that another row then has the values or that no row refers to them any more.
func (c *Changes) releaseReference(ctx context.Context, r reference) error {
	l, span := r.referencing()
	if r.gone && r.fk.Cascade {
		c.actions.cascaded(r)
		return c.deleteReferencing(ctx, r, l, span)
	}
	if n, err := keysIn(ctx, c.w, l, span, LockCheck, nil, 1); n == 0 || err != nil {
		return err
	}
	c.later(func(ctx context.Context) error {
		if ok, err := r.found(ctx, c.w); ok || err != nil {
			return err
		}
		if n, err := keysIn(ctx, c.w, l, span, LockCheck, nil, 1); n == 0 || err != nil {
			return err
		}
		return usererror.ForeignKeyReferenced(r.fk.Name, r.fk.Referenced.FullName(), r.fk.Table.FullName(), keyText(r.values))
	})
	return nil
}

// deleteReferencing deletes the rows of r's referencing table that have a key or index entry in span of layout l. Each
// deleted row counts as a mutation.
func (c *Changes) deleteReferencing(ctx context.Context, r reference, l *Layout, span Span) error {
	g, err := c.target(r.fk.Table)
	if err != nil {
		return err
	}
	return c.each(ctx, exclusively(l, span), func(s Stored) error {
		old, ok, err := c.baseRow(ctx, g, l, s)
		if !ok || err != nil { // a cascade along another foreign key may have deleted the row
			return err
		}
		if err := c.add(1); err != nil {
			return err
		}
		c.actions.removed(old.Key)
		return c.delete(ctx, g, old)
	})
}

// baseRow returns the row of g to which s belongs. s is a row of g or an index entry; l is the layout of s.
func (c *Changes) baseRow(ctx context.Context, g *target, l *Layout, s Stored) (Stored, bool, error) {
	key := s.Key
	if l.Index != nil {
		parts, err := l.DecodeKey(nil, s.Key)
		if err != nil {
			return Stored{}, false, err
		}
		vals := make([]value.Value, len(g.table.Key))
		for i, p := range g.table.Key {
			vals[i] = parts[l.columns[p.Column.Ordinal]]
		}
		key = g.layout.AppendKey(nil, vals)
	}
	return c.Get(ctx, key)
}

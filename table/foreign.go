package table

import (
	"context"
	"slices"

	"github.com/crowfoot-db/crowfoot/fault"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// reference is a key that a foreign key refers to, with the places where its two sides are found.
type reference struct {
	fk *schema.ForeignKey
	// values of the foreign key's columns, in their order; none is NULL.
	values []value.Value
	gone   bool // the row that held it was deleted, not updated
}

// foreignValues are the values of columns in row; ok is false if one is NULL: such a row refers to nothing.
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

// side is one side of a foreign key: the layout in which rows with given values in columns are found, and
// where. The layout's key begins with columns, in any order.
func side(t *schema.Table, index *schema.Index, columns []*schema.Column, values []value.Value) (*Layout, Span) {
	l := TableLayout(t)
	if index != nil {
		l = IndexLayout(index)
	}
	parts := make([]value.Value, 0, len(columns))
	for _, p := range l.Key[:len(columns)] {
		parts = append(parts, values[slices.Index(columns, p.Column)])
	}
	span, _ := l.keySpan(parts, nil)
	return l, span
}

// referencing is where the rows are that refer to the key.
func (r reference) referencing() (*Layout, Span) {
	l, span := side(r.fk.Table, r.fk.Index, r.fk.Columns, r.values)
	if span.IsPoint() {
		span.End = afterKey(span.Start)
	}
	return l, span
}

// found says whether there is a row with the key referred to.
func (r reference) found(ctx context.Context, view View) (bool, error) {
	l, span := side(r.fk.Referenced, r.fk.ReferencedIndex, r.fk.ReferencedColumns, r.values)
	if span.IsPoint() {
		_, ok, err := view.Get(ctx, span.Start, LockShared)
		return ok, err
	}
	n, err := keysIn(ctx, view, l, span, LockShared, nil, 1)
	return n > 0, err
}

// checkForeignKeys checks what g.row refers to, and what refers to the values that it no longer has.
func (c *Changes) checkForeignKeys(ctx context.Context, g *target, old []value.Value) error {
	for _, fk := range g.table.ForeignKeys {
		if fk.NotEnforced || !anyChanged(fk.Columns, g.changed) {
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

// checkReferenced looks for the row that r names. One that is missing may still be written.
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
		return fault.ForeignKeyMissing(r.fk.Name, r.fk.Table.FullName(), r.fk.Referenced.FullName(), keyText(r.values))
	})
	return nil
}

// referencesTo lists the foreign keys, with values, that could refer to the row
// old of g and do not find these values in the row that took its place (nil: it was deleted).
func (c *Changes) referencesTo(g *target, old, row []value.Value) []reference {
	var list []reference
	for _, fk := range g.table.ReferencedBy {
		if fk.NotEnforced {
			continue
		}
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

// releaseReference deals with the rows that refer to values that a row no longer
// has: ON DELETE CASCADE deletes them, otherwise another row must have the values in the end.
func (c *Changes) releaseReference(ctx context.Context, r reference) error {
	l, span := r.referencing()
	if r.gone && r.fk.Cascade {
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
		return fault.ForeignKeyReferenced(r.fk.Name, r.fk.Referenced.FullName(), r.fk.Table.FullName(), keyText(r.values))
	})
	return nil
}

// deleteReferencing deletes the rows of the layout's table in span; each counts as a mutation.
func (c *Changes) deleteReferencing(ctx context.Context, r reference, l *Layout, span Span) error {
	g, err := c.target(r.fk.Table)
	if err != nil {
		return err
	}
	return c.inChunks(ctx, l, span, func(s Stored) error {
		old, ok, err := c.baseRow(ctx, g, l, s)
		if !ok || err != nil { // it may have been deleted by a cascade that came another way
			return err
		}
		if err := c.add(1); err != nil {
			return err
		}
		return c.delete(ctx, g, old)
	})
}

// baseRow reads the row of g that a row or index entry of layout l belongs to.
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

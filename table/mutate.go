package table

import (
	"bytes"
	"context"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Mutate applies one mutation.
func (c *Changes) Mutate(ctx context.Context, m *Mutation) error {
	if m.Op == Delete {
		return c.deleteKeys(ctx, m.Table, m.Keys)
	}
	s, err := c.shapeOf(m.Table, m.Op, m.Columns)
	if err != nil {
		return err
	}
	for _, vals := range m.Rows {
		if len(vals) != len(m.Columns) {
			return usererror.ValueCount(len(m.Columns), len(vals))
		}
		if err := c.mutateRow(ctx, s, vals); err != nil {
			return err
		}
	}
	return nil
}

func (c *Changes) mutateRow(ctx context.Context, s *shape, vals []value.Value) error {
	switch s.op {
	case Insert:
		return c.insert(ctx, s, vals)
	case Update:
		return c.updateByKey(ctx, s, vals)
	}
	if err := s.fillNew(c, s.row, vals); err != nil {
		return err
	}
	key, err := c.rowKey(s.target)
	switch {
	case err != nil:
		return err
	case s.blind:
		return c.write(ctx, s, key, nil, s.inserts)
	case s.op == Replace:
		return c.replace(ctx, s, key, vals)
	}
	_, err = c.upsert(ctx, s, key, vals)
	return err
}

// updateByKey updates the row whose key is among vals.
func (c *Changes) updateByKey(ctx context.Context, s *shape, vals []value.Value) error {
	clear(s.row)
	if err := s.begin(c, s.row, vals); err != nil {
		return err
	}
	for _, p := range s.table.Key {
		if col := p.Column; !s.given[col.Ordinal] { // generated of what is given
			if err := s.fill(c, s.row, col, col.Generated); err != nil {
				return err
			}
		}
	}
	key, err := c.rowKey(s.target)
	if err != nil {
		return err
	}
	val, ok, err := c.w.Get(ctx, key, LockExclusive)
	switch {
	case err != nil:
		return err
	case !ok && c.wasDeleted(s.table, key):
		return usererror.RowDeletedThenUpdated(s.table.FullName(), s.layout.rowText(s.row))
	case !ok:
		return usererror.RowNotFound(s.table.FullName(), s.layout.rowText(s.row))
	}
	c.oldKey = append(c.oldKey[:0], key...)
	return c.update(ctx, s, Stored{c.oldKey, val}, vals)
}

// wasDeleted says whether a Delete mutation covered key.
func (c *Changes) wasDeleted(t *schema.Table, key []byte) bool {
	for _, d := range c.deleted {
		if d.table != t {
			continue
		}
		for _, s := range d.spans {
			if s.covers(key) {
				return true
			}
		}
	}
	return false
}

func (s Span) covers(key []byte) bool {
	if s.IsPoint() {
		return bytes.Equal(s.Start, key)
	}
	return bytes.Compare(s.Start, key) <= 0 && bytes.Compare(key, s.End) < 0
}

// replace deletes the row at key with its children, if it is there, and writes the new one.
func (c *Changes) replace(ctx context.Context, s *shape, key []byte, vals []value.Value) error {
	val, ok, err := c.w.Get(ctx, key, LockExclusive)
	if err != nil {
		return err
	}
	if !ok {
		return c.write(ctx, s, key, nil, s.inserts)
	}
	old := Stored{bytes.Clone(key), bytes.Clone(val)}
	if err := c.deleteChildren(ctx, s.target, old.Key, always); err != nil {
		return err
	}
	// Deleting children may have used the room for this table's rows.
	if err := s.fillNew(c, s.row, vals); err != nil {
		return err
	}
	if err := s.decode(s.old, old); err != nil {
		return err
	}
	if key, err = c.rowKey(s.target); err != nil {
		return err
	}
	return c.write(ctx, s, key, s.old, s.inserts)
}

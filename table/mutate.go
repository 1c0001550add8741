package table

import (
	"bytes"
	"context"
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Mutate applies one mutation.
func (c *Changes) Mutate(ctx context.Context, m *Mutation) error {
	if m.Op == Delete {
		return c.deleteKeys(ctx, m.Table, m.Keys)
	}
	b, err := c.builder(m.Table, m.Op, m.Columns)
	if err != nil {
		return err
	}
	if m.Sources != nil {
		return c.mutateColumns(ctx, b, m)
	}
	for _, vals := range m.Rows {
		if len(vals) != len(m.Columns) {
			return usererror.ValueCount(len(m.Columns), len(vals))
		}
		if err := c.mutateRow(ctx, b, vals); err != nil {
			return err
		}
	}
	return nil
}

func (c *Changes) mutateRow(ctx context.Context, b *rowBuilder, vals []value.Value) error {
	switch b.op {
	case Insert:
		return c.insert(ctx, b, vals)
	case Update:
		return c.updateByKey(ctx, b, vals)
	}
	if err := b.fillNew(c, b.row, vals); err != nil {
		return err
	}
	key, err := c.rowKey(b.target)
	switch {
	case err != nil:
		return err
	case b.blind:
		return c.write(ctx, b, key, nil, b.inserts)
	case b.op == Replace:
		return c.replace(ctx, b, key)
	}
	_, err = c.upsert(ctx, b, key, vals)
	return err
}

// updateByKey updates an existing row. vals holds the values of b.columns, the key included.
func (c *Changes) updateByKey(ctx context.Context, b *rowBuilder, vals []value.Value) error {
	clear(b.row)
	b.set(b.row, vals)
	if err := c.checkValues(b.table, b.columns, b.row); err != nil {
		return err
	}
	for _, p := range b.table.Key {
		if col := p.Column; !b.given[col.Ordinal] { // a generated key column is computed from given columns
			if err := b.fill(c, b.row, col, col.Generated); err != nil {
				return err
			}
		}
	}
	key, err := c.rowKey(b.target)
	if err != nil {
		return err
	}
	val, ok, err := c.w.Get(ctx, key, c.keyLock())
	switch {
	case err != nil:
		return err
	case !ok && c.wasDeleted(b.table, key):
		return usererror.RowDeletedThenUpdated(b.table.FullName(), b.layout.rowText(b.row))
	case !ok:
		return usererror.RowNotFound(b.table.FullName(), b.layout.rowText(b.row))
	}
	c.oldKey = append(c.oldKey[:0], key...)
	return c.update(ctx, b, Stored{c.oldKey, val}, vals)
}

// wasDeleted reports whether an earlier Delete mutation of this commit covers key.
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

// replace writes the new row b.row at key. If a row exists there, replace first deletes it with its children.
func (c *Changes) replace(ctx context.Context, b *rowBuilder, key []byte) error {
	val, ok, err := c.w.Get(ctx, key, c.keyLock())
	if err != nil {
		return err
	}
	if !ok {
		return c.write(ctx, b, key, nil, b.inserts)
	}
	old := Stored{bytes.Clone(key), bytes.Clone(val)}
	row := slices.Clone(b.row)
	if err := c.deleteChildren(ctx, b.target, old.Key, always); err != nil {
		return err
	}
	copy(b.row, row) // the deletion of children may have overwritten b.row, which is a shared buffer of this table
	if err := b.decode(b.old, old); err != nil {
		return err
	}
	if key, err = c.rowKey(b.target); err != nil {
		return err
	}
	return c.write(ctx, b, key, b.old, b.inserts)
}

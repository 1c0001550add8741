package table

import (
	"cmp"
	"context"
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// A Change is a change of one row of a table that at least one change stream watches.
type Change struct {
	Table   *schema.Table
	Watches []*Watch
	Op      Op // Insert, Update or Delete
	// Key is the logical key of the row. PendingKey lists the positions of commit timestamps in Key that the commit
	// fills in (see Writer.Put).
	Key        []byte
	PendingKey []Pending
	// Old and New are the row before and after the change: one value for each column, indexed by
	// schema.Column.Ordinal. Old is nil for Insert, and New is nil for Delete.
	Old, New []value.Value
	// Written says for each column, indexed by Ordinal, whether the Insert or Update gave it a value. It is true even
	// if the new value equals the old one.
	Written []bool
}

// Row returns New, or Old for a deletion. Both hold the values of the key columns.
func (c *Change) Row() []value.Value {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

// A Watch is a change stream together with the columns of one table that it watches.
type Watch struct {
	Stream *schema.ChangeStream
	// Key lists the columns of the primary key, and Columns the other columns that the stream watches. Both are sorted
	// by name.
	Key, Columns []*schema.Column
}

// NewWatch makes the Watch of a change stream for table t. The second parameter is the entry of the catalog which says
// what the stream watches in t.
func NewWatch(t *schema.Table, by schema.Watcher) *Watch {
	w := &Watch{Stream: by.Stream, Columns: slices.Clone(by.Columns)}
	for _, p := range t.Key {
		w.Key = append(w.Key, p.Column)
	}
	byName := func(a, b *schema.Column) int { return cmp.Compare(a.Name, b.Name) }
	slices.SortFunc(w.Key, byName)
	slices.SortFunc(w.Columns, byName)
	return w
}

// captureWrite tells the change streams that watch the table about the row that the method write has just stored. A
// REPLACE of an existing row counts as a deletion and an insert.
func (c *Changes) captureWrite(ctx context.Context, b *rowBuilder, key []byte, old []value.Value) error {
	switch {
	case b.watches == nil:
		return nil
	case old != nil && b.op != Replace:
		return c.capture(ctx, b.target, Update, key, old, b.row, b.changed)
	case old != nil:
		if err := c.capture(ctx, b.target, Delete, key, old, nil, nil); err != nil {
			return err
		}
	}
	return c.capture(ctx, b.target, Insert, key, nil, b.row, b.written)
}

// capture tells the change streams that watch table g about a change of one of its rows. For Insert and Update,
// c.pendKey must hold the positions of pending commit timestamps in the row's key. For Delete, capture finds them
// itself.
func (c *Changes) capture(ctx context.Context, g *target, op Op, key []byte, old, row []value.Value, written []bool) error {
	if g.watches == nil {
		return nil
	}
	if c.change == nil {
		c.change = new(Change)
	}
	*c.change = Change{Table: g.table, Watches: g.watches, Op: op, Key: key, PendingKey: c.pendKey, Old: old, New: row, Written: written}
	if op == Delete {
		c.change.PendingKey = g.pendingInKey(old)
	}
	n, err := c.w.Capture(ctx, c.change)
	if err != nil {
		return err
	}
	if c.bytes += int64(n); c.bytes > c.maxBytes {
		return usererror.CommitTooLarge(MaxCommitBytes)
	}
	return nil
}

// pendingInKey returns the positions of pending commit timestamps in the key of a row that this transaction has
// written.
func (g *target) pendingInKey(row []value.Value) []Pending {
	for _, p := range g.table.Key {
		if row[p.Column.Ordinal].IsPending() {
			_, pending := g.layout.appendRowKey(nil, row, nil)
			return pending
		}
	}
	return nil
}

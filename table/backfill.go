package table

import (
	"context"
	"math"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// FillIndex writes the entries of x for the rows of a chunk, and for those that were inserted between them since it was found. The rows
// get shared locks, so that other transactions can read them. Two rows with one key of a UNIQUE index are an error. So is a chunk
// whose entries are larger than ChunkWriteBytes (usererror.IsTooLarge), unless it has one row only.
func FillIndex(ctx context.Context, w Writer, tables *Descriptors, x *schema.Index, chunk Chunk) error {
	c := newFiller(w, tables, time.Time{}, &chunk)
	g, err := c.target(x.Table)
	if err != nil {
		return err
	}
	t := newIndexTarget(x)
	return c.each(ctx, whole(g.layout, chunk.Span(g.layout)), func(s Stored) error {
		if err := g.decode(g.row, s); err != nil {
			return err
		}
		return c.fillEntry(ctx, t, g.row)
	})
}

// FillColumns computes and stores new columns of t for the same rows: the value of the
// generated expression, or the default if the row has no value. It locks the rows exclusively, and bounds what it writes as FillIndex does.
func FillColumns(ctx context.Context, w Writer, tables *Descriptors, t *schema.Table, columns []*schema.Column, now time.Time, chunk Chunk) error {
	c := newFiller(w, tables, now, &chunk)
	g, err := c.target(t)
	if err != nil {
		return err
	}
	return c.each(ctx, exclusively(g.layout, chunk.Span(g.layout)), func(s Stored) error {
		if err := g.decode(g.row, s); err != nil {
			return err
		}
		copy(g.old, g.row)
		clear(g.changed)
		for _, col := range columns {
			if err := c.fillColumn(g, col); err != nil {
				return err
			}
		}
		c.val, c.pendValue = appendRowValue(c.val[:0], g.stored, g.row, c.pendValue[:0])
		if err := c.put(ctx, s.Key, c.val, nil, c.pendValue); err != nil {
			return err
		}
		return c.capture(ctx, g, Update, s.Key, g.old, g.row, g.changed)
	})
}

// newFiller makes the Changes for a chunk of a back-fill. A single row is written without limits: several commits may have made
// it larger than one commit may be.
func newFiller(w Writer, tables *Descriptors, now time.Time, chunk *Chunk) *Changes {
	c := NewChanges(w, tables, now)
	c.maxCount, c.maxBytes = math.MaxInt64, ChunkWriteBytes
	if chunk.Rows == 1 {
		c.maxBytes = math.MaxInt64
	}
	return c
}

func (c *Changes) fillEntry(ctx context.Context, x *indexTarget, row []value.Value) error {
	if !x.holds(row) {
		return nil
	}
	c.newKey, c.pendKey = x.layout.appendRowKey(c.newKey[:0], row, c.pendKey[:0])
	if err := x.layout.checkKeySize(len(c.newKey), row); err != nil {
		return err
	}
	if x.index.Unique && len(x.index.Suffix) > 0 {
		declared := keyOf(row, x.index.Key)
		n, err := keysIn(ctx, c.w, x.layout, prefixSpan(x.layout.appendPrefix(nil, declared)), LockExclusive, c.newKey, 1)
		if err != nil {
			return err
		}
		if n > 0 {
			return usererror.DuplicateFound(x.index.FullName(), keyText(declared))
		}
	}
	c.val, c.pendValue = appendRowValue(c.val[:0], x.storing, row, c.pendValue[:0])
	return c.put(ctx, c.newKey, c.val, c.pendKey, c.pendValue)
}

func (c *Changes) fillColumn(g *target, col *schema.Column) error {
	e := col.Generated
	if e == nil {
		if v := g.row[col.Ordinal]; !v.IsNull() || col.Default == nil {
			return nil
		}
		e = col.Default
	}
	v, err := g.evaluate(e, g.row)
	if err != nil {
		return err
	}
	g.row[col.Ordinal], g.changed[col.Ordinal] = v, true
	return c.checkValue(g.table, col, v)
}

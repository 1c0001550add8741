package table

import (
	"context"
	"math"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
)

// FillColumns computes and stores new columns of t in the rows of a chunk, and in rows that were inserted into the
// chunk's range after the chunk was found. A generated column gets the value of its expression. Another column gets its
// default if the row has no value in that column. FillColumns locks the rows exclusively. If its writes exceed
// ChunkWriteBytes, it returns an error (usererror.IsTooLarge), unless the chunk has one row only.
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

// newFiller makes the Changes for a chunk of a back-fill. Its writes are limited to ChunkWriteBytes. Only a chunk of
// one row has no limit, because several earlier commits may have made the row larger than one commit may be.
func newFiller(w Writer, tables *Descriptors, now time.Time, chunk *Chunk) *Changes {
	c := NewChanges(w, tables, now)
	c.maxCount, c.maxBytes = math.MaxInt64, ChunkWriteBytes
	if chunk.Rows == 1 {
		c.maxBytes = math.MaxInt64
	}
	return c
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

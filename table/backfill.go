package table

import (
	"context"
	"math"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// A schema change goes over the rows that exist in chunks: each call begins
// behind the key that the call before returned (nil: at the start), looks at up to limit rows
// and returns the last one's key, or nil when there are no more.

// FillIndex writes the entries of x for existing rows. Two rows with one key of a UNIQUE index are an error.
func FillIndex(ctx context.Context, w Writer, x *schema.Index, after []byte, limit int) (next []byte, err error) {
	c := newFiller(w, time.Time{})
	g, err := c.target(x.Table)
	if err != nil {
		return nil, err
	}
	t := newIndexTarget(x)
	return c.chunk(ctx, g.layout, after, limit, func(s Stored) error {
		if err := g.decode(g.row, s); err != nil {
			return err
		}
		return c.fillEntry(ctx, t, g.row)
	})
}

// FillColumns computes and stores new columns of t for existing rows: the
// generated expression, or the default if the row has no value.
func FillColumns(ctx context.Context, w Writer, t *schema.Table, columns []*schema.Column, now time.Time, after []byte, limit int) (next []byte, err error) {
	c := newFiller(w, now)
	g, err := c.target(t)
	if err != nil {
		return nil, err
	}
	return c.chunk(ctx, g.layout, after, limit, func(s Stored) error {
		if err := g.decode(g.row, s); err != nil {
			return err
		}
		for _, col := range columns {
			if err := c.fillColumn(g, col); err != nil {
				return err
			}
		}
		c.val, c.pendValue = appendRowValue(c.val[:0], g.stored, g.row, c.pendValue[:0])
		return c.put(ctx, s.Key, c.val, nil, c.pendValue)
	})
}

// newFiller makes a Changes for a chunk of a schema change, whose caller bounds it by rows.
func newFiller(w Writer, now time.Time) *Changes {
	c := NewChanges(w, now)
	c.maxCount, c.maxBytes = math.MaxInt64, math.MaxInt64
	return c
}

// chunk hands up to limit rows or entries of a layout behind the key after to do.
func (c *Changes) chunk(ctx context.Context, l *Layout, after []byte, limit int, do func(Stored) error) (next []byte, err error) {
	read := exclusively(l, l.rest(after))
	read.Partial = true // the rest of the table is for others
	found, err := collect(ctx, c.w, read, limit)
	if err != nil {
		return nil, err
	}
	for _, s := range found {
		if err := do(s); err != nil {
			return nil, err
		}
	}
	if len(found) < limit {
		return nil, nil
	}
	return found[len(found)-1].Key, nil
}

// rest is the part of the layout's space behind the key after, all of it if that is nil.
func (l *Layout) rest(after []byte) Span {
	span, _ := l.Space()
	if after != nil {
		span.Start = afterKey(after)
	}
	return span
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
	g.row[col.Ordinal] = v
	return c.checkValue(g.table, col, v)
}

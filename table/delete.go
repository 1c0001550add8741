package table

import (
	"bytes"
	"context"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// deleteKeys applies a Delete mutation. Each key and each range in the key set counts as one mutation.
func (c *Changes) deleteKeys(ctx context.Context, t *schema.Table, ks KeySet) error {
	g, err := c.target(t)
	if err != nil {
		return err
	}
	spans, err := g.layout.Spans(ks)
	if err != nil {
		return err
	}
	named := len(ks.Keys) + len(ks.Ranges)
	if ks.All {
		named = 1
	}
	if err := c.add(int64(named)); err != nil {
		return err
	}
	c.deleted = append(c.deleted, deletion{t, spans})
	for _, span := range spans {
		if !span.IsPoint() {
			if err := c.deleteSpan(ctx, g, span); err != nil {
				return err
			}
			continue
		}
		if err := c.deletePoint(ctx, g, span.Start); err != nil {
			return err
		}
	}
	return nil
}

func (c *Changes) deletePoint(ctx context.Context, g *target, key []byte) error {
	if !g.needsOld {
		return c.remove(ctx, key)
	}
	old, ok, err := c.Get(ctx, key)
	if !ok || err != nil {
		return err
	}
	return c.delete(ctx, g, old)
}

// deleteSpan deletes the rows of g in span, and their children.
func (c *Changes) deleteSpan(ctx context.Context, g *target, span Span) error {
	return c.each(ctx, exclusively(g.layout, span), func(old Stored) error { return c.delete(ctx, g, old) })
}

// each performs a Read of one span and calls the given function with a copy of each row or entry. The function may
// write. Because an open cursor may miss its writes, the method first collects at most as many rows as FullChunk
// permits, then closes the cursor, and then calls the function.
func (c *Changes) each(ctx context.Context, read Read, do func(Stored) error) error {
	for {
		found, more, err := collect(ctx, c.w, read, FullChunk)
		if err != nil {
			return err
		}
		for _, s := range found {
			if err := do(s); err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
		read.Spans = []Span{{afterKey(found[len(found)-1].Key), read.Spans[0].End}}
	}
}

// afterKey returns the bound that lies after the row at key and before the rows interleaved in it.
func afterKey(key []byte) []byte { return appendBound(nil, key[:len(key)-1], afterRow) }

// exclusively returns a Read that reads the rows or entries of a layout in span and locks them exclusively.
func exclusively(l *Layout, span Span) Read {
	read := whole(l, span)
	read.Lock = LockExclusive
	return read
}

// whole returns a Read of all rows or entries of a layout in span.
func whole(l *Layout, span Span) Read {
	return Read{Projection: &Projection{Layout: l}, Spans: []Span{span}, AllowPending: true}
}

// collect copies rows or entries of a read: at least one if there is any, and no more than limits permits. The result
// more says whether the read may have further rows.
func collect(ctx context.Context, view View, read Read, limits Limits) (found []Stored, more bool, err error) {
	rows := read.Open(ctx, view)
	defer rows.Close()
	c, err := limits.readChunk(rows, nil, func() (bool, error) {
		found = append(found, rows.Stored())
		return true, nil
	})
	if err == nil {
		err = rows.Close()
	}
	return found, c.More, err
}

// delete deletes one row with its index entries and children, and the rows that refer to it by foreign keys ON DELETE
// CASCADE. It does not modify the bytes of old.
func (c *Changes) delete(ctx context.Context, g *target, old Stored) error {
	c.parent = nil
	if !g.needsOld {
		return c.remove(ctx, old.Key)
	}
	if err := g.decode(g.old, old); err != nil {
		return err
	}
	if err := c.removeEntries(ctx, g, g.old); err != nil {
		return err
	}
	references := c.referencesTo(g, g.old, nil)
	if err := c.remove(ctx, old.Key); err != nil {
		return err
	}
	if err := c.capture(ctx, g, Delete, old.Key, g.old, nil, nil); err != nil {
		return err
	}
	if err := c.deleteChildren(ctx, g, old.Key, ifParentGone); err != nil {
		return err
	}
	for _, r := range references {
		if err := c.releaseReference(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// childRule says when the existence of a child row under ON DELETE NO ACTION is an error.
type childRule uint8

const (
	ifParentGone childRule = iota // an error if, after all changes, the child still exists and its parent does not
	always                        // an error as soon as the child is found
)

// deleteChildren deletes the rows that are interleaved in the row of g at key. In child tables with ON DELETE NO
// ACTION it deletes nothing; for these, rule says when a remaining child row is an error.
func (c *Changes) deleteChildren(ctx context.Context, g *target, key []byte, rule childRule) error {
	for _, child := range g.children {
		if child.Interleave == schema.InterleaveIn {
			continue
		}
		t, err := c.target(child)
		if err != nil {
			return err
		}
		span := t.under(key)
		if child.Interleave == schema.InterleaveCascade {
			err = c.deleteSpan(ctx, t, span)
		} else {
			err = c.checkNoChild(ctx, g, t, bytes.Clone(key), span, rule)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// under returns the span of the rows of table g that are interleaved in the parent row at key.
func (g *target) under(key []byte) Span {
	prefix := append(bytes.Clone(key[:len(key)-1]), g.layout.markers[len(g.layout.markers)-1].id...)
	return prefixSpan(prefix)
}

func (c *Changes) checkNoChild(ctx context.Context, parent, child *target, key []byte, span Span, rule childRule) error {
	n, err := keysIn(ctx, c.w, child.layout, span, LockCheck, nil, 1)
	if n == 0 || err != nil {
		return err
	}
	refused := usererror.ChildExists(parent.table.FullName(), child.table.FullName(), parent.layout.storedText(key))
	if rule == always {
		return refused
	}
	c.later(func(ctx context.Context) error {
		if _, ok, err := c.w.Get(ctx, key, LockCheck); ok || err != nil {
			return err
		}
		n, err := keysIn(ctx, c.w, child.layout, span, LockCheck, nil, 1)
		if err == nil && n > 0 {
			err = refused
		}
		return err
	})
	return nil
}

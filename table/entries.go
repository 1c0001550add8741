package table

import (
	"bytes"
	"context"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// writeEntries updates the index entries of g.row, which was just changed. old is the row before the change, or nil.
func (c *Changes) writeEntries(ctx context.Context, g *target, old []value.Value) error {
	for _, x := range g.indexes {
		if old != nil && !x.affected(g.changed) {
			continue
		}
		if err := c.writeEntry(ctx, x, old, g.row); err != nil {
			return err
		}
	}
	return nil
}

func (x *indexTarget) affected(changed []bool) bool {
	for i, uses := range x.uses {
		if uses && changed[i] {
			return true
		}
	}
	return false
}

// holds reports whether row has an entry in the index.
func (x *indexTarget) holds(row []value.Value) bool {
	for _, c := range x.index.NotNullColumns {
		if v := row[c.Ordinal]; v.IsNull() {
			return false
		}
	}
	return true
}

// writeEntry replaces the index entry of a row: old is the row before the change, or nil for a new row, and row is the
// row after the change. It counts one mutation if it deletes an entry. If it writes an entry, it counts one mutation
// for each declared key column and for each STORING column with a new value.
func (c *Changes) writeEntry(ctx context.Context, x *indexTarget, old, row []value.Value) error {
	had := old != nil && x.holds(old)
	if had {
		c.entryKey, _ = x.layout.appendRowKey(c.entryKey[:0], old, nil)
	}
	if !x.holds(row) {
		if had {
			return c.removeEntry(ctx)
		}
		return nil
	}
	c.pendKey = c.pendKey[:0]
	c.newKey, c.pendKey = x.layout.appendRowKey(c.newKey[:0], row, c.pendKey)
	if err := x.layout.checkKeySize(len(c.newKey), row); err != nil {
		return err
	}
	stored := len(x.storing)
	if had && bytes.Equal(c.entryKey, c.newKey) {
		if stored = x.changes(old, row); stored == 0 {
			return nil
		}
	} else {
		if had {
			if err := c.removeEntry(ctx); err != nil {
				return err
			}
		}
		if err := c.checkUnique(ctx, x, c.newKey, row); err != nil {
			return err
		}
	}
	if err := c.add(int64(len(x.index.Key) + stored)); err != nil {
		return err
	}
	c.val, c.pendValue = x.appendValue(c.val[:0], row, c.pendValue[:0])
	return c.put(ctx, c.newKey, c.val, c.pendKey, c.pendValue)
}

func (c *Changes) removeEntry(ctx context.Context) error {
	if err := c.add(1); err != nil {
		return err
	}
	return c.remove(ctx, c.entryKey)
}

// changes returns the number of columns in the value of the index entry that differ between the old and the new row.
func (x *indexTarget) changes(old, row []value.Value) int {
	n := 0
	for _, c := range x.exact {
		if !value.Same(old[c.Ordinal], row[c.Ordinal], c.Type) {
			n++
		}
	}
	return n
}

// removeEntries deletes the index entries of the row old.
func (c *Changes) removeEntries(ctx context.Context, g *target, old []value.Value) error {
	for _, x := range g.indexes {
		if !x.holds(old) {
			continue
		}
		c.entryKey, _ = x.layout.appendRowKey(c.entryKey[:0], old, nil)
		if err := c.removeEntry(ctx); err != nil {
			return err
		}
	}
	return nil
}

// checkUnique checks a new entry of a UNIQUE index. It locks the entry's declared key (the columns that CREATE INDEX
// lists as the key) and checks that no other entry has the same declared key. If another entry has it, Finish checks
// again, since a later change may delete that entry.
func (c *Changes) checkUnique(ctx context.Context, x *indexTarget, key []byte, row []value.Value) error {
	if !x.index.ChecksUnique() {
		return nil
	}
	c.parts = c.parts[:0]
	for _, p := range x.index.Key {
		c.parts = append(c.parts, row[p.Column.Ordinal])
	}
	span := prefixSpan(x.layout.appendPrefix(nil, c.parts))
	other, err := keysIn(ctx, c.w, x.layout, span, LockExclusive, key, 1)
	if err != nil || other == 0 {
		return err
	}
	text := keyText(c.parts)
	c.later(func(ctx context.Context) error {
		n, err := keysIn(ctx, c.w, x.layout, span, LockExclusive, nil, 2)
		if err == nil && n > 1 {
			err = usererror.UniqueViolation(x.index.FullName(), text)
		}
		return err
	})
	return nil
}

// keysIn counts the keys of the layout in span. It does not count the key in the parameter except. It stops when the
// count has reached the parameter most.
func keysIn(ctx context.Context, view View, l *Layout, span Span, lock Lock, except []byte, most int) (n int, err error) {
	cur, err := view.Scan(ctx, span, ScanOptions{Lock: lock})
	if err != nil {
		return 0, err
	}
	defer cur.Close()
	var buf [maxStoredParts]int
	for n < most && cur.Next() {
		key := cur.Key()
		at := l.walk(key, buf[:len(l.Key)])
		switch {
		case at.where == ownKey && !bytes.Equal(key, except):
			n++
		case at.where == beforeOwn || at.where == afterOwn:
			cur.SkipTo(l.appendSkip(nil, key, at))
		}
	}
	return n, cur.Err()
}

// entryColumns lists the columns that an entry of x holds: the columns of the declared key, the other columns of the
// primary key (x.Suffix), and the STORING columns.
func entryColumns(x *schema.Index) []*schema.Column {
	columns := make([]*schema.Column, 0, len(x.Key)+len(x.Suffix)+len(x.Storing))
	for _, p := range x.Key {
		columns = append(columns, p.Column)
	}
	for _, p := range x.Suffix {
		columns = append(columns, p.Column)
	}
	return append(columns, x.Storing...)
}

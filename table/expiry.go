package table

import (
	"bytes"
	"context"
	"time"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// Expired is a row that the row deletion policy of its table allows to be deleted.
type Expired struct {
	Key []byte    // the stored key of the row
	At  time.Time // the value of the policy's column
}

// FindExpired finds the expired rows in the next chunk of a table or of one of its indexes (see ExpiryLayout). A row
// has expired if the timestamp in the column of t's row deletion policy is earlier than the parameter before. If the
// primary key or an index begins with that column, FindExpired reads only expired rows; otherwise it reads the whole
// table.
func FindExpired(ctx context.Context, view View, t *schema.Table, before time.Time, after []byte, limits Limits) (found []Expired, chunk Chunk, err error) {
	if before.Unix() < value.MinTimestampSeconds {
		return nil, chunk, nil
	}
	e, err := newExpiry(t, value.OfTime(before))
	if err != nil {
		return nil, chunk, err
	}
	spans := e.spans
	if after != nil {
		spans = After(spans, after, false)
	}
	rows := Read{Projection: e.Projection, Spans: spans, Partial: true}.Open(ctx, view)
	defer rows.Close()
	var vals []value.Value
	chunk, err = limits.readChunk(rows, after, func() (bool, error) {
		vals = rows.Values(vals[:0])
		at := vals[len(vals)-1]
		if !e.expired(at) {
			return false, nil
		}
		found = append(found, Expired{Key: e.rowKey(rows, vals), At: at.AsTime()})
		return true, nil
	})
	return found, chunk, err
}

// ExpiryLayout returns the layout of the table or index in which FindExpired looks for expired rows of t.
func ExpiryLayout(t *schema.Table) *Layout {
	if x := expiryIndex(t); x != nil {
		return IndexLayout(x)
	}
	return TableLayout(t)
}

// expiry says where and how to look for the expired rows of a table: in the table itself or in an index.
type expiry struct {
	*Projection // reads the policy's column and, in an index, the primary key
	spans       []Span
	table       *Layout
	before      value.Value
}

func newExpiry(t *schema.Table, before value.Value) (*expiry, error) {
	column := t.RowDeletionPolicy.Column
	index := expiryIndex(t)
	e := &expiry{table: TableLayout(t), before: before}
	var columns []*schema.Column
	if index != nil {
		for _, p := range t.Key {
			columns = append(columns, p.Column)
		}
	}
	var err error
	if e.Projection, err = NewProjection(t, index, append(columns, column)); err != nil {
		return nil, err
	}
	e.spans, err = e.Spans(expiredKeys(e.Key, column, before))
	return e, err
}

// expiryIndex returns an index that begins with the policy's column and has an entry for every row that can expire. It
// returns nil if there is no such index, or if the primary key begins with the column.
func expiryIndex(t *schema.Table) *schema.Index {
	column := t.RowDeletionPolicy.Column
	if beginsWith(t.Key, column) {
		return nil
	}
	for _, x := range t.Indexes {
		if x.State == schema.IndexReadWrite && beginsWith(x.Key, column) && !leavesOut(x, column) {
			return x
		}
	}
	return nil
}

func beginsWith(key []schema.KeyPart, c *schema.Column) bool {
	return len(key) > 0 && key[0].Column == c
}

// leavesOut reports whether the index has no entries for rows that are NULL in some column other than c.
func leavesOut(x *schema.Index, c *schema.Column) bool {
	for _, n := range x.NotNullColumns {
		if n != c {
			return true
		}
	}
	return false
}

// expiredKeys returns a key set that covers all rows whose value in column is earlier than the parameter before. If the
// key begins with column, the set is one range without NULLs; otherwise it is all keys.
func expiredKeys(key []schema.KeyPart, column *schema.Column, before value.Value) KeySet {
	if !beginsWith(key, column) {
		return KeySet{All: true}
	}
	first, last := []value.Value{value.Null(value.Timestamp)}, []value.Value{before}
	if key[0].Desc {
		first, last = last, first
	}
	return KeySet{Ranges: []KeyRange{{Start: first, StartOpen: true, End: last, EndOpen: true}}}
}

func (e *expiry) expired(at value.Value) bool { return isBefore(at, e.before) }

func isBefore(at, limit value.Value) bool {
	return !at.IsNull() && value.Compare(at, limit, value.TimestampType) < 0
}

// rowKey returns the key of the current row of rows in the table. If rows reads an index, rowKey returns the key of the
// table row to which the current entry belongs.
func (e *expiry) rowKey(rows *Rows, vals []value.Value) []byte {
	if e.Index == nil {
		return bytes.Clone(rows.Key())
	}
	return e.table.AppendKey(nil, vals[:len(vals)-1])
}

// DeleteExpired deletes those of the given rows of t that still exist and are still expired, with their index entries
// and children. It returns how many it deleted. It fails if it writes more than the given number of bytes, or more
// than MaxCommitBytes.
func DeleteExpired(ctx context.Context, w Writer, tables *Descriptors, t *schema.Table, before time.Time, rows []Expired, bytes int64) (deleted int, err error) {
	c := NewChanges(w, tables, time.Time{})
	c.maxBytes = min(bytes, MaxCommitBytes)
	g, err := c.target(t)
	if err != nil {
		return 0, err
	}
	limit := value.OfTime(before)
	for _, r := range rows {
		old, ok, err := c.Get(ctx, r.Key)
		if err != nil {
			return 0, err
		}
		if !ok {
			continue
		}
		if err := g.decode(g.old, old); err != nil {
			return 0, err
		}
		if !isBefore(g.old[t.RowDeletionPolicy.Column.Ordinal], limit) {
			continue
		}
		if err := c.Delete(ctx, t, old); err != nil {
			return 0, err
		}
		deleted++
	}
	return deleted, c.Finish(ctx)
}

package table

import (
	"context"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// An EntryMaker walks over the rows of a table in a View and makes the entries that an index has for them. Of the rows it decodes only what
// the index holds. It must be closed.
type EntryMaker struct {
	index    *indexTarget
	rows     *Rows
	vals     []value.Value // of the projection's columns
	row      []value.Value // by ordinal; columns that the index does not hold are not set
	key, val []byte
}

// MakeEntries begins behind the row whose stored key is after, at the first row if that is nil.
func MakeEntries(ctx context.Context, view View, x *schema.Index, after []byte) (*EntryMaker, error) {
	m := &EntryMaker{index: newIndexTarget(x), row: make([]value.Value, len(x.Table.Columns))}
	var columns []*schema.Column
	for _, c := range x.Table.Columns {
		if m.index.uses[c.Ordinal] {
			columns = append(columns, c)
		}
	}
	p, err := NewProjection(x.Table, nil, columns)
	if err != nil {
		return nil, err
	}
	m.rows = Read{Projection: p, Spans: []Span{p.rest(after)}, Partial: true}.Open(ctx, view)
	return m, nil
}

// Next moves to the next row; false at the end.
func (m *EntryMaker) Next() (bool, error) { return m.rows.Next() }

// RowKey is the stored key of the current row, good until the next move.
func (m *EntryMaker) RowKey() []byte { return m.rows.Key() }

// RowSize is how many bytes key and value of the current row have.
func (m *EntryMaker) RowSize() int { return m.rows.StoredSize() }

// Entry is what the index has for the current row, good until the next call; ok is false if that is nothing.
func (m *EntryMaker) Entry() (key, val []byte, ok bool, err error) {
	m.vals = m.rows.Values(m.vals[:0])
	for i, c := range m.rows.read.Columns {
		m.row[c.Ordinal] = m.vals[i]
	}
	if !m.index.holds(m.row) {
		return nil, nil, false, nil
	}
	layout := m.index.layout
	m.key, _ = layout.appendRowKey(m.key[:0], m.row, nil)
	if err := layout.checkKeySize(len(m.key), m.row); err != nil {
		return nil, nil, false, err
	}
	m.val, _ = m.index.appendValue(m.val[:0], m.row, nil)
	return m.key, m.val, true, nil
}

// Close ends the walk.
func (m *EntryMaker) Close() error { return m.rows.Close() }

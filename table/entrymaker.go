package table

import (
	"context"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// An EntryMaker walks over the rows of a table in a View and makes the index entry of each row. It decodes only the
// columns that the index holds. The caller must close it.
type EntryMaker struct {
	index    *indexTarget
	rows     *Rows
	vals     []value.Value // the values of the projection's columns
	row      []value.Value // indexed by Ordinal; columns that the index does not hold are not set
	key, val []byte
}

// MakeEntries returns an EntryMaker. It begins after the row that has the stored key in the parameter after. If the
// parameter is nil, it begins at the first row.
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

// Next moves to the next row. It returns false at the end.
func (m *EntryMaker) Next() (bool, error) { return m.rows.Next() }

// RowKey returns the stored key of the current row. It is valid until the next move.
func (m *EntryMaker) RowKey() []byte { return m.rows.Key() }

// RowSize returns the size of the current row's key and value in bytes.
func (m *EntryMaker) RowSize() int { return m.rows.StoredSize() }

// Entry returns the index entry of the current row. The slices are valid until the next call. ok is false if the index
// has no entry for the row.
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

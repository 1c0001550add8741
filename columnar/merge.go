package columnar

import (
	"bytes"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// Rows of a chunk between two that have changed are given as slices of the chunk's arrays if there are minSlice or more; fewer are copied, and
// become a run with others, of at most maxMerged rows or mergedBytes.
const (
	minSlice    = 1024
	maxMerged   = 8192
	mergedBytes = 1 << 20
)

// merge gives the rows of a chunk in some ranges, with what has changed since laid over them.
type merge struct {
	*Reader
	chunk   *chunk
	spans   []table.Span // that are left, the current one first
	changes *mvcc.Cursor

	begun    bool // from and to are those of the current span
	from, to int  // the rows of the chunk that are left of it
	pending  bool // changes is on a row that was not laid over yet, of the current span or behind it
	change   bool // it is of the current span, and stands before row at
	at       int
	seen     []byte // the key of the last change of the current span that was laid over; empty before the first
}

// openMerge begins to read the spans of a segment, which has a chunk. The error is mvcc.ErrCollected if changes since may have been collected.
func (r *Reader) openMerge(s segment) (*merge, error) {
	changes, err := r.copy.rows.Changes(s.spans[0].Start, s.spans[len(s.spans)-1].End, s.chunk.at, r.read.At)
	if err != nil {
		return nil, err
	}
	if r.columns == nil {
		r.columns = newChunkColumns(r.copy, r.read.Projection)
		r.decoder = table.NewDecoder(r.read.Projection)
	}
	r.columns.begin(s.chunk)
	return &merge{Reader: r, chunk: s.chunk, spans: s.spans, changes: changes}, nil
}

func (m *merge) close() error { return m.changes.Close() }

// left are the ranges of which no row has been given, or is in the batch, when changes has failed.
func (m *merge) left() []table.Span {
	spans := append([]table.Span(nil), m.spans...)
	if len(m.seen) > 0 {
		spans[0].Start = table.Ranges([]table.Span{{Start: m.seen}})[0].End
	}
	return spans
}

// next makes the next run. more is false when the segment has been read.
func (m *merge) next() (n int, more bool, err error) {
	m.emptyBatch()
	for len(m.spans) > 0 {
		if !m.begun {
			if err := m.begin(); err != nil {
				return 0, false, err
			}
		}
		if n, err := m.gap(); n > 0 || err != nil {
			return n, true, err
		}
		if m.change {
			if err := m.lay(); err != nil {
				return 0, false, err
			}
		} else {
			m.spans, m.begun = m.spans[1:], false
		}
		if m.batchRows >= m.copy.maxBatch || m.batchBytes() >= mergedBytes {
			return m.flush(), true, m.charge()
		}
	}
	return m.flush(), false, m.charge()
}

// begin begins the first of the spans that are left: it finds its rows and its first change.
func (m *merge) begin() (err error) {
	span := m.spans[0]
	m.from, m.to, m.seen = m.to, int(m.chunk.rows), m.seen[:0] // behind the rows of the span before
	if !m.chunk.within(span) {
		if m.from, err = m.find(span.Start, m.from, m.to); err != nil {
			return err
		}
		if m.to, err = m.find(span.End, m.from, m.to); err != nil {
			return err
		}
	}
	m.begun = true
	if m.pending && bytes.Compare(m.changes.Key(), span.Start) < 0 {
		m.pending = false
	}
	if !m.pending {
		m.changes.SkipTo(span.Start)
	}
	return m.advance()
}

// advance finds the next change of the current span, and where it stands among the rows.
func (m *merge) advance() (err error) {
	m.change = false
	for !m.pending {
		if !m.changes.Next() {
			return m.changes.Err()
		}
		own, skip, err := m.decoder.Find(m.changes.Key())
		if err != nil {
			return err
		}
		if m.pending = own; !own {
			m.changes.SkipTo(skip)
		}
	}
	if bytes.Compare(m.changes.Key(), m.spans[0].End) >= 0 {
		return nil
	}
	m.change = true
	m.at, err = m.find(m.changes.Key(), m.from, m.to)
	return err
}

// find is the first row in [from, to) whose key is not below bound; to if there is none.
func (m *merge) find(bound []byte, from, to int) (int, error) {
	if from == to {
		return to, nil
	}
	keys, err := m.columns.loadKeys()
	if err != nil {
		return 0, err
	}
	return keys.find(bound, from, to)
}

// gap gives the rows before the next change, or puts them into the batch if they are few.
func (m *merge) gap() (n int, err error) {
	to := m.to
	if m.change {
		to = m.at
	}
	rows := to - m.from
	if rows == 0 {
		return 0, nil
	}
	if rows >= m.copy.minSlice && m.batchRows > 0 {
		return m.flush(), m.charge()
	}
	if err := m.columns.loadWanted(); err != nil {
		return 0, err
	}
	if rows >= m.copy.minSlice {
		n, m.from = m.slice(m.from, to), to
		return n, m.charge()
	}
	for i, a := range m.columns.wanted {
		if err := m.batch.AppendArray(i, a, m.from, to); err != nil {
			return 0, err
		}
	}
	m.batchRows += rows
	m.from = to
	return 0, nil
}

// lay lays the change over the row of the chunk with its key, if there is one.
func (m *merge) lay() error {
	key := m.changes.Key()
	if m.at < m.to {
		keys, err := m.columns.loadKeys()
		if err != nil {
			return err
		}
		replaced, err := keys.at(m.at)
		if err != nil {
			return err
		}
		if bytes.Equal(replaced, key) {
			m.from = m.at + 1
		}
	}
	if !m.changes.Deleted() {
		if _, _, err := m.decoder.Find(key); err != nil { // again: Release may have moved the key
			return err
		}
		if err := m.decoder.Append(m.batch.Columns, m.changes.Value()); err != nil {
			return err
		}
		m.batchRows++
	}
	m.seen = append(m.seen[:0], key...)
	m.pending = false
	return m.advance()
}

// batchBytes is about how much the batch holds.
func (m *merge) batchBytes() (n int64) {
	if m.batchRows == 0 {
		return 0
	}
	return m.batch.Used()
}

package columnar

import (
	"bytes"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// A read at a timestamp T merges two sorted inputs by key. The first input is the rows of a chunk, as a read at the
// chunk's own timestamp sees them. The second input is a cursor over the keys that were written after that timestamp,
// up to T. The cursor gives the newest version of each such key that is not newer than T.
//
//	chunk     a1  b1  c1  d1  e1
//	changes           c2  d-      f2      (d was deleted)
//	read      a1  b1  c2      e1  f2
//
// If both inputs have a key, the changed version replaces the row of the chunk, or removes the row if it is a
// deletion. A key that is only in the second input is a new row. So the cost of a read grows with the number of
// changes, and commits do no work for the copy.
//
// Between two changes, the rows of the chunk are unchanged. If there are at least minSlice of them, the read returns
// slices of the chunk's arrays, without copying rows. If there are fewer, the rows are appended to a batch together
// with the changed rows around them, so that many changes do not make many tiny batches.
//
// The columns of the chunk are decoded only when they are needed. The columns of the key are decoded when the first
// change or the first bound of a range is looked up in them. The columns that the read needs are decoded when the first
// row is returned.
//
// If the cursor fails, for example because the versions since the chunk's timestamp were collected, the method left
// returns the ranges that were not returned yet. The Reader then reads these ranges from the table.
const (
	minSlice    = 1024
	maxMerged   = 8192    // approximate maximum number of rows of a batch
	mergedBytes = 1 << 20 // approximate maximum size of a batch in bytes
)

// merge reads the rows of a chunk in some key ranges, as they are at the timestamp of the read.
type merge struct {
	*Reader
	chunk   *chunk
	spans   []table.Span // the spans not yet read, the current one first
	changes *mvcc.Cursor

	begun    bool // whether the fields from and to are set for the current span
	from, to int  // the rows [from, to) of the chunk are in the current span and were not read yet
	// pending says that the cursor is on a changed row that was not merged yet. This row is in the current span or
	// after it.
	pending bool
	// change says that the pending row is in the current span. Then the field at is the index of the first row of the
	// chunk whose key is not below the key of the pending row.
	change  bool
	at      int
	lastKey []byte // the key of the last change merged in the current span; empty before the first
}

// openMerge begins to read the spans of a segment that has a chunk. The error is mvcc.ErrCollected if some of the
// changes since the chunk's timestamp may have been collected.
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

// left returns the ranges that must be read from the table after m.changes, the cursor over the changes, has failed.
// The rows of these ranges were neither returned nor added to the batch.
func (m *merge) left() []table.Span {
	spans := append([]table.Span(nil), m.spans...)
	if len(m.lastKey) > 0 {
		spans[0].Start = table.Ranges([]table.Span{{Start: m.lastKey}})[0].End
	}
	return spans
}

// next makes the next run, the consecutive rows that Reader.Next returns. n is the number of rows in it. more is false
// at the end of the segment.
func (m *merge) next() (n int, more bool, err error) {
	m.emptyBatch()
	for len(m.spans) > 0 {
		if !m.begun {
			if err := m.begin(); err != nil {
				return 0, false, err
			}
		}
		if n, err := m.emitUnchanged(); n > 0 || err != nil {
			return n, true, err
		}
		if m.change {
			if err := m.applyChange(); err != nil {
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

// begin begins the first of the remaining spans. It finds the rows of the chunk in this span, and the first change.
func (m *merge) begin() (err error) {
	span := m.spans[0]
	m.from, m.to, m.lastKey = m.to, int(m.chunk.rows), m.lastKey[:0] // begin after the rows of the previous span
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

// advance finds the next change in the current span, and its position among the rows of the chunk.
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

// find returns the index of the first row of the chunk in [from, to) whose key is not below bound. If there is no
// such row, it returns the end of this range.
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

// emitUnchanged handles the rows of the chunk before the next change. If there are fewer than minSlice of them, it adds
// them to the batch. Otherwise it makes them the current run and returns their number. But if the batch already has
// rows, these must come first: emitUnchanged then makes the rows of the batch the current run, and handles the rows of
// the chunk in its next call.
func (m *merge) emitUnchanged() (n int, err error) {
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

// applyChange merges the next change. If the chunk has a row with the same key, it skips that row. If the change is not
// a deletion, it adds the changed row to the batch.
func (m *merge) applyChange() error {
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
		// Append uses the slice that was last passed to Find. The method advance has passed the key to Find, but since
		// then a call of Release may have copied the key to another slice.
		if _, _, err := m.decoder.Find(key); err != nil {
			return err
		}
		if err := m.decoder.Append(m.batch.Columns, m.changes.Value()); err != nil {
			return err
		}
		m.batchRows++
	}
	m.lastKey = append(m.lastKey[:0], key...)
	m.pending = false
	return m.advance()
}

// batchBytes estimates the number of bytes of the rows in the batch.
func (m *merge) batchBytes() (n int64) {
	if m.batchRows == 0 {
		return 0
	}
	return m.batch.Used()
}

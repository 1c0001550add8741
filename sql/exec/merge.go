package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// mergeFanIn is the greatest number of lists that are merged at a time. Each list takes spill.BlockSize bytes of
// memory.
const mergeFanIn = 32

// merge reads several sorted lists of rows as one sorted list, and frees them. Rows that compare equal come in the
// order of their lists.
type merge struct {
	compare func(a, b []value.Value) int
	sources []mergeSource
	heap    []int // indexes of the sources that have a row; the source with the least row is first
	begun   bool
	held    held
}

type mergeSource struct {
	reader rowStream
	row    []value.Value
}

// rowStream returns sorted rows one by one. A spill.Reader is a rowStream.
type rowStream interface {
	Next(row []value.Value) (bool, error)
	Close()
}

// newMerge returns a merge of lists on disk, whose rows have columns of these types, and of other streams, whose rows
// are computed while they are read. The lists and the streams must be sorted. As long as there are more than mergeFanIn
// lists, newMerge first merges mergeFanIn neighbouring lists at a time into longer lists on disk.
func (r *run) newMerge(types []*value.Type, compare func(a, b []value.Value) int, lists []*spill.Rows, others ...rowStream) (*merge, error) {
	for len(lists) > mergeFanIn {
		var longer []*spill.Rows
		for len(lists) > 0 {
			n := min(mergeFanIn, len(lists))
			l, err := r.mergeLists(types, compare, lists[:n])
			if err != nil {
				return nil, err
			}
			longer, lists = append(longer, l), lists[n:]
		}
		lists = longer
	}
	return r.openMerge(types, compare, lists, others)
}

// mergeLists merges several lists into one list on disk.
func (r *run) mergeLists(types []*value.Type, compare func(a, b []value.Value) int, lists []*spill.Rows) (*spill.Rows, error) {
	m, err := r.openMerge(types, compare, lists, nil)
	if err != nil {
		return nil, err
	}
	defer m.close(r)
	w, err := r.newList(types)
	if err != nil {
		return nil, err
	}
	for {
		row, ok, err := m.nextRow()
		if err != nil {
			return nil, err
		}
		if !ok {
			return w.Finish()
		}
		if err := w.Append(row); err != nil {
			return nil, err
		}
	}
}

func (r *run) openMerge(types []*value.Type, compare func(a, b []value.Value) int, lists []*spill.Rows, others []rowStream) (*merge, error) {
	m := &merge{compare: compare}
	if err := r.memory.keepBytes(&m.held, int64(len(lists)+len(others))*spill.BlockSize); err != nil {
		return nil, err
	}
	for _, l := range lists {
		m.sources = append(m.sources, mergeSource{l.ReadLast(), make([]value.Value, len(types))})
	}
	for _, o := range others {
		m.sources = append(m.sources, mergeSource{o, make([]value.Value, len(types))})
	}
	return m, nil
}

func (m *merge) close(r *run) {
	for i := range m.sources {
		m.sources[i].reader.Close()
	}
	m.sources, m.heap = nil, nil
	r.memory.release(&m.held)
}

// nextRow returns the next row, which is valid until the next call.
func (m *merge) nextRow() (row []value.Value, ok bool, err error) {
	if !m.begun {
		if err := m.begin(); err != nil {
			return nil, false, err
		}
	} else if len(m.heap) > 0 {
		s := &m.sources[m.heap[0]]
		if ok, err = s.reader.Next(s.row); err != nil {
			return nil, false, err
		}
		if !ok {
			last := len(m.heap) - 1
			m.heap[0], m.heap = m.heap[last], m.heap[:last]
		}
		sink(m.heap, 0, m.before)
	}
	if len(m.heap) == 0 {
		return nil, false, nil
	}
	return m.sources[m.heap[0]].row, true, nil
}

// begin reads the first row of each source and makes the heap.
func (m *merge) begin() error {
	m.begun = true
	for i := range m.sources {
		ok, err := m.sources[i].reader.Next(m.sources[i].row)
		if err != nil {
			return err
		}
		if ok {
			m.heap = append(m.heap, i)
		}
	}
	for i := len(m.heap)/2 - 1; i >= 0; i-- {
		sink(m.heap, i, m.before)
	}
	return nil
}

func (m *merge) before(i, j int) bool {
	d := m.compare(m.sources[i].row, m.sources[j].row)
	return d < 0 || d == 0 && i < j
}

// sink moves entry i of a heap down until it comes before the entries below it. The entries of the heap are numbers:
// before(a, b) reports whether the number a comes before the number b. The first entry of a heap comes before all
// others.
func sink(heap []int, i int, before func(a, b int) bool) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if before(heap[child], heap[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		heap[i], heap[least] = heap[least], heap[i]
		i = least
	}
}

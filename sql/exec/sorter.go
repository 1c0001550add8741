package exec

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// sorter sorts rows by their sort keys. Rows that compare equal keep their order. If the rows do not fit into memory, it writes sorted lists to
// disk and merges them at the end.
type sorter struct {
	*comparer
	types      []*value.Type // the types of a row, followed by those of its keys
	width      int           // the number of columns of a row
	rows, keys []value.Value
	order      []int32
	limit      int64 // how many rows are wanted, -1 for all
	// last are the keys of the last of the first limit rows so far. A further row that does not come before it is not wanted. last is nil while
	// that is not known.
	last []value.Value
	held held

	runs   []*spill.Rows
	merged *merge // nil if all rows are in memory
	at     int64  // how many rows have been read
}

// newSorter returns a sorter for rows with columns of these types.
func newSorter(order *ordering, types []*value.Type) sorter {
	return sorter{comparer: order.comparer(), types: slices.Concat(types, order.types), width: len(types), limit: -1}
}

// reset empties the sorter.
func (s *sorter) reset(r *run, limit int64) {
	r.memory.release(&s.held)
	free(s.runs)
	if s.merged != nil {
		s.merged.close(r)
	}
	s.rows, s.keys, s.order, s.limit, s.last = nil, nil, nil, limit, nil
	s.runs, s.merged, s.at = nil, nil, 0
}

// addBy computes the sort keys of a row and adds the row.
func (s *sorter) addBy(r *run, row []value.Value) error {
	var err error
	if s.keys, err = s.append(r, s.keys, row); err != nil {
		return err
	}
	keys := s.keys[len(s.keys)-len(s.comparer.keys):]
	if s.tooLate(keys) {
		s.keys = s.keys[:len(s.keys)-len(keys)]
		return nil
	}
	return s.addKeyed(r, row, besideRow(keys, s.computed))
}

// addWith adds a row whose sort keys have been computed by append.
func (s *sorter) addWith(r *run, row, keys []value.Value) error {
	if s.tooLate(keys) {
		return nil
	}
	s.keys = append(s.keys, keys...)
	return s.addKeyed(r, row, besideRow(keys, s.computed))
}

// tooLate reports whether a row with these keys is certainly not among the first limit rows.
func (s *sorter) tooLate(keys []value.Value) bool {
	return s.last != nil && s.compare(keys, s.last) >= 0
}

// addKeyed adds a row. Its keys are the last values of s.keys, and take keyBytes bytes beside the row. If there are far more rows than limit, addKeyed
// drops the last of them. It spills if the rows take too much memory.
func (s *sorter) addKeyed(r *run, row []value.Value, keyBytes int64) error {
	if err := s.keep(r, row, keyBytes); err != nil {
		return err
	}
	if n := int64(len(s.order)); s.limit >= 0 && n >= fullBatch && (n-fullBatch)/2 >= s.limit { // no sum: the limit may be the largest integer
		s.sort()
		r.memory.shrink(&s.held, float64(s.limit)/float64(len(s.order)))
		s.cut()
		if s.limit > 0 {
			s.last = slices.Clone(s.keysOf(len(s.order) - 1))
		}
	}
	return s.makeRoom(r)
}

// add adds a row with its keys. The row stays in memory until makeRoom is called.
func (s *sorter) add(r *run, row, keys []value.Value) error {
	s.keys = append(s.keys, keys...)
	return s.keep(r, row, rowBytes(keys))
}

// keep adds a row to those in memory. Its keys are the last values of s.keys, and take keyBytes bytes beside the row.
func (s *sorter) keep(r *run, row []value.Value, keyBytes int64) error {
	s.rows = append(s.rows, row...)
	s.order = append(s.order, int32(len(s.order)))
	return r.memory.keepBytes(&s.held, rowOverhead+rowBytes(row)+keyBytes)
}

// makeRoom spills the rows in memory if they take too much.
func (s *sorter) makeRoom(r *run) error {
	if !r.memory.full(s.held) {
		return nil
	}
	return s.spill(r)
}

func (s *sorter) row(i int) []value.Value {
	at := int(s.order[i]) * s.width
	return s.rows[at : at+s.width]
}

// keysOf returns the keys of row(i).
func (s *sorter) keysOf(i int) []value.Value {
	n := len(s.comparer.keys)
	at := int(s.order[i]) * n
	return s.keys[at : at+n]
}

func (s *sorter) sort() {
	n := len(s.comparer.keys)
	if n == 0 {
		return
	}
	slices.SortStableFunc(s.order, func(i, j int32) int {
		a, b := int(i)*n, int(j)*n
		return s.compare(s.keys[a:a+n], s.keys[b:b+n])
	})
}

// cut keeps the first limit rows in order, and drops the others.
func (s *sorter) cut() {
	if s.limit < 0 || int64(len(s.order)) <= s.limit {
		return
	}
	var rows, keys []value.Value
	for i := range int(s.limit) {
		rows = append(rows, s.row(i)...)
		keys = append(keys, s.keysOf(i)...)
	}
	s.rows, s.keys, s.order = rows, keys, s.order[:s.limit]
	for i := range s.order {
		s.order[i] = int32(i)
	}
}

// spill sorts the rows in memory and writes them to a list on disk.
func (s *sorter) spill(r *run) error {
	s.sort()
	s.cut()
	w, err := r.newList(s.types)
	if err != nil {
		return err
	}
	for i := range s.order {
		if err := w.Append(s.row(i), s.keysOf(i)...); err != nil {
			return err
		}
	}
	list, err := w.Finish()
	if err != nil {
		return err
	}
	s.runs = append(s.runs, list)
	s.empty(r)
	return nil
}

// empty drops the rows in memory.
func (s *sorter) empty(r *run) {
	clear(s.rows)
	clear(s.keys)
	s.rows, s.keys, s.order = s.rows[:0], s.keys[:0], s.order[:0]
	r.memory.release(&s.held)
}

// finish must be called after the last row is added. nextRow then returns the rows in order.
func (s *sorter) finish(r *run) error {
	if len(s.runs) == 0 {
		s.sort()
		s.cut()
		return nil
	}
	if len(s.order) > 0 {
		if err := s.spill(r); err != nil {
			return err
		}
	}
	s.rows, s.keys, s.order = nil, nil, nil
	runs := s.runs
	s.runs = nil
	var err error
	s.merged, err = r.newMerge(s.types, func(a, b []value.Value) int { return s.compare(a[s.width:], b[s.width:]) }, runs)
	return err
}

// nextRow returns the next row, which is valid until the next call.
func (s *sorter) nextRow() (row []value.Value, ok bool, err error) {
	s.at++
	if s.merged == nil {
		if s.at > int64(len(s.order)) {
			return nil, false, nil
		}
		return s.row(int(s.at - 1)), true, nil
	}
	if s.limit >= 0 && s.at > s.limit {
		return nil, false, nil
	}
	if row, ok, err = s.merged.nextRow(); !ok {
		return nil, false, err
	}
	return row[:s.width], true, nil
}

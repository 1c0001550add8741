package exec

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// selectiveState is the state of an aggregate with DISTINCT, HAVING MAX or MIN, ORDER BY or LIMIT.
type selectiveState struct {
	plainState
	distinct *distinctRows
	rows     *sorter // the arguments of all rows, to be sorted by ORDER BY at the end; nil if rows are added as they come
	keys     []value.Value
	extreme  value.Value
	begun    bool // a row has had a value of HAVING MAX or MIN, so the field extreme is set or none is true
	none     bool // the extreme is NaN; no row equals NaN, so no row counts
	spills   bool // the state itself spills the rows that it keeps; if false, the type groups moves them to disk
}

func (a *aggCode) startSelective(spills bool) *selectiveState {
	s := &selectiveState{plainState: plainState{aggCode: a, state: a.fn.New()}, spills: spills}
	order := a.order
	if order == nil {
		order = &ordering{}
	}
	if a.node.Distinct {
		s.distinct = newDistinct(a.types, order.types)
	}
	if a.order != nil || a.limit != nil || a.fn.Collects {
		rows := newSorter(order, a.types)
		s.rows = &rows
	}
	return s
}

func (s *selectiveState) add(r *run, row []value.Value) error {
	if s.having != nil {
		ok, err := s.atExtreme(r, row)
		if !ok || err != nil {
			return err
		}
	}
	args, ok, err := s.arguments(r, row)
	if !ok || err != nil {
		return err
	}
	s.keys = s.keys[:0]
	if s.order != nil {
		if s.keys, err = s.order.append(r, s.keys, row); err != nil {
			return err
		}
	}
	return s.takeFirst(r, args, s.keys)
}

// takeFirst adds the arguments of a row. It drops them if the aggregate has DISTINCT and equal arguments were added
// before.
func (s *selectiveState) takeFirst(r *run, args, keys []value.Value) error {
	if s.distinct != nil {
		var first bool
		var err error
		if s.spills {
			first, err = s.distinct.add(r, args, keys...)
		} else {
			first, err = s.distinct.keepAll(r, args)
		}
		if !first || err != nil {
			return err
		}
	}
	return s.takeSorted(r, args, keys)
}

func (s *selectiveState) takeSorted(r *run, args, keys []value.Value) error {
	if s.rows == nil {
		return s.addArgs(r, args)
	}
	if err := s.rows.add(r, args, keys); err != nil || !s.spills {
		return err
	}
	return s.rows.makeRoom(r)
}

// atExtreme reports whether a row has the largest value of HAVING MAX so far (with HAVING MIN, the smallest). If
// the row's value is a new extreme, atExtreme drops the rows that were added before.
func (s *selectiveState) atExtreme(r *run, row []value.Value) (bool, error) {
	v, err := s.having(r, row)
	if err != nil || v.IsNull() {
		return false, err
	}
	if equalsNothing(v) { // NaN counts as both the greatest and the least value, but no row equals it
		s.begun, s.none = true, true
		s.restart(r)
	}
	if s.none {
		return false, nil
	}
	if s.begun {
		c := value.Compare(v, s.extreme, s.node.Having.Type())
		if !s.node.HavingMax {
			c = -c
		}
		if c <= 0 {
			return c == 0, nil
		}
	}
	s.begun, s.extreme = true, v
	s.restart(r)
	return true, nil
}

// restart drops all rows that were added so far, because a new extreme was found or because the method move has passed
// them on.
func (s *selectiveState) restart(r *run) {
	s.state = s.fn.New()
	s.release(r)
}

func (s *selectiveState) release(r *run) {
	s.plainState.release(r)
	if s.distinct != nil {
		s.distinct.reset(r)
	}
	if s.rows != nil {
		s.rows.reset(r, -1)
	}
}

func (s *selectiveState) result(r *run) (value.Value, error) {
	if s.distinct != nil {
		n := len(s.args)
		err := s.distinct.putOff(r, func(row []value.Value) error { return s.takeSorted(r, row[:n], row[n:]) })
		if err != nil {
			return value.Value{}, err
		}
	}
	if s.rows == nil {
		return s.state.Result()
	}
	limit, err := optionalLimit(r, s.limit)
	if err != nil {
		return value.Value{}, err
	}
	if err := s.rows.finish(r); err != nil {
		return value.Value{}, err
	}
	for i := int64(0); limit < 0 || i < limit; i++ {
		row, ok, err := s.rows.nextRow()
		if err != nil {
			return value.Value{}, err
		}
		if !ok {
			break
		}
		if err := s.addArgs(r, row); err != nil {
			return value.Value{}, err
		}
	}
	return s.state.Result()
}

func (s *selectiveState) move(r *run, f func(row []value.Value, more ...value.Value) error) error {
	var row []value.Value
	write := func(args, keys []value.Value) error {
		row = row[:0]
		if s.having != nil {
			row = append(row, s.extreme)
		}
		return f(append(row, args...), keys...)
	}
	switch {
	case s.rows != nil:
		for i := range s.rows.order {
			if err := write(s.rows.row(i), s.rows.keysOf(i)); err != nil {
				return err
			}
		}
	case s.distinct != nil:
		for i := range s.distinct.table.len() {
			if err := write(s.distinct.table.key(i), nil); err != nil {
				return err
			}
		}
	}
	s.restart(r)
	return nil
}

func (s *selectiveState) restore(r *run, row []value.Value) error {
	if s.having != nil {
		if s.none || value.Compare(row[0], s.extreme, s.node.Having.Type()) != 0 {
			return nil // a row that came after this one had a new extreme, so this row does not count
		}
		row = row[1:]
	}
	s.spills = true
	n := len(s.args)
	return s.takeFirst(r, row[:n], row[n:])
}

// distinctRows finds, for each key, the first row that has the key. It keeps the keys in memory. When the keys take too
// much memory, distinctRows puts off the rows with further keys. It writes these rows to partitions on disk. At the end
// it finds the first row of each of their keys, partition by partition.
type distinctRows struct {
	types []*value.Type // the types of a row; the row begins with its key
	table *hashTable
	held  held
	rest  *partitions // the rows that were put off; nil if there are none
	count int64       // the number of calls of add
}

func newDistinct(keys, more []*value.Type) *distinctRows {
	return &distinctRows{types: slices.Concat(keys, more), table: newHashTable(keys)}
}

// add adds a row: the values of the slice key, followed by those of the slice more. It reports whether the row is the
// first with its key. If add puts the row off, it returns false, and the method putOff decides at the end whether the
// row is the first.
func (d *distinctRows) add(r *run, key []value.Value, more ...value.Value) (first bool, err error) {
	d.count++
	return d.addTagged(r, d.count, key, more)
}

// keepAll adds a row that consists of its key only. Unlike add, it keeps the key in memory even if the
// statement has used up its share of memory, so it never puts off a row.
func (d *distinctRows) keepAll(r *run, key []value.Value) (first bool, err error) {
	if _, first = d.table.find(key); first {
		err = r.memory.keepEntry(&d.held, key)
	}
	return first, err
}

func (d *distinctRows) addTagged(r *run, tag int64, key, more []value.Value) (first bool, err error) {
	h := d.table.hashOf(key)
	if d.table.firstHashed(key, h) >= 0 {
		return false, nil
	}
	if d.rest == nil && r.memory.full(d.held) {
		d.rest = &partitions{types: withTag(d.types)}
	}
	if d.rest != nil {
		row := append(append(make([]value.Value, 0, len(d.types)+1), key...), more...)
		return false, d.rest.add(r, h, row, value.OfInt64(tag))
	}
	d.table.addHashed(key, h)
	return true, r.memory.keepEntry(&d.held, key)
}

// reset forgets all rows.
func (d *distinctRows) reset(r *run) {
	d.table.clear()
	r.memory.release(&d.held)
	if d.rest != nil {
		d.rest.drop(r)
		d.rest = nil
	}
}

// putOff calls f with each row that was put off and that is the first with its key. The rows come in the order in
// which they were added.
func (d *distinctRows) putOff(r *run, f func(row []value.Value) error) error {
	if d.rest == nil {
		return nil
	}
	out := newTagged(d.types)
	defer out.close(r)
	if err := d.separate(r, out); err != nil {
		return err
	}
	if err := out.finish(r); err != nil {
		return err
	}
	for {
		row, ok, err := out.nextRow()
		if !ok || err != nil {
			return err
		}
		if err := f(row[:len(d.types)]); err != nil {
			return err
		}
	}
}

// separate looks for the first row of each key among the rows that were put off, and adds these first rows to out.
// It empties the table of the keys in memory.
func (d *distinctRows) separate(r *run, out *tagged) error {
	lists, err := d.rest.finish(r)
	if err != nil {
		return err
	}
	d.reset(r)
	for _, list := range lists {
		if list == nil {
			continue
		}
		if err := d.separateList(r, list, out); err != nil {
			return err
		}
	}
	return nil
}

func (d *distinctRows) separateList(r *run, list *spill.Rows, out *tagged) error {
	nk, n := len(d.table.types), len(d.types)
	part := &distinctRows{types: d.types, table: newHashTable(d.table.types)}
	defer part.reset(r)
	if err := out.begin(r); err != nil {
		return err
	}
	row := make([]value.Value, n+1)
	err := readLast(list, row, func() error {
		tag := row[n].AsInt64()
		first, err := part.addTagged(r, tag, row[:nk], row[nk:n])
		if err == nil && first {
			err = out.add(tag, row[:n])
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := out.end(); err != nil || part.rest == nil {
		return err
	}
	return part.separate(r, out)
}

package exec

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// groups holds the groups of one grouping set. If there are too many groups for memory, the groups that exist already
// stay in memory, and the rows of all other groups are put off: they are written to partitions on disk. After the last
// input row, the partitions are read one after the other, and their rows are grouped. The values that aggregates collect
// for the groups in memory, such as the elements of ARRAY_AGG, can be moved to disk too. They are read back at the end.
type groups struct {
	*grouping
	set       []int         // the indexes in grouping.keys of the keys of the grouping set; nil if the set has all keys
	key       []value.Value // the key of the current row, with NULL for keys that are not in the set
	table     *hashTable
	states    []aggStates   // for each aggregate, the states of all groups; the group of entry i of table has state i
	entries   []int32       // for the row at each place (see batch), its group's entry in table; -1 if it is on disk
	inMemory  []int32       // the places of the rows of a batch whose groups are in memory
	room      []value.Value // memory for one row
	first     []int64       // for each entry of table, the position in the input of the group's first row
	held      held          // memory that is charged for keys and states
	collected int64         // bytes of memory that the collected values take (see the method collect)
	// moved holds the collected values on disk. Each call of the method move adds one list for each of collectors. So
	// list i has values of the aggregate aggs[collectors[i%len(collectors)]]. A list is sorted by the groups' entries.
	moved []*spill.Rows
	rest  *partitions // the rows on disk, with their positions in the input; nil if there are none
}

// stateBytes estimates how many bytes of memory one aggregate takes for one group, without collected values.
const stateBytes = 72

func newGroups(g *grouping, set []int) *groups {
	return &groups{grouping: g, set: set, key: nullsOf(g.types), table: newHashTable(g.types), states: g.aggregateCode.states(true)}
}

// add adds the rows of b at the given places (see batch) to their groups. The caller has computed the keys of these
// rows into g.keyed. The function number returns the position in the input of the row at a place.
func (g *groups) add(r *run, b *batch, places []int32, number func(place int32) int64) error {
	if n := b.span(); cap(g.entries) < n {
		g.entries = make([]int32, n)
	} else {
		g.entries = g.entries[:n]
	}
	if g.set == nil {
		g.table.lookup(g.keyed.cols, b.span(), places, g.entries)
	} else {
		for _, i := range places {
			g.entries[i] = -1
		}
	}
	off := 0
	for _, i := range places {
		if g.entries[i] >= 0 {
			continue
		}
		if g.set == nil {
			g.keyed.row(i, g.key)
		} else {
			for _, k := range g.set {
				g.key[k] = g.keyed.cols[k].Peek(int(i))
			}
		}
		h := g.table.hashOf(g.key)
		entry := g.table.firstHashed(g.key, h)
		if entry < 0 {
			var err error
			if entry, err = g.addNew(r, h, b, i, number(i)); err != nil {
				return err
			}
			if entry < 0 {
				off++
			}
		}
		g.entries[i] = int32(entry)
	}
	if off > 0 {
		g.inMemory = slices.Grow(g.inMemory[:0], len(places)-off)
		for _, i := range places {
			if g.entries[i] >= 0 {
				g.inMemory = append(g.inMemory, i)
			}
		}
		places = g.inMemory
	}
	g.resizeStates()
	for i, s := range g.states {
		if g.aggs[i].collects() {
			continue
		}
		if err := s.add(r, b, places, g.entries); err != nil {
			return err
		}
	}
	if len(g.collectors) == 0 {
		return nil
	}
	return g.collect(r, b, places)
}

// addNew begins a group with the key g.key for the row of b at a place. If there is no memory for the group, addNew
// puts the row off: it writes the row to a partition on disk and returns entry -1. number is the row's position in the
// input.
func (g *groups) addNew(r *run, h uint64, b *batch, place int32, number int64) (entry int, err error) {
	if g.rest == nil && r.memory.full(g.held) {
		g.rest = &partitions{types: withTag(g.inTypes)}
	}
	if g.rest != nil {
		if g.room == nil {
			g.room = make([]value.Value, b.width)
		}
		return -1, g.rest.add(r, h, b.rowAt(place, g.room)[:len(g.inTypes)], value.OfInt64(number))
	}
	// The table keeps the key longer than the batch lives, so the key must not refer to memory of the batch.
	for k := range g.key {
		if v := g.keyed.cols[k].Vector; v != nil && !g.key[k].IsNull() {
			g.key[k] = v.At(int(place))
		}
	}
	entry = g.begin(g.key, h, number)
	if err := r.memory.keepEntry(&g.held, g.key); err != nil {
		return entry, err
	}
	return entry, r.memory.keepBytes(&g.held, stateBytes*int64(len(g.aggs)))
}

// collect adds rows, one at a time, to the aggregates that collect the values of all their rows, such as ARRAY_AGG.
// After each row it checks the memory in use, because a row can be large. It moves the collected values to disk if
// they take too much memory.
func (g *groups) collect(r *run, b *batch, places []int32) error {
	for _, i := range places {
		before := r.memory.now
		for _, a := range g.collectors {
			if err := g.states[a].(*rowStates).list[g.entries[i]].add(r, b.row(int(i))); err != nil {
				return err
			}
		}
		g.collected += r.memory.now - before
		if r.memory.full(held(g.collected)) {
			if err := g.move(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// begin adds a group to the table and returns its entry. It does not make the states of the aggregates for the group:
// the caller must call resizeStates before it adds rows to the group.
func (g *groups) begin(key []value.Value, hash uint64, number int64) (entry int) {
	g.first = append(g.first, number)
	return g.table.addHashed(key, hash)
}

// resizeStates makes the states of all groups that the method begin has added.
func (g *groups) resizeStates() {
	for _, s := range g.states {
		s.resize(g.table.len())
	}
}

// move moves the collected values of all groups to disk.
func (g *groups) move(r *run) error {
	for _, i := range g.collectors {
		w, err := r.newList(withTag(g.aggs[i].kept()))
		if err != nil {
			return err
		}
		for entry := range g.table.len() {
			err := g.states[i].(*rowStates).collector(entry).move(r, func(row []value.Value, more ...value.Value) error {
				return w.Append(row, append(more[:len(more):len(more)], value.OfInt64(int64(entry)))...)
			})
			if err != nil {
				return err
			}
		}
		list, err := w.Finish()
		if err != nil {
			return err
		}
		g.moved = append(g.moved, list)
	}
	g.collected = 0
	return nil
}

// spilled reports whether any rows or collected values of the groups are on disk.
func (g *groups) spilled() bool { return g.rest != nil || g.moved != nil }

func (g *groups) release(r *run) {
	for _, s := range g.states {
		s.clear(r)
	}
	free(g.moved)
	if g.rest != nil {
		g.rest.drop(r)
	}
	r.memory.release(&g.held)
	*g = groups{grouping: g.grouping, set: g.set, key: g.key, table: newHashTable(g.types), states: g.states, entries: g.entries}
}

// finishAll adds the result rows of all groups to out, those on disk included, and forgets the groups. row is
// memory for one result row.
func (g *groups) finishAll(r *run, out *tagged, row []value.Value) error {
	if err := out.begin(r); err != nil {
		return err
	}
	if err := g.finishThese(r, out, row); err != nil {
		return err
	}
	if err := out.end(); err != nil {
		return err
	}
	rest := g.rest
	g.rest = nil
	g.release(r)
	if rest == nil {
		return nil
	}
	lists, err := rest.finish(r)
	if err != nil {
		return err
	}
	for _, list := range lists {
		if list == nil {
			continue
		}
		if err := g.finishList(r, list, out, row); err != nil {
			return err
		}
	}
	return nil
}

// finishList groups the rows of one partition and adds the result rows to out. row is memory for one result row.
func (g *groups) finishList(r *run, list *spill.Rows, out *tagged, row []value.Value) error {
	part := newGroups(g.grouping, g.set)
	defer part.release(r)
	n := len(g.inTypes)
	b := newBatch(n + 1) // the last column is the row's position in the input
	number := func(place int32) int64 { return b.row(int(place))[n].AsInt64() }
	add := func() error {
		err := g.each(r, &b, func(places []int32) error { return part.add(r, &b, places, number) })
		b.begin()
		return err
	}
	in, size := make([]value.Value, n+1), int64(0)
	err := readLast(list, in, func() error {
		b.add(in, nil)
		if size += rowBytes(in); !b.full() && size < computedBytes {
			return nil
		}
		size = 0
		return add()
	})
	if err == nil {
		err = add()
	}
	if err != nil {
		return err
	}
	return part.finishAll(r, out, row)
}

// finishThese adds the result rows of the groups in memory to out. row is memory for one result row.
func (g *groups) finishThese(r *run, out *tagged, row []value.Value) error {
	var collected []*restored
	if g.moved != nil {
		if err := g.move(r); err != nil {
			return err
		}
		n := len(g.collectors)
		for i, a := range g.collectors {
			var lists []*spill.Rows
			for at := i; at < len(g.moved); at += n {
				lists = append(lists, g.moved[at])
			}
			c, err := r.openRestored(withTag(g.aggs[a].kept()), lists)
			if err != nil {
				return err
			}
			defer c.merged.close(r)
			collected = append(collected, c)
		}
		g.moved = nil
	}
	for entry := range g.table.len() {
		for i, c := range collected {
			if err := c.restore(r, g.states[g.collectors[i]].(*rowStates).collector(entry), int64(entry)); err != nil {
				return err
			}
		}
		if err := g.finish(r, row, g.table.key(entry), g.states, entry, g.set); err != nil {
			return err
		}
		for _, a := range g.collectors {
			g.states[a].(*rowStates).list[entry].release(r)
		}
		if err := out.add(g.first[entry], row); err != nil {
			return err
		}
	}
	return nil
}

// restored reads the values that one aggregate has collected and moved to disk. It returns them group by group.
type restored struct {
	merged *merge
	row    []value.Value // the next row; nil at the end
}

func (r *run) openRestored(types []*value.Type, lists []*spill.Rows) (*restored, error) {
	m, err := r.newMerge(types, compareTags, lists)
	if err != nil {
		return nil, err
	}
	c := &restored{merged: m}
	return c, c.advance()
}

func (c *restored) advance() error {
	row, ok, err := c.merged.nextRow()
	if c.row = row; !ok {
		c.row = nil
	}
	return err
}

// restore adds the values that were collected for one group to s, the state of that group. entry is the number of the
// group. The caller must restore groups in ascending order of their numbers.
func (c *restored) restore(r *run, s collector, entry int64) error {
	for c.row != nil {
		last := len(c.row) - 1
		if c.row[last].AsInt64() != entry {
			break
		}
		if err := s.restore(r, c.row[:last]); err != nil {
			return err
		}
		if err := c.advance(); err != nil {
			return err
		}
	}
	return nil
}

package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// groups are the groups of one grouping set. If they are too many for memory, the first of them stay there, rows of others are
// put off, and they are grouped in the end, partition by partition. What aggregates collect of the groups in memory, such as the elements of
// ARRAY_AGG, is moved to disk and back.
type groups struct {
	*grouping
	set       []int         // the grouping set, nil for all keys
	key       []value.Value // of the current row, with NULL for keys that are not in the set
	table     *hashTable
	states    [][]aggState  // of each entry of table
	first     []int64       // the number of the first row of each entry
	held      held          // by keys and states
	collected int64         // bytes that the states have collected
	moved     []*spill.Rows // what they have collected, for each of aggregateCode.collectors in turn; by ascending entry
	rest      *partitions   // rows of other groups, with their numbers; nil if there are none
}

// stateBytes is an estimate of what a group takes for each aggregate, beside what the aggregate collects.
const stateBytes = 72

func newGroups(g *grouping, set []int) *groups {
	return &groups{grouping: g, set: set, key: make([]value.Value, len(g.types)), table: newHashTable(g.types)}
}

// masked is the key of the current row in the grouping set.
func (g *groups) masked() []value.Value {
	if g.set == nil {
		return g.grouping.key
	}
	for i, t := range g.types {
		g.key[i] = value.Null(t.Kind)
	}
	for _, k := range g.set {
		g.key[k] = g.grouping.key[k]
	}
	return g.key
}

// add adds a row, whose keys are grouping.key, to its group. number is the row's place in the input.
func (g *groups) add(r *run, row []value.Value, number int64) error {
	key := g.masked()
	h := g.table.hashOf(key)
	entry := g.table.firstHashed(key, h)
	if entry < 0 {
		off, err := g.putOff(r, h, row, number)
		if off || err != nil {
			return err
		}
		entry = g.begin(key, h, number)
		if err := r.memory.keepEntry(&g.held, key); err != nil {
			return err
		}
		if err := r.memory.keepBytes(&g.held, stateBytes*int64(len(g.aggs))); err != nil {
			return err
		}
	}
	if len(g.collectors) == 0 {
		return add(r, g.states[entry], row)
	}
	before := r.memory.now
	if err := add(r, g.states[entry], row); err != nil {
		return err
	}
	g.collected += r.memory.now - before
	return g.makeRoom(r)
}

// begin begins a group.
func (g *groups) begin(key []value.Value, hash uint64, number int64) (entry int) {
	entry = g.table.addHashed(key, hash)
	states := make([]aggState, len(g.aggs))
	for i, a := range g.aggs {
		states[i] = a.startMany()
	}
	g.states, g.first = append(g.states, states), append(g.first, number)
	return entry
}

// putOff writes a row of a new group to a partition if there is no room for the group.
func (g *groups) putOff(r *run, hash uint64, row []value.Value, number int64) (off bool, err error) {
	if g.rest == nil {
		if !r.memory.full(g.held) {
			return false, nil
		}
		g.rest = &partitions{types: withTag(g.inTypes)}
	}
	return true, g.rest.add(r, hash, row, value.OfInt64(number))
}

// makeRoom moves what the aggregates have collected to disk if it is too much.
func (g *groups) makeRoom(r *run) error {
	if !r.memory.full(held(g.collected)) {
		return nil
	}
	return g.move(r)
}

func (g *groups) move(r *run) error {
	for _, i := range g.collectors {
		w, err := r.newList(withTag(g.aggs[i].kept()))
		if err != nil {
			return err
		}
		for entry, states := range g.states {
			err := states[i].(collector).move(r, func(row []value.Value, more ...value.Value) error {
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

// spilled says that something of the groups is on disk.
func (g *groups) spilled() bool { return g.rest != nil || g.moved != nil }

func (g *groups) release(r *run) {
	if len(g.collectors) > 0 {
		for _, states := range g.states {
			release(r, states)
		}
	}
	free(g.moved)
	if g.rest != nil {
		g.rest.drop(r)
	}
	r.memory.release(&g.held)
	*g = groups{grouping: g.grouping, set: g.set, key: g.key, table: newHashTable(g.types)}
}

// finishAll adds the rows of all groups to out, and forgets the groups. row has room for a row of out.
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

// finishList groups the rows of a partition.
func (g *groups) finishList(r *run, list *spill.Rows, out *tagged, row []value.Value) error {
	part := newGroups(g.grouping, g.set)
	defer part.release(r)
	n := len(g.inTypes)
	in := make([]value.Value, n+1)
	err := readLast(list, in, func() error {
		if err := g.keyOf(r, in[:n]); err != nil {
			return err
		}
		return part.add(r, in[:n], in[n].AsInt64())
	})
	if err != nil {
		return err
	}
	return part.finishAll(r, out, row)
}

// finishThese adds the rows of the groups in memory to out.
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
	for entry, states := range g.states {
		for i, c := range collected {
			if err := c.restore(r, states[g.collectors[i]].(collector), int64(entry)); err != nil {
				return err
			}
		}
		if err := g.finish(r, row, g.table.key(entry), states, g.set); err != nil {
			return err
		}
		release(r, states)
		if err := out.add(g.first[entry], row); err != nil {
			return err
		}
	}
	return nil
}

// restored reads what one aggregate has collected, group by group.
type restored struct {
	merged *merge
	row    []value.Value // the next; nil at the end
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

// restore gives a state what was collected for its group.
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

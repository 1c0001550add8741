package exec

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// aggregateCode is a compiled Aggregate.
type aggregateCode struct {
	node  *plan.Aggregate
	in    maker
	keys  []eval
	types []*value.Type // of keys
	aggs  []*aggCode
}

func (c *compiler) aggregate(n *plan.Aggregate) (maker, error) {
	code := &aggregateCode{node: n}
	var err error
	if code.in, err = c.input(n.Input, c.partial && n.Stream && len(n.Keys) > 0); err != nil {
		return nil, err
	}
	if code.keys, err = c.exprs(n.Keys); err != nil {
		return nil, err
	}
	for _, k := range n.Keys {
		code.types = append(code.types, k.Type())
	}
	for i := range n.Aggs {
		a, err := c.agg(&n.Aggs[i])
		if err != nil {
			return nil, err
		}
		a.defers = slices.Contains(n.PutOff, i)
		code.aggs = append(code.aggs, a)
	}
	out := c.batch(n.Width())
	return func(r *run) operator {
		base := grouping{aggregateCode: code, in: code.in(r), key: make([]value.Value, len(code.keys)), out: out}
		if n.Stream {
			return &streamOp{grouping: base}
		}
		return &hashOp{grouping: base}
	}, nil
}

// grouping is what the two operators that group rows have in common.
type grouping struct {
	*aggregateCode
	in  operator
	key []value.Value
	// held is the memory of the groups and of what their aggregates collect.
	held held
	out  batch
}

func (g *grouping) close() error { return g.in.close() }

// states starts the aggregates of a new group.
func (g *grouping) states() []aggState {
	list := make([]aggState, len(g.aggs))
	for i, a := range g.aggs {
		list[i] = a.start(&g.held)
	}
	return list
}

func (g *grouping) keyOf(r *run, row []value.Value) error {
	for i, f := range g.keys {
		v, err := f(r, row)
		if err != nil {
			return err
		}
		g.key[i] = v
	}
	return nil
}

func add(r *run, states []aggState, row []value.Value) error {
	for _, s := range states {
		if err := s.add(r, row); err != nil {
			return err
		}
	}
	return nil
}

// emit adds the row of a finished group; set is its grouping set, nil for all keys.
func (g *grouping) emit(r *run, key []value.Value, states []aggState, set []int) error {
	row := g.out.grow()
	n := copy(row, key)
	for _, s := range states {
		v, err := s.result(r)
		if err != nil {
			return err
		}
		row[n] = v
		n++
	}
	for _, k := range g.node.Grouping {
		row[n] = value.OfInt64(groupedAway(g.node.Sets, set, k))
		n++
	}
	for _, i := range g.node.PutOff {
		row[n] = states[i].(*deferredState).failure()
		n++
	}
	return nil
}

// groupedAway is GROUPING(key): 1 if the set does not group by it.
func groupedAway(sets [][]int, set []int, key int) int64 {
	if sets == nil {
		return 0
	}
	for _, k := range set {
		if k == key {
			return 0
		}
	}
	return 1
}

// streamOp groups rows whose groups come one after the other. Without keys all rows are one group.
type streamOp struct {
	grouping
	states []aggState // of the current group; nil before the first
	last   []value.Value
	ended  bool
}

func (o *streamOp) open(r *run) error {
	r.memory.release(&o.held)
	o.states, o.ended = nil, false
	if len(o.keys) == 0 {
		o.states = o.grouping.states()
	}
	o.out.reset()
	return o.in.open(r)
}

func (o *streamOp) next(r *run) (*batch, error) {
	o.out.begin()
	for !o.ended && !o.out.full() {
		b, err := r.pull(o.in)
		if err != nil {
			return nil, err
		}
		if b == nil {
			o.ended = true
			if o.states == nil {
				break
			}
			if err := o.emit(r, o.last, o.states, nil); err != nil {
				return nil, err
			}
			break
		}
		if err := o.consume(r, b); err != nil {
			return nil, err
		}
	}
	return o.out.some(), nil
}

func (o *streamOp) consume(r *run, b *batch) error {
	for i := range b.n {
		row := b.row(i)
		if err := o.keyOf(r, row); err != nil {
			return err
		}
		if o.states == nil || !o.same() {
			if o.states != nil {
				if err := o.emit(r, o.last, o.states, nil); err != nil {
					return err
				}
			}
			r.memory.release(&o.held)
			o.states = o.grouping.states()
			o.last = append(o.last[:0], o.key...)
		}
		if err := add(r, o.states, row); err != nil {
			return err
		}
	}
	return nil
}

func (o *streamOp) same() bool {
	for i, v := range o.key {
		if !value.Equal(v, o.last[i], o.types[i]) {
			return false
		}
	}
	return true
}

// hashOp groups rows that come in any order, for each grouping set.
type hashOp struct {
	grouping
	tables []*hashTable // one for each set
	groups [][][]aggState
	filled bool
	set    int // the set to emit from
	at     int
}

func (o *hashOp) open(*run) error {
	o.filled, o.set, o.at = false, 0, 0
	o.out.reset()
	return nil
}

func (o *hashOp) sets() int { return max(1, len(o.node.Sets)) }

func (o *hashOp) setAt(i int) []int {
	if o.node.Sets == nil {
		return nil
	}
	return o.node.Sets[i]
}

func (o *hashOp) fill(r *run) error {
	r.memory.release(&o.held)
	o.tables, o.groups = nil, make([][][]aggState, o.sets())
	for range o.sets() {
		o.tables = append(o.tables, newHashTable(o.types))
	}
	all := make([]value.Value, len(o.key))
	err := drain(r, o.in, func(row []value.Value) error {
		if err := o.keyOf(r, row); err != nil {
			return err
		}
		if o.node.Sets == nil {
			return o.addTo(r, 0, row)
		}
		copy(all, o.key)
		for i := range o.tables {
			o.mask(all, o.node.Sets[i])
			if err := o.addTo(r, i, row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for i := range o.tables { // the empty set has a group even of no rows
		if len(o.node.Sets) > 0 && len(o.node.Sets[i]) == 0 && o.tables[i].len() == 0 {
			o.mask(all, nil)
			o.tables[i].add(o.key)
			o.groups[i] = append(o.groups[i], o.states())
		}
	}
	o.filled = true
	return nil
}

// mask sets o.key to the keys in all, with NULL for keys that are not in the grouping set.
func (o *hashOp) mask(all []value.Value, set []int) {
	for i, t := range o.types {
		o.key[i] = value.Null(t.Kind)
	}
	for _, k := range set {
		o.key[k] = all[k]
	}
}

func (o *hashOp) addTo(r *run, set int, row []value.Value) error {
	entry, isNew := o.tables[set].find(o.key)
	if isNew {
		if err := r.memory.keep(&o.held, o.key); err != nil {
			return err
		}
		o.groups[set] = append(o.groups[set], o.states())
	}
	return add(r, o.groups[set][entry], row)
}

func (o *hashOp) next(r *run) (*batch, error) {
	if !o.filled {
		if err := o.fill(r); err != nil {
			return nil, err
		}
	}
	o.out.begin()
	for o.set < len(o.tables) && !o.out.full() {
		if o.at == o.tables[o.set].len() {
			o.set, o.at = o.set+1, 0
			continue
		}
		if err := o.emit(r, o.tables[o.set].key(o.at), o.groups[o.set][o.at], o.setAt(o.set)); err != nil {
			return nil, err
		}
		o.at++
	}
	return o.out.some(), nil
}

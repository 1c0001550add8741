package exec

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// aggregateCode is a compiled Aggregate.
type aggregateCode struct {
	node       *plan.Aggregate
	in         maker
	inTypes    []*value.Type
	keys       []eval
	types      []*value.Type // of keys
	outTypes   []*value.Type
	aggs       []*aggCode
	collectors []int // the places in aggs of those that collect
}

func (c *compiler) aggregate(n *plan.Aggregate) (maker, error) {
	code := &aggregateCode{node: n, inTypes: plan.Types(n.Input), outTypes: plan.Types(n)}
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
		if a.collects() {
			code.collectors = append(code.collectors, i)
		}
	}
	out := c.batch(n.Width())
	return func(r *run) operator {
		base := grouping{aggregateCode: code, in: code.in(r), key: make([]value.Value, len(code.keys)), out: out}
		if n.Stream {
			return &streamOp{grouping: base}
		}
		return &hashOp{grouping: base, row: make([]value.Value, n.Width())}
	}, nil
}

// grouping is what the two operators that group rows have in common.
type grouping struct {
	*aggregateCode
	in  operator
	key []value.Value
	out batch
}

func (g *grouping) close() error { return g.in.close() }

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

func release(r *run, states []aggState) {
	for _, s := range states {
		s.release(r)
	}
}

// finish makes the row of a finished group; set is its grouping set, nil for all keys.
func (g *grouping) finish(r *run, row, key []value.Value, states []aggState, set []int) error {
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
	release(r, o.states)
	o.states, o.ended = nil, false
	if len(o.keys) == 0 {
		o.begin()
	}
	o.out.reset()
	return o.in.open(r)
}

// begin starts the aggregates of a group.
func (o *streamOp) begin() {
	o.states = make([]aggState, len(o.aggs))
	for i, a := range o.aggs {
		o.states[i] = a.start()
	}
}

// emit adds the row of the current group.
func (o *streamOp) emit(r *run) error {
	if err := o.finish(r, o.out.grow(), o.last, o.states, nil); err != nil {
		return err
	}
	release(r, o.states)
	return nil
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
			if err := o.emit(r); err != nil {
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
				if err := o.emit(r); err != nil {
					return err
				}
			}
			o.begin()
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

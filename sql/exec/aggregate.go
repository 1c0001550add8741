package exec

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// aggregateCode is a compiled plan.Aggregate, which all executions of the plan share.
type aggregateCode struct {
	node       *plan.Aggregate
	in         maker
	inTypes    []*value.Type
	keys       []vectorExpr
	types      []*value.Type // the types of keys
	outTypes   []*value.Type
	aggs       []*aggCode
	collectors []int // the indexes in aggs of the aggregates that keep values of each row (see aggCode.collects)
	args       int   // the number of arguments of all aggs
	byRow      bool  // a key or an aggregate is computed row by row, so it needs input batches of flat rows (see batch)
}

func (c *compiler) aggregate(n *plan.Aggregate) (maker, error) {
	code := &aggregateCode{node: n, inTypes: plan.Types(n.Input), outTypes: plan.Types(n)}
	var err error
	if code.keys, err = c.vectorExprs(n.Keys); err != nil {
		return nil, err
	}
	code.byRow = anyByRow(code.keys)
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
		code.args += len(a.args)
		code.byRow = code.byRow || a.byRow()
		if a.collects() {
			code.collectors = append(code.collectors, i)
		}
	}
	partial := c.partial && n.Stream && len(n.Keys) > 0
	c.columns = !code.byRow && !partial
	if code.in, err = c.input(n.Input, partial); err != nil {
		return nil, err
	}
	out := c.batch(n.Width())
	return func(r *run) operator {
		base := grouping{aggregateCode: code, in: code.in(r), keyed: vectors{exprs: code.keys, cols: make([]fn.Column, len(code.keys))}, out: out}
		if n.Stream {
			return &streamOp{grouping: base, states: code.states(false)}
		}
		return &hashOp{grouping: base, row: make([]value.Value, n.Width())}
	}, nil
}

// grouping holds what the two operators that group rows (streamOp and hashOp) have in common.
type grouping struct {
	*aggregateCode
	in    operator
	keyed vectors // the keys of the rows that are being grouped
	out   batch
}

func (g *grouping) close() error { return g.in.close() }

// each computes the keys of the rows of b into g.keyed and calls f with the places of these rows (their indexes in the
// columns of b). If the keys are large, the method computes them for a part of the rows at a time, and calls f once for
// each part.
func (g *grouping) each(r *run, b *batch, f func(places []int32) error) error {
	if g.byRow {
		b.toRows()
	}
	for rest := b.places(); len(rest) > 0; {
		n, err := g.keyed.compute(r, b, rest)
		if err != nil {
			return err
		}
		if err := f(rest[:n]); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// finish writes the result row of a complete group into row: the key, the results of the aggregates, the values of
// GROUPING, and the errors that aggregates have deferred. set is the group's grouping set, nil if the statement
// groups by all keys.
func (g *grouping) finish(r *run, row, key []value.Value, states []aggStates, group int, set []int) error {
	n := copy(row, key)
	for _, s := range states {
		v, err := s.result(r, group)
		if err != nil {
			return err
		}
		row[n] = v
		n++
	}
	for _, k := range g.node.Grouping { // GROUPING(key) is 1 if the set does not group by the key, else 0
		row[n] = value.OfInt64(0)
		if g.node.Sets != nil && !slices.Contains(set, k) {
			row[n] = value.OfInt64(1)
		}
		n++
	}
	for _, i := range g.node.PutOff {
		row[n] = states[i].failure(group)
		n++
	}
	return nil
}

// streamOp groups rows that come in such an order that the rows of each group follow one another. Without keys, all
// rows are one group.
type streamOp struct {
	grouping
	states []aggStates   // for each aggregate, the states of the groups whose result rows are not yet in the batch out
	count  int           // the number of groups that have states in the field states
	last   []value.Value // the keys of the groups that have states, one key after the other
	groups []int32       // the group of each row of a batch; the index is the row's place
	ended  bool
}

func (o *streamOp) open(r *run) error {
	for _, s := range o.states {
		s.clear(r)
	}
	o.count, o.last, o.ended = 0, o.last[:0], false
	if len(o.keys) == 0 {
		o.resize(1)
	}
	o.out.reset()
	return o.in.open(r)
}

// resize begins new groups until the operator has states for n groups.
func (o *streamOp) resize(n int) {
	o.count = n
	for _, s := range o.states {
		s.resize(n)
	}
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
			if err := o.emit(r, o.count); err != nil {
				return nil, err
			}
			for _, s := range o.states {
				s.clear(r)
			}
			break
		}
		if err := o.each(r, b, func(places []int32) error { return o.consume(r, b, places) }); err != nil {
			return nil, err
		}
	}
	return o.out.some(), nil
}

// emit adds the result rows of the first n groups to the batch o.out.
func (o *streamOp) emit(r *run, n int) error {
	width := len(o.keys)
	for i := range n {
		if err := o.finish(r, o.out.appendRow(), o.last[i*width:(i+1)*width], o.states, i, nil); err != nil {
			return err
		}
	}
	return nil
}

// consume adds the rows of b at places (indexes in the columns of b) to their groups. Then all groups but the last
// are complete, because the input is ordered by group. consume adds the result rows of the complete groups to o.out.
func (o *streamOp) consume(r *run, b *batch, places []int32) error {
	count := o.number(b.span(), places)
	if count > o.count {
		o.resize(count)
	}
	for _, s := range o.states {
		if err := s.add(r, b, places, o.groups); err != nil {
			return err
		}
	}
	if o.count == 1 {
		return nil
	}
	last := o.count - 1
	if err := o.emit(r, last); err != nil {
		return err
	}
	for _, s := range o.states {
		s.keep(r, last)
	}
	o.count, o.last = 1, append(o.last[:0], o.last[last*len(o.keys):]...)
	return nil
}

// number sets groups[i], for each place i of places, to the number of the group of the row at place i. The caller
// has computed the keys of the rows into keyed. span is the length of the columns of the batch, and becomes the
// length of groups. number returns how many groups there are now.
func (o *streamOp) number(span int, places []int32) (count int) {
	count = o.count
	if len(o.keys) == 0 {
		o.groups = onlyGroup(span)
		return count
	}
	o.groups = slices.Grow(o.groups[:0], span)[:span]
	for _, i := range places {
		if count == 0 || !o.same(int(i)) {
			count++
			for j := range o.keyed.cols {
				o.last = append(o.last, o.keyed.cols[j].At(int(i)))
			}
		}
		o.groups[i] = int32(count - 1)
	}
	return count
}

var zeros [columnBatch]int32

// onlyGroup returns a slice of n zeros, which says that each of n rows belongs to group 0. The caller must not
// change the slice.
func onlyGroup(n int) []int32 {
	if n <= len(zeros) {
		return zeros[:n]
	}
	return make([]int32, n)
}

// same reports whether the row at place i of the batch has the same key as the last group.
func (o *streamOp) same(i int) bool {
	last := o.last[len(o.last)-len(o.keys):]
	for j := range last {
		if !value.Equal(o.keyed.cols[j].Peek(i), last[j], o.types[j]) {
			return false
		}
	}
	return true
}

// hashOp groups rows that come in any order. It groups them once for each grouping set, and returns the groups of
// one set after those of another. Within a set, groups come in the order of their first rows.
type hashOp struct {
	grouping
	sets    []*groups // one for each grouping set
	filled  bool
	set     int // index of the set whose groups are returned now
	at      int
	spilled *tagged // the result rows of sets[set], if its groups did not fit into memory; else nil
	row     []value.Value
}

func (o *hashOp) open(r *run) error {
	for _, g := range o.sets {
		g.release(r)
	}
	o.spilled.close(r)
	o.sets, o.spilled = nil, nil
	o.filled, o.set, o.at = false, 0, 0
	o.out.reset()
	return nil
}

func (o *hashOp) fill(r *run) error {
	if o.node.Sets == nil {
		o.sets = append(o.sets, newGroups(&o.grouping, nil))
	}
	for _, set := range o.node.Sets {
		// The copy of an empty set is not nil, because nil would mean that the rows are grouped by all keys.
		o.sets = append(o.sets, newGroups(&o.grouping, append([]int{}, set...)))
	}
	rows := int64(1)
	number := func(place int32) int64 { return rows + int64(place) }
	err := drainBatches(r, o.in, func(b *batch) error {
		err := o.each(r, b, func(places []int32) error {
			for _, g := range o.sets {
				if err := g.add(r, b, places, number); err != nil {
					return err
				}
			}
			return nil
		})
		rows += int64(b.span())
		return err
	})
	if err != nil {
		return err
	}
	for _, g := range o.sets { // the empty grouping set has one group even if there are no rows
		if g.set != nil && len(g.set) == 0 && g.table.len() == 0 {
			key := nullsOf(g.types)
			g.begin(key, g.table.hashOf(key), 0)
			g.resizeStates()
		}
	}
	o.filled = true
	return nil
}

func (o *hashOp) next(r *run) (*batch, error) {
	if !o.filled {
		if err := o.fill(r); err != nil {
			return nil, err
		}
	}
	o.out.begin()
	for o.set < len(o.sets) && !o.out.full() {
		more, err := o.emit(r, o.sets[o.set])
		if err != nil {
			return nil, err
		}
		if !more {
			o.spilled.close(r)
			o.set, o.at, o.spilled = o.set+1, 0, nil
		}
	}
	return o.out.some(), nil
}

// emit adds the result row of the next group of g to out. more is false if g has no more groups.
func (o *hashOp) emit(r *run, g *groups) (more bool, err error) {
	if g.spilled() && o.spilled == nil {
		o.spilled = newTagged(o.outTypes)
		if err := g.finishAll(r, o.spilled, o.row); err != nil {
			return false, err
		}
		if err := o.spilled.finish(r); err != nil {
			return false, err
		}
	}
	if o.spilled != nil {
		row, ok, err := o.spilled.nextRow()
		if ok {
			o.out.add(row[:len(o.outTypes)], nil)
		}
		return ok, err
	}
	if o.at == g.table.len() {
		return false, nil
	}
	err = o.finish(r, o.out.appendRow(), g.table.key(o.at), g.states, o.at, g.set)
	o.at++
	return true, err
}

package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// unionOp returns the rows of several inputs, one input after the other.
type unionOp struct {
	inputs []operator
	at     int
}

func (c *compiler) union(n *plan.UnionAll, columns bool) (maker, error) {
	if n.Order != nil {
		return c.mergeUnion(n)
	}
	makers := make([]maker, len(n.Inputs))
	for i, in := range n.Inputs {
		var err error
		c.columns = columns
		if makers[i], err = c.node(in); err != nil {
			return nil, err
		}
	}
	return func(r *run) operator {
		o := &unionOp{}
		for _, mk := range makers {
			o.inputs = append(o.inputs, mk(r))
		}
		return o
	}, nil
}

func (o *unionOp) open(r *run) error {
	o.at = 0
	return o.inputs[0].open(r)
}

func (o *unionOp) next(r *run) (*batch, error) {
	for {
		b, err := r.pull(o.inputs[o.at])
		if b != nil || err != nil {
			return b, err
		}
		if o.at == len(o.inputs)-1 {
			return nil, nil
		}
		if err := o.inputs[o.at].close(); err != nil {
			return nil, err
		}
		o.at++
		if err := o.inputs[o.at].open(r); err != nil {
			return nil, err
		}
	}
}

func (o *unionOp) close() error { return closeAll(o.inputs...) }

// mergeUnionOp merges inputs that are sorted in the same way. It reads the next row of an input only when another
// row is needed, so each input computes at most one row that is not returned.
type mergeUnionOp struct {
	inputs []operator
	types  []*value.Type
	by     *comparer
	slots  []int // for each sort key, the index of the column that holds it
	limit  eval
	left   int64 // the number of rows that the limit still allows; -1 without a limit
	merged *merge
	out    batch
}

func (c *compiler) mergeUnion(n *plan.UnionAll) (maker, error) {
	partial := c.partial || n.Limit != nil
	makers := make([]maker, len(n.Inputs))
	for i, in := range n.Inputs {
		var err error
		if makers[i], err = c.merged(in, partial); err != nil {
			return nil, err
		}
	}
	by, err := c.ordering(n.Order)
	if err != nil {
		return nil, err
	}
	limit, err := c.optional(n.Limit)
	if err != nil {
		return nil, err
	}
	slots := make([]int, len(n.Order))
	for i, k := range n.Order {
		slots[i] = k.Expr.(*plan.Slot).Index
	}
	out := c.batch(n.Width())
	return func(r *run) operator {
		o := &mergeUnionOp{types: plan.Types(n), by: by.comparer(), slots: slots, limit: limit, out: out}
		for _, mk := range makers {
			o.inputs = append(o.inputs, mk(r))
		}
		return o
	}, nil
}

func (o *mergeUnionOp) open(r *run) error {
	var err error
	if o.left, err = optionalLimit(r, o.limit); err != nil {
		return err
	}
	o.out.reset()
	if o.merged != nil {
		o.merged.close(r)
	}
	streams := make([]rowStream, len(o.inputs))
	for i, in := range o.inputs {
		if err := in.open(r); err != nil {
			return err
		}
		streams[i] = &inputRows{run: r, in: in}
	}
	o.merged, err = r.newMerge(o.types, o.compare, nil, streams...)
	return err
}

func (o *mergeUnionOp) compare(a, b []value.Value) int {
	for i, slot := range o.slots {
		if d := o.by.compareKey(i, a[slot], b[slot]); d != 0 {
			return d
		}
	}
	return 0
}

func (o *mergeUnionOp) next(*run) (*batch, error) {
	o.out.begin()
	for !o.out.full() && o.left != 0 {
		row, ok, err := o.merged.nextRow()
		if err != nil {
			return nil, err
		}
		if !ok {
			o.left = 0
			break
		}
		o.out.add(row, nil)
		if o.left > 0 {
			o.left--
		}
	}
	return o.out.some(), nil
}

func (o *mergeUnionOp) close() error { return closeAll(o.inputs...) }

// inputRows returns the rows of an operator one by one.
type inputRows struct {
	run   *run
	in    operator
	batch *batch
	at    int // index of the next row in batch
}

// Next implements rowStream.
func (s *inputRows) Next(row []value.Value) (bool, error) {
	if s.batch == nil || s.at == s.batch.n {
		var err error
		if s.batch, err = s.run.pullRows(s.in); s.batch == nil || err != nil {
			return false, err
		}
		s.at = 0
	}
	copy(row, s.batch.row(s.at))
	s.at++
	return true, nil
}

// Close implements rowStream. It does nothing, because mergeUnionOp closes the operator.
func (s *inputRows) Close() {}

package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// applyOp runs right for each row of left.
type applyOp struct {
	kind        plan.JoinKind
	bind        []plan.Bind
	left, right operator
	nulls       []value.Value // stand for a row of right where an outer join finds none
	out         batch

	outer   *batch // rows of left
	at      int    // the current row of outer
	running bool   // right is open for the current row
	matched bool   // right has made a row for the current row
}

func (c *compiler) apply(n *plan.Apply) (maker, error) {
	left, err := c.node(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.input(n.Right, c.partial || n.Kind == plan.SemiJoin || n.Kind == plan.AntiJoin)
	if err != nil {
		return nil, err
	}
	nulls, out := nullsOf(plan.Types(n.Right)), c.batch(n.Width())
	return func(r *run) operator {
		return &applyOp{kind: n.Kind, bind: n.Bind, left: left(r), right: right(r), nulls: nulls, out: out}
	}, nil
}

func (o *applyOp) open(r *run) error {
	o.outer, o.at, o.running = nil, 0, false
	o.out.reset()
	return o.left.open(r)
}

func (o *applyOp) close() error {
	err := o.left.close()
	if e := o.right.close(); err == nil {
		err = e
	}
	return err
}

func (o *applyOp) next(r *run) (*batch, error) {
	o.out.begin()
	for !o.out.full() {
		more, err := o.advance(r)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		row := o.outer.row(o.at)
		if o.kind == plan.SemiJoin || o.kind == plan.AntiJoin {
			err = o.test(r, row)
		} else {
			err = o.join(r, row)
		}
		if err != nil {
			return nil, err
		}
	}
	return o.out.some(), nil
}

// advance moves to the next row of left and opens right for it, unless right is still open; false at the end.
func (o *applyOp) advance(r *run) (bool, error) {
	if o.running {
		return true, nil
	}
	if o.outer != nil {
		o.at++
	}
	if o.outer == nil || o.at == o.outer.n {
		var err error
		if o.outer, err = r.pull(o.left); err != nil || o.outer == nil {
			return false, err
		}
		o.at = 0
	}
	row := o.outer.row(o.at)
	for _, b := range o.bind {
		r.registers[b.Register] = row[b.Slot]
	}
	o.running, o.matched = true, false
	return true, o.right.open(r)
}

// join adds the next rows that right makes for a row of left.
func (o *applyOp) join(r *run, row []value.Value) error {
	b, err := r.pull(o.right)
	if err != nil {
		return err
	}
	if b == nil {
		o.running = false
		if o.kind == plan.LeftJoin && !o.matched {
			o.out.add(row, o.nulls)
		}
		return nil
	}
	o.matched = true
	for i := range b.n {
		o.out.add(row, b.row(i))
	}
	return nil
}

// test adds a row of left if right makes a row for it (semi join), or if right makes none (anti join).
func (o *applyOp) test(r *run, row []value.Value) error {
	b, err := r.pull(o.right)
	if err != nil {
		return err
	}
	o.running = false
	if (b != nil) == (o.kind == plan.SemiJoin) {
		o.out.add(row, nil)
	}
	if b != nil {
		return o.right.close()
	}
	return nil
}

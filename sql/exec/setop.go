package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// setOp is INTERSECT and EXCEPT. It first counts how often each row occurs in right. The counts decide which rows of left are returned. These come
// in the order of left.
type setOp struct {
	left, right operator
	rows        *setRows
	number      int64   // the number of the current row of left
	putOff      *tagged // rows of left that are decided after the end of left; nil before it
	out         batch
}

func (c *compiler) setOp(n *plan.SetOp) (maker, error) {
	left, err := c.node(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.whole(n.Right)
	if err != nil {
		return nil, err
	}
	return func(r *run) operator {
		return &setOp{left: left(r), right: right(r), rows: newSetRows(n), out: newBatch(n.Width())}
	}, nil
}

func (o *setOp) open(r *run) error {
	o.putOff.close(r)
	o.rows.reset(r)
	o.putOff, o.number = nil, 0
	o.out.reset()
	if err := drain(r, o.right, func(row []value.Value) error { return o.rows.addRight(r, row, 1, false) }); err != nil {
		return err
	}
	return o.left.open(r)
}

func (o *setOp) close() error {
	err := o.left.close()
	if e := o.right.close(); err == nil {
		err = e
	}
	return err
}

func (o *setOp) next(r *run) (*batch, error) {
	for o.putOff == nil {
		b, err := r.pullRows(o.left)
		if err != nil {
			return nil, err
		}
		if b == nil {
			if err := o.finish(r); err != nil {
				return nil, err
			}
			break
		}
		if err := o.keepPassing(r, b); err != nil || b.n > 0 {
			return b, err
		}
	}
	o.out.begin()
	if err := o.out.fill(o.putOff.nextRow); err != nil {
		return nil, err
	}
	return o.out.some(), nil
}

// keepPassing keeps the rows of a batch of left that pass now. It drops the others, which fail or are put off.
func (o *setOp) keepPassing(r *run, b *batch) error {
	kept := 0
	for i := range b.n {
		row := b.row(i)
		o.number++
		passes, err := o.rows.passes(r, row, o.number)
		if err != nil {
			return err
		}
		if !passes {
			continue
		}
		if kept != i {
			copy(b.row(kept), row)
		}
		kept++
	}
	b.truncate(kept)
	return nil
}

// finish decides which of the rows of left that were put off pass.
func (o *setOp) finish(r *run) error {
	o.putOff = newTagged(o.rows.node.Types)
	if err := o.rows.finish(r, o.putOff); err != nil {
		return err
	}
	return o.putOff.finish(r)
}

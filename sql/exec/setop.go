package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// setOp is INTERSECT and EXCEPT. It counts how often right has each row, and by that decides which rows of left pass.
type setOp struct {
	node        *plan.SetOp
	left, right operator
	table       *hashTable
	counts      []int64 // how often right has each row of table
	passed      []bool  // which rows of table a DISTINCT operation has passed already
	held        held
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
		return &setOp{node: n, left: left(r), right: right(r), table: newHashTable(n.Types)}
	}, nil
}

func (o *setOp) open(r *run) error {
	r.memory.release(&o.held)
	o.table.clear()
	o.counts, o.passed = o.counts[:0], o.passed[:0]
	err := drain(r, o.right, func(row []value.Value) error {
		entry, err := o.entry(r, row)
		if err == nil {
			o.counts[entry]++
		}
		return err
	})
	if err != nil {
		return err
	}
	return o.left.open(r)
}

func (o *setOp) entry(r *run, row []value.Value) (int, error) {
	entry, isNew := o.table.find(row)
	if !isNew {
		return entry, nil
	}
	o.counts, o.passed = append(o.counts, 0), append(o.passed, false)
	return entry, r.memory.keep(&o.held, row)
}

func (o *setOp) close() error {
	err := o.left.close()
	if e := o.right.close(); err == nil {
		err = e
	}
	return err
}

func (o *setOp) next(r *run) (*batch, error) {
	for {
		b, err := r.pull(o.left)
		if b == nil || err != nil {
			return nil, err
		}
		kept := 0
		for i := range b.n {
			row := b.row(i)
			passes, err := o.passes(r, row)
			if err != nil {
				return nil, err
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
		if kept > 0 {
			return b, nil
		}
	}
}

// passes says whether the next row of left passes.
func (o *setOp) passes(r *run, row []value.Value) (bool, error) {
	entry, err := o.entry(r, row)
	if err != nil {
		return false, err
	}
	inRight := o.counts[entry] > 0
	if o.node.All {
		if inRight {
			o.counts[entry]--
		}
		return inRight == (o.node.Kind == tree.Intersect), nil
	}
	if inRight != (o.node.Kind == tree.Intersect) || o.passed[entry] {
		return false, nil
	}
	o.passed[entry] = true
	return true, nil
}

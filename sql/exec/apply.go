package exec

import (
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// applyOp joins each row of left with the rows that right returns for it. It opens right once for each row of left.
type applyOp struct {
	kind        plan.JoinKind
	bind        []plan.Bind
	left, right operator
	nulls       []value.Value // NULLs for the columns of right, for a left join's row without a match
	out         batch

	back    bool      // the left operator reads an index, and the right one reads the table's row for each index entry
	ahead   lookahead // the right operator, if it can read ahead; else nil
	outer   *batch    // the current batch of the left operator
	at      int       // the index of the current row in the batch outer
	known   int       // the rows of outer before this index are those for which readAhead was called already
	running bool      // the right operator is open for the current row of outer
	matched bool      // the right operator has returned a row for the current row of outer
}

// lookahead is an operator that can read ahead: readAhead reads together the rows that the operator will return the
// next n times that it is opened. readAhead calls bind(i), which sets the registers (columns of enclosing rows) to the
// values that they will have when the operator is opened for the i-th of these times. since is a hint that makes
// reading faster (see table.BatchView): a commit timestamp at or after which most of the rows that will be read were
// written; 0 means that it is not known.
type lookahead interface {
	readAhead(r *run, n int, since mvcc.Timestamp, bind func(i int)) error
}

// minAhead is the least number of rows of the left input for which it pays to read the rows of the right input for all
// of them at once, and not for one left row after the other.
const minAhead = 8

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
		o := &applyOp{kind: n.Kind, bind: n.Bind, back: n.BackJoin, left: left(r), right: right(r), nulls: nulls, out: out}
		o.ahead, _ = o.right.(lookahead)
		return o
	}, nil
}

func (o *applyOp) open(r *run) error {
	o.outer, o.at, o.known, o.running = nil, 0, 0, false
	o.out.reset()
	return o.left.open(r)
}

func (o *applyOp) close() error { return closeAll(o.left, o.right) }

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

// advance moves to the next row of left and opens right for that row. If right is still open for the current row,
// advance does nothing. It returns false at the end of left.
func (o *applyOp) advance(r *run) (bool, error) {
	if o.running {
		return true, nil
	}
	if o.outer != nil {
		o.at++
	}
	if o.outer == nil || o.at == o.outer.n {
		var err error
		if o.outer, err = r.pullRows(o.left); err != nil || o.outer == nil {
			return false, err
		}
		o.at, o.known = 0, 0
	}
	if o.at == o.known && o.ahead != nil {
		if err := o.readAhead(r); err != nil {
			return false, err
		}
	}
	o.bindTo(r, o.at)
	o.running, o.matched = true, false
	return true, o.right.open(r)
}

// bindTo sets the registers to the columns of row i of outer.
func (o *applyOp) bindTo(r *run, i int) {
	row := o.outer.row(i)
	for _, b := range o.bind {
		r.registers[b.Register] = row[b.Slot]
	}
}

// readAhead lets the right operator read ahead for the next rows of the left one. It takes no more rows of the left
// operator than o.out has room for. With more of them, the right operator might read rows that the query does not need.
// If it takes fewer than minAhead rows, the right operator does not read ahead.
func (o *applyOp) readAhead(r *run) error {
	n := min(o.outer.n-o.at, o.out.target-o.out.n)
	from := o.at
	o.known = from + n
	if n < minAhead {
		return nil
	}
	since := o.outer.oldest
	if !o.back {
		since = 0
	}
	return o.ahead.readAhead(r, n, since, func(i int) { o.bindTo(r, from+i) })
}

// join adds the next joined rows for a row of left. At the end of right, a left join adds the row with NULLs if
// right had no row for it.
func (o *applyOp) join(r *run, row []value.Value) error {
	b, err := r.pullRows(o.right)
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

// test adds a row of left to out if right has a row for it (semi join) or has none (anti join).
func (o *applyOp) test(r *run, row []value.Value) error {
	b, err := r.pullRows(o.right)
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

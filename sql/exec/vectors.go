package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// vectorExpr is a compiled expression of which the values for all rows of a batch are wanted at once.
type vectorExpr struct {
	eval  eval
	slot  int  // the column of the batch that it is, or -1
	fixed bool // all rows of a batch have the same value
}

func (c *compiler) vectorExprs(list []plan.Expr) ([]vectorExpr, error) {
	evals, err := c.exprs(list)
	if err != nil {
		return nil, err
	}
	out := make([]vectorExpr, len(list))
	for i, e := range list {
		out[i] = vectorExpr{eval: evals[i], slot: -1}
		switch e := e.(type) {
		case *plan.Slot:
			out[i].slot = e.Index
		case *plan.Const, *plan.Parameter, *plan.Outer:
			out[i].fixed = true
		}
	}
	return out, nil
}

// vectors computes expressions over batches. It belongs to one operator.
type vectors struct {
	exprs []vectorExpr
	cols  []fn.Column     // the values for the last batch, good as long as the batch is
	room  [][]value.Value // for those that are not columns of the batch; nil before the first
}

// compute sets cols to the values for the rows of b, from the first on, without those for which skip is negative (nil skips none). It returns for how many rows
// that is: for fewer than all if the values are large.
func (v *vectors) compute(r *run, b *batch, skip []int32) (rows int, err error) {
	computed := false
	for i := range v.exprs {
		e := &v.exprs[i]
		switch {
		case e.slot >= 0:
			v.cols[i] = fn.Column{Values: b.vals[e.slot:], Stride: b.width}
		case e.fixed:
			val, err := e.eval(r, nil)
			if err != nil {
				return 0, err
			}
			v.cols[i] = fn.Column{Values: v.roomFor(i, 1)}
			v.cols[i].Values[0] = val
		default:
			computed = true
			v.cols[i] = fn.Column{Values: v.roomFor(i, b.n), Stride: 1}
		}
	}
	if !computed {
		return b.n, nil
	}
	return v.byRow(r, b, skip)
}

// byRow computes the expressions that are neither columns nor fixed.
func (v *vectors) byRow(r *run, b *batch, skip []int32) (rows int, err error) {
	before := r.made.bytes
	for rows < b.n && r.made.bytes-before < computedBytes {
		if skip == nil || skip[rows] >= 0 {
			row := b.row(rows)
			for i := range v.exprs {
				e := &v.exprs[i]
				if e.slot >= 0 || e.fixed {
					continue
				}
				if v.cols[i].Values[rows], err = e.eval(r, row); err != nil {
					return rows, err
				}
			}
		}
		rows++
	}
	return rows, nil
}

// roomFor is room for n values of an expression.
func (v *vectors) roomFor(i, n int) []value.Value {
	if v.room == nil {
		v.room = make([][]value.Value, len(v.exprs))
	}
	if cap(v.room[i]) < n {
		v.room[i] = make([]value.Value, n)
	}
	return v.room[i][:n]
}

// row sets key to the values for a row.
func (v *vectors) row(i int, key []value.Value) {
	for j := range v.cols {
		key[j] = v.cols[j].At(i)
	}
}

package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// vectorExpr is a compiled expression of which the values for many rows of a batch are wanted at once.
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

// byRow says that the expression is computed row by row.
func (e *vectorExpr) byRow() bool { return e.slot < 0 && !e.fixed }

// anyByRow says that one of the expressions is computed row by row. An operator makes rows of a batch of columns then, before it computes them.
func anyByRow(list []vectorExpr) bool {
	for i := range list {
		if list[i].byRow() {
			return true
		}
	}
	return false
}

// vectors computes expressions over batches. It belongs to one operator.
type vectors struct {
	exprs []vectorExpr
	cols  []fn.Column     // the values for the last batch, by place, good as long as the batch is
	room  [][]value.Value // for those that are not columns of the batch; nil before the first
	// strict says that the value of an expression is not wanted for a row for which one before it is NULL.
	strict bool
}

// compute sets cols to the values for the rows of b at places. It returns for how many of them that is: for fewer than all if the values are large.
func (v *vectors) compute(r *run, b *batch, places []int32) (done int, err error) {
	byRow := false
	for i := range v.exprs {
		e := &v.exprs[i]
		switch {
		case e.slot >= 0:
			v.cols[i] = b.column(e.slot)
		case e.fixed:
			val, err := e.eval(r, nil)
			if err != nil {
				return 0, err
			}
			v.cols[i] = fn.Column{Values: v.roomFor(i, 1)}
			v.cols[i].Values[0] = val
		default:
			byRow = true
			v.cols[i] = fn.Column{Values: v.roomFor(i, b.span()), Stride: 1}
		}
	}
	if !byRow {
		return len(places), nil
	}
	return v.byRow(r, b, places)
}

// byRow computes the expressions that are neither columns nor fixed. The batch is one of rows.
func (v *vectors) byRow(r *run, b *batch, places []int32) (done int, err error) {
	before := r.made.bytes
	for done < len(places) && r.made.bytes-before < computedBytes {
		at := int(places[done])
		row, null := b.row(at), false
		for i := range v.exprs {
			col := &v.cols[i]
			if v.exprs[i].byRow() {
				if null {
					col.Values[at] = value.Value{}
				} else if col.Values[at], err = v.exprs[i].eval(r, row); err != nil {
					return done, err
				}
			}
			null = null || v.strict && col.Peek(at).IsNull()
		}
		done++
	}
	return done, nil
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

// row sets key to the values for a row, which are good as long as the batch.
func (v *vectors) row(place int32, key []value.Value) {
	for j := range v.cols {
		key[j] = v.cols[j].Peek(int(place))
	}
}

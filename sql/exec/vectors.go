package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// vectorExpr is a compiled expression that an operator computes for many rows of a batch at once, if it can.
type vectorExpr struct {
	eval   eval
	vector vectorEval // nil if the expression can only be computed row by row
	simple bool       // the expression is a column of the batch, or the same value for all rows
}

func (c *compiler) vectorExprs(list []plan.Expr) ([]vectorExpr, error) {
	evals, err := c.exprs(list)
	if err != nil {
		return nil, err
	}
	out := make([]vectorExpr, len(list))
	for i, e := range list {
		out[i] = vectorExpr{eval: evals[i], vector: c.vector(e)}
		switch e.(type) {
		case *plan.Slot, *plan.Const, *plan.Parameter, *plan.Outer:
			out[i].simple = true
		}
	}
	return out, nil
}

// anyByRow reports whether one of the expressions can only be computed row by row. The operator then turns each batch into flat rows first.
func anyByRow(list []vectorExpr) bool {
	for i := range list {
		if list[i].vector == nil {
			return true
		}
	}
	return false
}

// vectors computes expressions over batches. It belongs to one operator.
type vectors struct {
	exprs []vectorExpr
	cols  []fn.Column     // the values for the last batch, by place; valid as long as the batch
	room  [][]value.Value // memory of the expressions that are computed row by row; nil before the first
	byRow []bool          // the expressions that are computed row by row in this batch; nil before the first
	whole []value.Value   // memory for a row of the batch
	some  []int32         // memory for the places of rows without NULL
	// strict says that an expression need not be computed for a row for which an expression before it is NULL.
	strict bool
}

// compute sets cols to the values for the rows of b at places. It returns for how many of the places it has done so. It stops early if the values
// are large.
func (v *vectors) compute(r *run, b *batch, places []int32) (done int, err error) {
	byRow, wanted := false, places
	for i := range v.exprs {
		e := &v.exprs[i]
		if e.vector == nil || !e.simple && b.isSmall() {
			v.willByRow(i, b)
			byRow = true
			continue
		}
		ok := false
		if v.cols[i], ok = e.vector(r, b, wanted); !ok {
			return v.allByRow(r, b, places)
		}
		if v.strict && i < len(v.exprs)-1 {
			wanted = v.notNull(&v.cols[i], wanted)
		}
	}
	if !byRow {
		return len(places), nil
	}
	return v.rowByRow(r, b, places)
}

// willByRow notes that expression i must be computed row by row for this batch.
func (v *vectors) willByRow(i int, b *batch) {
	if v.byRow == nil {
		v.byRow = make([]bool, len(v.exprs))
	}
	v.byRow[i] = true
	v.cols[i] = fn.Column{Values: v.roomFor(i, b.span()), Stride: 1}
}

// allByRow computes all expressions row by row. It is called when one of them fails for a row.
func (v *vectors) allByRow(r *run, b *batch, places []int32) (done int, err error) {
	for i := range v.exprs {
		if !v.exprs[i].simple {
			v.willByRow(i, b)
		} else {
			v.cols[i], _ = v.exprs[i].vector(r, b, places)
		}
	}
	return v.rowByRow(r, b, places)
}

// rowByRow computes the expressions in byRow, row by row.
func (v *vectors) rowByRow(r *run, b *batch, places []int32) (done int, err error) {
	defer clear(v.byRow)
	if v.whole == nil && b.cols != nil {
		v.whole = make([]value.Value, b.width)
	}
	before := r.made.bytes
	for done < len(places) && r.made.bytes-before < computedBytes {
		at := places[done]
		row, null := b.rowAt(at, v.whole), false
		for i := range v.exprs {
			col := &v.cols[i]
			if v.byRow[i] {
				if null {
					col.Values[at] = value.Value{}
				} else if col.Values[at], err = v.exprs[i].eval(r, row); err != nil {
					return done, err
				}
			}
			null = null || v.strict && col.IsNull(int(at))
		}
		done++
	}
	return done, nil
}

// notNull returns the places, among the given ones, at which col is not NULL.
func (v *vectors) notNull(col *fn.Column, places []int32) []int32 {
	some := v.some[:0]
	for _, i := range places {
		if !col.IsNull(int(i)) {
			some = append(some, i)
		}
	}
	v.some = some
	return some
}

// roomFor returns memory for n values of expression i.
func (v *vectors) roomFor(i, n int) []value.Value {
	if v.room == nil {
		v.room = make([][]value.Value, len(v.exprs))
	}
	if cap(v.room[i]) < n {
		v.room[i] = make([]value.Value, n)
	}
	return v.room[i][:n]
}

// row sets key to the values for the row at a place. They are valid as long as the batch.
func (v *vectors) row(place int32, key []value.Value) {
	for j := range v.cols {
		key[j] = v.cols[j].Peek(int(place))
	}
}

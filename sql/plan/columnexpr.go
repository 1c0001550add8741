package plan

import "github.com/crowfoot-db/crowfoot/sql/tree"

// RowExpr is an expression over one row, apart from any statement: a DEFAULT, a generated column, a CHECK.
type RowExpr struct {
	Expr      Expr
	Registers int
}

// ColumnExpr plans an expression whose Refs have the Col.IDs 0 to n-1: places in the row that it is computed over.
func ColumnExpr(e tree.Expr, n int) (*RowExpr, error) {
	p := newPlanner(Options{})
	at := slots{}
	for i := range n {
		at[i] = i
	}
	x, err := p.scalar(p.fold(e), at)
	if err != nil {
		return nil, err
	}
	return &RowExpr{Expr: x, Registers: p.plan.Registers}, nil
}

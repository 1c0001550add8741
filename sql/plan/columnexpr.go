package plan

import "github.com/crowfoot-db/crowfoot/sql/tree"

// RowExpr is an expression over one row that does not belong to a statement: a DEFAULT, a generated column, a CHECK.
type RowExpr struct {
	Expr      Expr
	Registers int
}

// ColumnExpr plans an expression over one row. The Col.IDs of its Refs are 0 to n-1: the places of the columns in that row.
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

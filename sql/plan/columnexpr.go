package plan

import "github.com/crowfoot-db/crowfoot/sql/tree"

// ColumnExpr plans an expression over one row, that of a DEFAULT, a generated
// column or a CHECK: its Refs have the IDs 0 to columns-1, which become the slots of the row.
func ColumnExpr(e tree.Expr, columns int) (Expr, error) {
	at := make(slots, columns)
	for i := range columns {
		at[i] = i
	}
	return newPlanner(Options{}).scalar(e, at)
}

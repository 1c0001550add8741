package exec

import (
	"context"
	"fmt"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// ColumnExpr compiles an expression over one row (see plan.ColumnExpr) to a
// function of the row, which may be called by many goroutines at once.
func ColumnExpr(e plan.Expr) (func(functions *fn.Context, row []value.Value) (value.Value, error), error) {
	c := &compiler{prog: &program{plan: &plan.Plan{}}}
	f, err := c.expr(e)
	if err != nil {
		return nil, err
	}
	if len(c.prog.subqueries) > 0 {
		return nil, fmt.Errorf("compile column expression: it has a subquery")
	}
	return func(functions *fn.Context, row []value.Value) (value.Value, error) {
		return f(c.prog.start(context.Background(), Env{Functions: functions}), row)
	}, nil
}

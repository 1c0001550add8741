package exec

import (
	"context"
	"sync"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// ColumnExpr compiles an expression over one row. Many goroutines may call the returned function at once.
func ColumnExpr(e *plan.RowExpr) (func(ctx *fn.Context, row []value.Value) (value.Value, error), error) {
	prog := &Program{plan: &plan.Plan{Registers: e.Registers}}
	c := &compiler{prog: prog}
	f, err := c.expr(e.Expr)
	if err != nil {
		return nil, err
	}
	runs := sync.Pool{New: func() any { return prog.start(context.Background(), Env{}, new(run)) }}
	return func(ctx *fn.Context, row []value.Value) (value.Value, error) {
		r := runs.Get().(*run)
		defer runs.Put(r)
		r.fns = ctx
		return f(r, row)
	}, nil
}

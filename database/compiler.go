package database

import (
	"context"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// compiler compiles the expressions in DDL: DEFAULT, ON UPDATE, generated columns, CHECK.
type compiler struct {
	ctx       context.Context // ends the wait for the analyzer
	clock     func() time.Time
	sequences *sequence.Counters
}

// Now implements schema.Compiler.
func (c compiler) Now() time.Time { return c.clock() }

// CompileView implements schema.Compiler.
func (c compiler) CompileView(catalog *schema.Catalog, sql string) ([]schema.ViewColumn, []schema.Use, error) {
	return analyze.New(catalog, nil).View(c.ctx, sql)
}

// CompileFunction implements schema.Compiler.
func (c compiler) CompileFunction(catalog *schema.Catalog, f *schema.Function) (schema.Signature, []schema.Use, error) {
	return analyze.New(catalog, nil).Function(c.ctx, f)
}

// CompileExpr implements schema.Compiler.
func (c compiler) CompileExpr(catalog *schema.Catalog, t *schema.Table, sql string, want *value.Type) (*schema.Expr, error) {
	e, uses, functions, err := analyze.Expr(c.ctx, catalog, t, sql, want)
	if err != nil {
		return nil, err
	}
	planned, err := plan.ColumnExpr(e, len(uses))
	if err != nil {
		return nil, fmt.Errorf("plan %s: %w", sql, err)
	}
	eval, err := exec.ColumnExpr(planned)
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", sql, err)
	}
	zone, err := value.LoadZone(catalog.Options.TimeZone())
	if err != nil {
		return nil, err
	}
	clock, names := c.clock, c.sequences.Newest()
	return &schema.Expr{
		SQL:       sql,
		Uses:      uses,
		Functions: functions,
		Eval: func(args []value.Value) (value.Value, error) {
			return eval(&fn.Context{Now: clock(), Zone: zone, Sequences: names}, args)
		},
	}, nil
}

// NextValue implements schema.Compiler.
func (c compiler) NextValue(name string, g *schema.Generator) func([]value.Value) (value.Value, error) {
	next := c.sequences.Taker(name, g)
	return func([]value.Value) (value.Value, error) {
		v, err := next()
		return value.OfInt64(v), err
	}
}

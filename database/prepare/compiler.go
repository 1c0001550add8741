package prepare

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
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// compiler compiles the expressions in DDL: DEFAULT, ON UPDATE, generated columns, CHECK, and the queries of views and
// functions.
type compiler struct {
	ctx       context.Context // when it ends, waits for the analyzer fail
	clock     func() time.Time
	sequences *sequence.Counters
}

// NewCompiler returns the compiler of the expressions in DDL. If ctx ends while the compiler waits for the analyzer,
// compiling fails.
func NewCompiler(ctx context.Context, clock func() time.Time, sequences *sequence.Counters) schema.Compiler {
	return compiler{ctx, clock, sequences}
}

// Now implements schema.Compiler.
func (c compiler) Now() time.Time { return c.clock() }

// CompileView implements schema.Compiler.
func (c compiler) CompileView(catalog *schema.Catalog, sql string) ([]schema.ViewColumn, []schema.Use, error) {
	columns, uses, err := analyze.New(catalog, nil).View(c.ctx, sql)
	if err == nil {
		err = c.checkRuns(catalog, sql)
	}
	return columns, uses, err
}

// CompileFunction implements schema.Compiler.
func (c compiler) CompileFunction(catalog *schema.Catalog, f *schema.Function) (schema.Signature, []schema.Use, error) {
	signature, uses, err := analyze.New(catalog, nil).Function(c.ctx, f)
	if err != nil {
		return signature, nil, err
	}
	query := "SELECT [(\n" + f.SQL + "\n)]" // a column of a query cannot be a STRUCT, but it can be an ARRAY of STRUCTs
	if signature.Result.Type.Kind == value.Array {
		query = "SELECT (\n" + f.SQL + "\n)"
	}
	for i, p := range signature.Params {
		query += [...]string{" FROM (SELECT ", ", "}[min(i, 1)] + "CAST(NULL AS " + typeText(p.Type) + ") AS `" + p.Name + "`"
	}
	if len(signature.Params) > 0 {
		query += ")"
	}
	return signature, uses, c.checkRuns(catalog, query)
}

// checkRuns fails if a query passes analysis but cannot run, for example because it calls a GoogleSQL function that
// Spanner lacks. So DDL refuses a view or function that no statement could use.
func (c compiler) checkRuns(catalog *schema.Catalog, query string) error {
	stmt, _, err := analyze.New(catalog, nil).Statement(c.ctx, query, nil, analyze.Options{})
	if _, isQuery := stmt.(*tree.Query); err != nil || !isQuery {
		return err
	}
	p, err := plan.Build(stmt, catalog, plan.Options{})
	if err == nil {
		_, err = exec.Compile(p, table.NewDescriptors(catalog))
	}
	return err
}

// typeText returns the text of a type as CAST accepts it.
func typeText(t *value.Type) string {
	switch {
	case t.Kind == value.Array:
		return "ARRAY<" + typeText(t.Elem) + ">"
	case t.Name != "":
		return "`" + t.Name + "`"
	}
	return t.String()
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

package exec

import (
	"context"
	"fmt"
	"sync"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// eval computes the value of an expression for a row.
type eval func(r *run, row []value.Value) (value.Value, error)

// compiler compiles one plan. Its fields partial, columns and single describe the node that is being compiled.
type compiler struct {
	prog   *Program
	tables *table.Descriptors
	// driving is the scan whose keys are divided to partition the statement (plan.Plan.Driving); nil if there is
	// none.
	driving *plan.Scan
	// partial says that a LIMIT or EXISTS above the node that is being compiled can stop reading before the node has
	// returned all its rows.
	partial bool
	// columns says that the parent of the node that is being compiled accepts batches of columns.
	columns bool
	// single says that the node that is being compiled is an input of a merge below a LIMIT. The node then returns
	// one row at a time, so that no row is read and locked in vain.
	single bool
}

// Compile compiles the operators and expressions of a plan to closures. tables describes the tables of the schema
// version for which the plan was made.
func Compile(p *plan.Plan, tables *table.Descriptors) (*Program, error) {
	prog := &Program{plan: p, spools: p.Spools, spoolMakers: make([]maker, p.Spools), spoolTypes: make([][]*value.Type, p.Spools)}
	c := &compiler{prog: prog, tables: tables, driving: p.Driving()}
	var err error
	if m, ok := p.Root.(*plan.DML); ok {
		if prog.dml, err = c.dml(m); err != nil {
			return nil, err
		}
		return prog, nil
	}
	if p.Read != nil {
		if prog.read, err = c.keyScan(p.Read); err != nil {
			return nil, err
		}
	}
	if prog.root, err = c.node(p.Root); err != nil {
		return nil, err
	}
	return prog, nil
}

// node compiles an operator and its inputs. If the run collects statistics of each operator (Env.Profile), the
// result wraps the operator in a meter.
func (c *compiler) node(n plan.Node) (maker, error) {
	mk, err := c.bare(n)
	if err != nil {
		return nil, err
	}
	return func(r *run) operator {
		op := mk(r)
		if r.stats.Nodes == nil {
			return op
		}
		return newMeter(r, n, op)
	}, nil
}

// whole compiles an input that its operator always reads to the end, also below a LIMIT or EXISTS.
func (c *compiler) whole(n plan.Node) (maker, error) { return c.input(n, false) }

func (c *compiler) input(n plan.Node, partial bool) (maker, error) {
	was, single := c.partial, c.single
	c.partial, c.single = partial, single && partial
	defer func() { c.partial, c.single = was, single }()
	return c.node(n)
}

// merged compiles an input of a merge. If a LIMIT or EXISTS can end the merge early (partial is true), the input
// returns one row at a time. The merge needs only one row of each input at a time, so with larger batches the input
// would read rows in vain.
func (c *compiler) merged(n plan.Node, partial bool) (maker, error) {
	was := c.single
	c.single = partial
	defer func() { c.single = was }()
	return c.input(n, partial)
}

func (c *compiler) bare(n plan.Node) (maker, error) {
	columns := c.columns
	c.columns = false
	switch n := n.(type) {
	case *plan.Unit:
		return func(*run) operator { return &unitOp{} }, nil
	case *plan.Empty:
		return func(*run) operator { return emptyOp{} }, nil
	case *plan.Scan:
		return c.scan(n, columns)
	case *plan.Filter:
		return c.filter(n, columns)
	case *plan.Compute:
		return c.compute(n, columns)
	case *plan.Apply:
		return c.apply(n)
	case *plan.HashJoin:
		return c.hashJoin(n)
	case *plan.Unnest:
		return c.unnest(n)
	case *plan.Aggregate:
		return c.aggregate(n)
	case *plan.Sort:
		return c.sort(n)
	case *plan.Limit:
		return c.limit(n)
	case *plan.UnionAll:
		return c.union(n, columns)
	case *plan.SetOp:
		return c.setOp(n)
	case *plan.With:
		return c.with(n)
	case *plan.SpoolScan:
		return c.spoolScan(n), nil
	case *plan.Sample:
		return c.sample(n)
	}
	return nil, fmt.Errorf("operator %T cannot run", n)
}

// exprs compiles a list of expressions. A nil expression gives a nil eval.
func (c *compiler) exprs(list []plan.Expr) ([]eval, error) {
	out := make([]eval, len(list))
	for i, e := range list {
		var err error
		if out[i], err = c.optional(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (c *compiler) optional(e plan.Expr) (eval, error) {
	if e == nil {
		return nil, nil
	}
	return c.expr(e)
}

// isTrue evaluates a condition for a row. A nil condition is TRUE.
func isTrue(cond eval, r *run, row []value.Value) (bool, error) {
	if cond == nil {
		return true, nil
	}
	v, err := cond(r, row)
	return err == nil && !v.IsNull() && v.AsBool(), err
}

// ColumnExpr compiles an expression over one row. The returned function computes it, and may be called by many
// goroutines at once.
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

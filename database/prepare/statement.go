package prepare

import (
	"context"
	"sort"
	"strings"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/system"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// Statement is an SQL statement that is ready to run in one schema version. All requests with the same SQL text,
// parameter types and options share it.
type Statement struct {
	*Prepared
	Text stats.Text

	// literals is set only for a generic plan: see genericPlan. literals[i] is the value of Plan.Params[i] if that
	// parameter has replaced a literal of the text, and invalid otherwise.
	literals []value.Value
}

// Prepared is a plan and all that is derived from it. Statements that differ only in literals may share a Prepared: see
// genericPlan.
type Prepared struct {
	Plan    *plan.Plan
	program *exec.Program
	// Undeclared lists the parameters for which the request gave no type, with their inferred types.
	Undeclared []plan.Param
	// PlanTime is the CPU time it took to analyze and plan the text.
	PlanTime time.Duration
	// Procedure is the name of the procedure that a CALL calls; "" for all other statements. The Plan of a CALL returns
	// one row with the arguments.
	Procedure string
	// ChangeStream is the change stream that the statement reads; nil for all other statements. The Plan of such a
	// statement returns one row with the arguments of the stream's read function: start_timestamp and so on.
	ChangeStream *schema.ChangeStream
	// Columns are the columns of the result.
	Columns []plan.Column

	Accesses []*stats.Access
	// Dependencies lists the parts of its schema version that the plan depends on.
	Dependencies *schema.Dependencies
	// Needs holds the privileges that a role needs to run the statement.
	Needs   *Needs
	Typical cpu.Typical // typical CPU time of an execution
	// PointReads says that the statement only looks up rows of a table by their complete primary keys.
	PointReads bool
	// TakesValues says that the statement takes values of sequences. A read-only transaction must not run it.
	TakesValues bool
	// PointRead says that PointReads is true and the statement looks up one row at most.
	PointRead bool

	// copied says that the plan has scans that may read columnar copies.
	copied bool

	preparer *Preparer
	types    map[string]*value.Type // types of the parameters, as the request declared them
	opts     Options
	used     atomic.Bool
}

// Options says how a statement must be prepared.
type Options struct {
	Batch        bool // the plan must be partitionable
	AllowUnbound bool // parameters may lack a value, and their types are inferred: query mode PLAN
	Verbatim     bool // the text gets a plan of its own with its literals, because the plan will be shown
}

// Run holds the inputs of one execution of a Statement. Either View or Writer is set.
type Run struct {
	View     table.View
	Writer   table.Writer
	Params   []value.Value // values of the parameters, in the order of Plan.Params
	Restrict *table.Span
	Profile  bool
	Access   *schema.Access  // the caller's privileges, which limit the rows of INFORMATION_SCHEMA; nil: all rows
	Memory   *memory.Account // charged for the memory of the execution; nil counts nothing
}

// Statement analyzes and plans an SQL text, or returns its statement from the cache. params are the declared types of
// parameters by lower-cased name; the types of other parameters are inferred. If several requests send one text at the
// same time, one of them prepares it and the others wait. If ctx ends during the wait, Statement fails with ctx's
// error.
func (p *Preparer) Statement(ctx context.Context, sql string, params map[string]*value.Type, opts Options) (*Statement, error) {
	key := statementKey(sql, params, opts)
	if s, ok := p.statements.Get(key); ok {
		return s, nil
	}
	text := p.normalize(sql, params, opts)
	if s := text.statement(); s != nil {
		return s, nil
	}
	return p.preparing.do(ctx, key, func() (*Statement, error) {
		if s, ok := p.statements.Get(key); ok {
			return s, nil // another request has just prepared the text
		}
		s, err := p.prepare(ctx, sql, params, opts)
		if err != nil {
			return nil, err
		}
		text.prepared(ctx, s)
		p.statements.Put(key, s)
		return s, nil
	})
}

// In prepares the statement for the schema version of p. If p has prepared s, it returns s itself.
func (s *Statement) In(ctx context.Context, p *Preparer) (*Statement, error) {
	if s.preparer == p {
		return s, nil
	}
	return p.Statement(ctx, s.Text.SQL, s.types, s.opts)
}

// prepare analyzes and plans a text, and sets PlanTime to the CPU time that this used.
func (p *Preparer) prepare(ctx context.Context, sql string, params map[string]*value.Type, opts Options) (s *Statement, err error) {
	took := cpu.Spent(ctx, func() { s, err = p.plan(ctx, sql, params, opts) })
	if err != nil {
		return nil, err
	}
	s.PlanTime, s.preparer, s.types, s.opts = took, p, params, opts
	return s, nil
}

// plan analyzes and plans a text.
func (p *Preparer) plan(ctx context.Context, sql string, params map[string]*value.Type, opts Options) (*Statement, error) {
	stmt, found, err := p.analyze().Statement(ctx, sql, params, analyze.Options{AllowUnbound: opts.AllowUnbound})
	if err != nil {
		return nil, err
	}
	s := &Prepared{Needs: &Needs{list: tree.Needs(stmt, p.catalog)}}
	switch c := stmt.(type) {
	case *tree.Procedure:
		s.Procedure, stmt = c.Name, argumentsOf(c.Args)
	case *tree.ChangeStreamRead:
		s.ChangeStream, stmt = c.Stream, argumentsOf(c.Args)
		s.Columns = []plan.Column{{Name: c.Output.Name, Type: c.Output.Col.Type}}
	}
	planned, err := plan.Build(stmt, p.catalog, plan.Options{Batch: opts.Batch})
	if err != nil {
		return nil, err
	}
	program, err := exec.Compile(planned, p.tables)
	if err != nil {
		return nil, err
	}
	if s.Columns == nil {
		s.Columns = planned.Columns
	}
	values, _ := planned.Sequences()
	s.copied, s.TakesValues = copiesOf(p.catalog, planned), len(values) > 0
	s.Plan, s.program, s.Accesses, s.Dependencies, s.PointReads, s.PointRead = planned, program, accessesOf(planned), dependenciesOf(p.catalog, planned, found.Objects), isPointReads(planned), isPoint(planned)
	for name, t := range found.Inferred {
		s.Undeclared = append(s.Undeclared, plan.Param{Name: name, Type: t})
	}
	sort.Slice(s.Undeclared, func(i, j int) bool { return s.Undeclared[i].Name < s.Undeclared[j].Name })
	return &Statement{Prepared: s, Text: stats.TextOf(sql)}, nil
}

// argumentsOf returns a query that returns one row: the given arguments of a CALL, or of the function that reads a
// change stream.
func argumentsOf(args []tree.Expr) *tree.Query {
	list := &tree.Project{Input: &tree.SingleRow{}}
	q := &tree.Query{Scan: list}
	for i, e := range args {
		col := tree.Col{ID: -1 - i, Type: e.Type()}
		list.Exprs = append(list.Exprs, tree.Computed{Col: col, Expr: e})
		list.Out = append(list.Out, col)
		q.Output = append(q.Output, tree.Output{Col: col})
	}
	return q
}

// statementKey returns the cache key of a statement. For a statement without parameters and options the key is the text
// itself, so that a look-up allocates no string.
func statementKey(sql string, params map[string]*value.Type, opts Options) string {
	if len(params) == 0 && !opts.Batch && !opts.AllowUnbound {
		return sql
	}
	names := make([]string, 0, 8)
	size := len(sql) + 2
	for name := range params {
		names = append(names, name)
		size += len(name) + 16
	}
	sort.Strings(names)
	var b strings.Builder
	b.Grow(size)
	b.WriteString(sql)
	if opts.Batch {
		b.WriteString("\x00batch")
	}
	if opts.AllowUnbound {
		b.WriteString("\x00unbound")
	}
	for _, name := range names {
		b.WriteByte(0)
		b.WriteString(name)
		b.WriteByte(' ')
		b.WriteString(params[name].String())
	}
	return b.String()
}

func isPointReads(p *plan.Plan) bool {
	r := p.Read
	if r == nil || r.Index != nil || r.Seeks == nil {
		return false
	}
	for _, s := range r.Seeks {
		parts := len(s.Parts)
		if s.Tuples != nil {
			parts = len(s.Tuples.Fields)
		}
		if s.Range != nil || parts < len(r.Table.Key) {
			return false
		}
	}
	return true
}

func isPoint(p *plan.Plan) bool {
	if !isPointReads(p) || len(p.Read.Seeks) != 1 {
		return false
	}
	for _, part := range p.Read.Seeks[0].Parts {
		if part.Array != nil || !part.Null && len(part.Values) != 1 {
			return false
		}
	}
	return p.Read.Seeks[0].Tuples == nil
}

// Literal returns the value of Plan.Params[i] if that parameter has replaced a literal of the text. Otherwise it
// returns false.
func (s *Statement) Literal(i int) (value.Value, bool) {
	if s.literals == nil || s.literals[i].Kind() == value.Invalid {
		return value.Value{}, false
	}
	return s.literals[i], true
}

// Literals returns the values of the parameters that have replaced literals, by name. It returns nil if the plan is not
// a generic one.
func (s *Statement) Literals() map[string]value.Value {
	if s.literals == nil {
		return nil
	}
	named := map[string]value.Value{}
	for i, p := range s.Plan.Params {
		if v, ok := s.Literal(i); ok {
			named[p.Name] = v
		}
	}
	return named
}

// FirstUse returns true at the first call only. The execution that gets true adds PlanTime to its statistics.
func (s *Prepared) FirstUse() bool { return !s.used.Load() && s.used.CompareAndSwap(false, true) }

// Run executes the statement. now is the current time for the statement's functions.
func (s *Statement) Run(ctx context.Context, r Run, now time.Time) (exec.Rows, error) {
	env := s.env(r, now)
	env.Columns = s.columns(ctx, r)
	if r.Access != nil {
		ctx = system.WithAccess(ctx, r.Access)
	}
	return s.program.Run(ctx, env)
}

// Driving returns the layout of the table or index that the driving scan of a query reads, and the spans of keys that
// the scan reads: see exec.Program.
func (s *Statement) Driving(ctx context.Context, r Run, now time.Time) (*table.Layout, []table.Span, error) {
	return s.program.Driving(ctx, s.env(r, now))
}

func (s *Statement) env(r Run, now time.Time) exec.Env {
	return exec.Env{
		View:      r.View,
		Writer:    r.Writer,
		Params:    r.Params,
		Restrict:  r.Restrict,
		Profile:   r.Profile,
		Memory:    r.Memory,
		Spill:     s.preparer.cfg.Spill,
		Clock:     s.preparer.cfg.Clock,
		Functions: &fn.Context{Now: now, Zone: s.preparer.zone, Sequences: s.preparer.sequences},
	}
}

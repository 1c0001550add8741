package schema

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/crowfoot-db/crowfoot/schema/immutable"
	"github.com/crowfoot-db/crowfoot/value"
)

// loadExpressions makes the expressions of a table. If the catalog was stored in format 1 (see Format1), the encoding
// of an expression does not say which columns the expression reads. For a table with such an expression,
// loadExpressions compiles all expressions immediately. The expressions of other tables are compiled when they are
// first evaluated.
func (l *loader) loadExpressions(t loading) error {
	for _, s := range t.stored.Checks {
		uses, err := t.loadColumns(s.Uses)
		if err != nil {
			return err
		}
		functions, err := l.functions(s.Calls)
		if err != nil {
			return err
		}
		t.Checks = append(t.Checks, &Check{Name: s.Name, NameGenerated: s.Generated, Expr: l.expr(t.Table, s.SQL, value.BoolType, uses, functions)})
	}
	for i, s := range t.stored.Columns {
		c := t.Columns[i]
		switch {
		case s.Identity != nil:
			c.Identity = s.Identity
			c.Default = nextOf(t.Table, c, l.compiler)
		case s.Default != nil:
			functions, err := l.functions(s.DefaultCalls)
			if err != nil {
				return err
			}
			c.Default = l.expr(t.Table, *s.Default, c.Type, nil, functions)
		}
		if s.OnUpdate != nil && c.Default != nil {
			c.OnUpdate = &Expr{SQL: *s.OnUpdate, Functions: c.Default.Functions, Eval: c.Default.Eval, bundle: t.ProtoBundle}
		}
		if s.Generated != nil {
			uses, err := t.loadColumns(s.GeneratedUses)
			if err != nil {
				return err
			}
			functions, err := l.functions(s.GeneratedCalls)
			if err != nil {
				return err
			}
			c.Generated = l.expr(t.Table, *s.Generated, c.Type, uses, functions)
		}
	}
	if t.hasUnknownUses() {
		return l.recompile(t.Table)
	}
	return nil
}

// hasUnknownUses reports whether the table may have an expression whose encoding did not say which columns it reads.
// Every CHECK constraint reads a column, but a generated column may read none. For such a generated column
// hasUnknownUses returns true although its encoding was complete. The only effect is that loadExpressions compiles the
// table's expressions immediately.
func (t *Table) hasUnknownUses() bool {
	return slices.ContainsFunc(t.Checks, func(c *Check) bool { return len(c.Expr.Uses) == 0 }) ||
		slices.ContainsFunc(t.Columns, func(c *Column) bool { return c.Generated != nil && len(c.Generated.Uses) == 0 })
}

// expr returns an expression that is compiled when it is first evaluated, so that the start of a server with
// thousands of expressions does not wait for the analyzer.
func (l *loader) expr(t *Table, sql string, want *value.Type, uses []*Column, functions []*Function) *Expr {
	e := &storedExpr{compiler: l.compiler, catalog: l.Catalog, table: t, sql: sql, want: want, uses: uses}
	return &Expr{SQL: sql, Uses: uses, Functions: functions, Eval: e.compute, bundle: t.ProtoBundle}
}

// functions returns the functions with the given IDs.
func (l *loader) functions(ids []TableID) (list []*Function, err error) {
	for _, id := range ids {
		f := l.functionByID(id)
		if f == nil {
			return nil, errDangling
		}
		list = append(list, f)
	}
	return list, nil
}

// storedExpr is an expression that was decoded and is compiled later. If its compilation fails, for example for lack
// of memory, the next evaluation tries again.
type storedExpr struct {
	compiler Compiler
	catalog  *Catalog // the catalog in which the compiler looks up functions and sequences of the expression
	table    *Table
	sql      string
	want     *value.Type
	uses     []*Column

	compiling sync.Mutex
	eval      atomic.Pointer[func([]value.Value) (value.Value, error)] // nil until the expression is compiled
}

func (e *storedExpr) compute(args []value.Value) (value.Value, error) {
	eval := e.eval.Load()
	if eval == nil {
		var err error
		if eval, err = e.compile(); err != nil {
			return value.Value{}, fmt.Errorf("compile stored expression %q of table %s: %w", e.sql, e.table.FullName(), err)
		}
	}
	return (*eval)(args)
}

func (e *storedExpr) compile() (*func([]value.Value) (value.Value, error), error) {
	e.compiling.Lock()
	defer e.compiling.Unlock()
	if eval := e.eval.Load(); eval != nil {
		return eval, nil
	}
	compiled, err := e.compiler.CompileExpr(e.catalog, e.table, e.sql, e.want)
	if err != nil {
		return nil, err
	}
	eval, err := compiled.reading(e.uses)
	if err != nil {
		return nil, err
	}
	e.eval.Store(&eval)
	return &eval, nil
}

// reading returns a function that evaluates the expression. The arguments of that function are the values of the
// columns in the list columns, in the order of the list. The order of e.Uses may differ, because another release may
// have stored the columns of an expression in another order.
func (e *Expr) reading(columns []*Column) (func([]value.Value) (value.Value, error), error) {
	if slices.Equal(e.Uses, columns) {
		return e.Eval, nil
	}
	places := make([]int, len(e.Uses))
	for i, c := range e.Uses {
		if places[i] = slices.Index(columns, c); places[i] < 0 {
			return nil, fmt.Errorf("expression %q reads column %s, which it did not read when it was stored", e.SQL, c.Name)
		}
	}
	return func(args []value.Value) (value.Value, error) {
		ordered := make([]value.Value, len(places))
		for i, at := range places {
			ordered[i] = args[at]
		}
		return e.Eval(ordered)
	}, nil
}

// renewCallers replaces the expressions that call a function which has changed since the previous version. It skips the
// tables in encoded, because loadExpressions has made their expressions with the new functions.
func (l *loader) renewCallers(encoded map[TableID][]byte) {
	var changed []*Function
	immutable.Differences(l.old.objects, l.objects, func(_ TableID, before, after Object) {
		if f, ok := after.(*Function); ok && before != nil {
			changed = append(changed, f)
		}
	})
	// Functions rarely change. This return saves a loop over all tables for almost every version: a start of the server
	// may decode thousands of versions, each with thousands of tables.
	if len(changed) == 0 {
		return
	}
	calls := func(e *Expr) bool { return slices.ContainsFunc(changed, e.calls) }
	renewed := func(t *Table, e *Expr, want *value.Type) *Expr {
		if !calls(e) {
			return e
		}
		functions := slices.Clone(e.Functions)
		for i, f := range functions {
			functions[i] = l.functionByID(f.ID)
		}
		return l.expr(t, e.SQL, want, e.Uses, functions)
	}
	for _, t := range slices.Collect(l.Tables()) {
		_, loaded := encoded[t.ID]
		if loaded || !t.calls(calls) {
			continue
		}
		t = l.own(t)
		for _, c := range t.Columns {
			c.Default, c.Generated = renewed(t, c.Default, c.Type), renewed(t, c.Generated, c.Type)
		}
		for _, c := range t.Checks {
			c.Expr = renewed(t, c.Expr, value.BoolType)
		}
	}
}

// calls reports whether its argument, a Go function, returns true for at least one expression of the table.
func (t *Table) calls(calls func(*Expr) bool) bool {
	return slices.ContainsFunc(t.Columns, func(c *Column) bool { return calls(c.Default) || calls(c.Generated) }) ||
		slices.ContainsFunc(t.Checks, func(c *Check) bool { return calls(c.Expr) })
}

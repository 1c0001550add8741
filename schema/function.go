package schema

import (
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Function is a user-defined function: an SQL expression with parameters. Statements, views and column expressions
// can call it.
type Function struct {
	Entity
	Definition
	Signature
	// ParamsSQL holds the parameters as the user wrote them, with types and defaults. ReturnsSQL is the type in
	// RETURNS; "" if there is no RETURNS.
	ParamsSQL  string `json:"params_sql,omitempty"`
	ReturnsSQL string `json:"returns_sql,omitempty"`
	// Defaults holds the default value of each parameter as SQL text; "" for a parameter without a default.
	Defaults []string `json:"defaults,omitempty"`
}

// Signature is what the analyzer has found out about a function.
type Signature struct {
	Params []ViewColumn `json:"params,omitempty"`
	Result ViewColumn   `json:"result"` // without a name
	// Unstable is the name of a function that the text calls, directly or through other functions, and that can give
	// different results for the same arguments; "" if there is none.
	Unstable string `json:"unstable,omitempty"`
}

var functionKind = &objectKind{
	name: "function", noun: "Function", stage: beforeTables,
	empty: func() Object { return new(Function) },
}

func (*Function) kind() *objectKind { return functionKind }

// Function returns the function called name ("f" or "schema.f"), ignoring case, or nil.
func (c *Catalog) Function(name string) *Function {
	if n, ok := c.names.Get(strings.ToLower(name)); ok && n.kind == nameOfObject {
		o, _ := c.objects.Get(n.table)
		f, _ := o.(*Function)
		return f
	}
	return nil
}

func (c *Catalog) functionByID(id TableID) *Function {
	o, _ := c.objects.Get(id)
	f, _ := o.(*Function)
	return f
}

// Functions returns the functions in order of creation.
func (c *Catalog) Functions() []*Function { return slices.Collect(objectsOf[*Function](c)) }

// Text returns the CREATE FUNCTION statement that the analyzer reads. The function's expression begins on line 2 of the
// statement. The parenthesis that closes AS ( is on a line of its own, because the expression may end in a comment.
func (f *Function) Text() string {
	s := "CREATE FUNCTION " + quotePath(f.Schema, f.Name) + "(" + f.ParamsSQL + ")"
	if f.ReturnsSQL != "" {
		s += " RETURNS " + f.ReturnsSQL
	}
	return s + " AS (\n" + f.SQL + "\n)"
}

func (f *Function) sql(*Catalog) []string {
	s := "CREATE FUNCTION " + quotePath(f.Schema, f.Name) + "(" + f.ParamsSQL + ")"
	if f.ReturnsSQL != "" {
		s += " RETURNS " + f.ReturnsSQL
	}
	return []string{s + " SQL SECURITY INVOKER AS (" + f.SQL + ")"}
}

// stageOf returns the stage at which GetDatabaseDdl prints an object. A function that reads tables is printed after
// the tables. Any other function is printed before them, because columns may call it.
func (c *Catalog) stageOf(o Object) stage {
	if f, ok := o.(*Function); ok && c.readsTables(f) {
		return afterIndexes
	}
	return o.kind().stage
}

func (c *Catalog) readsTables(f *Function) bool {
	return slices.ContainsFunc(f.Uses, func(u Use) bool {
		if c.TableByID(u.ID) != nil {
			return true
		}
		switch o := c.definedBy(u.ID).(type) {
		case *View:
			return true
		case *Function:
			return c.readsTables(o)
		}
		return false
	})
}

func (d *draft) createFunction(s *ast.CreateFunction) error {
	schema, name, err := d.path(functionKind.noun, s.Name)
	if err != nil {
		return err
	}
	switch {
	case s.Remote || s.Language != "" && !strings.EqualFold(s.Language, "SQL") || s.Definition == nil:
		return usererror.DDLUnimplemented("A remote function")
	case s.Determinism == ast.DeterminismNotDeterministic:
		return usererror.DDLUnimplemented("NOT DETERMINISTIC")
	case s.SqlSecurity == ast.SecurityTypeDefiner:
		return usererror.DDLUnimplemented("A function with SQL SECURITY DEFINER")
	}
	f := &Function{Entity: Entity{Schema: schema, Name: name}}
	f.SQL = strings.Clone(d.src.Body)
	if n := len(s.Params); n > 0 {
		f.ParamsSQL = d.src.From(s.Params[0].Pos(), s.Params[n-1].End())
	}
	for _, p := range s.Params {
		value := ""
		if p.DefaultExpr != nil {
			value = d.src.From(p.DefaultExpr.Pos(), p.DefaultExpr.End())
		}
		f.Defaults = append(f.Defaults, value)
	}
	if s.ReturnType != nil {
		f.ReturnsSQL = d.src.From(s.ReturnType.Pos(), s.ReturnType.End())
	}
	old := d.Function(fullName(schema, name))
	if old == nil || !s.OrReplace {
		return d.addFunction(f)
	}
	f.Entity = old.Entity
	now, err := f.compiled(d)
	if err != nil {
		return usererror.BadReplacement(functionKind.noun, f.FullName(), err)
	}
	if d.reaches(now, f.ID) {
		return usererror.RecursiveReplacement(functionKind.noun, f.FullName())
	}
	if err := d.replace(now, "alter FUNCTION"); err != nil {
		return err
	}
	return d.recompileCallers(old)
}

// addFunction adds a new function.
func (d *draft) addFunction(f *Function) error {
	var err error
	if f.Schema, err = d.findSchema(f.Schema); err != nil {
		return err
	}
	if err := d.checkNew(functionKind, f.Schema, f.Name); err != nil {
		return err
	}
	if len(d.Functions()) >= MaxFunctions {
		return usererror.TooManyObjects(functionKind.noun, f.FullName(), MaxFunctions)
	}
	f.ID = d.newID()
	now, err := f.compiled(d)
	if err != nil {
		if isPrecondition(err) {
			return err
		}
		return usererror.BadDefinition("function", f.FullName(), err)
	}
	return d.replace(now, "")
}

func (f *Function) compiled(d *draft) (defined, error) {
	n := *f
	var err error
	n.Signature, n.Uses, err = d.compiler.CompileFunction(d.Catalog, f)
	return &n, err
}

// changed returns nil: every change is permitted if the callers, which are compiled again, still compile.
func (f *Function) changed(_, _ string, to defined) *usererror.Error { return nil }

// recompileCallers compiles again the column and constraint expressions that call f, a function that was replaced.
func (d *draft) recompileCallers(f *Function) error {
	for _, t := range slices.Collect(d.old.Tables()) {
		if !t.calls(func(e *Expr) bool { return e.calls(f) }) {
			continue
		}
		mine := d.own(d.TableByID(t.ID))
		if err := d.recompile(mine); err != nil {
			return usererror.DependentInvalid("alter FUNCTION", f.FullName(), "table", t.FullName(), err.Error())
		}
		if err := d.compareComputed(mine); err != nil {
			return err
		}
	}
	return nil
}

// calls reports whether an expression, which may be nil, calls function f.
func (e *Expr) calls(f *Function) bool {
	return e != nil && slices.ContainsFunc(e.Functions, func(called *Function) bool { return called.ID == f.ID })
}

// unstable returns the name of a function that the expression e calls and that can give different results for the same
// arguments; "" if there is none.
func (e *Expr) unstable() string {
	for _, f := range e.Functions {
		if f.Unstable != "" {
			return f.FullName()
		}
	}
	return ""
}

func (d *draft) dropFunction(s *ast.DropFunction) error {
	schema, name, err := d.path(functionKind.noun, s.Name)
	if err != nil {
		return err
	}
	f := d.Function(fullName(schema, name))
	if f == nil {
		if s.IfExists {
			return d.nothing()
		}
		return functionKind.missing(schema, name)
	}
	if err := d.checkUncalled(f); err != nil {
		return err
	}
	d.drop(f)
	return nil
}

func (d *draft) checkUncalled(f *Function) error {
	what := "UDF `" + f.FullName() + "`"
	if err := checkUnnamed(what, d.dependentsOf(f.ID, nil)); err != nil {
		return err
	}
	for t := range d.Tables() {
		for _, c := range t.Columns {
			if c.Generated.calls(f) || c.Default.calls(f) {
				return usererror.DropUnderColumn(what, t.FullName()+"."+c.Name)
			}
		}
		for _, c := range t.Checks {
			if c.Expr.calls(f) {
				return usererror.DropUnderCheck(what, c.Name)
			}
		}
	}
	return nil
}

package analyze

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// The library knows user-defined functions only by their signatures. The walker replaces each call of one by the
// function's expression.

// Names of groups of functions in the library: userGroup for user-defined functions, spannerGroup for the functions
// of Spanner that GoogleSQL lacks.
const (
	userGroup    = "User"
	spannerGroup = "Spanner"
)

// body is a user-defined function that a library has, with its resolved expression.
type body struct {
	*schema.Function
	text   string
	output *googlesql.AnalyzerOutput
	stmt   *googlesql.ResolvedCreateFunctionStmt
}

// addFunctions adds the user-defined functions that the library does not have yet.
func (l *library) addFunctions(list []*schema.Function) {
	for _, f := range list {
		if l.bodies[strings.ToLower(f.FullName())] == nil {
			l.addBody(f)
			l.engine.rest()
		}
	}
}

// addBody adds a user-defined function and the objects that its text names. Of the functions whose names occur in the
// text, it adds only those that f calls (f.Uses). Another name in the text is not a call: it may be that of a parameter
// of f. If addBody added the function with this name, and that function called f, each of the two would add the other
// without end.
func (l *library) addBody(f *schema.Function) {
	found := l.of.namesIn(f.SQL)
	found.functions = slices.DeleteFunc(found.functions, func(called *schema.Function) bool {
		return !slices.ContainsFunc(f.Uses, func(u schema.Use) bool { return u.ID == called.ID })
	})
	l.addNamed(found)
	l.addTypes(l.of.namesIn(f.Text()).types)
	b := l.resolveFunction(&walker{catalog: l.of.catalog, nested: true}, f)
	path := []string{f.Name}
	if f.Schema != "" {
		path = []string{f.Schema, f.Name}
	}
	function := own(googlesql.NewFunction2(path, userGroup, googlesql.FunctionEnums_ModeScalar, []*googlesql.FunctionSignature{get(b.stmt.Signature())}))
	do(l.in(f.Schema).AddOwnedFunction(function))
	l.bodies[strings.ToLower(f.FullName())] = b
}

// resolveFunction lets the library resolve the text of a function, and prepares w for the walk through the text.
// l.free frees the result.
func (l *library) resolveFunction(w *walker, f *schema.Function) *body {
	b := &body{Function: f, text: f.Text()}
	w.definition = &definition{}
	w.declare(nil)
	w.enter(l, b.text)
	options := w.options(l.types)
	defer free(l.engine, freeOptions, options)
	output, err := l.engine.analyze(b.text, options, l.catalog(), l.types)
	if err != nil {
		panic(failure{w.refusal(err)})
	}
	b.output = output
	l.outputs = append(l.outputs, output)
	b.stmt = get(output.ResolvedStatement()).(*googlesql.ResolvedCreateFunctionStmt)
	return b
}

// called returns the user-defined function that n calls; nil if n calls another kind of function.
func (w *walker) called(n *googlesql.ResolvedFunctionCall) *body {
	if len(w.lib.bodies) == 0 {
		return nil
	}
	function := get(n.Function())
	if get(function.GetGroup()) != userGroup {
		return nil
	}
	return w.lib.bodies[strings.ToLower(get(function.FullName(false)))]
}

// inline returns the expression of a function with the arguments in place of its parameters. An argument that is not
// a column, a constant or a query parameter is computed once, and the function's parameter becomes a reference to the
// result.
func (w *walker) inline(n *googlesql.ResolvedFunctionCall, b *body) tree.Expr {
	if get(n.ErrorMode()) == googlesql.ResolvedFunctionCallBaseEnums_ErrorModeSafeErrorMode {
		refuse(usererror.SafeFunction(b.FullName()))
	}
	args := w.arguments(n.ResolvedFunctionCallBase)
	w.meet(b.Function)
	if w.definition != nil {
		w.definition.use(schema.Use{ID: b.ID})
		w.definition.unsteady(b.Unstable)
		return &tree.Call{Func: w.function(n.ResolvedFunctionCallBase, args, w.typeOf(get(n.Type()))), Args: args}
	}
	w.counts.expansion()
	inner := *w
	inner.literals, inner.nested = nil, true
	inner.enter(w.lib, b.text)
	inner.base = w.nextCol
	w.nextCol += int(get(b.output.MaxColumnId())) + 1
	inner.args = map[string]tree.Expr{}
	var defs []tree.Computed
	for i, p := range b.Params {
		arg := args[i]
		if !isSimple(arg) {
			col := tree.Col{ID: w.nextCol, Name: p.Name, Type: arg.Type()}
			w.nextCol++
			defs = append(defs, tree.Computed{Col: col, Expr: arg})
			arg = &tree.Ref{Col: col}
		}
		inner.args[strings.ToLower(p.Name)] = arg
	}
	e := inner.expr(get(b.stmt.FunctionExpression()))
	if defs == nil {
		return e
	}
	return &tree.Let{Defs: defs, Body: e}
}

// isSimple reports whether an expression may be repeated in several places.
func isSimple(e tree.Expr) bool {
	switch e.(type) {
	case *tree.Ref, *tree.Literal, *tree.Param:
		return true
	}
	return false
}

// argument returns the expression that replaces a reference to a function's parameter.
func (w *walker) argument(n *googlesql.ResolvedArgumentRef) tree.Expr {
	name := strings.ToLower(get(n.Name()))
	if w.definition != nil {
		return &tree.Param{T: w.typeOf(get(n.Type())), Name: name}
	}
	if r, ok := w.args[name].(*tree.Ref); ok {
		return &tree.Ref{Col: r.Col}
	}
	return w.args[name]
}

// Function analyzes the text of a function. It returns the function's signature and the objects that the text uses.
// Function fails with ctx's error if ctx ends while the text waits until it may be analyzed, or while a heavy text is
// analyzed.
func (a *Analyzer) Function(ctx context.Context, f *schema.Function) (signature schema.Signature, uses []schema.Use, err error) {
	weight, err := guard(f.SQL, a.columns)
	if err != nil {
		return signature, nil, pointed(f.SQL, err)
	}
	err = engines.run(ctx, weight, a.memory, func(e *engine) {
		l := newLibrary(e, a, a.catalog.ProtoBundle())
		defer l.free()
		if f.Schema == "" {
			l.checkNotBuiltIn(f.Name)
		}
		l.addNamed(a.namesIn(f.SQL))
		l.addTypes(a.namesIn(f.Text()).types)
		b := l.resolveFunction(&walker{catalog: a.catalog}, f)
		w := &walker{catalog: a.catalog}
		w.declare(nil)
		w.begin()
		w.definition = &definition{}
		w.enter(l, b.text)
		signature = w.signature(b)
		uses = w.definition.uses
	})
	if err != nil {
		return signature, nil, pointed(f.SQL, firstLineUp(err))
	}
	return signature, uses, nil
}

// checkNotBuiltIn refuses the name of a user-defined function if a built-in function has it.
func (l *library) checkNotBuiltIn(name string) {
	w := &walker{catalog: l.of.catalog}
	w.declare(nil)
	sql := "SELECT " + quoted(name) + "()"
	w.enter(l, sql)
	options := w.options(l.types)
	defer free(l.engine, freeOptions, options)
	output, err := l.engine.analyze(sql, options, l.catalog(), l.types)
	if err == nil {
		free(l.engine, freeOutput, output)
	}
	if err == nil || functionNotFound.FindString(err.Error()) == "" {
		refuse(usererror.BuiltInName("Function", name))
	}
}

// signature returns the signature of a function. It walks through the function's expression as through that of a
// statement, and so refuses the same features of SQL.
func (w *walker) signature(b *body) (s schema.Signature) {
	if get(b.stmt.IsAggregate()) || get(b.stmt.FunctionExpression()) == nil {
		unsupported("This kind of function")
	}
	e := w.expr(get(b.stmt.FunctionExpression()))
	for i, arg := range get(get(b.stmt.Signature()).Arguments()) {
		s.Params = append(s.Params, schema.ViewColumn{Name: get(b.stmt.ArgumentNameList2(int32(i))), Type: w.typeOf(get(arg.Type()))})
	}
	s.Result.Type = w.typeOf(get(b.stmt.ReturnType()))
	if name, found := tree.Nondeterministic(e); found {
		w.definition.unsteady(name)
	}
	s.Unstable = w.definition.unstable
	return s
}

// unsteady records name, the name of a called function that may return different values for the same arguments. The
// function or view that d defines may then do so too. unsteady keeps only the first name. If name is "", it records
// nothing.
func (d *definition) unsteady(name string) {
	if d.unstable == "" {
		d.unstable = name
	}
}

// functionsOf returns the functions among objects, sorted by ID.
func functionsOf(objects []schema.Object) (list []*schema.Function) {
	for _, o := range objects {
		if f, ok := o.(*schema.Function); ok {
			list = append(list, f)
		}
	}
	slices.SortFunc(list, func(a, b *schema.Function) int { return cmp.Compare(a.ID, b.ID) })
	return list
}

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

// GoogleSQL's catalog has only the signatures of user-defined functions. The walker replaces each call of a
// user-defined function in a statement by the function's expression.

// Names of groups of functions in GoogleSQL's catalog: userGroup for user-defined functions, spannerGroup for the
// functions of Spanner that GoogleSQL lacks.
const (
	userGroup    = "User"
	spannerGroup = "Spanner"
)

// body is a user-defined function with its text and the text's resolved form.
type body struct {
	*schema.Function
	text   string
	output *googlesql.AnalyzerOutput
	stmt   *googlesql.ResolvedCreateFunctionStmt
}

// addFunctions adds the given user-defined functions to l, except those that l already has.
func (l *library) addFunctions(list []*schema.Function) {
	for _, f := range list {
		if l.bodies[strings.ToLower(f.FullName())] == nil {
			l.addBody(f)
			l.engine.rest()
		}
	}
}

// addBody adds the user-defined function f and the objects that its text names. Of the functions whose names occur in
// the text, addBody adds only those that f calls (f.Uses). A name in the text need not be a call: f may have a
// parameter with the name of a function g. If addBody added g then, and g calls f, addBody would add the two in turn
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
// result. In the text that defines a view or another function, inline returns a call instead.
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
// Function fails with ctx's error if ctx ends while the text waits for its turn to be analyzed, or during the analysis
// if the text is a heavy one (see pool).
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

// unsteady records that the view or function with this definition calls a function that may return different values for
// the same arguments. The parameter name is the name of the called function. The call may go through other functions.
// unsteady keeps only the first such name. If name is "", it records nothing.
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

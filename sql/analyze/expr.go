package analyze

import (
	"strings"

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

func (w *walker) expr(n googlesql.ResolvedExprNode) tree.Expr {
	w.lib.engine.rest()
	switch n := n.(type) {
	case *googlesql.ResolvedLiteral:
		t := w.typeOf(get(n.Type()))
		if w.literals != nil {
			w.typed(n, t)
		}
		if t.Kind == value.Proto && !get(get(n.Value()).IsNull()) {
			return w.protoLiteral(get(n.Value()), t)
		}
		return &tree.Literal{T: t, Value: w.resign(n, w.rezone(n, w.valueOf(get(n.Value()), t), t), t)}
	case *googlesql.ResolvedParameter:
		return w.parameter(n)
	case *googlesql.ResolvedColumnRef:
		return &tree.Ref{Col: w.col(get(n.Column()))}
	case *googlesql.ResolvedFunctionCall:
		if b := w.called(n); b != nil {
			return w.inline(n, b)
		}
		return w.call(n)
	case *googlesql.ResolvedArgumentRef:
		return w.argument(n)
	case *googlesql.ResolvedCast:
		return w.cast(n)
	case *googlesql.ResolvedSubqueryExpr:
		return w.subquery(n)
	case *googlesql.ResolvedMakeStruct:
		fields := get(n.FieldList())
		atMost(limitStructFields, len(fields), maxStructFields)
		return &tree.MakeStruct{T: w.typeOf(get(n.Type())), Fields: w.exprs(fields)}
	case *googlesql.ResolvedGetStructField:
		return &tree.GetField{T: w.typeOf(get(n.Type())), Arg: w.expr(get(n.Expr())), Index: int(get(n.FieldIdx()))}
	case *googlesql.ResolvedGetJsonField:
		return &tree.GetJSONField{Arg: w.expr(get(n.Expr())), Name: get(n.FieldName())}
	case *googlesql.ResolvedGetProtoField:
		return w.protoField(n)
	case *googlesql.ResolvedMakeProto:
		return w.makeProto(n)
	case *googlesql.ResolvedReplaceField:
		return w.replaceFields(n)
	case *googlesql.ResolvedWithExpr:
		return &tree.Let{Defs: w.computed(get(n.AssignmentList())), Body: w.expr(get(n.Expr()))}
	}
	unsupported(get(n.NodeKindString()))
	return nil
}

func (w *walker) exprs(list []googlesql.ResolvedExprNode) []tree.Expr {
	out := make([]tree.Expr, len(list))
	for i, n := range list {
		out[i] = w.expr(n)
	}
	return out
}

// optional translates an expression that may be nil.
func (w *walker) optional(n googlesql.ResolvedExprNode) tree.Expr {
	if n == nil {
		return nil
	}
	return w.expr(n)
}

func (w *walker) parameter(n *googlesql.ResolvedParameter) tree.Expr {
	name := strings.ToLower(get(n.Name()))
	t := w.typeOf(get(n.Type()))
	declared, bound := w.declared[name]
	if !bound && !w.allowUnbound {
		refuse(usererror.UnboundParameter(name))
	}
	if declared == nil {
		w.inferred[name] = t
	}
	w.counts.parameter(name)
	return &tree.Param{T: t, Name: name}
}

func (w *walker) call(n *googlesql.ResolvedFunctionCall) tree.Expr {
	defer enter(&w.counts.calls, limitNestedCalls, maxNestedCalls)()
	w.counts.function()
	w.hints(get(n.HintList()), functionHints)
	args := w.arguments(n.ResolvedFunctionCallBase)
	f := w.function(n.ResolvedFunctionCallBase, args, w.typeOf(get(n.Type())))
	if f.Name == pendingCommitTimestamp {
		refuse(usererror.PendingCommitTimestampPlace())
	}
	if f.Name == "$in" {
		atMost(limitInValues, len(args)-1, maxInValues)
	}
	return &tree.Call{Func: f, Args: args}
}

// arguments translates the arguments of a call.
func (w *walker) arguments(n *googlesql.ResolvedFunctionCallBase) []tree.Expr {
	generic := get(n.GenericArgumentList())
	if len(generic) == 0 {
		return w.exprs(listed(w.lib.engine, n.ArgumentList, n.ArgumentListSize, n.ArgumentList2))
	}
	var args []tree.Expr
	for _, g := range generic {
		if e := get(g.Expr()); e != nil {
			args = append(args, w.expr(e))
			continue
		}
		if s := get(g.Sequence()); s != nil {
			args = append(args, w.sequence(s))
			continue
		}
		lambda := get(g.InlineLambda())
		if lambda == nil {
			unsupported("This kind of argument of " + get(get(n.Function()).SQLName()))
		}
		args = append(args, &tree.Lambda{Params: w.cols(get(lambda.ArgumentList())), Body: w.expr(get(lambda.Body()))})
	}
	return args
}

func (w *walker) function(n *googlesql.ResolvedFunctionCallBase, args []tree.Expr, result *value.Type) *tree.Function {
	f := &tree.Function{
		Name: strings.ToLower(get(get(n.Function()).FullName(false))),
		Args: make([]*value.Type, len(args)),
		Type: result,
		Safe: get(n.ErrorMode()) == googlesql.ResolvedFunctionCallBaseEnums_ErrorModeSafeErrorMode,
	}
	for i, a := range args {
		f.Args[i] = a.Type()
	}
	return f
}

func (w *walker) cast(n *googlesql.ResolvedCast) tree.Expr {
	arg, t := w.expr(get(n.Expr())), w.typeOf(get(n.Type()))
	if w.literals != nil {
		w.castLiteral(n, t)
	}
	if literal, ok := arg.(*tree.Literal); ok && literal.Value.IsNull() {
		return &tree.Literal{T: t, Value: value.Null(t.Kind)}
	}
	return &tree.Cast{
		Arg:    arg,
		T:      t,
		Safe:   get(n.ReturnNullOnError()),
		Format: w.optional(get(n.Format())),
		Zone:   w.optional(get(n.TimeZone())),
	}
}

var subqueryKinds = map[googlesql.ResolvedSubqueryExprEnums_SubqueryType]tree.SubqueryKind{
	googlesql.ResolvedSubqueryExprEnums_SubqueryTypeScalar: tree.ScalarSubquery,
	googlesql.ResolvedSubqueryExprEnums_SubqueryTypeArray:  tree.ArraySubquery,
	googlesql.ResolvedSubqueryExprEnums_SubqueryTypeExists: tree.ExistsSubquery,
	googlesql.ResolvedSubqueryExprEnums_SubqueryTypeIn:     tree.InSubquery,
}

func (w *walker) subquery(n *googlesql.ResolvedSubqueryExpr) tree.Expr {
	defer w.counts.subquery()()
	kind, ok := subqueryKinds[get(n.SubqueryType())]
	if !ok {
		unsupported("LIKE ANY and LIKE ALL over a subquery")
	}
	scan := get(n.Subquery())
	s := &tree.Subquery{
		T:     w.typeOf(get(n.Type())),
		Kind:  kind,
		In:    w.optional(get(n.InExpr())),
		Scan:  w.scan(scan),
		Hints: w.hints(get(n.HintList()), subqueryHints),
	}
	if cols := w.columnList(scan); len(cols) > 0 {
		s.Out = cols[0]
	}
	if ordered, ok := scan.(interface{ IsOrdered() (bool, error) }); ok {
		s.Ordered = get(ordered.IsOrdered())
	}
	return s
}

package exec

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/conversion"
	"github.com/crowfoot-db/crowfoot/sql/fn/library"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

func (c *compiler) expr(e plan.Expr) (eval, error) {
	switch e := e.(type) {
	case *plan.Slot:
		i := e.Index
		return func(_ *run, row []value.Value) (value.Value, error) { return row[i], nil }, nil
	case *plan.Outer:
		i := e.Register
		return func(r *run, _ []value.Value) (value.Value, error) { return r.registers[i], nil }, nil
	case *plan.Parameter:
		i := e.Index
		return func(r *run, _ []value.Value) (value.Value, error) { return r.params[i], nil }, nil
	case *tree.Literal:
		v := e.Value
		return func(*run, []value.Value) (value.Value, error) { return v, nil }, nil
	case *tree.Call:
		return c.call(e)
	case *tree.Cast:
		return c.cast(e)
	case *plan.Subquery:
		return c.subquery(e)
	case *tree.MakeStruct:
		return c.makeStruct(e)
	case *tree.GetField:
		return c.getField(e)
	case *tree.GetJSONField:
		return c.getJSONField(e)
	case *plan.Let:
		return c.let(e)
	}
	return nil, fmt.Errorf("expression %T cannot run", e)
}

// reserve reserves n consecutive values of run.room, for the arguments of one call. It returns the index of the
// first.
func (c *compiler) reserve(n int) int {
	at := c.prog.roomSize
	c.prog.roomSize += n
	return at
}

func (c *compiler) call(e *tree.Call) (eval, error) {
	if f, err := c.builtin(e); f != nil || err != nil {
		return f, err
	}
	f, err := library.Lookup(e.Func)
	if err != nil {
		return nil, err
	}
	if f.Higher != nil {
		made, err := c.higher(f, e)
		return c.bounded(e.Func.Type, made), err
	}
	args, err := c.exprs(e.Args)
	if err != nil {
		return nil, err
	}
	if f.Lazy != nil {
		return c.lazy(f, args), nil
	}
	if e.Func.Name == "$in_array" {
		return c.inArray(e, c.strict(f, args))
	}
	return c.bounded(e.Func.Type, c.strict(f, args)), nil
}

// strict compiles a call of a function that needs the values of all its arguments.
func (c *compiler) strict(f *fn.Scalar, args []eval) eval {
	at, n := c.reserve(len(args)), len(args)
	return func(r *run, row []value.Value) (value.Value, error) {
		vals := r.room[at : at+n : at+n]
		for i, arg := range args {
			v, err := arg(r, row)
			if err != nil {
				return value.Value{}, err
			}
			vals[i] = v
		}
		return f.Call(r.fns, vals)
	}
}

// lazyArgs gives a lazy function its arguments: the function computes only the arguments that it needs, for the
// current row. A run has one lazyArgs for each call of a lazy function in the statement.
type lazyArgs struct {
	run  *run
	row  []value.Value
	args []eval
}

func (a *lazyArgs) Arg(i int) (value.Value, error) { return a.args[i](a.run, a.row) }
func (a *lazyArgs) Len() int                       { return len(a.args) }

func (c *compiler) lazy(f *fn.Scalar, args []eval) eval {
	at := c.prog.lazies
	c.prog.lazies++
	return func(r *run, row []value.Value) (value.Value, error) {
		a := &r.lazies[at]
		a.run, a.row, a.args = r, row, args
		return f.Lazy(r.fns, a)
	}
}

// lambda is a lambda argument of a call, together with the current row, to whose columns the lambda may refer.
type lambda struct {
	run       *run
	row       []value.Value
	registers []int
	body      eval
}

func (l *lambda) Apply(args []value.Value) (value.Value, error) {
	for i, reg := range l.registers {
		l.run.registers[reg] = args[i]
	}
	return l.body(l.run, l.row)
}

// higher compiles a call of a function that takes lambdas.
func (c *compiler) higher(f *fn.Scalar, e *tree.Call) (eval, error) {
	var plain []eval
	var lambdas []lambda
	for _, a := range e.Args {
		l, isLambda := a.(*plan.Lambda)
		if isLambda {
			a = l.Body
		}
		computed, err := c.expr(a)
		if err != nil {
			return nil, err
		}
		if isLambda {
			lambdas = append(lambdas, lambda{registers: l.Registers, body: computed})
		} else {
			plain = append(plain, computed)
		}
	}
	at, n := c.reserve(len(plain)), len(plain)
	return func(r *run, row []value.Value) (value.Value, error) {
		vals := r.room[at : at+n : at+n]
		for i, arg := range plain {
			v, err := arg(r, row)
			if err != nil {
				return value.Value{}, err
			}
			vals[i] = v
		}
		bound := make([]fn.Lambda, len(lambdas))
		for i, l := range lambdas {
			l.run, l.row = r, row
			bound[i] = &l
		}
		return f.Higher(r.fns, vals, bound)
	}, nil
}

func (c *compiler) cast(e *tree.Cast) (eval, error) {
	f, err := conversion.Cast(e.Arg.Type(), e.T, e.Safe)
	if err != nil {
		return nil, err
	}
	list := []plan.Expr{e.Arg}
	if e.Format != nil {
		list = append(list, e.Format)
		if e.Zone != nil {
			list = append(list, e.Zone)
		}
	}
	args, err := c.exprs(list)
	if err != nil {
		return nil, err
	}
	return c.strict(f, args), nil
}

func (c *compiler) makeStruct(e *tree.MakeStruct) (eval, error) {
	fields, err := c.exprs(e.Fields)
	if err != nil {
		return nil, err
	}
	return func(r *run, row []value.Value) (value.Value, error) {
		vals := make([]value.Value, len(fields))
		for i, f := range fields {
			v, err := f(r, row)
			if err != nil {
				return value.Value{}, err
			}
			vals[i] = v
		}
		return value.OfStruct(vals), nil
	}, nil
}

func (c *compiler) getField(e *tree.GetField) (eval, error) {
	arg, err := c.expr(e.Arg)
	if err != nil {
		return nil, err
	}
	i, null := e.Index, value.Null(e.T.Kind)
	return func(r *run, row []value.Value) (value.Value, error) {
		v, err := arg(r, row)
		if err != nil || v.IsNull() {
			return null, err
		}
		return v.AsList()[i], nil
	}, nil
}

func (c *compiler) let(e *plan.Let) (eval, error) {
	values, err := c.exprs(e.Values)
	if err != nil {
		return nil, err
	}
	body, err := c.expr(e.Body)
	if err != nil {
		return nil, err
	}
	registers := e.Registers
	return func(r *run, row []value.Value) (value.Value, error) {
		for i, f := range values {
			v, err := f(r, row)
			if err != nil {
				return value.Value{}, err
			}
			r.registers[registers[i]] = v
		}
		return body(r, row)
	}, nil
}

// getJSONField compiles json.name, which means json['name'].
func (c *compiler) getJSONField(e *tree.GetJSONField) (eval, error) {
	arg, err := c.expr(e.Arg)
	if err != nil {
		return nil, err
	}
	f, err := library.Lookup(&tree.Function{Name: "$subscript", Args: []*value.Type{value.JSONType, value.StringType}, Type: value.JSONType})
	if err != nil {
		return nil, err
	}
	name := value.OfString(e.Name)
	constant := func(*run, []value.Value) (value.Value, error) { return name, nil }
	return c.strict(f, []eval{arg, constant}), nil
}

// builtin compiles the most frequent calls: AND, OR, NOT and IS NULL, and comparisons of common types. It returns nil
// for all other calls. The packages below sql/fn implement these calls too, for all types; builtin exists because
// its closures are faster.
func (c *compiler) builtin(e *tree.Call) (eval, error) {
	if e.Func.Safe {
		return nil, nil
	}
	switch e.Func.Name {
	case "$and", "$or", "$not", "$is_null":
	case "$equal", "$not_equal", "$less", "$less_or_equal", "$greater", "$greater_or_equal":
		if e.Args[0].Type().Kind != e.Args[1].Type().Kind {
			return nil, nil
		}
	default:
		return nil, nil
	}
	args, err := c.exprs(e.Args)
	if err != nil {
		return nil, err
	}
	switch e.Func.Name {
	case "$and":
		return logical(args, false), nil
	case "$or":
		return logical(args, true), nil
	case "$not":
		return not(args[0]), nil
	case "$is_null":
		return isNull(args[0]), nil
	}
	return comparison(e.Func.Name, e.Args[0].Type().Kind, args), nil
}

// logical compiles AND (decisive is false) or OR (decisive is true). An argument that equals decisive decides the
// result, and later arguments are not computed. If no argument equals decisive, the result is NULL if an argument is
// NULL, else the opposite of decisive.
func logical(args []eval, decisive bool) eval {
	return func(r *run, row []value.Value) (value.Value, error) {
		null := false
		for _, arg := range args {
			v, err := arg(r, row)
			if err != nil {
				return value.Value{}, err
			}
			if v.IsNull() {
				null = true
			} else if v.AsBool() == decisive {
				return v, nil
			}
		}
		if null {
			return value.Null(value.Bool), nil
		}
		return value.OfBool(!decisive), nil
	}
}

func not(arg eval) eval {
	return func(r *run, row []value.Value) (value.Value, error) {
		v, err := arg(r, row)
		if err != nil || v.IsNull() {
			return v, err
		}
		return value.OfBool(!v.AsBool()), nil
	}
}

func isNull(arg eval) eval {
	return func(r *run, row []value.Value) (value.Value, error) {
		v, err := arg(r, row)
		return value.OfBool(v.IsNull()), err
	}
}

// comparison compiles a comparison of integers, enums, dates, strings or bytes. It returns nil for other kinds.
func comparison(name string, k value.Kind, args []eval) eval {
	var order func(a, b value.Value) int
	switch k {
	case value.Int64, value.Enum:
		order = func(a, b value.Value) int { return cmp.Compare(a.AsInt64(), b.AsInt64()) }
	case value.Date:
		order = func(a, b value.Value) int { return cmp.Compare(a.AsDate(), b.AsDate()) }
	case value.String, value.Bytes:
		order = func(a, b value.Value) int { return strings.Compare(a.AsString(), b.AsString()) }
	default:
		return nil
	}
	var less, equal, greater bool // the outcomes for which the comparison is TRUE
	switch name {
	case "$equal":
		equal = true
	case "$not_equal":
		less, greater = true, true
	case "$less":
		less = true
	case "$less_or_equal":
		less, equal = true, true
	case "$greater":
		greater = true
	case "$greater_or_equal":
		greater, equal = true, true
	}
	left, right := args[0], args[1]
	return func(r *run, row []value.Value) (value.Value, error) {
		a, err := left(r, row)
		if err != nil || a.IsNull() {
			return value.Null(value.Bool), err
		}
		b, err := right(r, row)
		if err != nil || b.IsNull() {
			return value.Null(value.Bool), err
		}
		switch c := order(a, b); {
		case c < 0:
			return value.OfBool(less), nil
		case c > 0:
			return value.OfBool(greater), nil
		}
		return value.OfBool(equal), nil
	}
}

package exec

import (
	"cmp"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// builtin compiles the most frequent calls: three-valued logic, and comparisons of common types. For all other calls it returns nil, and sql/fn
// computes them. sql/fn has the functions of builtin too, for every type.
func (c *compiler) builtin(e *plan.Call) (eval, error) {
	if e.Func.Safe || len(e.Lambdas) > 0 {
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

// logical compiles AND or OR. The first argument that equals decisive is the result. If there is none, the result is NULL if an argument is NULL.
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

package operators

import (
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Conditional has the conditional functions. They compute only the arguments that they need.
var Conditional = []fn.Record{
	{Name: "if", Leakproof: true, Doc: "IF(condition, a, b): a if the condition is TRUE, else b; the other is not computed.", Overloads: []fn.Overload{fn.On("BOOL, ANY, ANY -> ANY", fn.Lazy(ifElse))}},
	{Name: "ifnull", Leakproof: true, Doc: "IFNULL(a, b): a if it is not NULL, else b.", Overloads: []fn.Overload{fn.On("ANY, ANY -> ANY", fn.Lazy(coalesce))}},
	{Name: "coalesce", Leakproof: true, Doc: "The first argument that is not NULL; those after it are not computed.", Overloads: []fn.Overload{fn.On("ANY... -> ANY", fn.Lazy(coalesce))}},
	{Name: "nullif", Leakproof: true, Doc: "NULLIF(a, b): NULL if a = b, else a.", Overloads: []fn.Overload{fn.On("ANY, ANY -> ANY", fn.ByType(nullIf))}},
	{Name: "$case_no_value", Leakproof: true, Doc: "CASE WHEN condition THEN a ... ELSE z END: the a of the first condition that is TRUE.", Overloads: []fn.Overload{fn.On("ANY... -> ANY", fn.Lazy(caseNoValue))}},
	{Name: "$case_with_value", Leakproof: true, Doc: "CASE x WHEN y THEN a ... ELSE z END: the a of the first y that equals x.", Overloads: []fn.Overload{fn.On("ANY... -> ANY", fn.ByType(caseWithValue))}},
	{Name: "error", Doc: "ERROR(text): an error with that text.", Overloads: []fn.Overload{fn.On("STRING -> ANY", fn.Nullable(raise))}},
	{Name: "$with_side_effects", Doc: "The first argument, unless the second holds an error that was put off: then that error.", Overloads: []fn.Overload{fn.On("ANY, BYTES -> ANY", fn.Lazy(withSideEffects))}},
}

func ifElse(_ *fn.Context, args fn.Args) (value.Value, error) {
	cond, err := args.Arg(0)
	if err != nil {
		return cond, err
	}
	if !cond.IsNull() && cond.AsBool() {
		return args.Arg(1)
	}
	return args.Arg(2)
}

func coalesce(_ *fn.Context, args fn.Args) (v value.Value, err error) {
	for i := range args.Len() {
		if v, err = args.Arg(i); err != nil || !v.IsNull() {
			return v, err
		}
	}
	return v, nil
}

func nullIf(f *tree.Function) fn.Body {
	equals := Equality(f.Args[0])
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		if equal, unknown := equals(a[0], a[1]); equal && !unknown {
			return fn.Null(a[0].Kind())
		}
		return a[0], nil
	})
}

func caseNoValue(_ *fn.Context, args fn.Args) (value.Value, error) {
	last := args.Len() - 1
	for i := 0; i < last; i += 2 {
		cond, err := args.Arg(i)
		if err != nil {
			return cond, err
		}
		if !cond.IsNull() && cond.AsBool() {
			return args.Arg(i + 1)
		}
	}
	return args.Arg(last)
}

func caseWithValue(f *tree.Function) fn.Body {
	equals := Equality(f.Args[0])
	return fn.Lazy(func(_ *fn.Context, args fn.Args) (value.Value, error) {
		x, err := args.Arg(0)
		if err != nil {
			return x, err
		}
		last := args.Len() - 1
		for i := 1; i < last; i += 2 {
			y, err := args.Arg(i)
			if err != nil {
				return y, err
			}
			if equal, unknown := equals(x, y); equal && !unknown {
				return args.Arg(i + 1)
			}
		}
		return args.Arg(last)
	})
}

func raise(_ *fn.Context, a []value.Value) (value.Value, error) {
	text := "NULL"
	if !a[0].IsNull() {
		text = a[0].AsString()
	}
	return value.Value{}, usererror.UserError(text)
}

func withSideEffects(_ *fn.Context, args fn.Args) (value.Value, error) {
	failure, err := args.Arg(1)
	if err != nil {
		return failure, err
	}
	if text := failure.AsBytes(); !failure.IsNull() && len(text) > 0 {
		code := codes.OutOfRange
		if text[0] == byte(codes.InvalidArgument) {
			code = codes.InvalidArgument
		}
		return value.Value{}, usererror.PutOff(code, string(text[1:]))
	}
	return args.Arg(0)
}

// PutOff encodes an error as a value, so that the error can be raised later: $with_side_effects decodes it. PutOff
// returns false for an error that must end the statement at once.
func PutOff(err error) (value.Value, bool) {
	var e *usererror.Error
	if !fn.Suppressible(err) || !errors.As(err, &e) {
		return value.Value{}, false
	}
	return value.OfBytes(append([]byte{byte(e.Code)}, e.Message...)), true
}

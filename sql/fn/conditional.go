package fn

import (
	"errors"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// conditional functions compute only the arguments that they need.
var conditional = []record{
	{name: "if", leakproof: true, doc: "IF(condition, a, b): a if the condition is TRUE, else b; the other is not computed.",
		overloads: []overload{on("BOOL, ANY, ANY -> ANY", lazy(ifElse))}},
	{name: "ifnull", leakproof: true, doc: "IFNULL(a, b): a if it is not NULL, else b.",
		overloads: []overload{on("ANY, ANY -> ANY", lazy(coalesce))}},
	{name: "coalesce", leakproof: true, doc: "The first argument that is not NULL; those after it are not computed.",
		overloads: []overload{on("ANY... -> ANY", lazy(coalesce))}},
	{name: "nullif", leakproof: true, doc: "NULLIF(a, b): NULL if a = b, else a.",
		overloads: []overload{on("ANY, ANY -> ANY", byType(nullIf))}},
	{name: "$case_no_value", leakproof: true, doc: "CASE WHEN condition THEN a ... ELSE z END: the a of the first condition that is TRUE.",
		overloads: []overload{on("ANY... -> ANY", lazy(caseNoValue))}},
	{name: "$case_with_value", leakproof: true, doc: "CASE x WHEN y THEN a ... ELSE z END: the a of the first y that equals x.",
		overloads: []overload{on("ANY... -> ANY", byType(caseWithValue))}},
	{name: "error", doc: "ERROR(text): an error with that text.",
		overloads: []overload{on("STRING -> ANY", nullable(raise))}},
	{name: "$with_side_effects", doc: "The first argument, unless the second holds an error that was put off: then that error.",
		overloads: []overload{on("ANY, BYTES -> ANY", lazy(withSideEffects))}},
}

func ifElse(_ *Context, args Args) (value.Value, error) {
	cond, err := args.Arg(0)
	if err != nil {
		return cond, err
	}
	if !cond.IsNull() && cond.AsBool() {
		return args.Arg(1)
	}
	return args.Arg(2)
}

func coalesce(_ *Context, args Args) (v value.Value, err error) {
	for i := range args.Len() {
		if v, err = args.Arg(i); err != nil || !v.IsNull() {
			return v, err
		}
	}
	return v, nil
}

func nullIf(f *tree.Function) body {
	equals := equality(f.Args[0])
	return nullable(func(_ *Context, a []value.Value) (value.Value, error) {
		if equal, unknown := equals(a[0], a[1]); equal && !unknown {
			return null(a[0].Kind())
		}
		return a[0], nil
	})
}

func caseNoValue(_ *Context, args Args) (value.Value, error) {
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

func caseWithValue(f *tree.Function) body {
	equals := equality(f.Args[0])
	return lazy(func(_ *Context, args Args) (value.Value, error) {
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

func raise(_ *Context, a []value.Value) (value.Value, error) {
	text := "NULL"
	if !a[0].IsNull() {
		text = a[0].AsString()
	}
	return value.Value{}, usererror.UserError(text)
}

func withSideEffects(_ *Context, args Args) (value.Value, error) {
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

// PutOff encodes an error as a value, from which $with_side_effects makes the error again. It returns false for an error that must end the
// statement at once.
func PutOff(err error) (value.Value, bool) {
	var e *usererror.Error
	if !suppressible(err) || !errors.As(err, &e) {
		return value.Value{}, false
	}
	return value.OfBytes(append([]byte{byte(e.Code)}, e.Message...)), true
}

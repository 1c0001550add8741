package fn

import "github.com/crowfoot-db/crowfoot/value"

// logic has three values: NULL means unknown.
var logic = []record{
	{name: "$and", leakproof: true, doc: "FALSE if an operand is FALSE, else NULL if one is NULL, else TRUE; operands after a FALSE are not computed.",
		overloads: []overload{on("BOOL, BOOL... -> BOOL", lazy(and))}},
	{name: "$or", leakproof: true, doc: "TRUE if an operand is TRUE, else NULL if one is NULL, else FALSE; operands after a TRUE are not computed.",
		overloads: []overload{on("BOOL, BOOL... -> BOOL", lazy(or))}},
	{name: "$not", leakproof: true, doc: "The opposite; NULL of NULL.",
		overloads: []overload{on("BOOL -> BOOL", strict(not))}},
	{name: "$is_true", leakproof: true, doc: "x IS TRUE: FALSE for NULL.",
		overloads: []overload{on("BOOL -> BOOL", nullable(isTrue))}},
	{name: "$is_false", leakproof: true, doc: "x IS FALSE: FALSE for NULL.",
		overloads: []overload{on("BOOL -> BOOL", nullable(isFalse))}},
	{name: "$is_null", leakproof: true, doc: "x IS NULL.",
		overloads: []overload{on("ANY -> BOOL", nullable(isNull))}},
}

func and(_ *Context, args Args) (value.Value, error) { return connect(args, false) }

func or(_ *Context, args Args) (value.Value, error) { return connect(args, true) }

// connect computes operands until one has the value decides, which is then the result. Otherwise the result is NULL if an operand is.
func connect(args Args, decides bool) (value.Value, error) {
	result := value.OfBool(!decides)
	for i := range args.Len() {
		v, err := args.Arg(i)
		switch {
		case err != nil:
			return v, err
		case v.IsNull():
			result = value.Null(value.Bool)
		case v.AsBool() == decides:
			return v, nil
		}
	}
	return result, nil
}

func not(_ *Context, a []value.Value) (value.Value, error) { return ofBool(!a[0].AsBool()) }

func isTrue(_ *Context, a []value.Value) (value.Value, error) {
	return ofBool(!a[0].IsNull() && a[0].AsBool())
}

func isFalse(_ *Context, a []value.Value) (value.Value, error) {
	return ofBool(!a[0].IsNull() && !a[0].AsBool())
}

func isNull(_ *Context, a []value.Value) (value.Value, error) { return ofBool(a[0].IsNull()) }

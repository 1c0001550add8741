package operators

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/value"
)

// Logic has the operators on truth values. There are three: TRUE, FALSE and NULL, which means unknown.
var Logic = []fn.Record{
	{Name: "$and", Leakproof: true, Doc: "FALSE if an operand is FALSE, else NULL if one is NULL, else TRUE; operands after a FALSE are not computed.", Overloads: []fn.Overload{fn.On("BOOL, BOOL... -> BOOL", fn.Lazy(and))}},
	{Name: "$or", Leakproof: true, Doc: "TRUE if an operand is TRUE, else NULL if one is NULL, else FALSE; operands after a TRUE are not computed.", Overloads: []fn.Overload{fn.On("BOOL, BOOL... -> BOOL", fn.Lazy(or))}},
	{Name: "$not", Leakproof: true, Doc: "The opposite; NULL of NULL.", Overloads: []fn.Overload{fn.On("BOOL -> BOOL", fn.Strict(not))}},
	{Name: "$is_true", Leakproof: true, Doc: "x IS TRUE: FALSE for NULL.", Overloads: []fn.Overload{fn.On("BOOL -> BOOL", fn.Nullable(isTrue))}},
	{Name: "$is_false", Leakproof: true, Doc: "x IS FALSE: FALSE for NULL.", Overloads: []fn.Overload{fn.On("BOOL -> BOOL", fn.Nullable(isFalse))}},
	{Name: "$is_null", Leakproof: true, Doc: "x IS NULL.", Overloads: []fn.Overload{fn.On("ANY -> BOOL", fn.Nullable(isNull))}},
}

func and(_ *fn.Context, args fn.Args) (value.Value, error) { return connect(args, false) }

func or(_ *fn.Context, args fn.Args) (value.Value, error) { return connect(args, true) }

// connect computes AND, for which the parameter decides is false, or OR, for which it is true. It computes operands
// until one is equal to decides; this operand is the result. If no operand is, the result is NULL if an operand is
// NULL, and otherwise the opposite of decides.
func connect(args fn.Args, decides bool) (value.Value, error) {
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

func not(_ *fn.Context, a []value.Value) (value.Value, error) { return fn.OfBool(!a[0].AsBool()) }

func isTrue(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfBool(!a[0].IsNull() && a[0].AsBool())
}

func isFalse(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfBool(!a[0].IsNull() && !a[0].AsBool())
}

func isNull(_ *fn.Context, a []value.Value) (value.Value, error) { return fn.OfBool(a[0].IsNull()) }

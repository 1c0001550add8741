// Package mathematics has GoogleSQL's mathematical functions, and distances of vectors.
//
// Imports of this module: sql/fn, sql/fn/operators, usererror, value.
package mathematics

import (
	"math"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/operators"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Functions has the mathematical functions, except those that round. If the argument is finite and the result is not,
// the function fails.
var Functions = []fn.Record{
	{Name: "abs", Doc: "The absolute value.", Overloads: []fn.Overload{
		fn.On("INT64 -> INT64", fn.Strict(absInt64)),
		fn.On("FLOAT64 -> FLOAT64", float64Function(math.Abs)),
		fn.On("FLOAT32 -> FLOAT32", float32Function(math.Abs)),
		fn.On("NUMERIC -> NUMERIC", numericFunction(value.Decimal.Abs)),
	}},
	{Name: "sign", Leakproof: true, Doc: "-1, 0 or 1; NaN of NaN.", Overloads: []fn.Overload{
		fn.On("INT64 -> INT64", fn.Strict(signInt64)),
		fn.On("FLOAT64 -> FLOAT64", float64Function(sign)),
		fn.On("FLOAT32 -> FLOAT32", float32Function(sign)),
		fn.On("NUMERIC -> NUMERIC", numericFunction(signNumeric)),
	}},
	{Name: "is_inf", Leakproof: true, Doc: "Whether x is infinite.", Overloads: []fn.Overload{fn.On("FLOAT64 -> BOOL", fn.Strict(isInf))}},
	{Name: "is_nan", Leakproof: true, Doc: "Whether x is NaN.", Overloads: []fn.Overload{fn.On("FLOAT64 -> BOOL", fn.Strict(isNaN))}},
	{Name: "sqrt", Doc: "The square root.", Overloads: []fn.Overload{
		fn.On("FLOAT64 -> FLOAT64", fn.Strict(sqrt)),
		fn.On("NUMERIC -> NUMERIC", fn.Strict(sqrtNumeric)),
	}},
	{Name: "pow", Doc: "POW(x, y): x to the power y.", Overloads: []fn.Overload{
		fn.On("FLOAT64, FLOAT64 -> FLOAT64", checked2("POW", math.Pow)),
		fn.On("NUMERIC, NUMERIC -> NUMERIC", fn.Strict(powNumeric)),
	}},
	{Name: "exp", Doc: "e to the power x.", Overloads: []fn.Overload{
		fn.On("FLOAT64 -> FLOAT64", checked("EXP", math.Exp)),
		fn.On("NUMERIC -> NUMERIC", fn.Strict(expNumeric)),
	}},
	{Name: "ln", Doc: "The natural logarithm.", Overloads: []fn.Overload{
		fn.On("FLOAT64 -> FLOAT64", checked("LN", math.Log)),
		fn.On("NUMERIC -> NUMERIC", fn.Strict(lnNumeric)),
	}},
	{Name: "log", Doc: "LOG(x): the natural logarithm. LOG(x, base): the logarithm to a base.", Overloads: []fn.Overload{
		fn.On("FLOAT64 -> FLOAT64", checked("LN", math.Log)),
		fn.On("NUMERIC -> NUMERIC", fn.Strict(lnNumeric)),
		fn.On("FLOAT64, FLOAT64 -> FLOAT64", checked2("LOG", logarithm)),
		fn.On("NUMERIC, NUMERIC -> NUMERIC", fn.Strict(logNumeric)),
	}},
	{Name: "log10", Doc: "The logarithm to base 10.", Overloads: []fn.Overload{
		fn.On("FLOAT64 -> FLOAT64", checked("LOG10", math.Log10)),
		fn.On("NUMERIC -> NUMERIC", fn.Strict(log10Numeric)),
	}},
	{Name: "cos", Doc: "The cosine of x radians.", Overloads: []fn.Overload{fn.On("FLOAT64 -> FLOAT64", float64Function(math.Cos))}},
	{Name: "cosh", Doc: "The hyperbolic cosine.", Overloads: []fn.Overload{fn.On("FLOAT64 -> FLOAT64", overflowing("COSH", math.Cosh))}},
	{Name: "acos", Doc: "The arc cosine, in radians.", Overloads: []fn.Overload{fn.On("FLOAT64 -> FLOAT64", checked("ACOS", math.Acos))}},
	{Name: "acosh", Doc: "The inverse hyperbolic cosine.", Overloads: []fn.Overload{fn.On("FLOAT64 -> FLOAT64", checked("ACOSH", math.Acosh))}},
	{Name: "sin", Doc: "The sine of x radians.", Overloads: []fn.Overload{fn.On("FLOAT64 -> FLOAT64", float64Function(math.Sin))}},
	{Name: "sinh", Doc: "The hyperbolic sine.", Overloads: []fn.Overload{fn.On("FLOAT64 -> FLOAT64", overflowing("SINH", math.Sinh))}},
	{Name: "asin", Doc: "The arc sine, in radians.", Overloads: []fn.Overload{fn.On("FLOAT64 -> FLOAT64", checked("ASIN", math.Asin))}},
	{Name: "asinh", Doc: "The inverse hyperbolic sine.", Overloads: []fn.Overload{fn.On("FLOAT64 -> FLOAT64", checked("ASINH", math.Asinh))}},
	{Name: "tan", Doc: "The tangent of x radians.", Overloads: []fn.Overload{fn.On("FLOAT64 -> FLOAT64", overflowing("TAN", math.Tan))}},
	{Name: "tanh", Doc: "The hyperbolic tangent.", Overloads: []fn.Overload{fn.On("FLOAT64 -> FLOAT64", float64Function(math.Tanh))}},
	{Name: "atan", Doc: "The arc tangent, in radians.", Overloads: []fn.Overload{fn.On("FLOAT64 -> FLOAT64", float64Function(math.Atan))}},
	{Name: "atanh", Doc: "The inverse hyperbolic tangent.", Overloads: []fn.Overload{fn.On("FLOAT64 -> FLOAT64", checked("ATANH", math.Atanh))}},
	{Name: "atan2", Doc: "ATAN2(y, x): the angle of the point (x, y), in radians.", Overloads: []fn.Overload{fn.On("FLOAT64, FLOAT64 -> FLOAT64", checked2("ATAN2", math.Atan2))}},
}

func absInt64(ctx *fn.Context, a []value.Value) (value.Value, error) {
	if a[0].AsInt64() < 0 {
		return operators.NegateInt64(ctx, a)
	}
	return a[0], nil
}

func signInt64(_ *fn.Context, a []value.Value) (value.Value, error) {
	switch x := a[0].AsInt64(); {
	case x < 0:
		return fn.OfInt64(-1)
	case x > 0:
		return fn.OfInt64(1)
	}
	return fn.OfInt64(0)
}

func sign(x float64) float64 {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	case x == 0:
		return 0
	}
	return x
}

func signNumeric(d value.Decimal) value.Decimal { return value.DecimalFromInt64(int64(d.Sign())) }

func numericFunction(f func(value.Decimal) value.Decimal) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return value.OfNumeric(f(a[0].AsNumeric())), nil
	})
}

func isInf(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfBool(math.IsInf(a[0].AsFloat64(), 0))
}

func isNaN(_ *fn.Context, a []value.Value) (value.Value, error) { return fn.OfBool(a[0].IsNaN()) }

func sqrt(_ *fn.Context, a []value.Value) (value.Value, error) {
	x := a[0].AsFloat64()
	if x < 0 {
		return value.Value{}, usererror.NegativeSquareRoot(fn.ShortFloat(x))
	}
	return fn.OfFloat64(math.Sqrt(x))
}

// logarithm returns the logarithm of x to a base. It returns NaN if the base is not finite or not positive.
func logarithm(x, base float64) float64 {
	if !fn.IsFinite(base) || base <= 0 {
		return math.NaN()
	}
	return math.Log(x) / math.Log(base)
}

func checked(name string, f func(float64) float64) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		x := a[0].AsFloat64()
		z := f(x)
		if !fn.IsFinite(z) && fn.IsFinite(x) {
			return value.Value{}, usererror.FloatingPoint(fn.CallText(name, fn.ShortFloat(x)))
		}
		return fn.OfFloat64(z)
	})
}

func overflowing(name string, f func(float64) float64) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		x := a[0].AsFloat64()
		z := f(x)
		if !fn.IsFinite(z) && fn.IsFinite(x) {
			return value.Value{}, usererror.FloatingPointOverflow(fn.CallText(name, fn.ShortFloat(x)))
		}
		return fn.OfFloat64(z)
	})
}

func checked2(name string, f func(x, y float64) float64) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		x, y := a[0].AsFloat64(), a[1].AsFloat64()
		z := f(x, y)
		if !fn.IsFinite(z) && fn.IsFinite(x) && fn.IsFinite(y) {
			return value.Value{}, usererror.FloatingPoint(fn.CallText(name, fn.ShortFloat(x), fn.ShortFloat(y)))
		}
		return fn.OfFloat64(z)
	})
}

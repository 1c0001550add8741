package fn

import (
	"math"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// mathematics: a result that is not finite is an error if the argument is.
var mathematics = []record{
	{name: "abs", doc: "The absolute value.", overloads: []overload{
		on("INT64 -> INT64", strict(absInt64)),
		on("FLOAT64 -> FLOAT64", float64Function(math.Abs)),
		on("FLOAT32 -> FLOAT32", float32Function(math.Abs)),
		on("NUMERIC -> NUMERIC", numericFunction(value.Decimal.Abs)),
	}},
	{name: "sign", leakproof: true, doc: "-1, 0 or 1; NaN of NaN.", overloads: []overload{
		on("INT64 -> INT64", strict(signInt64)),
		on("FLOAT64 -> FLOAT64", float64Function(sign)),
		on("FLOAT32 -> FLOAT32", float32Function(sign)),
		on("NUMERIC -> NUMERIC", numericFunction(signNumeric)),
	}},
	{name: "is_inf", leakproof: true, doc: "Whether x is infinite.", overloads: []overload{on("FLOAT64 -> BOOL", strict(isInf))}},
	{name: "is_nan", leakproof: true, doc: "Whether x is NaN.", overloads: []overload{on("FLOAT64 -> BOOL", strict(isNaN))}},
	{name: "sqrt", doc: "The square root.", overloads: []overload{
		on("FLOAT64 -> FLOAT64", strict(sqrt)),
		on("NUMERIC -> NUMERIC", strict(sqrtNumeric)),
	}},
	{name: "pow", doc: "POW(x, y): x to the power y.", overloads: []overload{
		on("FLOAT64, FLOAT64 -> FLOAT64", checked2("POW", math.Pow)),
		on("NUMERIC, NUMERIC -> NUMERIC", strict(powNumeric)),
	}},
	{name: "exp", doc: "e to the power x.", overloads: []overload{
		on("FLOAT64 -> FLOAT64", checked("EXP", math.Exp)),
		on("NUMERIC -> NUMERIC", strict(expNumeric)),
	}},
	{name: "ln", doc: "The natural logarithm.", overloads: []overload{
		on("FLOAT64 -> FLOAT64", checked("LN", math.Log)),
		on("NUMERIC -> NUMERIC", strict(lnNumeric)),
	}},
	{name: "log", doc: "LOG(x): the natural logarithm. LOG(x, base): the logarithm to a base.", overloads: []overload{
		on("FLOAT64 -> FLOAT64", checked("LN", math.Log)),
		on("NUMERIC -> NUMERIC", strict(lnNumeric)),
		on("FLOAT64, FLOAT64 -> FLOAT64", checked2("LOG", logarithm)),
		on("NUMERIC, NUMERIC -> NUMERIC", strict(logNumeric)),
	}},
	{name: "log10", doc: "The logarithm to base 10.", overloads: []overload{
		on("FLOAT64 -> FLOAT64", checked("LOG10", math.Log10)),
		on("NUMERIC -> NUMERIC", strict(log10Numeric)),
	}},
	{name: "cos", doc: "The cosine of x radians.", overloads: []overload{on("FLOAT64 -> FLOAT64", float64Function(math.Cos))}},
	{name: "cosh", doc: "The hyperbolic cosine.", overloads: []overload{on("FLOAT64 -> FLOAT64", overflowing("COSH", math.Cosh))}},
	{name: "acos", doc: "The arc cosine, in radians.", overloads: []overload{on("FLOAT64 -> FLOAT64", checked("ACOS", math.Acos))}},
	{name: "acosh", doc: "The inverse hyperbolic cosine.", overloads: []overload{on("FLOAT64 -> FLOAT64", checked("ACOSH", math.Acosh))}},
	{name: "sin", doc: "The sine of x radians.", overloads: []overload{on("FLOAT64 -> FLOAT64", float64Function(math.Sin))}},
	{name: "sinh", doc: "The hyperbolic sine.", overloads: []overload{on("FLOAT64 -> FLOAT64", overflowing("SINH", math.Sinh))}},
	{name: "asin", doc: "The arc sine, in radians.", overloads: []overload{on("FLOAT64 -> FLOAT64", checked("ASIN", math.Asin))}},
	{name: "asinh", doc: "The inverse hyperbolic sine.", overloads: []overload{on("FLOAT64 -> FLOAT64", checked("ASINH", math.Asinh))}},
	{name: "tan", doc: "The tangent of x radians.", overloads: []overload{on("FLOAT64 -> FLOAT64", overflowing("TAN", math.Tan))}},
	{name: "tanh", doc: "The hyperbolic tangent.", overloads: []overload{on("FLOAT64 -> FLOAT64", float64Function(math.Tanh))}},
	{name: "atan", doc: "The arc tangent, in radians.", overloads: []overload{on("FLOAT64 -> FLOAT64", float64Function(math.Atan))}},
	{name: "atanh", doc: "The inverse hyperbolic tangent.", overloads: []overload{on("FLOAT64 -> FLOAT64", checked("ATANH", math.Atanh))}},
	{name: "atan2", doc: "ATAN2(y, x): the angle of the point (x, y), in radians.", overloads: []overload{on("FLOAT64, FLOAT64 -> FLOAT64", checked2("ATAN2", math.Atan2))}},
}

func absInt64(ctx *Context, a []value.Value) (value.Value, error) {
	if a[0].AsInt64() < 0 {
		return negateInt64(ctx, a)
	}
	return a[0], nil
}

func signInt64(_ *Context, a []value.Value) (value.Value, error) {
	switch x := a[0].AsInt64(); {
	case x < 0:
		return ofInt64(-1)
	case x > 0:
		return ofInt64(1)
	}
	return ofInt64(0)
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

func numericFunction(f func(value.Decimal) value.Decimal) body {
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		return value.OfNumeric(f(a[0].AsNumeric())), nil
	})
}

func isInf(_ *Context, a []value.Value) (value.Value, error) {
	return ofBool(math.IsInf(a[0].AsFloat64(), 0))
}

func isNaN(_ *Context, a []value.Value) (value.Value, error) { return ofBool(a[0].IsNaN()) }

func sqrt(_ *Context, a []value.Value) (value.Value, error) {
	x := a[0].AsFloat64()
	if x < 0 {
		return value.Value{}, usererror.NegativeSquareRoot(shortFloat(x))
	}
	return ofFloat64(math.Sqrt(x))
}

// logarithm returns the logarithm of x to a base, and NaN if the base is not positive and finite.
func logarithm(x, base float64) float64 {
	if !finite(base) || base <= 0 {
		return math.NaN()
	}
	return math.Log(x) / math.Log(base)
}

func checked(name string, f func(float64) float64) body {
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		x := a[0].AsFloat64()
		z := f(x)
		if !finite(z) && finite(x) {
			return value.Value{}, usererror.FloatingPoint(call(name, shortFloat(x)))
		}
		return ofFloat64(z)
	})
}

func overflowing(name string, f func(float64) float64) body {
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		x := a[0].AsFloat64()
		z := f(x)
		if !finite(z) && finite(x) {
			return value.Value{}, usererror.FloatingPointOverflow(call(name, shortFloat(x)))
		}
		return ofFloat64(z)
	})
}

func checked2(name string, f func(x, y float64) float64) body {
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		x, y := a[0].AsFloat64(), a[1].AsFloat64()
		z := f(x, y)
		if !finite(z) && finite(x) && finite(y) {
			return value.Value{}, usererror.FloatingPoint(call(name, shortFloat(x), shortFloat(y)))
		}
		return ofFloat64(z)
	})
}

package operators

import (
	"math"
	"math/bits"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Arithmetic has the operators and functions of arithmetic. A result that does not fit its type is an error; it never
// wraps around. Operators on dates and intervals are in package timestamps.
var Arithmetic = []fn.Record{
	{Name: "$add", Doc: "x + y.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", fn.Strict(addInt64)),
		fn.On("FLOAT64, FLOAT64 -> FLOAT64", fn.Strict(addFloat64)),
		fn.On("NUMERIC, NUMERIC -> NUMERIC", fn.Strict(addNumeric)),
	}},
	{Name: "$subtract", Doc: "x - y.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", fn.Strict(subtractInt64)),
		fn.On("FLOAT64, FLOAT64 -> FLOAT64", fn.Strict(subtractFloat64)),
		fn.On("NUMERIC, NUMERIC -> NUMERIC", fn.Strict(subtractNumeric)),
	}},
	{Name: "$multiply", Doc: "x * y.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", fn.Strict(multiplyInt64)),
		fn.On("FLOAT64, FLOAT64 -> FLOAT64", fn.Strict(multiplyFloat64)),
		fn.On("NUMERIC, NUMERIC -> NUMERIC", fn.Strict(multiplyNumeric)),
	}},
	{Name: "$divide", Doc: "x / y: FLOAT64 or NUMERIC, also of integers.", Overloads: []fn.Overload{
		fn.On("FLOAT64, FLOAT64 -> FLOAT64", fn.Strict(divideFloat64)),
		fn.On("NUMERIC, NUMERIC -> NUMERIC", fn.Strict(divideNumeric)),
	}},
	{Name: "$unary_minus", Doc: "-x.", Overloads: []fn.Overload{
		fn.On("INT64 -> INT64", fn.Strict(NegateInt64)),
		fn.On("FLOAT64 -> FLOAT64", fn.Strict(negateFloat64)),
		fn.On("FLOAT32 -> FLOAT32", fn.Strict(negateFloat32)),
		fn.On("NUMERIC -> NUMERIC", fn.Strict(negateNumeric)),
	}},
	{Name: "div", Doc: "DIV(x, y): the quotient of integers, cut off towards zero.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", fn.Strict(div)),
		fn.On("NUMERIC, NUMERIC -> NUMERIC", fn.Strict(divNumeric)),
	}},
	{Name: "mod", Doc: "MOD(x, y): the remainder of DIV; it has the sign of x.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", fn.Strict(mod)),
		fn.On("NUMERIC, NUMERIC -> NUMERIC", fn.Strict(modNumeric)),
	}},
	{Name: "safe_add", Doc: "x + y, NULL on overflow.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", orNull(addInt64)),
		fn.On("FLOAT64, FLOAT64 -> FLOAT64", orNull(addFloat64)),
		fn.On("NUMERIC, NUMERIC -> NUMERIC", orNull(addNumeric)),
	}},
	{Name: "safe_subtract", Doc: "x - y, NULL on overflow.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", orNull(subtractInt64)),
		fn.On("FLOAT64, FLOAT64 -> FLOAT64", orNull(subtractFloat64)),
		fn.On("NUMERIC, NUMERIC -> NUMERIC", orNull(subtractNumeric)),
	}},
	{Name: "safe_multiply", Doc: "x * y, NULL on overflow.", Overloads: []fn.Overload{
		fn.On("INT64, INT64 -> INT64", orNull(multiplyInt64)),
		fn.On("FLOAT64, FLOAT64 -> FLOAT64", orNull(multiplyFloat64)),
		fn.On("NUMERIC, NUMERIC -> NUMERIC", orNull(multiplyNumeric)),
	}},
	{Name: "safe_divide", Doc: "x / y, NULL on overflow or division by zero.", Overloads: []fn.Overload{
		fn.On("FLOAT64, FLOAT64 -> FLOAT64", orNull(divideFloat64)),
		fn.On("NUMERIC, NUMERIC -> NUMERIC", orNull(divideNumeric)),
	}},
	{Name: "safe_negate", Doc: "-x, NULL on overflow.", Overloads: []fn.Overload{
		fn.On("INT64 -> INT64", orNull(NegateInt64)),
		fn.On("FLOAT64 -> FLOAT64", fn.Strict(negateFloat64)),
		fn.On("FLOAT32 -> FLOAT32", fn.Strict(negateFloat32)),
		fn.On("NUMERIC -> NUMERIC", fn.Strict(negateNumeric)),
	}},
	{Name: "ieee_divide", Doc: "x / y without errors: infinities and NaN instead.", Overloads: []fn.Overload{
		fn.On("FLOAT64, FLOAT64 -> FLOAT64", fn.Strict(ieeeDivideFloat64)),
		fn.On("FLOAT32, FLOAT32 -> FLOAT32", fn.Strict(ieeeDivideFloat32)),
	}},
}

// orNull makes a body that returns NULL if f fails with an error that SAFE turns into NULL (see fn.Suppressible).
func orNull(f fn.Eval) fn.Body {
	return fn.Strict(func(ctx *fn.Context, a []value.Value) (value.Value, error) {
		v, err := f(ctx, a)
		if err != nil && fn.Suppressible(err) {
			return fn.Null(a[0].Kind())
		}
		return v, err
	})
}

func addInt64(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsInt64(), a[1].AsInt64()
	z := x + y
	if (x < 0) == (y < 0) && (z < 0) != (x < 0) {
		return value.Value{}, int64Overflow(x, "+", y)
	}
	return fn.OfInt64(z)
}

func subtractInt64(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsInt64(), a[1].AsInt64()
	z := x - y
	if (x < 0) != (y < 0) && (z < 0) != (x < 0) {
		return value.Value{}, int64Overflow(x, "-", y)
	}
	return fn.OfInt64(z)
}

func multiplyInt64(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsInt64(), a[1].AsInt64()
	z, ok := product(x, y)
	if !ok {
		return value.Value{}, int64Overflow(x, "*", y)
	}
	return fn.OfInt64(z)
}

func product(x, y int64) (z int64, ok bool) {
	hi, lo := bits.Mul64(fn.Magnitude(x), fn.Magnitude(y))
	if (x < 0) != (y < 0) {
		return -int64(lo), hi == 0 && lo <= 1<<63
	}
	return int64(lo), hi == 0 && lo < 1<<63
}

func div(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsInt64(), a[1].AsInt64()
	switch {
	case y == 0:
		return value.Value{}, usererror.DivisionByZero(fn.InfixText(fn.Int64Text(x), "/", fn.Int64Text(y)))
	case y == -1:
		return NegateInt64(nil, a)
	}
	return fn.OfInt64(x / y)
}

func mod(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsInt64(), a[1].AsInt64()
	switch y {
	case 0:
		return value.Value{}, usererror.DivisionByZero(fn.CallText("MOD", fn.Int64Text(x), fn.Int64Text(y)))
	case -1:
		return fn.OfInt64(0) // every integer is a multiple of -1
	}
	return fn.OfInt64(x % y)
}

// NegateInt64 returns -x, or an error for the least INT64.
func NegateInt64(_ *fn.Context, a []value.Value) (value.Value, error) {
	x := a[0].AsInt64()
	if x == math.MinInt64 {
		return value.Value{}, usererror.Overflow("int64", "-"+fn.Int64Text(x))
	}
	return fn.OfInt64(-x)
}

// The functions on floating point numbers below, except those of IEEE_DIVIDE, fail if the operands are finite and the
// result is not.

func addFloat64(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsFloat64(), a[1].AsFloat64()
	return checkedFloat64(x, "+", y, x+y)
}

func subtractFloat64(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsFloat64(), a[1].AsFloat64()
	return checkedFloat64(x, "-", y, x-y)
}

func multiplyFloat64(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsFloat64(), a[1].AsFloat64()
	return checkedFloat64(x, "*", y, x*y)
}

func divideFloat64(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsFloat64(), a[1].AsFloat64()
	if y == 0 {
		return value.Value{}, usererror.DivisionByZero(fn.InfixText(fn.ShortFloat(x), "/", fn.ShortFloat(y)))
	}
	return checkedFloat64(x, "/", y, x/y)
}

func checkedFloat64(x float64, operator string, y, result float64) (value.Value, error) {
	if !fn.IsFinite(result) && fn.IsFinite(x) && fn.IsFinite(y) {
		return value.Value{}, usererror.Overflow("double", fn.InfixText(fn.ShortFloat(x), operator, fn.ShortFloat(y)))
	}
	return fn.OfFloat64(result)
}

func negateFloat64(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfFloat64(-a[0].AsFloat64())
}

func negateFloat32(_ *fn.Context, a []value.Value) (value.Value, error) {
	return value.OfFloat32(-a[0].AsFloat32()), nil
}

func ieeeDivideFloat64(_ *fn.Context, a []value.Value) (value.Value, error) {
	return fn.OfFloat64(a[0].AsFloat64() / a[1].AsFloat64())
}

func ieeeDivideFloat32(_ *fn.Context, a []value.Value) (value.Value, error) {
	return value.OfFloat32(a[0].AsFloat32() / a[1].AsFloat32()), nil
}

// int64Overflow returns the error of an operation whose result does not fit in INT64.
func int64Overflow(x int64, operator string, y int64) error {
	return usererror.Overflow("int64", fn.InfixText(fn.Int64Text(x), operator, fn.Int64Text(y)))
}

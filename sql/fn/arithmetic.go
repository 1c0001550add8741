package fn

import (
	"math"
	"math/bits"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// arithmetic: a result that does not fit is an error and never wraps. Operators on dates and intervals are in package timestamps.
var arithmetic = []record{
	{name: "$add", doc: "x + y.", overloads: []overload{
		on("INT64, INT64 -> INT64", strict(addInt64)),
		on("FLOAT64, FLOAT64 -> FLOAT64", strict(addFloat64)),
		on("NUMERIC, NUMERIC -> NUMERIC", strict(addNumeric)),
	}},
	{name: "$subtract", doc: "x - y.", overloads: []overload{
		on("INT64, INT64 -> INT64", strict(subtractInt64)),
		on("FLOAT64, FLOAT64 -> FLOAT64", strict(subtractFloat64)),
		on("NUMERIC, NUMERIC -> NUMERIC", strict(subtractNumeric)),
	}},
	{name: "$multiply", doc: "x * y.", overloads: []overload{
		on("INT64, INT64 -> INT64", strict(multiplyInt64)),
		on("FLOAT64, FLOAT64 -> FLOAT64", strict(multiplyFloat64)),
		on("NUMERIC, NUMERIC -> NUMERIC", strict(multiplyNumeric)),
	}},
	{name: "$divide", doc: "x / y: FLOAT64 or NUMERIC, also of integers.", overloads: []overload{
		on("FLOAT64, FLOAT64 -> FLOAT64", strict(divideFloat64)),
		on("NUMERIC, NUMERIC -> NUMERIC", strict(divideNumeric)),
	}},
	{name: "$unary_minus", doc: "-x.", overloads: []overload{
		on("INT64 -> INT64", strict(negateInt64)),
		on("FLOAT64 -> FLOAT64", strict(negateFloat64)),
		on("FLOAT32 -> FLOAT32", strict(negateFloat32)),
		on("NUMERIC -> NUMERIC", strict(negateNumeric)),
	}},
	{name: "div", doc: "DIV(x, y): the quotient of integers, cut off towards zero.", overloads: []overload{
		on("INT64, INT64 -> INT64", strict(div)),
		on("NUMERIC, NUMERIC -> NUMERIC", strict(divNumeric)),
	}},
	{name: "mod", doc: "MOD(x, y): the remainder of DIV; it has the sign of x.", overloads: []overload{
		on("INT64, INT64 -> INT64", strict(mod)),
		on("NUMERIC, NUMERIC -> NUMERIC", strict(modNumeric)),
	}},
	{name: "safe_add", doc: "x + y, NULL on overflow.", overloads: []overload{
		on("INT64, INT64 -> INT64", orNull(addInt64)),
		on("FLOAT64, FLOAT64 -> FLOAT64", orNull(addFloat64)),
		on("NUMERIC, NUMERIC -> NUMERIC", orNull(addNumeric)),
	}},
	{name: "safe_subtract", doc: "x - y, NULL on overflow.", overloads: []overload{
		on("INT64, INT64 -> INT64", orNull(subtractInt64)),
		on("FLOAT64, FLOAT64 -> FLOAT64", orNull(subtractFloat64)),
		on("NUMERIC, NUMERIC -> NUMERIC", orNull(subtractNumeric)),
	}},
	{name: "safe_multiply", doc: "x * y, NULL on overflow.", overloads: []overload{
		on("INT64, INT64 -> INT64", orNull(multiplyInt64)),
		on("FLOAT64, FLOAT64 -> FLOAT64", orNull(multiplyFloat64)),
		on("NUMERIC, NUMERIC -> NUMERIC", orNull(multiplyNumeric)),
	}},
	{name: "safe_divide", doc: "x / y, NULL on overflow or division by zero.", overloads: []overload{
		on("FLOAT64, FLOAT64 -> FLOAT64", orNull(divideFloat64)),
		on("NUMERIC, NUMERIC -> NUMERIC", orNull(divideNumeric)),
	}},
	{name: "safe_negate", doc: "-x, NULL on overflow.", overloads: []overload{
		on("INT64 -> INT64", orNull(negateInt64)),
		on("FLOAT64 -> FLOAT64", strict(negateFloat64)),
		on("FLOAT32 -> FLOAT32", strict(negateFloat32)),
		on("NUMERIC -> NUMERIC", strict(negateNumeric)),
	}},
	{name: "ieee_divide", doc: "x / y without errors: infinities and NaN instead.", overloads: []overload{
		on("FLOAT64, FLOAT64 -> FLOAT64", strict(ieeeDivideFloat64)),
		on("FLOAT32, FLOAT32 -> FLOAT32", strict(ieeeDivideFloat32)),
	}},
}

// orNull makes a body that returns NULL for errors.
func orNull(f Eval) body {
	return strict(func(ctx *Context, a []value.Value) (value.Value, error) {
		v, err := f(ctx, a)
		if err != nil && suppressible(err) {
			return null(a[0].Kind())
		}
		return v, err
	})
}

func addInt64(_ *Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsInt64(), a[1].AsInt64()
	z := x + y
	if (x < 0) == (y < 0) && (z < 0) != (x < 0) {
		return value.Value{}, int64Overflow(x, "+", y)
	}
	return ofInt64(z)
}

func subtractInt64(_ *Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsInt64(), a[1].AsInt64()
	z := x - y
	if (x < 0) != (y < 0) && (z < 0) != (x < 0) {
		return value.Value{}, int64Overflow(x, "-", y)
	}
	return ofInt64(z)
}

func multiplyInt64(_ *Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsInt64(), a[1].AsInt64()
	z, ok := product(x, y)
	if !ok {
		return value.Value{}, int64Overflow(x, "*", y)
	}
	return ofInt64(z)
}

func product(x, y int64) (z int64, ok bool) {
	hi, lo := bits.Mul64(magnitude(x), magnitude(y))
	if (x < 0) != (y < 0) {
		return -int64(lo), hi == 0 && lo <= 1<<63
	}
	return int64(lo), hi == 0 && lo < 1<<63
}

func div(_ *Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsInt64(), a[1].AsInt64()
	switch {
	case y == 0:
		return value.Value{}, usererror.DivisionByZero(infix(int64Text(x), "/", int64Text(y)))
	case y == -1:
		return negateInt64(nil, a)
	}
	return ofInt64(x / y)
}

func mod(_ *Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsInt64(), a[1].AsInt64()
	switch y {
	case 0:
		return value.Value{}, usererror.DivisionByZero(call("MOD", int64Text(x), int64Text(y)))
	case -1:
		return ofInt64(0) // the quotient of the least INT64 would not fit
	}
	return ofInt64(x % y)
}

func negateInt64(_ *Context, a []value.Value) (value.Value, error) {
	x := a[0].AsInt64()
	if x == math.MinInt64 {
		return value.Value{}, usererror.Overflow("int64", "-"+int64Text(x))
	}
	return ofInt64(-x)
}

// For floating point numbers, a result that is not finite is an error if the operands are finite.

func addFloat64(_ *Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsFloat64(), a[1].AsFloat64()
	return checkedFloat64(x, "+", y, x+y)
}

func subtractFloat64(_ *Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsFloat64(), a[1].AsFloat64()
	return checkedFloat64(x, "-", y, x-y)
}

func multiplyFloat64(_ *Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsFloat64(), a[1].AsFloat64()
	return checkedFloat64(x, "*", y, x*y)
}

func divideFloat64(_ *Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsFloat64(), a[1].AsFloat64()
	if y == 0 {
		return value.Value{}, usererror.DivisionByZero(infix(shortFloat(x), "/", shortFloat(y)))
	}
	return checkedFloat64(x, "/", y, x/y)
}

func checkedFloat64(x float64, operator string, y, result float64) (value.Value, error) {
	if !finite(result) && finite(x) && finite(y) {
		return value.Value{}, usererror.Overflow("double", infix(shortFloat(x), operator, shortFloat(y)))
	}
	return ofFloat64(result)
}

func negateFloat64(_ *Context, a []value.Value) (value.Value, error) {
	return ofFloat64(-a[0].AsFloat64())
}

func negateFloat32(_ *Context, a []value.Value) (value.Value, error) {
	return value.OfFloat32(-a[0].AsFloat32()), nil
}

func ieeeDivideFloat64(_ *Context, a []value.Value) (value.Value, error) {
	return ofFloat64(a[0].AsFloat64() / a[1].AsFloat64())
}

func ieeeDivideFloat32(_ *Context, a []value.Value) (value.Value, error) {
	return value.OfFloat32(a[0].AsFloat32() / a[1].AsFloat32()), nil
}

package fn

import (
	"math"
	"math/big"
	"sync"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

var rounding = []record{
	{name: "round", doc: "To the nearest whole number, or to a number of digits after the point (before it, if negative); halves go away from zero unless the mode says to the even digit.",
		overloads: []overload{
			on("FLOAT64 -> FLOAT64", float64Function(math.Round)),
			on("FLOAT32 -> FLOAT32", float32Function(math.Round)),
			on("NUMERIC -> NUMERIC", quantize("ROUND", value.HalfAway)),
			on("FLOAT64, INT64 -> FLOAT64", roundDigits("ROUND", roundHalfAway)),
			on("FLOAT32, INT64 -> FLOAT32", roundDigitsFloat32("ROUND", math.Round)),
			on("NUMERIC, INT64 -> NUMERIC", quantize("ROUND", value.HalfAway)),
			on("NUMERIC, INT64, PART -> NUMERIC", strict(roundMode)),
		}},
	{name: "trunc", doc: "Towards zero, to a whole number or to a number of digits after the point (before it, if negative).",
		overloads: []overload{
			on("FLOAT64 -> FLOAT64", float64Function(math.Trunc)),
			on("FLOAT32 -> FLOAT32", float32Function(math.Trunc)),
			on("NUMERIC -> NUMERIC", quantize("TRUNC", value.Truncate)),
			on("FLOAT64, INT64 -> FLOAT64", roundDigits("TRUNC", truncate)),
			on("FLOAT32, INT64 -> FLOAT32", roundDigitsFloat32("TRUNC", math.Trunc)),
			on("NUMERIC, INT64 -> NUMERIC", quantize("TRUNC", value.Truncate)),
		}},
	{name: "ceil", doc: "The least whole number that is not below x.", overloads: []overload{
		on("FLOAT64 -> FLOAT64", float64Function(math.Ceil)),
		on("FLOAT32 -> FLOAT32", float32Function(math.Ceil)),
		on("NUMERIC -> NUMERIC", quantize("CEIL", value.Ceiling)),
	}},
	{name: "floor", doc: "The greatest whole number that is not above x.", overloads: []overload{
		on("FLOAT64 -> FLOAT64", float64Function(math.Floor)),
		on("FLOAT32 -> FLOAT32", float32Function(math.Floor)),
		on("NUMERIC -> NUMERIC", quantize("FLOOR", value.Floor)),
	}},
}

// quantize rounds a NUMERIC to the number of digits after the point in the second argument, or to a whole number without one.
func quantize(name string, mode value.Rounding) body { return strict(quantizing(name, mode)) }

func quantizing(name string, mode value.Rounding) Eval {
	return func(_ *Context, a []value.Value) (value.Value, error) {
		digits := int64(0)
		if len(a) > 1 {
			digits = a[1].AsInt64()
		}
		d, ok := a[0].AsNumeric().Quantize(digits, mode)
		if !ok {
			return value.Value{}, numericOverflow(call(name, a[0].AsNumeric().String(), int64Text(digits)))
		}
		return value.OfNumeric(d), nil
	}
}

func roundMode(ctx *Context, a []value.Value) (value.Value, error) {
	mode := value.HalfAway
	if a[2].AsString() == "ROUND_HALF_EVEN" {
		mode = value.HalfEven
	}
	return quantizing("ROUND", mode)(ctx, a[:2])
}

// Exponents of ten outside of which rounding a FLOAT64 gives 0 or does not change the number.
const (
	minExponent = -323
	maxExponent = 308
)

// extended is the precision in bits with which GoogleSQL rounds FLOAT64: that of x87's long double.
const extended = 64

// powersOfTen holds 10^minExponent to 10^maxExponent. Each is made from the one before by multiplying or dividing by ten, as in GoogleSQL,
// since the errors of these steps are part of its results.
var powersOfTen = sync.OnceValue(func() []*big.Float {
	powers := make([]*big.Float, maxExponent-minExponent+1)
	ten := big.NewFloat(10)
	one := new(big.Float).SetPrec(extended).SetInt64(1)
	powers[-minExponent] = one
	for i, p := 1, one; i <= maxExponent; i++ {
		p = new(big.Float).SetPrec(extended).Mul(p, ten)
		powers[i-minExponent] = p
	}
	for i, p := 1, one; i <= -minExponent; i++ {
		p = new(big.Float).SetPrec(extended).Quo(p, ten)
		powers[-i-minExponent] = p
	}
	return powers
})

func roundDigits(name string, toInteger func(*big.Float) *big.Float) body {
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		x, digits := a[0].AsFloat64(), a[1].AsInt64()
		switch {
		case digits < -maxExponent:
			return ofFloat64(0)
		case digits > -minExponent || !finite(x) || x == 0:
			return ofFloat64(x)
		}
		unit := powersOfTen()[-digits-minExponent]
		units := new(big.Float).SetPrec(extended).Quo(new(big.Float).SetFloat64(x), unit)
		result, _ := new(big.Float).SetPrec(extended).Mul(toInteger(units), unit).Float64()
		if !finite(result) {
			return value.Value{}, usererror.FloatingPointOverflow(call(name, shortFloat(x), int64Text(digits)))
		}
		return ofFloat64(result)
	})
}

func truncate(x *big.Float) *big.Float {
	whole, _ := x.Int(nil)
	z := new(big.Float).SetPrec(extended).SetInt(whole)
	if x.Signbit() && z.Sign() == 0 {
		z.Neg(z) // a negative number that rounds to zero gives -0
	}
	return z
}

func roundHalfAway(x *big.Float) *big.Float {
	half := big.NewFloat(0.5)
	if x.Signbit() {
		half.Neg(half)
	}
	// Twice the precision, so that adding a half does not round.
	return truncate(new(big.Float).SetPrec(2*extended).Add(x, half))
}

func roundDigitsFloat32(name string, toInteger func(float64) float64) body {
	const least, greatest = -45, 38
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		x, digits := a[0].AsFloat64(), a[1].AsInt64()
		switch {
		case digits < -greatest:
			return value.OfFloat32(0), nil
		case digits > -least || !finite(x):
			return a[0], nil
		}
		unit := math.Pow10(int(-digits))
		result := toInteger(x/unit) * unit
		if math.Abs(result) > math.MaxFloat32 {
			return value.Value{}, usererror.FloatingPointOverflow(call(name, shortFloat(x), int64Text(digits)))
		}
		return value.OfFloat32(float32(result)), nil
	})
}

func float32Function(f func(float64) float64) body {
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		return value.OfFloat32(float32(f(a[0].AsFloat64()))), nil
	})
}

func float64Function(f func(float64) float64) body {
	return strict(func(_ *Context, a []value.Value) (value.Value, error) {
		return ofFloat64(f(a[0].AsFloat64()))
	})
}

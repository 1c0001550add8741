package mathematics

import (
	"math"
	"math/big"
	"sync"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Rounding has the functions that round.
var Rounding = []fn.Record{
	{Name: "round", Doc: "To the nearest whole number, or to a number of digits after the point (before it, if negative); halves go away from zero unless the mode says to the even digit.",
		Overloads: []fn.Overload{
			fn.On("FLOAT64 -> FLOAT64", float64Function(math.Round)),
			fn.On("FLOAT32 -> FLOAT32", float32Function(math.Round)),
			fn.On("NUMERIC -> NUMERIC", quantize("ROUND", value.HalfAway)),
			fn.On("FLOAT64, INT64 -> FLOAT64", roundDigits("ROUND", roundHalfAway)),
			fn.On("FLOAT32, INT64 -> FLOAT32", roundDigitsFloat32("ROUND", math.Round)),
			fn.On("NUMERIC, INT64 -> NUMERIC", quantize("ROUND", value.HalfAway)),
			fn.On("NUMERIC, INT64, PART -> NUMERIC", fn.Strict(roundMode)),
		}},
	{Name: "trunc", Doc: "Towards zero, to a whole number or to a number of digits after the point (before it, if negative).",
		Overloads: []fn.Overload{
			fn.On("FLOAT64 -> FLOAT64", float64Function(math.Trunc)),
			fn.On("FLOAT32 -> FLOAT32", float32Function(math.Trunc)),
			fn.On("NUMERIC -> NUMERIC", quantize("TRUNC", value.Truncate)),
			fn.On("FLOAT64, INT64 -> FLOAT64", roundDigits("TRUNC", truncate)),
			fn.On("FLOAT32, INT64 -> FLOAT32", roundDigitsFloat32("TRUNC", math.Trunc)),
			fn.On("NUMERIC, INT64 -> NUMERIC", quantize("TRUNC", value.Truncate)),
		}},
	{Name: "ceil", Doc: "The least whole number that is not below x.", Overloads: []fn.Overload{
		fn.On("FLOAT64 -> FLOAT64", float64Function(math.Ceil)),
		fn.On("FLOAT32 -> FLOAT32", float32Function(math.Ceil)),
		fn.On("NUMERIC -> NUMERIC", quantize("CEIL", value.Ceiling)),
	}},
	{Name: "floor", Doc: "The greatest whole number that is not above x.", Overloads: []fn.Overload{
		fn.On("FLOAT64 -> FLOAT64", float64Function(math.Floor)),
		fn.On("FLOAT32 -> FLOAT32", float32Function(math.Floor)),
		fn.On("NUMERIC -> NUMERIC", quantize("FLOOR", value.Floor)),
	}},
}

// quantize makes a body that rounds a NUMERIC to the number of digits after the point in the second argument, or to
// an integer if there is no second argument.
func quantize(name string, mode value.Rounding) fn.Body { return fn.Strict(quantizing(name, mode)) }

func quantizing(name string, mode value.Rounding) fn.Eval {
	return func(_ *fn.Context, a []value.Value) (value.Value, error) {
		digits := int64(0)
		if len(a) > 1 {
			digits = a[1].AsInt64()
		}
		d, ok := a[0].AsNumeric().Quantize(digits, mode)
		if !ok {
			return value.Value{}, fn.NumericOverflow(fn.CallText(name, a[0].AsNumeric().String(), fn.Int64Text(digits)))
		}
		return value.OfNumeric(d), nil
	}
}

func roundMode(ctx *fn.Context, a []value.Value) (value.Value, error) {
	mode := value.HalfAway
	if a[2].AsString() == "ROUND_HALF_EVEN" {
		mode = value.HalfEven
	}
	return quantizing("ROUND", mode)(ctx, a[:2])
}

// If a FLOAT64 is rounded to a multiple of 10^n, the result is 0 for n above maxExponent, and the number itself for n
// below minExponent.
const (
	minExponent = -323
	maxExponent = 308
)

// extended is the precision in bits in which GoogleSQL rounds FLOAT64: that of the long double of x87.
const extended = 64

// powersOfTen holds 10^minExponent to 10^maxExponent. Each power is made from the one before by multiplying or
// dividing by ten. GoogleSQL does the same, and the errors of these steps change its results.
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

func roundDigits(name string, toInteger func(*big.Float) *big.Float) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		x, digits := a[0].AsFloat64(), a[1].AsInt64()
		switch {
		case digits < -maxExponent:
			return fn.OfFloat64(0)
		case digits > -minExponent || !fn.IsFinite(x) || x == 0:
			return fn.OfFloat64(x)
		}
		unit := powersOfTen()[-digits-minExponent]
		units := new(big.Float).SetPrec(extended).Quo(new(big.Float).SetFloat64(x), unit)
		result, _ := new(big.Float).SetPrec(extended).Mul(toInteger(units), unit).Float64()
		if !fn.IsFinite(result) {
			return value.Value{}, usererror.FloatingPointOverflow(fn.CallText(name, fn.ShortFloat(x), fn.Int64Text(digits)))
		}
		return fn.OfFloat64(result)
	})
}

func truncate(x *big.Float) *big.Float {
	whole, _ := x.Int(nil)
	z := new(big.Float).SetPrec(extended).SetInt(whole)
	if x.Signbit() && z.Sign() == 0 {
		z.Neg(z) // a negative number that is rounded to zero becomes -0
	}
	return z
}

func roundHalfAway(x *big.Float) *big.Float {
	half := big.NewFloat(0.5)
	if x.Signbit() {
		half.Neg(half)
	}
	// The sum needs twice the precision, so that adding a half does not round.
	return truncate(new(big.Float).SetPrec(2*extended).Add(x, half))
}

func roundDigitsFloat32(name string, toInteger func(float64) float64) fn.Body {
	const least, greatest = -45, 38
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		x, digits := a[0].AsFloat64(), a[1].AsInt64()
		switch {
		case digits < -greatest:
			return value.OfFloat32(0), nil
		case digits > -least || !fn.IsFinite(x):
			return a[0], nil
		}
		unit := math.Pow10(int(-digits))
		result := toInteger(x/unit) * unit
		if math.Abs(result) > math.MaxFloat32 {
			return value.Value{}, usererror.FloatingPointOverflow(fn.CallText(name, fn.ShortFloat(x), fn.Int64Text(digits)))
		}
		return value.OfFloat32(float32(result)), nil
	})
}

func float32Function(f func(float64) float64) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return value.OfFloat32(float32(f(a[0].AsFloat64()))), nil
	})
}

func float64Function(f func(float64) float64) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return fn.OfFloat64(f(a[0].AsFloat64()))
	})
}

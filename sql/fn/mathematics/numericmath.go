package mathematics

import (
	"math"
	"math/big"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// The functions in this file compute with NUMERIC in binary floating point. They use enough digits to get the correct
// result after the final rounding to billionths.

func newFloat() *big.Float { return new(big.Float).SetPrec(fn.WorkingPrecision) }

func toBig(d value.Decimal) *big.Float {
	return newFloat().Quo(newFloat().SetInt(d.Big()), newFloat().SetInt(fn.Billion))
}

// fromBig rounds x to the nearest billionth. It rounds halves away from zero, and returns false if the result is out of
// range.
func fromBig(x *big.Float) (value.Decimal, bool) {
	if x.IsInf() || x.MantExp(nil) > 100 { // every NUMERIC is less than 10^29, which is less than 2^100
		return value.Decimal{}, false
	}
	scaled := newFloat().Mul(x, newFloat().SetInt(fn.Billion))
	half := newFloat().SetFloat64(math.Copysign(0.5, float64(scaled.Sign())))
	units, _ := scaled.Add(scaled, half).Int(nil)
	return value.DecimalFromBig(units)
}

func sqrtNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	x := a[0].AsNumeric()
	if x.Sign() < 0 {
		return value.Value{}, usererror.NegativeSquareRoot(x.String())
	}
	d, _ := fromBig(newFloat().Sqrt(toBig(x))) // in range, as the root of any NUMERIC is
	return value.OfNumeric(d), nil
}

func expNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	x := a[0].AsNumeric()
	const greatest = 70 // e^70 is greater than 10^29, which is greater than every NUMERIC
	if x.Cmp(value.DecimalFromInt64(greatest)) > 0 {
		return value.Value{}, fn.NumericOverflow(fn.CallText("EXP", x.String()))
	}
	d, ok := fromBig(exponential(toBig(x)))
	if !ok {
		return value.Value{}, fn.NumericOverflow(fn.CallText("EXP", x.String()))
	}
	return value.OfNumeric(d), nil
}

func lnNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	x := a[0].AsNumeric()
	if x.Sign() <= 0 {
		return value.Value{}, usererror.BadArgument("LN is undefined for zero or negative value: " + fn.CallText("LN", x.String()))
	}
	d, _ := fromBig(naturalLog(toBig(x)))
	return value.OfNumeric(d), nil
}

func log10Numeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	x := a[0].AsNumeric()
	if x.Sign() <= 0 {
		return value.Value{}, usererror.BadArgument("LOG10 is undefined for zero or negative value: " + fn.CallText("LOG10", x.String()))
	}
	d, _ := fromBig(newFloat().Quo(naturalLog(toBig(x)), naturalLog(newFloat().SetInt64(10))))
	return value.OfNumeric(d), nil
}

func logNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, base := a[0].AsNumeric(), a[1].AsNumeric()
	if x.Sign() <= 0 || base.Sign() <= 0 || base == value.DecimalFromInt64(1) {
		return value.Value{}, usererror.BadArgument("LOG is undefined for zero or negative value, or when base equals 1: " +
			fn.CallText("LOG", x.String(), base.String()))
	}
	d, ok := fromBig(newFloat().Quo(naturalLog(toBig(x)), naturalLog(toBig(base))))
	if !ok {
		return value.Value{}, fn.NumericOverflow(fn.CallText("LOG", x.String(), base.String()))
	}
	return value.OfNumeric(d), nil
}

func powNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	x, y := a[0].AsNumeric(), a[1].AsNumeric()
	text := fn.CallText("POW", x.String(), y.String())
	switch {
	case x.Sign() == 0 && y.Sign() < 0:
		return value.Value{}, usererror.DivisionByZero(text)
	case x.Sign() < 0 && !y.IsInteger():
		return value.Value{}, usererror.BadArgument("Negative NUMERIC value cannot be raised to a fractional power: " + text)
	case y.Sign() == 0:
		return value.OfNumeric(value.DecimalFromInt64(1)), nil
	case x.Sign() == 0:
		return a[0], nil
	}
	d, ok := fromBig(power(x, y))
	if !ok {
		return value.Value{}, fn.NumericOverflow(text)
	}
	return value.OfNumeric(d), nil
}

// power returns |x|^y, with the sign of x if y is odd. It uses multiplications if y is an integer from 0 to 128, and
// otherwise logarithms, which are not exact. If a power lies exactly halfway between two NUMERICs, it must be rounded
// away from zero. With logarithms it could come out slightly smaller, and would then be rounded towards zero.
func power(x, y value.Decimal) *big.Float {
	if n, ok := y.Int64(); ok && y.IsInteger() && n >= 0 && n <= 128 {
		return wholePower(toBig(x), int(n))
	}
	z := newFloat().Mul(toBig(y), naturalLog(toBig(x.Abs())))
	if f, _ := z.Float64(); f > 70 {
		return newFloat().SetInf(false)
	}
	result := exponential(z)
	if x.Sign() < 0 {
		half, _ := y.Div(value.DecimalFromInt64(2))
		if !half.IsInteger() {
			result.Neg(result)
		}
	}
	return result
}

func wholePower(x *big.Float, n int) *big.Float {
	result := newFloat().SetInt64(1)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			result.Mul(result, x)
		}
		x = newFloat().Mul(x, x)
	}
	return result
}

// exponential returns e^x for x below 100. It computes e^(x/2^k) by a power series, and squares the result k times.
func exponential(x *big.Float) *big.Float {
	if f, _ := x.Float64(); f < -100 {
		return newFloat()
	}
	k := max(0, x.MantExp(nil)+16)
	r := newFloat().SetMantExp(x, -k)
	sum, term := newFloat().SetInt64(1), newFloat().SetInt64(1)
	for i := int64(1); term.Sign() != 0 && term.MantExp(nil) > -fn.WorkingPrecision; i++ {
		term.Mul(term, r)
		term.Quo(term, newFloat().SetInt64(i))
		sum.Add(sum, term)
	}
	for range k {
		sum.Mul(sum, sum)
	}
	return sum
}

// naturalLog returns ln(x) for x > 0. It starts with y, an approximation of ln(x) in FLOAT64. Each step replaces y by
// y + 2(x - e^y)/(x + e^y), which triples the number of correct digits.
func naturalLog(x *big.Float) *big.Float {
	mantissa := newFloat()
	exponent := x.MantExp(mantissa)
	m, _ := mantissa.Float64()
	y := newFloat().SetFloat64(math.Log(m) + float64(exponent)*math.Ln2)
	for range 4 {
		e := exponential(y)
		step := newFloat().Quo(newFloat().Sub(x, e), newFloat().Add(x, e))
		y.Add(y, step.Add(step, step))
	}
	return y
}

package value

import (
	"cmp"
	"math/big"
	"math/bits"
)

// Decimal is the number of a NUMERIC, with 29 digits before and 9 digits after the point. It is stored as a number of
// billionths in 128-bit two's complement. The zero Decimal is 0.
type Decimal struct {
	hi int64
	lo uint64
}

const (
	decimalScale  = 9             // the digits of a NUMERIC after the point
	decimalDigits = 38            // all digits of a NUMERIC
	decimalOne    = 1_000_000_000 // 1, in billionths
)

// magnitude is the absolute value of a Decimal, in billionths.
type magnitude struct{ hi, lo uint64 }

// maxMagnitude is 10^38 - 1.
var maxMagnitude = magnitude{hi: 0x4b3b4ca85a86c47a, lo: 0x098a223fffffffff}

// MaxDecimal and MinDecimal are the greatest and the least NUMERIC.
var (
	MaxDecimal = Decimal{hi: int64(maxMagnitude.hi), lo: maxMagnitude.lo}
	MinDecimal = MaxDecimal.Neg()
)

// InRange reports whether d has at most 38 digits. The arithmetic in this package returns only numbers in this range.
func (d Decimal) InRange() bool { return d.abs().cmp(maxMagnitude) <= 0 }

// DecimalFromInt64 converts a whole number to a Decimal.
func DecimalFromInt64(i int64) Decimal {
	hi, lo := bits.Mul64(magnitude64(i), decimalOne)
	return magnitude{hi, lo}.signed(i < 0)
}

func magnitude64(i int64) uint64 {
	if i < 0 {
		return -uint64(i)
	}
	return uint64(i)
}

// Sign returns -1, 0 or 1.
func (d Decimal) Sign() int {
	return d.Cmp(Decimal{})
}

// Cmp compares numbers and returns -1, 0 or 1.
func (d Decimal) Cmp(e Decimal) int {
	if c := cmp.Compare(d.hi, e.hi); c != 0 {
		return c
	}
	return cmp.Compare(d.lo, e.lo)
}

// Neg returns -d.
func (d Decimal) Neg() Decimal {
	lo, borrow := bits.Sub64(0, d.lo, 0)
	return Decimal{hi: int64(-uint64(d.hi) - borrow), lo: lo}
}

// Abs returns the absolute value of d.
func (d Decimal) Abs() Decimal {
	if d.hi < 0 {
		return d.Neg()
	}
	return d
}

// Add returns d + e. ok is false on overflow.
func (d Decimal) Add(e Decimal) (sum Decimal, ok bool) {
	lo, carry := bits.Add64(d.lo, e.lo, 0)
	hi := int64(uint64(d.hi) + uint64(e.hi) + carry)
	if (d.hi < 0) == (e.hi < 0) && (hi < 0) != (d.hi < 0) {
		return Decimal{}, false
	}
	return Decimal{hi, lo}.checked()
}

// Sub returns d - e. ok is false on overflow.
func (d Decimal) Sub(e Decimal) (difference Decimal, ok bool) { return d.Add(e.Neg()) }

// Mul returns d * e, rounded to billionths, halves away from zero. ok is false on overflow.
func (d Decimal) Mul(e Decimal) (product Decimal, ok bool) {
	x, y, neg := d.abs(), e.abs(), (d.hi < 0) != (e.hi < 0)
	if x.hi == 0 && y.hi == 0 {
		hi, lo := bits.Mul64(x.lo, y.lo)
		lo, carry := bits.Add64(lo, decimalOne/2, 0)
		q, _ := magnitude{hi + carry, lo}.div64(decimalOne)
		return q.checked(neg)
	}
	p := new(big.Int).Mul(x.big(), y.big())
	return fromBig(quoHalfAway(p, big.NewInt(decimalOne)), neg)
}

// Div returns d / e, rounded like Mul. ok is false on overflow and if e is 0.
func (d Decimal) Div(e Decimal) (quotient Decimal, ok bool) {
	x, y, neg := d.abs(), e.abs(), (d.hi < 0) != (e.hi < 0)
	if y == (magnitude{}) {
		return Decimal{}, false
	}
	if x.hi == 0 && y.hi == 0 {
		hi, lo := bits.Mul64(x.lo, decimalOne)
		q, r := magnitude{hi, lo}.div64(y.lo)
		if r >= y.lo-r {
			q = q.inc()
		}
		return q.checked(neg)
	}
	p := new(big.Int).Mul(x.big(), big.NewInt(decimalOne))
	return fromBig(quoHalfAway(p, y.big()), neg)
}

// Mod returns the remainder of d / e, whose quotient is rounded to an integer towards zero. A remainder other than 0
// has the sign of d. ok is false if e is 0.
func (d Decimal) Mod(e Decimal) (remainder Decimal, ok bool) {
	x, y := d.abs(), e.abs()
	if y == (magnitude{}) {
		return Decimal{}, false
	}
	if x.hi == 0 && y.hi == 0 {
		return magnitude{0, x.lo % y.lo}.signed(d.hi < 0), true
	}
	return fromBig(new(big.Int).Rem(x.big(), y.big()), d.hi < 0)
}

// Rounding says how Quantize rounds.
type Rounding uint8

const (
	HalfAway Rounding = iota // ROUND: to the nearest, halves away from zero
	HalfEven                 // to the nearest, halves to the even digit
	Truncate                 // TRUNC: towards zero
	Floor                    // FLOOR: down
	Ceiling                  // CEIL: up
)

// Quantize rounds d to a multiple of 10^-digits. If digits is 0 or more, d keeps that many digits after the point. If
// digits is negative, as many digits before the point become 0. ok is false on overflow.
func (d Decimal) Quantize(digits int64, mode Rounding) (rounded Decimal, ok bool) {
	if digits >= decimalScale {
		return d, true
	}
	// A unit of 10^39 billionths is more than twice any NUMERIC, so larger units give the same result.
	exponent := decimalScale - max(digits, decimalScale-decimalDigits-1)
	x, neg := d.abs(), d.hi < 0
	if x.hi == 0 && exponent <= 19 {
		unit := pow10(exponent)
		q, r := x.lo/unit, x.lo%unit
		m := magnitude{0, q * unit}
		if roundsUp(mode, neg, q&1 == 1, cmp.Compare(r, unit-r), r == 0) {
			m = m.add(unit)
		}
		return m.checked(neg)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(exponent), nil)
	q, r := new(big.Int).QuoRem(x.big(), unit, new(big.Int))
	exact, half := r.Sign() == 0, r.Lsh(r, 1).Cmp(unit)
	if roundsUp(mode, neg, q.Bit(0) == 1, half, exact) {
		q.Add(q, big.NewInt(1))
	}
	return fromBig(q.Mul(q, unit), neg)
}

// pow10 returns 10^n for n up to 19.
func pow10(n int64) uint64 {
	p := uint64(1)
	for range n {
		p *= 10
	}
	return p
}

// roundsUp reports whether the absolute value of a number, which lies between two multiples of a unit, is rounded to
// the greater multiple. neg says that the number is negative. odd says that the lesser multiple is odd. half compares
// the remainder with half a unit: -1, 0 or 1. exact says that there is no remainder.
func roundsUp(mode Rounding, neg, odd bool, half int, exact bool) bool {
	if exact {
		return false
	}
	switch mode {
	case HalfAway:
		return half >= 0
	case HalfEven:
		return half > 0 || half == 0 && odd
	case Floor:
		return neg
	case Ceiling:
		return !neg
	}
	return false
}

// Int64 rounds d to a whole number, halves away from zero. ok is false if the result is out of INT64's range.
func (d Decimal) Int64() (i int64, ok bool) {
	x := d.abs()
	q, r := x.div64(decimalOne)
	if r >= decimalOne/2 {
		q = q.inc()
	}
	if d.hi < 0 {
		return -int64(q.lo), q.hi == 0 && q.lo <= 1<<63
	}
	return int64(q.lo), q.hi == 0 && q.lo < 1<<63
}

// IsInteger reports whether all digits after the point are zero.
func (d Decimal) IsInteger() bool {
	_, r := d.abs().div64(decimalOne)
	return r == 0
}

// Big returns the number in billionths.
func (d Decimal) Big() *big.Int {
	b := d.abs().big()
	if d.hi < 0 {
		b.Neg(b)
	}
	return b
}

// DecimalFromBig makes a Decimal from a number of billionths. ok is false if it is out of range.
func DecimalFromBig(billionths *big.Int) (d Decimal, ok bool) {
	return fromBig(new(big.Int).Abs(billionths), billionths.Sign() < 0)
}

func (d Decimal) abs() magnitude {
	if d.hi < 0 {
		d = d.Neg()
	}
	return magnitude{uint64(d.hi), d.lo}
}

func (d Decimal) checked() (Decimal, bool) { return d, d.InRange() }

func (m magnitude) checked(neg bool) (Decimal, bool) {
	return m.signed(neg), m.cmp(maxMagnitude) <= 0
}

func (m magnitude) signed(neg bool) Decimal {
	d := Decimal{hi: int64(m.hi), lo: m.lo}
	if neg {
		return d.Neg()
	}
	return d
}

func (m magnitude) cmp(n magnitude) int {
	if c := cmp.Compare(m.hi, n.hi); c != 0 {
		return c
	}
	return cmp.Compare(m.lo, n.lo)
}

func (m magnitude) add(u uint64) magnitude {
	lo, carry := bits.Add64(m.lo, u, 0)
	return magnitude{m.hi + carry, lo}
}

func (m magnitude) inc() magnitude { return m.add(1) }

func (m magnitude) div64(u uint64) (q magnitude, r uint64) {
	q.hi, r = m.hi/u, m.hi%u
	q.lo, r = bits.Div64(r, m.lo, u)
	return q, r
}

func (m magnitude) big() *big.Int {
	b := new(big.Int).SetUint64(m.hi)
	return b.Lsh(b, 64).Or(b, new(big.Int).SetUint64(m.lo))
}

func fromBig(m *big.Int, neg bool) (Decimal, bool) {
	if m.BitLen() > 127 {
		return Decimal{}, false
	}
	lo := new(big.Int).And(m, new(big.Int).SetUint64(1<<64-1)).Uint64()
	return magnitude{new(big.Int).Rsh(m, 64).Uint64(), lo}.checked(neg)
}

// quoHalfAway divides two numbers that are not negative, and rounds halves up.
func quoHalfAway(x, y *big.Int) *big.Int {
	q, r := x.QuoRem(x, y, new(big.Int))
	if r.Lsh(r, 1).Cmp(y) >= 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}

// Int128 returns the number in billionths as a two's complement integer.
func (d Decimal) Int128() (hi int64, lo uint64) { return d.hi, d.lo }

// DecimalFromInt128 makes a Decimal from a number of billionths, given as a two's complement integer. The number must
// be in the range of NUMERIC.
func DecimalFromInt128(hi int64, lo uint64) Decimal { return Decimal{hi, lo} }

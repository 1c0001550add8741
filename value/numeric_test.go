package value

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

var billion = big.NewRat(decimalOne, 1)

// nearest returns r as a whole number of billionths, rounded as mode says.
func nearest(r *big.Rat, mode Rounding) *big.Int {
	scaled := new(big.Rat).Mul(r, billion)
	two := big.NewInt(2)
	q, m := new(big.Int).DivMod(scaled.Num(), scaled.Denom(), new(big.Int)) // q is rounded down
	half := new(big.Int).Mul(m, two).Cmp(scaled.Denom())
	up := false
	switch mode {
	case HalfAway:
		up = half > 0 || half == 0 && r.Sign() > 0
	case HalfEven:
		up = half > 0 || half == 0 && q.Bit(0) == 1
	case Truncate:
		up = r.Sign() < 0 && m.Sign() > 0
	case Ceiling:
		up = m.Sign() > 0
	}
	if up {
		q.Add(q, big.NewInt(1))
	}
	return q
}

func rat(d Decimal) *big.Rat { return new(big.Rat).SetFrac(d.Big(), big.NewInt(decimalOne)) }

// check compares a result with the exact result, rounded to billionths with halves away from zero.
func check(t *testing.T, what string, d, e, got Decimal, ok bool, exact *big.Rat) {
	t.Helper()
	want, wantOK := DecimalFromBig(nearest(exact, HalfAway))
	if ok != wantOK || ok && got != want {
		t.Fatalf("%s %s %s = %s (%v), want %s (%v)", d, what, e, got, ok, want, wantOK)
	}
}

func TestDecimalArithmetic(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		for range 3000 {
			d, e := randomDecimal(r), randomDecimal(r)
			x, y := rat(d), rat(e)
			sum, ok := d.Add(e)
			check(t, "+", d, e, sum, ok, new(big.Rat).Add(x, y))
			difference, ok := d.Sub(e)
			check(t, "-", d, e, difference, ok, new(big.Rat).Sub(x, y))
			product, ok := d.Mul(e)
			check(t, "*", d, e, product, ok, new(big.Rat).Mul(x, y))
			if d.Cmp(e) != x.Cmp(y) || d.Sign() != x.Sign() {
				t.Fatalf("%s compares %d with %s, sign %d", d, d.Cmp(e), e, d.Sign())
			}
			if y.Sign() == 0 {
				continue
			}
			quotient, ok := d.Div(e)
			check(t, "/", d, e, quotient, ok, new(big.Rat).Quo(x, y))
			remainder, ok := d.Mod(e)
			exact, _ := DecimalFromBig(new(big.Int).Rem(d.Big(), e.Big()))
			if !ok || remainder != exact {
				t.Fatalf("%s mod %s = %s, want %s", d, e, remainder, exact)
			}
		}
	})
	if _, ok := MaxDecimal.Div(Decimal{}); ok {
		t.Error("divided by zero")
	}
	if _, ok := MaxDecimal.Mod(Decimal{}); ok {
		t.Error("divided by zero")
	}
}

func TestDecimalQuantize(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		for range 3000 {
			d, digits, mode := randomDecimal(r), int64(r.IntN(45)-35), Rounding(r.IntN(5))
			if r.IntN(10) == 0 {
				digits = int64(r.Uint64())
			}
			got, ok := d.Quantize(digits, mode)
			if digits >= decimalScale {
				if !ok || got != d {
					t.Fatalf("%s to %d digits is %s", d, digits, got)
				}
				continue
			}
			exponent := decimalScale - max(digits, -100)
			unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(exponent), nil)
			// nearest multiplies its argument by a billion and then rounds it. To round d to whole units of 10^-digits,
			// the test passes the number of units in d, divided by a billion.
			inUnits := new(big.Rat).Quo(new(big.Rat).SetFrac(d.Big(), unit), billion)
			want, wantOK := DecimalFromBig(unit.Mul(unit, nearest(inUnits, mode)))
			if ok != wantOK || ok && got != want {
				t.Fatalf("%s to %d digits, mode %d: %s (%v), want %s (%v)", d, digits, mode, got, ok, want, wantOK)
			}
		}
	})
}

func TestDecimalConversions(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		for range 3000 {
			d := randomDecimal(r)
			back, err := ParseDecimalStrict(d.String())
			if err != nil || back != d {
				t.Fatalf("%s read as %s, error %v", d, back, err)
			}
			if want, _ := rat(d).Float64(); d.Float64() != want {
				t.Fatalf("%s as FLOAT64 is %v, want %v", d, d.Float64(), want)
			}
			whole := new(big.Int).Quo(nearest(new(big.Rat).Quo(rat(d), billion), HalfAway), big.NewInt(1))
			i, ok := d.Int64()
			if ok != whole.IsInt64() || ok && i != whole.Int64() {
				t.Fatalf("%s as INT64 is %d (%v), want %s", d, i, ok, whole)
			}
			n := randomInt(r)
			if got := DecimalFromInt64(n); rat(got).Cmp(new(big.Rat).SetInt64(n)) != 0 || !got.IsInteger() {
				t.Fatalf("%d became %s", n, got)
			}
			f := randomFloat(r)
			got, ok := DecimalFromFloat64(f)
			if math.IsNaN(f) || math.IsInf(f, 0) {
				if ok {
					t.Fatalf("%v became %s", f, got)
				}
				continue
			}
			want, wantOK := DecimalFromBig(nearest(new(big.Rat).SetFloat64(f), HalfAway))
			if ok != wantOK || ok && got != want {
				t.Fatalf("%v became %s (%v), want %s (%v)", f, got, ok, want, wantOK)
			}
		}
	})
}

package value

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// Append appends the number as Spanner prints it: without exponent, and without zeros at the end of the fraction.
func (d Decimal) Append(dst []byte) []byte {
	if d.hi < 0 {
		dst = append(dst, '-')
	}
	whole, fraction := d.abs().div64(decimalOne)
	if whole.hi == 0 {
		dst = strconv.AppendUint(dst, whole.lo, 10)
	} else {
		const e19 = 1e19
		high, low := whole.div64(e19)
		dst = appendDigits(strconv.AppendUint(dst, high.lo, 10), low, 19)
	}
	if fraction == 0 {
		return dst
	}
	return appendFraction(dst, uint32(fraction))
}

// appendFraction appends a point and a fraction, given in billionths and not 0, without zeros at the end.
func appendFraction(dst []byte, billionths uint32) []byte {
	digits := 9
	for billionths%10 == 0 {
		billionths /= 10
		digits--
	}
	return appendDigits(append(dst, '.'), uint64(billionths), digits)
}

// appendDigits appends u in decimal, padded with zeros on the left to n digits. u must not have more than n digits.
func appendDigits(dst []byte, u uint64, n int) []byte {
	dst = append(dst, "0000000000000000000"[:n]...)
	for i := len(dst) - 1; u > 0; i-- {
		dst[i] = '0' + byte(u%10)
		u /= 10
	}
	return dst
}

func (d Decimal) String() string { return string(d.Append(nil)) }

// Float64 returns the nearest FLOAT64.
func (d Decimal) Float64() float64 {
	if i := int64(d.lo); d.hi == i>>63 && i > -1<<53 && i < 1<<53 {
		return float64(i) / decimalOne
	}
	f, err := strconv.ParseFloat(d.String(), 64)
	if err != nil {
		panic("value: a NUMERIC that is no number: " + err.Error())
	}
	return f
}

// DecimalFromFloat64 converts f to a Decimal and rounds it to billionths, halves away from zero. ok is false if f is
// out of range or NaN.
func DecimalFromFloat64(f float64) (d Decimal, ok bool) {
	fraction, exponent := math.Frexp(math.Abs(f))
	if f-f != 0 || exponent > 97 { // NaN, infinite, or at least 2^97 > 10^29
		return Decimal{}, false
	}
	if exponent < -31 { // less than 2^-32, so less than half a billionth
		return Decimal{}, true
	}
	hi, lo := bits.Mul64(uint64(fraction*(1<<53)), decimalOne)
	m := magnitude{hi, lo} // has up to 83 bits; the result is m times 2^shift
	switch shift := exponent - 53; {
	case shift > 0: // the shift is at most 44, because the exponent is at most 97
		if m.hi>>(63-uint(shift)) != 0 {
			return Decimal{}, false
		}
		m = magnitude{m.hi<<uint(shift) | m.lo>>(64-uint(shift)), m.lo << uint(shift)}
	case shift < 0:
		m = m.shiftRightHalfAway(uint(-shift))
	}
	return m.checked(f < 0)
}

// shiftRightHalfAway divides by 2^n and rounds halves away from zero; 0 < n < 128.
func (m magnitude) shiftRightHalfAway(n uint) magnitude {
	n-- // the last bit that is shifted out decides about rounding
	if n >= 64 {
		m = magnitude{0, m.hi >> (n - 64)}
	} else {
		m = magnitude{m.hi >> n, m.lo>>n | m.hi<<(64-n)}
	}
	m = m.inc()
	return magnitude{m.hi >> 1, m.lo>>1 | m.hi<<63}
}

// ParseDecimal reads a decimal or scientific number, as CAST does. It rounds to billionths, halves away from zero, and
// ignores white space around the number.
func ParseDecimal(s string) (Decimal, error) { return parseDecimal(s, false) }

// ParseDecimalStrict parses a number as ParseDecimal does, but returns an error if the number would have to be
// rounded. It is for values that users write, in contrast to computed ones.
func ParseDecimalStrict(s string) (Decimal, error) { return parseDecimal(s, true) }

func parseDecimal(s string, strict bool) (Decimal, error) {
	text := strings.Trim(s, " \t\n\v\f\r")
	neg := strings.HasPrefix(text, "-")
	if neg || strings.HasPrefix(text, "+") {
		text = text[1:]
	}
	exponent := 0
	if i := strings.LastIndexAny(text, "eE"); i >= 0 {
		var ok bool
		if exponent, ok = parseExponent(text[i+1:]); !ok {
			return Decimal{}, badDecimal(s)
		}
		text = text[:i]
	}
	whole, fraction, _ := strings.Cut(text, ".")
	if len(whole)+len(fraction) == 0 {
		return Decimal{}, badDecimal(s)
	}
	m, ok := magnitudeOf(whole, fraction, exponent, strict)
	if !ok || m.cmp(maxMagnitude) > 0 {
		return Decimal{}, badDecimal(s)
	}
	return m.signed(neg), nil
}

func badDecimal(s string) error { return fmt.Errorf("invalid NUMERIC value: %s", quoted(s)) }

// maxExponent replaces all larger exponents. This does not change any result, because no request has enough digits to
// make up for so large an exponent.
const maxExponent = 1 << 40

func parseExponent(s string) (exponent int, ok bool) {
	neg := strings.HasPrefix(s, "-")
	if neg || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	if s == "" {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		exponent = min(exponent*10+int(c-'0'), maxExponent)
	}
	if neg {
		exponent = -exponent
	}
	return exponent, true
}

// magnitudeOf returns the number whole.fraction times 10^exponent in billionths. whole and fraction are decimal
// digits. ok is false if the number is out of range. It is also false if strict is set and the number would have to be
// rounded.
func magnitudeOf(whole, fraction string, exponent int, strict bool) (m magnitude, ok bool) {
	keep := len(whole) + exponent + decimalScale // how many digits give the billionths; further digits are rounded off
	round := false
	for i := range len(whole) + len(fraction) {
		var c byte
		if i < len(whole) {
			c = whole[i]
		} else {
			c = fraction[i-len(whole)]
		}
		switch {
		case c < '0' || c > '9':
			return m, false
		case i < keep:
			if m, ok = m.mul10(uint64(c - '0')); !ok {
				return m, false
			}
		case strict && c != '0':
			return m, false
		case i == keep:
			round = c >= '5'
		}
	}
	for i := len(whole) + len(fraction); i < keep && m != (magnitude{}); i++ {
		if m, ok = m.mul10(0); !ok {
			return m, false
		}
	}
	if round {
		m = m.inc()
	}
	return m, true
}

// mul10 returns m * 10 + digit. ok is false only if the result is greater than maxMagnitude. Even if ok is true, the
// result can be a little greater than maxMagnitude, so the caller must compare them.
func (m magnitude) mul10(digit uint64) (n magnitude, ok bool) {
	if m.cmp(magnitude{maxMagnitude.hi / 10, 1<<64 - 1}) > 0 {
		return m, false
	}
	hi, lo := bits.Mul64(m.lo, 10)
	return magnitude{m.hi*10 + hi, lo}.add(digit), true
}

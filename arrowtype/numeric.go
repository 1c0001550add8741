package arrowtype

import (
	"math/bits"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
)

const numericKind = "a NUMERIC of at most 29 digits before and 9 behind the point"

// maxNumeric is the largest NUMERIC, as a number of billionths: 10^38 - 1.
var maxNumeric = decimal128.New(0x4b3b4ca85a86c47a, 0x098a223fffffffff)

// ParseNumeric parses a decimal number, which may have an exponent, and returns it as a number of billionths. It
// returns an error if a digit after the ninth digit behind the point is not zero.
func ParseNumeric(text []byte) (decimal128.Num, error) {
	rest, negative := text, false
	if len(rest) > 0 && (rest[0] == '-' || rest[0] == '+') {
		negative = rest[0] == '-'
		rest = rest[1:]
	}
	var n unsigned
	digits, behind, point := 0, 0, false
	ok := true
	for len(rest) > 0 && ok {
		c := rest[0]
		switch {
		case c >= '0' && c <= '9':
			n, ok = n.timesTenPlus(uint64(c - '0'))
			digits++
			if point {
				behind++
			}
		case c == '.' && !point:
			point = true
		case c|0x20 == 'e':
			exponent, err := strconv.ParseInt(stringOf(rest[1:]), 10, 16)
			behind -= int(exponent)
			ok = err == nil
			rest = rest[:1]
		default:
			ok = false
		}
		rest = rest[1:]
	}
	if ok && digits > 0 {
		n, ok = n.scaled(numericScale - behind)
	}
	if !ok || digits == 0 || n.hi >= 1<<63 || decimal128.New(int64(n.hi), n.lo).Cmp(maxNumeric) > 0 {
		return decimal128.Num{}, notA(numericKind, text)
	}
	d := decimal128.New(int64(n.hi), n.lo)
	if negative {
		d = d.Negate()
	}
	return d, nil
}

// unsigned is an unsigned number of 128 bits.
type unsigned struct{ hi, lo uint64 }

// timesTenPlus returns 10 u + digit. ok is false on overflow.
func (u unsigned) timesTenPlus(digit uint64) (_ unsigned, ok bool) {
	carry, lo := bits.Mul64(u.lo, 10)
	over, hi := bits.Mul64(u.hi, 10)
	lo, c := bits.Add64(lo, digit, 0)
	hi, c = bits.Add64(hi, carry, c)
	return unsigned{hi, lo}, over == 0 && c == 0
}

// divideByTen returns u / 10 and the remainder.
func (u unsigned) divideByTen() (q unsigned, digit uint64) {
	q.hi, digit = u.hi/10, u.hi%10
	q.lo, digit = bits.Div64(digit, u.lo, 10)
	return q, digit
}

// scaled returns u times 10^power. ok is false if the result does not fit, or is not a whole number.
func (u unsigned) scaled(power int) (_ unsigned, ok bool) {
	if u == (unsigned{}) {
		return u, true
	}
	ok = true
	for ; power > 0 && ok; power-- {
		u, ok = u.timesTenPlus(0)
	}
	for ; power < 0 && ok; power++ {
		digit := uint64(0)
		u, digit = u.divideByTen()
		ok = digit == 0
	}
	return u, ok
}

// AppendDecimal appends a decimal number with the given scale in the form in which Spanner writes a NUMERIC, that is,
// without zeros at the end of the fraction.
func AppendDecimal(to []byte, d decimal128.Num, scale int) []byte {
	hi, lo := uint64(d.HighBits()), d.LowBits()
	if d.Sign() < 0 {
		to = append(to, '-')
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	u := unsigned{hi, lo}
	for ; scale < 0; scale++ {
		u, _ = u.timesTenPlus(0)
	}
	var text [48]byte // enough for the 39 digits of 128 bits and a point
	at := len(text)
	started := false // false while the digits are zeros at the end of the fraction
	for i := 0; u != (unsigned{}) || i <= scale; i++ {
		var digit uint64
		u, digit = u.divideByTen()
		if i == scale {
			if started {
				at--
				text[at] = '.'
			}
			started = true
		}
		if started = started || digit != 0; started {
			at--
			text[at] = '0' + byte(digit)
		}
	}
	return append(to, text[at:]...)
}

package fn

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/value"
)

// Billion is the denominator of NUMERIC. No one may change it.
var Billion = big.NewInt(1_000_000_000)

// WorkingPrecision is the precision of computations with NUMERIC, in bits. The 38 digits of a NUMERIC take 127 bits.
// The other bits absorb the rounding errors of power series and of computations with numbers near 10^29.
const WorkingPrecision = 320

// MaxGenerated is the maximum number of elements of an array that a GENERATE function makes. An element takes 32 bytes,
// so such an array takes at most 32 MiB. GoogleSQL limits the bytes of such an array, not the number of its elements.
const MaxGenerated = 1 << 20

// TooManyGenerated is the error message for an array with more than MaxGenerated elements.
const TooManyGenerated = "Cannot generate arrays with more than 1048576 elements."

// ParseFloat parses decimal numbers, inf, infinity and nan, and rounds them to FLOAT64 or FLOAT32 (bits is 64 or 32).
// A number that is too large becomes infinite. ok is false for any other text.
func ParseFloat(s string, bits int) (f float64, ok bool) {
	s = strings.Trim(s, ASCIISpace)
	if strings.ContainsAny(s, "xXpP_") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, bits)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		unsigned := strings.TrimLeft(s, "+-")
		return math.NaN(), strings.EqualFold(unsigned, "nan") && len(s)-len(unsigned) <= 1
	}
	return f, true
}

// BoolToInt64 returns 1 for TRUE and 0 for FALSE.
func BoolToInt64(v value.Value) value.Value {
	if v.AsBool() {
		return value.OfInt64(1)
	}
	return value.OfInt64(0)
}

// IsFinite reports whether a number is neither infinite nor NaN.
func IsFinite(x float64) bool { return x-x == 0 }

// Magnitude returns the absolute value of a number.
func Magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

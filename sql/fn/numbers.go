package fn

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/value"
)

// FloorDiv returns a/b rounded down, for a positive b.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Billion is the denominator of NUMERIC. It must not be changed.
var Billion = big.NewInt(1_000_000_000)

// WorkingPrecision is the precision of computations with NUMERIC, in bits. 38 digits take 127 bits; the rest is for the errors of series
// and for numbers near 10^29.
const WorkingPrecision = 320

// MaxGenerated is the maximum number of elements that the GENERATE functions make. GoogleSQL limits their memory instead; an element takes
// 32 bytes.
const MaxGenerated = 1 << 20

// TooManyGenerated is the error message for more elements than MaxGenerated.
const TooManyGenerated = "Cannot generate arrays with more than 1048576 elements."

// ParseFloat accepts decimal numbers, inf, infinity and nan. A number that is too large becomes infinite.
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

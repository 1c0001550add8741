package fn

import (
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/value"
)

// floorDiv returns a/b rounded down, for a positive b.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// billion is the denominator of NUMERIC. It must not be changed.
var billion = big.NewInt(1_000_000_000)

// workingPrecision is the precision of computations with NUMERIC, in bits. 38 digits take 127 bits; the rest is for the errors of series and for numbers near 10^29.
const workingPrecision = 320

// maxGenerated is the maximum number of elements that the GENERATE functions make. GoogleSQL limits their memory instead; an element takes
// 32 bytes.
const maxGenerated = 1 << 20

// tooManyGenerated is the error message for more elements than maxGenerated.
const tooManyGenerated = "Cannot generate arrays with more than 1048576 elements."

// parseFloat accepts decimal numbers, inf, infinity and nan. A number that is too large becomes infinite.
func parseFloat(s string, bits int) (f float64, ok bool) {
	s = strings.Trim(s, asciiSpace)
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

// boolToInt64 returns 1 for TRUE and 0 for FALSE.
func boolToInt64(v value.Value) value.Value {
	if v.AsBool() {
		return value.OfInt64(1)
	}
	return value.OfInt64(0)
}

// finite reports whether a number is neither infinite nor NaN.
func finite(x float64) bool { return x-x == 0 }

// magnitude returns the absolute value of a number.
func magnitude(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

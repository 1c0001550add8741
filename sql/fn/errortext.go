package fn

import (
	"math"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// The functions in this file format operations and numbers for the messages of errors.

// InfixText returns "x operator y".
func InfixText(x, operator, y string) string { return x + " " + operator + " " + y }

// CallText returns "name(args)".
func CallText(name string, args ...string) string { return name + "(" + strings.Join(args, ", ") + ")" }

// Int64Text returns a number in decimal digits.
func Int64Text(x int64) string { return strconv.FormatInt(x, 10) }

// ShortFloat returns a number as error messages show it: with six digits, like %g in C.
func ShortFloat(x float64) string {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return FloatText(x)
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// FloatText returns a FLOAT64 as CAST to STRING prints it.
func FloatText(x float64) string { return string(value.AppendFloat64(nil, x)) }

// NumericOverflow returns the error of an operation whose result does not fit in NUMERIC.
func NumericOverflow(operation string) error { return usererror.Overflow("numeric", operation) }

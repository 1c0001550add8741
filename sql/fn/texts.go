package fn

import (
	"math"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// These functions format the failed operation for error messages.

func int64Overflow(x int64, operator string, y int64) error {
	return usererror.Overflow("int64", infix(int64Text(x), operator, int64Text(y)))
}

func infix(x, operator, y string) string { return x + " " + operator + " " + y }

func call(name string, args ...string) string { return name + "(" + strings.Join(args, ", ") + ")" }

func int64Text(x int64) string { return strconv.FormatInt(x, 10) }

// shortFloat returns a number for error messages, with six digits like C's %g.
func shortFloat(x float64) string {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return floatText(x)
	}
	return strconv.FormatFloat(x, 'g', 6, 64)
}

// floatText returns a FLOAT64 as CAST to STRING prints it.
func floatText(x float64) string { return string(value.AppendFloat64(nil, x)) }

// numericOverflow is the error of an operation whose result NUMERIC does not hold.
func numericOverflow(operation string) error { return usererror.Overflow("numeric", operation) }

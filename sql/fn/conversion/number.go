package conversion

import (
	"math"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// The functions in this file convert numbers to other types of numbers, and text to numbers and BOOL.

// floatToInt64 rounds to the nearest integer. It rounds halves away from zero, and fails for numbers beyond INT64.
func floatToInt64(_ *fn.Context, a []value.Value) (value.Value, error) {
	x := a[0].AsFloat64()
	if !fn.IsFinite(x) {
		return value.Value{}, usererror.FloatToInteger(fn.FloatText(x))
	}
	r := math.Round(x)
	if r < math.MinInt64 || r >= -math.MinInt64 {
		return value.Value{}, usererror.CastOutOfRange("int64", fn.ShortFloat(x))
	}
	return fn.OfInt64(int64(r))
}

func float64ToFloat32(_ *fn.Context, a []value.Value) (value.Value, error) {
	x := a[0].AsFloat64()
	f := float32(x)
	if fn.IsFinite(x) && !fn.IsFinite(float64(f)) {
		return value.Value{}, usererror.CastOutOfRange("float", fn.ShortFloat(x))
	}
	return value.OfFloat32(f), nil
}

func floatToNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	x := a[0].AsFloat64()
	d, ok := value.DecimalFromFloat64(x)
	switch {
	case !fn.IsFinite(x):
		return fn.BadArgument("Illegal conversion of non-finite floating point number to numeric: " + fn.FloatText(x))
	case !ok:
		return value.Value{}, usererror.CastOutOfRange("numeric", fn.ShortFloat(x))
	}
	return value.OfNumeric(d), nil
}

func numericToInt64(_ *fn.Context, a []value.Value) (value.Value, error) {
	i, ok := a[0].AsNumeric().Int64()
	if !ok {
		return value.Value{}, usererror.CastOutOfRange("int64", a[0].AsNumeric().String())
	}
	return fn.OfInt64(i)
}

func numericToFloat32(_ *fn.Context, a []value.Value) (value.Value, error) {
	f, err := strconv.ParseFloat(a[0].AsNumeric().String(), 32)
	if err != nil {
		return value.Value{}, usererror.CastOutOfRange("float", a[0].AsNumeric().String())
	}
	return value.OfFloat32(float32(f)), nil
}

// quotedValue returns a text as error messages show it: escaped, and cut after 32 bytes.
func quotedValue(s string) string {
	const most = 32
	if len(s) > most {
		return fn.EscapeBytes([]byte(s[:most]), 0) + "..."
	}
	return fn.EscapeBytes([]byte(s), 0)
}

func badValue(typ, text string) (value.Value, error) {
	return value.Value{}, usererror.BadValue(typ, quotedValue(text))
}

func parseBool(_ *fn.Context, a []value.Value) (value.Value, error) {
	switch s := a[0].AsString(); {
	case strings.EqualFold(s, "true"):
		return fn.OfBool(true)
	case strings.EqualFold(s, "false"):
		return fn.OfBool(false)
	}
	return badValue("bool", a[0].AsString())
}

// parseInt64 parses decimal and hexadecimal integers, which may have white space around them.
func parseInt64(_ *fn.Context, a []value.Value) (value.Value, error) {
	s := strings.Trim(a[0].AsString(), fn.ASCIISpace)
	digits, base := strings.TrimLeft(s, "+-"), 10
	if len(s)-len(digits) > 1 {
		return badValue("int64", a[0].AsString())
	}
	if len(digits) > 2 && digits[0] == '0' && digits[1]|' ' == 'x' {
		s, base = s[:len(s)-len(digits)]+digits[2:], 16
		if digits[2] == '+' || digits[2] == '-' {
			return badValue("int64", a[0].AsString())
		}
	}
	i, err := strconv.ParseInt(s, base, 64)
	if err != nil {
		return badValue("int64", a[0].AsString())
	}
	return fn.OfInt64(i)
}

func parseFloat64(_ *fn.Context, a []value.Value) (value.Value, error) {
	f, ok := fn.ParseFloat(a[0].AsString(), 64)
	if !ok {
		return badValue("double", a[0].AsString())
	}
	return fn.OfFloat64(f)
}

func parseFloat32(_ *fn.Context, a []value.Value) (value.Value, error) {
	f, ok := fn.ParseFloat(a[0].AsString(), 32)
	if !ok {
		return badValue("float", a[0].AsString())
	}
	return value.OfFloat32(float32(f)), nil
}

func parseNumeric(_ *fn.Context, a []value.Value) (value.Value, error) {
	d, err := value.ParseDecimal(a[0].AsString())
	if err != nil {
		return fn.BadArgument("Invalid NUMERIC value: " + quotedValue(a[0].AsString()))
	}
	return value.OfNumeric(d), nil
}

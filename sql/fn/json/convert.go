package json

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Conversions has the functions that convert JSON scalars, and JSON arrays of scalars, to SQL's types. Functions
// without LAX in their name accept only a JSON value of the matching type, and fail for other values. LAX functions
// also convert other values, and return NULL if that is not possible.
var Conversions = []fn.Record{
	{Name: "bool", Doc: "A JSON boolean.", Overloads: []fn.Overload{fn.On("JSON -> BOOL", exactly(jsonToBool))}},
	{Name: "string", Doc: "STRING(json): a JSON string's text.", Property: fn.Stable, Overloads: []fn.Overload{fn.On("JSON -> STRING", fn.Strict(jsonToString))}},
	{Name: "int64", Doc: "A JSON number that is whole.", Overloads: []fn.Overload{fn.On("JSON -> INT64", exactly(jsonToInt64))}},
	{Name: "float64", Doc: "FLOAT64(json, mode): a JSON number; with mode exact, an error if FLOAT64 does not hold it.", Overloads: []fn.Overload{fn.On("JSON, ?STRING -> FLOAT64", exactly(jsonToFloat64))}},
	{Name: "float32", Doc: "FLOAT32(json, mode): a JSON number; with mode exact, an error if FLOAT32 does not hold it.", Overloads: []fn.Overload{fn.On("JSON, ?STRING -> FLOAT32", exactly(jsonToFloat32))}},
	{Name: "bool_array", Doc: "A JSON array of booleans.", Overloads: []fn.Overload{fn.On("JSON -> ARRAY<BOOL>", exactlyArray(jsonToBool))}},
	{Name: "int64_array", Doc: "A JSON array of whole numbers.", Overloads: []fn.Overload{fn.On("JSON -> ARRAY<INT64>", exactlyArray(jsonToInt64))}},
	{Name: "float64_array", Doc: "A JSON array of numbers; the mode is that of FLOAT64.", Overloads: []fn.Overload{fn.On("JSON, ?STRING -> ARRAY<FLOAT64>", exactlyArray(jsonToFloat64))}},
	{Name: "float32_array", Doc: "A JSON array of numbers; the mode is that of FLOAT32.", Overloads: []fn.Overload{fn.On("JSON, ?STRING -> ARRAY<FLOAT32>", exactlyArray(jsonToFloat32))}},
	{Name: "string_array", Doc: "A JSON array of strings.", Overloads: []fn.Overload{fn.On("JSON -> ARRAY<STRING>", exactlyArray(jsonToText))}},
	{Name: "lax_bool", Doc: "A JSON boolean, the strings true and false, or whether a number is not 0.", Overloads: []fn.Overload{fn.On("JSON -> BOOL", lax(laxBool))}},
	{Name: "lax_int64", Doc: "A JSON number, also as a string, rounded; a boolean is 0 or 1.", Overloads: []fn.Overload{fn.On("JSON -> INT64", lax(laxInt64))}},
	{Name: "lax_float64", Doc: "A JSON number, also as a string.", Overloads: []fn.Overload{fn.On("JSON -> FLOAT64", lax(laxFloat64))}},
	{Name: "lax_string", Doc: "A JSON scalar as text.", Overloads: []fn.Overload{fn.On("JSON -> STRING", lax(laxString))}},
}

// jsonReader converts a JSON text to an SQL value. If exact is set, it fails for a number that the SQL type cannot
// hold exactly.
type jsonReader func(text string, exact bool) (value.Value, error)

func exactly(read jsonReader) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		exact, err := exactMode(a)
		if err != nil {
			return value.Value{}, err
		}
		return read(a[0].AsString(), exact)
	})
}

func exactlyArray(read jsonReader) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		exact, err := exactMode(a)
		if err != nil {
			return value.Value{}, err
		}
		elements, ok := jsonElements(a[0].AsString())
		if !ok {
			return fn.BadArgument("The provided JSON input is not an array")
		}
		list := make([]value.Value, len(elements))
		for i, e := range elements {
			if list[i], err = read(e, exact); err != nil {
				return value.Value{}, err
			}
		}
		return value.OfArray(list), nil
	})
}

// exactMode reads argument 1, wide_number_mode: "exact", or "round", which is the default.
func exactMode(a []value.Value) (exact bool, err error) {
	if len(a) < 2 {
		return false, nil
	}
	switch a[1].AsString() {
	case "exact":
		return true, nil
	case "round":
		return false, nil
	}
	return false, usererror.BadArgument("Invalid `wide_number_mode` specified: " + a[1].AsString())
}

func jsonToString(_ *fn.Context, a []value.Value) (value.Value, error) {
	return jsonToText(a[0].AsString(), false)
}

func jsonToText(text string, _ bool) (value.Value, error) {
	if text[0] != '"' {
		return fn.BadArgument("The provided JSON input is not a string")
	}
	return fn.OfString(jsonUnquote(text))
}

func jsonToBool(text string, _ bool) (value.Value, error) {
	if text != "true" && text != "false" {
		return fn.BadArgument("The provided JSON input is not a boolean")
	}
	return fn.OfBool(text == "true")
}

func jsonToInt64(text string, _ bool) (value.Value, error) {
	if jsonTypeOf(text) != "number" {
		return fn.BadArgument("The provided JSON input is not an integer")
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return fn.OfInt64(i)
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || f < math.MinInt64 || f >= -math.MinInt64 {
		return fn.BadArgument("The provided JSON number: " + shortNumber(text) + " cannot be converted to an integer")
	}
	return fn.OfInt64(int64(f))
}

// shortNumber returns a JSON number as error messages show it.
func shortNumber(text string) string {
	if !strings.ContainsAny(text, ".eE") {
		return text
	}
	f, _ := strconv.ParseFloat(text, 64)
	return fn.ShortFloat(f)
}

func jsonToFloat64(text string, exact bool) (value.Value, error) {
	if jsonTypeOf(text) != "number" {
		return fn.BadArgument("The provided JSON input is not a number")
	}
	f, _ := strconv.ParseFloat(text, 64) // never out of range: JSON values hold no numbers beyond FLOAT64
	if exact && !holds64(text, f) {
		return fn.BadArgument("JSON number: " + shortNumber(text) + " cannot be converted to DOUBLE without loss of precision")
	}
	return fn.OfFloat64(f)
}

// holds64 reports whether f equals text exactly. Only integers can differ from their FLOAT64: all other numbers in
// JSON values are FLOAT64s.
func holds64(text string, f float64) bool {
	i, ok := new(big.Int).SetString(text, 10)
	if !ok {
		return true
	}
	back, _ := new(big.Float).SetFloat64(f).Int(nil)
	return back.Cmp(i) == 0
}

func jsonToFloat32(text string, exact bool) (value.Value, error) {
	if jsonTypeOf(text) != "number" {
		return fn.BadArgument("The provided JSON input is not a number")
	}
	f, _ := strconv.ParseFloat(text, 64)
	f32 := float32(f)
	switch {
	case math.IsInf(float64(f32), 0):
		return fn.BadArgument("JSON number: " + shortNumber(text) + " cannot be converted to FLOAT")
	case exact && (float64(f32) != f || !holds64(text, f)):
		return fn.BadArgument("JSON number: " + shortNumber(text) + " cannot be converted to FLOAT without loss of precision")
	}
	return value.OfFloat32(f32), nil
}

// laxReader converts a JSON text to an SQL value; NULL if that is not possible.
type laxReader func(text string) value.Value

func lax(read laxReader) fn.Body {
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) { return read(a[0].AsString()), nil })
}

func laxBool(text string) value.Value {
	switch jsonTypeOf(text) {
	case "boolean":
		return value.OfBool(text == "true")
	case "string":
		switch s := jsonUnquote(text); {
		case strings.EqualFold(s, "true"):
			return value.OfBool(true)
		case strings.EqualFold(s, "false"):
			return value.OfBool(false)
		}
	case "number":
		f, _ := strconv.ParseFloat(text, 64)
		return value.OfBool(f != 0)
	}
	return value.Null(value.Bool)
}

func laxInt64(text string) value.Value {
	switch jsonTypeOf(text) {
	case "boolean":
		return fn.BoolToInt64(value.OfBool(text == "true"))
	case "number":
		return roundedInt64(text)
	case "string":
		return roundedInt64(strings.Trim(jsonUnquote(text), fn.ASCIISpace))
	}
	return value.Null(value.Int64)
}

// roundedInt64 returns the INT64 nearest to a decimal number; halves are rounded away from zero. It returns NULL if
// the text is not a number or is out of range.
func roundedInt64(text string) value.Value {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return value.OfInt64(i)
	}
	if d, err := value.ParseDecimal(text); err == nil {
		if i, ok := d.Int64(); ok {
			return value.OfInt64(i)
		}
	}
	return value.Null(value.Int64)
}

func laxFloat(text string) (f float64, ok bool) {
	switch jsonTypeOf(text) {
	case "number":
		f, _ = strconv.ParseFloat(text, 64)
		return f, true
	case "string":
		return fn.ParseFloat(jsonUnquote(text), 64)
	}
	return 0, false
}

func laxFloat64(text string) value.Value {
	f, ok := laxFloat(text)
	if !ok {
		return value.Null(value.Float64)
	}
	return value.OfFloat64(f)
}

func laxString(text string) value.Value {
	if f, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, ".eE") {
		return value.OfString(fn.FloatText(f)) // the number as CAST prints it
	}
	if scalar, ok := jsonScalar(text); ok {
		return value.OfString(scalar)
	}
	return value.Null(value.String)
}

package json

import (
	"encoding/base64"
	"math"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/protobuf"
	"github.com/crowfoot-db/crowfoot/sql/fn/sqltext"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// Makers has the functions that make JSON values, and text from JSON values.
var Makers = []fn.Record{
	{Name: "to_json", Doc: "TO_JSON(x, stringify_wide_numbers): any value as JSON; numbers that FLOAT64 does not hold as strings, if said so.",
		Overloads: []fn.Overload{fn.On("ANY, ?BOOL -> JSON", fn.ByType(toJSON))}},
	{Name: "safe_to_json", Doc: "As TO_JSON; NULL stands for what cannot be JSON.", Overloads: []fn.Overload{fn.On("ANY -> JSON", fn.ByType(toJSON))}},
	{Name: "to_json_string", Doc: "TO_JSON_STRING(x, pretty): any value as a JSON text, on several lines if pretty.",
		Overloads: []fn.Overload{fn.On("ANY, ?BOOL -> STRING", fn.ByType(toJSONString))}},
	{Name: "parse_json", Doc: "PARSE_JSON(text, mode): a JSON text as JSON; mode exact (the default) or round says what to do with numbers too wide.",
		Overloads: []fn.Overload{fn.On("STRING, ?STRING -> JSON", fn.Strict(parseJSON))}},
	{Name: "json_array", Doc: "A JSON array of any values.", Overloads: []fn.Overload{fn.On("ANY... -> JSON", fn.ByType(jsonArray))}},
	{Name: "json_object", Doc: "JSON_OBJECT(name, value, ...) or JSON_OBJECT(names, values): a JSON object; of equal names the first counts.", Overloads: []fn.Overload{
		fn.On("ARRAY<STRING>, ARRAY -> JSON", fn.ByType(jsonObjectOfArrays)),
		fn.On("(STRING, ANY)... -> JSON", fn.ByType(jsonObject)),
	}},
}

// jsonWriter writes values as JSON.
type jsonWriter struct {
	wideAsText bool // write INT64 and NUMERIC beyond FLOAT64's exact range as strings
	asText     bool // for TO_JSON_STRING: write numbers as CAST does, for example the FLOAT64 1 as 1, not as 1.0
}

func (w jsonWriter) append(dst []byte, v value.Value, t *value.Type) []byte {
	if v.IsNull() {
		return append(dst, "null"...)
	}
	switch t.Kind {
	case value.Bool:
		return strconv.AppendBool(dst, v.AsBool())
	case value.Int64:
		return w.appendInt64(dst, v.AsInt64())
	case value.Float64, value.Float32:
		return w.appendFloat(dst, v, t)
	case value.Numeric:
		return w.appendNumeric(dst, v.AsNumeric())
	case value.Bytes:
		return value.AppendJSONString(dst, base64.StdEncoding.EncodeToString(v.AsBytes()))
	case value.Enum:
		return value.AppendJSONString(dst, protobuf.EnumName(t.Enumeration(), v.AsInt64()))
	case value.Proto:
		return append(dst, protobuf.JSON(v, t)...)
	case value.JSON:
		return append(dst, v.AsBytes()...)
	case value.Timestamp:
		seconds, nanos := v.AsTimestamp()
		return append(value.AppendTimestamp(append(dst, '"'), seconds, nanos), '"')
	case value.Interval:
		return append(v.AsInterval().Append(append(dst, '"')), '"')
	case value.Array:
		return w.appendArray(dst, v.AsList(), t.Elem)
	case value.Struct:
		return w.appendStruct(dst, v.AsList(), t.Fields)
	}
	return value.AppendJSONString(dst, string(sqltext.Append(nil, v, nil)))
}

// exactIntegers is 2^53. FLOAT64 can hold every integer up to this absolute value exactly.
const exactIntegers = 1 << 53

func (w jsonWriter) appendInt64(dst []byte, i int64) []byte {
	if w.wideAsText && (i > exactIntegers || i < -exactIntegers) {
		return append(strconv.AppendInt(append(dst, '"'), i, 10), '"')
	}
	return strconv.AppendInt(dst, i, 10)
}

func (w jsonWriter) appendFloat(dst []byte, v value.Value, t *value.Type) []byte {
	f := v.AsFloat64()
	if f == 0 {
		f = 0 // turns -0 into 0, since JSON made from SQL values has no negative zero
	}
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	case t.Kind == value.Float32 && w.asText:
		return value.AppendFloat32(dst, v.AsFloat32())
	case t.Kind == value.Float32:
		shortest, _ := strconv.ParseFloat(strconv.FormatFloat(f, 'g', -1, 32), 64)
		return value.AppendJSONFloat(dst, shortest)
	case w.asText:
		return value.AppendFloat64(dst, f)
	default:
		return value.AppendJSONFloat(dst, f)
	}
}

func (w jsonWriter) appendNumeric(dst []byte, d value.Decimal) []byte {
	if w.wideAsText {
		back, ok := value.DecimalFromFloat64(d.Float64())
		i, whole := d.Int64()
		if !ok || back != d || d.IsInteger() && (!whole || i > exactIntegers || i < -exactIntegers) {
			return append(d.Append(append(dst, '"')), '"')
		}
	}
	return d.Append(dst)
}

func (w jsonWriter) appendArray(dst []byte, list []value.Value, elem *value.Type) []byte {
	dst = append(dst, '[')
	for i, e := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = w.append(dst, e, elem)
	}
	return append(dst, ']')
}

func (w jsonWriter) appendStruct(dst []byte, list []value.Value, fields []value.Field) []byte {
	dst = append(dst, '{')
	for i, e := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(value.AppendJSONString(dst, fields[i].Name), ':')
		dst = w.append(dst, e, fields[i].Type)
	}
	return append(dst, '}')
}

// ofJSONText makes a JSON value from a text that a function of this package has put together.
func ofJSONText(text []byte) (value.Value, error) {
	normalised, err := value.ParseJSONRounding(string(text))
	if err != nil {
		return fn.BadArgument("Invalid JSON: " + err.Error())
	}
	return value.OfJSON(normalised), nil
}

func toJSON(f *tree.Function) fn.Body {
	t := f.Args[0]
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		w := jsonWriter{wideAsText: len(a) > 1 && a[1].AsBool()}
		return ofJSONText(w.append(nil, a[0], t))
	})
}

func toJSONString(f *tree.Function) fn.Body {
	t := f.Args[0]
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		text := jsonWriter{wideAsText: true, asText: true}.append(nil, a[0], t)
		if len(a) > 1 && a[1].AsBool() {
			return fn.OfString(Pretty(string(text)))
		}
		return fn.OfString(string(text))
	})
}

// Pretty puts each element and member of a compact JSON text on its own line.
func Pretty(text string) string {
	var out strings.Builder
	indent := 0
	line := func() { out.WriteString("\n" + strings.Repeat("  ", indent)) }
	for s := (jsonScanner{text: text}); s.pos < len(text); {
		switch c := text[s.pos]; {
		case c == '"':
			start := s.pos
			s.skipString()
			out.WriteString(text[start:s.pos])
			continue
		case (c == '[' || c == '{') && (text[s.pos+1] == ']' || text[s.pos+1] == '}'):
			out.WriteString(text[s.pos : s.pos+2])
			s.pos++
		case c == '[' || c == '{':
			out.WriteByte(c)
			indent++
			line()
		case c == ']' || c == '}':
			indent--
			line()
			out.WriteByte(c)
		case c == ',':
			out.WriteByte(c)
			line()
		case c == ':':
			out.WriteString(": ")
		default:
			out.WriteByte(c)
		}
		s.pos++
	}
	return out.String()
}

func parseJSON(_ *fn.Context, a []value.Value) (value.Value, error) {
	parse := value.ParseJSON
	if len(a) > 1 {
		exact, err := exactMode(a)
		if err != nil {
			return value.Value{}, err
		}
		if !exact {
			parse = value.ParseJSONRounding
		}
	}
	normalised, err := parse(a[0].AsString())
	if err != nil {
		return fn.BadArgument("Invalid input to PARSE_JSON: " + strings.TrimPrefix(err.Error(), "invalid JSON value: "))
	}
	return value.OfJSON(normalised), nil
}

func jsonArray(f *tree.Function) fn.Body {
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		text := []byte{'['}
		for i, v := range a {
			if i > 0 {
				text = append(text, ',')
			}
			text = jsonWriter{}.append(text, v, f.Args[i])
		}
		return ofJSONText(append(text, ']'))
	})
}

func jsonObject(f *tree.Function) fn.Body {
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		text := []byte{'{'}
		var err error
		for i := 0; i < len(a); i += 2 {
			if text, err = appendMember(text, a[i], a[i+1], f.Args[i+1]); err != nil {
				return value.Value{}, err
			}
		}
		return ofJSONText(append(text, '}'))
	})
}

func appendMember(text []byte, name, v value.Value, t *value.Type) ([]byte, error) {
	if name.IsNull() {
		return nil, usererror.BadArgument("Invalid input to JSON_OBJECT: A key cannot be NULL")
	}
	if len(text) > 1 {
		text = append(text, ',')
	}
	text = append(value.AppendJSONString(text, name.AsString()), ':')
	return jsonWriter{}.append(text, v, t), nil
}

func jsonObjectOfArrays(f *tree.Function) fn.Body {
	elem := f.Args[1].Elem
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		if a[0].IsNull() || a[1].IsNull() {
			return fn.BadArgument("Invalid input to JSON_OBJECT: The keys array and the values array cannot be NULL")
		}
		names, values := a[0].AsList(), a[1].AsList()
		if len(names) != len(values) {
			return fn.BadArgument("Invalid input to JSON_OBJECT: The number of keys and values must match")
		}
		text := []byte{'{'}
		var err error
		for i := range names {
			if text, err = appendMember(text, names[i], values[i], elem); err != nil {
				return value.Value{}, err
			}
		}
		return ofJSONText(append(text, '}'))
	})
}

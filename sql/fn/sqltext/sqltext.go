// Package sqltext prints values as text, in one of two forms: as CAST to STRING prints them (FORMAT's %t), or as SQL
// literals (%T).
//
// Imports of this module: sql/fn, sql/fn/protobuf, value.
package sqltext

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/protobuf"
	"github.com/crowfoot-db/crowfoot/value"
)

// Printer prints values as SQL literals if Literal is set, and otherwise as CAST to STRING does. Zone is the time
// zone of timestamps.
type Printer struct {
	Literal bool
	Zone    *time.Location
}

func (p Printer) Append(dst []byte, v value.Value, t *value.Type) []byte {
	if v.IsNull() {
		return append(dst, "NULL"...)
	}
	switch t.Kind {
	case value.Array:
		return p.appendList(dst, v, '[', ']', func(int) *value.Type { return t.Elem })
	case value.Struct:
		return p.appendList(dst, v, '(', ')', func(i int) *value.Type { return t.Fields[i].Type })
	case value.Float64, value.Float32:
		return p.appendFloat(dst, v, t)
	case value.String:
		if p.Literal {
			return append(dst, stringLiteral(v.AsString())...)
		}
	case value.Bytes:
		if p.Literal {
			return append(dst, bytesLiteral(v.AsBytes())...)
		}
		return append(dst, fn.EscapeBytes(v.AsBytes(), 0)...)
	case value.Enum:
		return p.appendNamed(dst, protobuf.EnumName(t.Enumeration(), v.AsInt64()), t)
	case value.Proto:
		return p.appendNamed(dst, string(protobuf.Text(v, t)), t)
	case value.Bool, value.Int64:
	default:
		if p.Literal {
			return p.appendTyped(dst, v, t)
		}
	}
	return Append(dst, v, p.Zone)
}

func (p Printer) appendList(dst []byte, v value.Value, open, end byte, typeOf func(int) *value.Type) []byte {
	dst = append(dst, open)
	for i, e := range v.AsList() {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = p.Append(dst, e, typeOf(i))
	}
	return append(dst, end)
}

// appendFloat appends a floating point number in a form that cannot be read as an integer. A literal of a number that
// is not finite has the form CAST("nan" AS type).
func (p Printer) appendFloat(dst []byte, v value.Value, t *value.Type) []byte {
	text := string(Append(nil, v, nil))
	switch {
	case !fn.IsFinite(v.AsFloat64()) && p.Literal:
		return append(dst, "CAST(\""+text+"\" AS "+t.String()+")"...)
	case fn.IsFinite(v.AsFloat64()) && !strings.ContainsAny(text, ".e"):
		text += ".0"
	}
	return append(dst, text...)
}

// appendNamed appends a value of a PROTO or ENUM type. A literal has the form CAST("text" AS type).
func (p Printer) appendNamed(dst []byte, text string, t *value.Type) []byte {
	if !p.Literal {
		return append(dst, text...)
	}
	return append(dst, "CAST("+stringLiteral(text)+" AS "+t.Name+")"...)
}

// appendTyped appends a literal of the form TYPE "text"; for a UUID, CAST("text" AS UUID).
func (p Printer) appendTyped(dst []byte, v value.Value, t *value.Type) []byte {
	text := stringLiteral(string(Append(nil, v, p.Zone)))
	if t.Kind == value.UUID {
		return append(dst, "CAST("+text+" AS UUID)"...)
	}
	dst = append(append(dst, t.Kind.String()+" "...), text...)
	if t.Kind == value.Interval {
		dst = append(dst, " YEAR TO SECOND"...)
	}
	return dst
}

// Append appends a value as CAST to STRING prints it. The value must not be NULL, an ARRAY or a STRUCT.
func Append(dst []byte, v value.Value, zone *time.Location) []byte {
	switch v.Kind() {
	case value.Bool:
		return strconv.AppendBool(dst, v.AsBool())
	case value.Int64, value.Enum:
		return strconv.AppendInt(dst, v.AsInt64(), 10)
	case value.Float64:
		return value.AppendFloat64(dst, v.AsFloat64())
	case value.Float32:
		return value.AppendFloat32(dst, v.AsFloat32())
	case value.Numeric:
		return v.AsNumeric().Append(dst)
	case value.Date:
		return value.AppendDate(dst, v.AsDate())
	case value.Timestamp:
		seconds, nanos := v.AsTimestamp()
		return value.AppendTimestampIn(dst, seconds, nanos, zone)
	case value.Interval:
		return v.AsInterval().AppendCanonical(dst)
	case value.UUID:
		return value.AppendUUID(dst, v.AsUUID())
	}
	return append(dst, v.AsBytes()...)
}

// stringLiteral returns a string in double quotes, or in single quotes if the string then needs no escaped quotes.
func stringLiteral(s string) string {
	quote := '"'
	if strings.Contains(s, `"`) && !strings.Contains(s, "'") {
		quote = '\''
	}
	var b strings.Builder
	b.WriteRune(quote)
	for _, r := range s {
		switch {
		case r == quote || r == '\\':
			b.WriteRune('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < ' ' || r == 0x7f:
			b.WriteString(`\x` + fn.HexByte(byte(r)))
		case r > 0x7f && !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r):
			b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
		default:
			b.WriteRune(r)
		}
	}
	b.WriteRune(quote)
	return b.String()
}

func bytesLiteral(b []byte) string {
	quote := byte('"')
	if strings.Contains(string(b), `"`) && !strings.Contains(string(b), "'") {
		quote = '\''
	}
	return "b" + string(quote) + fn.EscapeBytes(b, quote) + string(quote)
}

// ToText converts a value to STRING. It prints a timestamp in the statement's time zone.
func ToText(ctx *fn.Context, a []value.Value) (value.Value, error) {
	zone := time.UTC
	if a[0].Kind() == value.Timestamp {
		zone = ctx.Location()
	}
	return fn.OfString(string(Append(nil, a[0], zone)))
}

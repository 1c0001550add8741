package fn

import (
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/crowfoot-db/crowfoot/value"
)

// This file prints values as text: as CAST to STRING does (FORMAT's %t), or as SQL literals (%T).

// printer prints values of one type.
type printer struct {
	literal bool
	zone    *time.Location
}

func (p printer) append(dst []byte, v value.Value, t *value.Type) []byte {
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
		if p.literal {
			return append(dst, stringLiteral(v.AsString())...)
		}
	case value.Bytes:
		if p.literal {
			return append(dst, bytesLiteral(v.AsBytes())...)
		}
		return append(dst, escapeBytes(v.AsBytes(), 0)...)
	case value.Enum:
		return p.appendNamed(dst, enumName(t.Enumeration(), v.AsInt64()), t)
	case value.Proto:
		return p.appendNamed(dst, string(protoText(v, t)), t)
	case value.Bool, value.Int64:
	default:
		if p.literal {
			return p.appendTyped(dst, v, t)
		}
	}
	return appendText(dst, v, p.zone)
}

func (p printer) appendList(dst []byte, v value.Value, open, end byte, typeOf func(int) *value.Type) []byte {
	dst = append(dst, open)
	for i, e := range v.AsList() {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = p.append(dst, e, typeOf(i))
	}
	return append(dst, end)
}

// appendFloat appends a floating point number in a form that cannot be read as an integer. As a literal, a number that is not finite is a
// CAST.
func (p printer) appendFloat(dst []byte, v value.Value, t *value.Type) []byte {
	text := string(appendText(nil, v, nil))
	switch {
	case !finite(v.AsFloat64()) && p.literal:
		return append(dst, "CAST(\""+text+"\" AS "+t.String()+")"...)
	case finite(v.AsFloat64()) && !strings.ContainsAny(text, ".e"):
		text += ".0"
	}
	return append(dst, text...)
}

// appendNamed appends a value of a PROTO or ENUM type. As a literal it is CAST("text" AS type).
func (p printer) appendNamed(dst []byte, text string, t *value.Type) []byte {
	if !p.literal {
		return append(dst, text...)
	}
	return append(dst, "CAST("+stringLiteral(text)+" AS "+t.Name+")"...)
}

// appendTyped appends TYPE "text".
func (p printer) appendTyped(dst []byte, v value.Value, t *value.Type) []byte {
	text := stringLiteral(string(appendText(nil, v, p.zone)))
	if t.Kind == value.UUID {
		return append(dst, "CAST("+text+" AS UUID)"...)
	}
	dst = append(append(dst, t.Kind.String()+" "...), text...)
	if t.Kind == value.Interval {
		dst = append(dst, " YEAR TO SECOND"...)
	}
	return dst
}

// appendText appends a value as CAST to STRING prints it. The value must not be NULL, an ARRAY or a STRUCT.
func appendText(dst []byte, v value.Value, zone *time.Location) []byte {
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

// stringLiteral returns a string in double quotes, or in single quotes if that saves escapes.
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
			b.WriteString(`\x` + hexByte(byte(r)))
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
	return "b" + string(quote) + escapeBytes(b, quote) + string(quote)
}

// toText converts a value to STRING. It prints timestamps in the statement's time zone.
func toText(ctx *Context, a []value.Value) (value.Value, error) {
	zone := time.UTC
	if a[0].Kind() == value.Timestamp {
		zone = ctx.zone()
	}
	return ofString(string(appendText(nil, a[0], zone)))
}

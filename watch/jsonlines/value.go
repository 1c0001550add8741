package jsonlines

import (
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// AppendValue appends the JSON form of a value to b.
//
//	BOOL                                true or false
//	INT64, ENUM                         a number with all its digits: 9007199254740993
//	FLOAT32, FLOAT64                    a number, or one of the strings "NaN", "Infinity", "-Infinity"
//	STRING, DATE, TIMESTAMP, UUID, ...  a string, as Spanner's API writes it: "2026-11-22", "2026-11-22T10:00:00.123456Z"
//	NUMERIC                             a string: "3.14"
//	BYTES, PROTO                        a string in base64
//	JSON                                a string that holds JSON
//	ARRAY                               an array
//	NULL                                null
//
// The Pub/Sub publisher of Google's Java library Spanner Change Watcher writes the same JSON. A program that keeps
// numbers as 64-bit floats, as JavaScript does, must parse INT64 values itself if they exceed 2^53.
func AppendValue(b []byte, t *sppb.Type, v *structpb.Value) ([]byte, error) {
	if _, null := v.GetKind().(*structpb.Value_NullValue); null {
		return append(b, "null"...), nil
	}
	switch t.GetCode() {
	case sppb.TypeCode_BOOL:
		return strconv.AppendBool(b, v.GetBoolValue()), nil
	case sppb.TypeCode_INT64, sppb.TypeCode_ENUM:
		n, err := strconv.ParseInt(v.GetStringValue(), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.GetCode(), err)
		}
		return strconv.AppendInt(b, n, 10), nil
	case sppb.TypeCode_FLOAT64:
		return appendFloat(b, v, 64)
	case sppb.TypeCode_FLOAT32:
		return appendFloat(b, v, 32)
	case sppb.TypeCode_ARRAY:
		return appendArray(b, t.GetArrayElementType(), v.GetListValue().GetValues())
	}
	if _, text := v.GetKind().(*structpb.Value_StringValue); !text {
		return nil, fmt.Errorf("%s: a value of kind %T, want a string", t.GetCode(), v.GetKind())
	}
	return AppendString(b, v.GetStringValue()), nil
}

// appendFloat appends a number. Spanner's API sends NaN and the infinities as strings, and appendFloat writes them as
// strings, too.
func appendFloat(b []byte, v *structpb.Value, bits int) ([]byte, error) {
	number, ok := v.GetKind().(*structpb.Value_NumberValue)
	if !ok {
		return AppendString(b, v.GetStringValue()), nil
	}
	f := number.NumberValue
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, fmt.Errorf("%v comes as a number, want a string", f)
	}
	format := byte('f')
	// The rule for numbers with an exponent is that of ECMAScript, which encoding/json follows, too.
	if size := math.Abs(f); size != 0 && (size < 1e-6 || size >= 1e21) {
		format = 'e'
	}
	return strconv.AppendFloat(b, f, format, -1, bits), nil
}

func appendArray(b []byte, element *sppb.Type, values []*structpb.Value) (_ []byte, err error) {
	b = append(b, '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		if b, err = AppendValue(b, element, v); err != nil {
			return nil, err
		}
	}
	return append(b, ']'), nil
}

// AppendString appends a JSON string to b. It does not escape characters that are special in HTML. It replaces bytes
// that are not UTF-8 by U+FFFD.
func AppendString(b []byte, s string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	done := 0 // the number of bytes of s that were appended to b
	for i, r := range s {
		if r >= ' ' && r != '"' && r != '\\' && r != utf8.RuneError { // needs no escape (RFC 8259, section 7)
			continue
		}
		b = append(b, s[done:i]...)
		_, size := utf8.DecodeRuneInString(s[i:])
		done = i + size
		switch {
		case r == utf8.RuneError:
			b = utf8.AppendRune(b, r)
		case r == '\n':
			b = append(b, '\\', 'n')
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', digits[r>>4], digits[r&0xf])
		default:
			b = append(b, '\\', byte(r))
		}
	}
	b = append(b, s[done:]...)
	return append(b, '"')
}

package value

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/structpb"
)

// CommitTimestampText is the text that a client writes into a TIMESTAMP column in a mutation to store the commit
// timestamp there.
const CommitTimestampText = "spanner.commit_timestamp()"

// ErrUTF8 is wrapped by every error about a STRING or JSON text that is not valid UTF-8.
var ErrUTF8 = fmt.Errorf("invalid UTF-8")

// FromWire makes a Value of type t from its wire form in a mutation, a key or a query parameter
// (google.spanner.v1.TypeCode describes the forms). It does not convert between types. For CommitTimestampText, it
// returns PendingCommitTimestamp. A caller that does not allow pending timestamps must check for them with IsPending.
func FromWire(pv *structpb.Value, t *Type) (Value, error) {
	switch k := pv.GetKind().(type) {
	case *structpb.Value_NullValue:
		return Null(t.Kind), nil
	case *structpb.Value_BoolValue:
		if t.Kind == Bool {
			return OfBool(k.BoolValue), nil
		}
	case *structpb.Value_NumberValue:
		if t.Kind == Float64 || t.Kind == Float32 {
			return floatFromWire(k.NumberValue, t)
		}
	case *structpb.Value_StringValue:
		return textFromWire(k.StringValue, t)
	case *structpb.Value_ListValue:
		switch t.Kind {
		case Array:
			return arrayFromWire(k.ListValue.GetValues(), t)
		case Struct:
			return structFromWire(k.ListValue.GetValues(), t)
		}
	}
	return Value{}, fmt.Errorf("expected %s for type %s, found %s", wireForm(t.Kind), t, describeWire(pv))
}

// wireForm returns the name of the JSON form that values of a kind have on the wire.
func wireForm(k Kind) string {
	switch k {
	case Bool:
		return "a boolean"
	case Float64, Float32:
		return "a number"
	case Array, Struct:
		return "a list"
	}
	return "a string"
}

func describeWire(pv *structpb.Value) string {
	switch k := pv.GetKind().(type) {
	case *structpb.Value_BoolValue:
		return strconv.FormatBool(k.BoolValue)
	case *structpb.Value_NumberValue:
		return "number " + strconv.FormatFloat(k.NumberValue, 'g', -1, 64)
	case *structpb.Value_StringValue:
		return "string " + quoted(k.StringValue)
	case *structpb.Value_ListValue:
		return fmt.Sprintf("a list of %d values", len(k.ListValue.GetValues()))
	case *structpb.Value_StructValue:
		return "an object"
	}
	return "nothing"
}

func floatFromWire(f float64, t *Type) (Value, error) {
	if t.Kind == Float64 {
		return OfFloat64(f), nil
	}
	if math.Abs(f) > math.MaxFloat32 && !math.IsInf(f, 0) {
		return Value{}, fmt.Errorf("invalid FLOAT32 value: %v: it is out of range", f)
	}
	return OfFloat32(float32(f)), nil
}

// FromText makes a Value of type t from its wire form, if the wire form of t is a string.
func FromText(s string, t *Type) (Value, error) { return textFromWire(s, t) }

func textFromWire(s string, t *Type) (Value, error) {
	switch t.Kind {
	case String:
		if !utf8.ValidString(s) {
			return Value{}, fmt.Errorf("invalid STRING value: %w", ErrUTF8)
		}
		return OfString(s), nil
	case Int64:
		i, err := ParseInt64(s)
		return OfInt64(i), err
	case Float64, Float32:
		return floatTextFromWire(s, t)
	case Timestamp:
		if s == CommitTimestampText {
			return PendingCommitTimestamp(), nil
		}
		return ParseTimestampZ(s)
	case Date:
		d, err := ParseDate(s)
		return OfDate(d), err
	case Bytes:
		return bytesFromWire(s)
	case Proto:
		v, err := bytesFromWire(s)
		v.kind = Proto
		return v, err
	case Enum:
		i, err := strconv.ParseInt(s, 10, 32)
		if err != nil {
			return Value{}, fmt.Errorf("invalid ENUM value: %s", quoted(s))
		}
		return OfEnum(int32(i)), nil
	case Numeric:
		d, err := ParseDecimalStrict(s)
		return OfNumeric(d), err
	case JSON:
		// Spanner rounds the numbers in JSON values from the wire. By default, the SQL function PARSE_JSON does not.
		text, err := ParseJSONRounding(s)
		return OfJSON(text), err
	case Interval:
		i, err := ParseInterval(s)
		return OfInterval(i), err
	case UUID:
		u, err := ParseUUID(s)
		return OfUUID(u), err
	}
	return Value{}, fmt.Errorf("expected %s for type %s, found string %s", wireForm(t.Kind), t, quoted(s))
}

// ParseInt64 reads a decimal number, which may begin with a sign. Any other character is an error.
func ParseInt64(s string) (int64, error) {
	i, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("invalid INT64 value: %s", quoted(s))
	}
	return i, nil
}

// floatTextFromWire parses NaN, Infinity and -Infinity. They are texts on the wire, because JSON has no such numbers.
func floatTextFromWire(s string, t *Type) (Value, error) {
	var f float64
	switch s {
	case "NaN":
		f = math.NaN()
	case "Infinity":
		f = math.Inf(1)
	case "-Infinity":
		f = math.Inf(-1)
	default:
		return Value{}, fmt.Errorf("invalid %s value: %s", t.Kind, quoted(s))
	}
	return floatFromWire(f, t)
}

// bytesFromWire decodes standard base64 with or without padding. White space is an error.
func bytesFromWire(s string) (Value, error) {
	encoding := base64.StdEncoding
	if len(s)%4 != 0 {
		encoding = base64.RawStdEncoding
	}
	b, err := encoding.DecodeString(s)
	if err != nil || strings.ContainsAny(s, "\r\n") {
		return Value{}, fmt.Errorf("invalid BYTES value: %s is not base64", quoted(s))
	}
	return OfBytes(b), nil
}

func arrayFromWire(list []*structpb.Value, t *Type) (Value, error) {
	elems := make([]Value, len(list))
	for i, pv := range list {
		v, err := FromWire(pv, t.Elem)
		if err != nil {
			return Value{}, fmt.Errorf("element %d of %s: %w", i, t, err)
		}
		elems[i] = v
	}
	return OfArray(elems), nil
}

func structFromWire(list []*structpb.Value, t *Type) (Value, error) {
	if len(list) != len(t.Fields) {
		return Value{}, fmt.Errorf("expected %d fields for type %s, found %d", len(t.Fields), t, len(list))
	}
	fields := make([]Value, len(list))
	for i, pv := range list {
		v, err := FromWire(pv, t.Fields[i].Type)
		if err != nil {
			return Value{}, fmt.Errorf("field %d of %s: %w", i, t, err)
		}
		fields[i] = v
	}
	return OfStruct(fields), nil
}

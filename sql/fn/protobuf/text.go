package protobuf

import (
	"encoding/base64"
	"math"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// foreign is a resolver that knows no types. Packages proto, prototext and protojson ask a resolver for the types of
// extensions and of messages in Any fields. Without foreign, they would find the types that are linked into this
// program, which must have no meaning in a database.
var foreign = new(protoregistry.Types)

// parseMessage unmarshals a PROTO.
func parseMessage(b []byte, d protoreflect.MessageDescriptor) (*dynamicpb.Message, error) {
	m := dynamicpb.NewMessage(d)
	if err := (proto.UnmarshalOptions{Resolver: foreign}).Unmarshal(b, m); err != nil {
		return nil, errCorrupt(d.FullName())
	}
	return m, nil
}

// bytesToProto returns the cast of BYTES to PROTO, which checks that the bytes are a valid message.
func bytesToProto(to *value.Type) fn.Eval {
	return func(_ *fn.Context, a []value.Value) (value.Value, error) {
		if _, err := parseMessage(a[0].AsBytes(), to.Message()); err != nil {
			return value.Value{}, usererror.BadArgument("Invalid cast of bytes to type " + protoName(to))
		}
		return value.OfProto(a[0].AsBytes()), nil
	}
}

// stringToProto returns the cast to PROTO of a STRING that holds a message in text format.
func stringToProto(to *value.Type) fn.Eval {
	return func(_ *fn.Context, a []value.Value) (value.Value, error) {
		m := dynamicpb.NewMessage(to.Message())
		if err := (prototext.UnmarshalOptions{Resolver: foreign}).Unmarshal(a[0].AsBytes(), m); err != nil {
			reason := strings.TrimPrefix(strings.ReplaceAll(err.Error(), "\u00a0", " "), "proto: ")
			return value.Value{}, usererror.BadArgument("Error parsing proto: " + reason)
		}
		b, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
		if err != nil {
			return value.Value{}, usererror.BadArgument("Error parsing proto: " + err.Error())
		}
		return value.OfProto(b), nil
	}
}

func protoToString(from *value.Type) fn.Eval {
	return func(_ *fn.Context, a []value.Value) (value.Value, error) {
		m, err := parseMessage(a[0].AsBytes(), from.Message())
		if err != nil {
			return value.Value{}, err
		}
		return value.OfString(string(appendMessageText(nil, m))), nil
	}
}

// Text returns a PROTO in text format. If the bytes are not a valid message, it returns them escaped, as BYTES are
// printed.
func Text(v value.Value, t *value.Type) []byte {
	if t.Message() != nil {
		if m, err := parseMessage(v.AsBytes(), t.Message()); err == nil {
			return appendMessageText(nil, m)
		}
	}
	return []byte(fn.EscapeBytes(v.AsBytes(), 0))
}

// appendMessageText appends the fields of a message in text format, on one line and ordered by field number. An example
// of the result is `i: 1 sub { x: "a" }`. The function does not use package prototext, which adds spaces at random.
func appendMessageText(dst []byte, m protoreflect.Message) []byte {
	type entry struct {
		field protoreflect.FieldDescriptor
		value protoreflect.Value
	}
	var list []entry
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		list = append(list, entry{f, v})
		return true
	})
	slices.SortFunc(list, func(a, b entry) int { return int(a.field.Number() - b.field.Number()) })
	for _, e := range list {
		switch {
		case e.field.IsMap():
			dst = appendMapText(dst, e.field, e.value.Map())
		case e.field.IsList():
			for i := range e.value.List().Len() {
				dst = appendFieldText(dst, e.field, e.value.List().Get(i))
			}
		default:
			dst = appendFieldText(dst, e.field, e.value)
		}
	}
	return appendUnknownText(dst, m.GetUnknown())
}

func appendMapText(dst []byte, f protoreflect.FieldDescriptor, m protoreflect.Map) []byte {
	var keys []protoreflect.MapKey
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		dst = append(space(dst), f.TextName()+" {"...)
		dst = appendFieldText(dst, f.MapKey(), k.Value())
		dst = appendFieldText(dst, f.MapValue(), m.Get(k))
		dst = append(dst, " }"...)
	}
	return dst
}

// space appends a space unless dst is empty.
func space(dst []byte) []byte {
	if len(dst) > 0 {
		dst = append(dst, ' ')
	}
	return dst
}

func appendFieldText(dst []byte, f protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	dst = append(space(dst), f.TextName()...)
	if f.Message() != nil {
		dst = appendMessageText(append(dst, " {"...), v.Message())
		return append(dst, " }"...)
	}
	dst = append(dst, ": "...)
	switch f.Kind() {
	case protoreflect.BoolKind:
		return strconv.AppendBool(dst, v.Bool())
	case protoreflect.EnumKind:
		return append(dst, EnumName(f.Enum(), int64(v.Enum()))...)
	case protoreflect.StringKind:
		return append(append(append(dst, '"'), fn.EscapeBytes([]byte(v.String()), '"')...), '"')
	case protoreflect.BytesKind:
		return append(append(append(dst, '"'), fn.EscapeBytes(v.Bytes(), '"')...), '"')
	case protoreflect.FloatKind:
		return appendFloatText(dst, v.Float(), 32)
	case protoreflect.DoubleKind:
		return appendFloatText(dst, v.Float(), 64)
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return strconv.AppendUint(dst, v.Uint(), 10)
	}
	return strconv.AppendInt(dst, v.Int(), 10)
}

func appendFloatText(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 0):
		return append(dst, map[bool]string{true: "inf", false: "-inf"}[f > 0]...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, bits)
}

// appendUnknownText appends the fields that the message's type does not have. It prints their numbers in place of
// names.
func appendUnknownText(dst, b []byte) []byte {
	for len(b) > 0 {
		number, wire, n := protowire.ConsumeTag(b)
		if n < 0 {
			return dst
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, wire, b); n < 0 {
			return dst
		}
		dst = strconv.AppendInt(space(dst), int64(number), 10)
		switch wire {
		case protowire.VarintType:
			u, _ := protowire.ConsumeVarint(b)
			dst = strconv.AppendUint(append(dst, ": "...), u, 10)
		case protowire.Fixed32Type:
			u, _ := protowire.ConsumeFixed32(b)
			dst = strconv.AppendUint(append(dst, ": 0x"...), uint64(u), 16)
		case protowire.Fixed64Type:
			u, _ := protowire.ConsumeFixed64(b)
			dst = strconv.AppendUint(append(dst, ": 0x"...), u, 16)
		case protowire.BytesType:
			text, _ := protowire.ConsumeBytes(b)
			dst = append(append(append(dst, `: "`...), fn.EscapeBytes(text, '"')...), '"')
		case protowire.StartGroupType:
			group, _ := protowire.ConsumeGroup(number, b)
			dst = append(appendUnknownText(append(dst, " {"...), group), " }"...)
		}
		b = b[n:]
	}
	return dst
}

// EnumName returns the name of a number of an enumeration, or the number itself if it has no name.
func EnumName(d protoreflect.EnumDescriptor, number int64) string {
	if d != nil && number == int64(int32(number)) {
		if v := d.Values().ByNumber(protoreflect.EnumNumber(number)); v != nil {
			return string(v.Name())
		}
	}
	return strconv.FormatInt(number, 10)
}

func enumToString(from *value.Type) fn.Eval {
	return func(_ *fn.Context, a []value.Value) (value.Value, error) {
		return value.OfString(EnumName(from.Enumeration(), a[0].AsInt64())), nil
	}
}

func enumToInt64(_ *fn.Context, a []value.Value) (value.Value, error) {
	return value.OfInt64(a[0].AsInt64()), nil
}

// enumOf returns a number as a value of an ENUM type. It fails if the type does not have the number.
func enumOf(to *value.Type, number int64) (value.Value, error) {
	if number != int64(int32(number)) || to.Enumeration().Values().ByNumber(protoreflect.EnumNumber(number)) == nil {
		return value.Value{}, usererror.BadArgument("Out of range cast of integer " + strconv.FormatInt(number, 10) + " to enum type " + to.Name)
	}
	return value.OfEnum(int32(number)), nil
}

func int64ToEnum(to *value.Type) fn.Eval {
	return func(_ *fn.Context, a []value.Value) (value.Value, error) { return enumOf(to, a[0].AsInt64()) }
}

// stringToEnum returns the cast of STRING to ENUM. The text is the name of a value, or its number in digits.
func stringToEnum(to *value.Type) fn.Eval {
	return func(_ *fn.Context, a []value.Value) (value.Value, error) {
		text := a[0].AsString()
		if v := to.Enumeration().Values().ByName(protoreflect.Name(text)); v != nil {
			return value.OfEnum(int32(v.Number())), nil
		}
		if number, err := strconv.ParseInt(text, 10, 32); err == nil {
			if v, err := enumOf(to, number); err == nil {
				return v, nil
			}
		}
		return value.Value{}, usererror.BadArgument("Out of range cast of string '" + text + "' to enum type " + to.Name)
	}
}

// Conversion returns the conversion between two types of which one is a PROTO or ENUM; nil if there is none.
func Conversion(from, to *value.Type) fn.Eval {
	if (from.Name != "" && from.Descriptor == nil) || (to.Name != "" && to.Descriptor == nil) {
		return nil
	}
	switch [2]value.Kind{from.Kind, to.Kind} {
	case [2]value.Kind{value.Proto, value.Bytes}:
		return func(_ *fn.Context, a []value.Value) (value.Value, error) { return value.OfBytes(a[0].AsBytes()), nil }
	case [2]value.Kind{value.Bytes, value.Proto}:
		return bytesToProto(to)
	case [2]value.Kind{value.Proto, value.String}:
		return protoToString(from)
	case [2]value.Kind{value.String, value.Proto}:
		return stringToProto(to)
	case [2]value.Kind{value.Enum, value.String}:
		return enumToString(from)
	case [2]value.Kind{value.Enum, value.Int64}:
		return enumToInt64
	case [2]value.Kind{value.String, value.Enum}:
		return stringToEnum(to)
	case [2]value.Kind{value.Int64, value.Enum}:
		return int64ToEnum(to)
	}
	return nil
}

// JSON returns a PROTO in the JSON format of protocol buffers (https://protobuf.dev/programming-guides/json), with
// the names of fields as declared. If the value has no JSON form, JSON returns its bytes in base64.
func JSON(v value.Value, t *value.Type) string {
	if m, err := parseMessage(v.AsBytes(), t.Message()); err == nil {
		text, err := protojson.MarshalOptions{UseProtoNames: true, Resolver: foreign}.Marshal(m)
		if normalised, bad := value.ParseJSON(string(text)); err == nil && bad == nil {
			return normalised
		}
	}
	return strconv.Quote(base64.StdEncoding.EncodeToString(v.AsBytes()))
}

package protobuf

import (
	"math"
	"slices"
	"strings"
	"unicode/utf8"
	"unsafe"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// The functions in this file find fields of PROTO values in the encoded bytes of the message, without unmarshaling it.
// https://protobuf.dev/programming-guides/encoding/ describes the encoding.

// Fields has the functions on fields of PROTO.
var Fields = []fn.Record{
	{Name: tree.ProtoField, Doc: "proto.field, or proto.field.field...: the value of a field; its default if it is not set, but NULL for a message. NULL for a NULL.",
		Overloads: []fn.Overload{fn.On("ANY -> ANY", fn.ByType(protoField))}},
	{Name: tree.HasProtoField, Doc: "proto.has_field: whether a field is set.",
		Overloads: []fn.Overload{fn.On("ANY -> BOOL", fn.ByType(hasProtoField))}},
	{Name: tree.MakeProto, Doc: "NEW T(value AS field, ...): a message. A NULL leaves its field unset.",
		Overloads: []fn.Overload{fn.On("ANY... -> ANY", fn.ByType(makeProto))}},
	{Name: tree.ReplaceFields, Doc: "REPLACE_FIELDS(proto, value AS field, ...): the message with other values in some fields. NULL unsets a field.",
		Overloads: []fn.Overload{fn.On("ANY, ANY... -> ANY", fn.ByType(replaceFields))}},
	{Name: tree.SetFields, Doc: "UPDATE ... SET column.field = value, ...: as REPLACE_FIELDS, but messages on the way to a field are made if they are not set.",
		Overloads: []fn.Overload{fn.On("ANY, ANY... -> ANY", fn.ByType(setFields))}},
}

// errCorrupt returns the error for bytes that are not a valid message.
func errCorrupt(message protoreflect.FullName) error {
	return usererror.BadArgument("Corrupted protocol buffer of type " + string(message))
}

// fieldReader finds one field in encoded messages of one type.
type fieldReader struct {
	field   protoreflect.FieldDescriptor
	number  protowire.Number
	wire    protowire.Type
	packed  bool               // the field may also occur in packed encoding
	oneof   []protowire.Number // numbers of the other fields of the oneof; the field is unset if one of them comes later
	message bool
}

func newFieldReader(f protoreflect.FieldDescriptor) *fieldReader {
	r := &fieldReader{field: f, number: f.Number(), wire: wireTypes[f.Kind()], message: f.Message() != nil}
	r.packed = f.IsList() && r.wire != protowire.BytesType && r.wire != protowire.StartGroupType
	if o := f.ContainingOneof(); o != nil {
		for i := range o.Fields().Len() {
			if other := o.Fields().Get(i); other != f {
				r.oneof = append(r.oneof, other.Number())
			}
		}
	}
	return r
}

var wireTypes = map[protoreflect.Kind]protowire.Type{
	protoreflect.BoolKind: protowire.VarintType, protoreflect.EnumKind: protowire.VarintType,
	protoreflect.Int32Kind: protowire.VarintType, protoreflect.Sint32Kind: protowire.VarintType, protoreflect.Uint32Kind: protowire.VarintType,
	protoreflect.Int64Kind: protowire.VarintType, protoreflect.Sint64Kind: protowire.VarintType, protoreflect.Uint64Kind: protowire.VarintType,
	protoreflect.Sfixed32Kind: protowire.Fixed32Type, protoreflect.Fixed32Kind: protowire.Fixed32Type, protoreflect.FloatKind: protowire.Fixed32Type,
	protoreflect.Sfixed64Kind: protowire.Fixed64Type, protoreflect.Fixed64Kind: protowire.Fixed64Type, protoreflect.DoubleKind: protowire.Fixed64Type,
	protoreflect.StringKind: protowire.BytesType, protoreflect.BytesKind: protowire.BytesType, protoreflect.MessageKind: protowire.BytesType,
	protoreflect.GroupKind: protowire.StartGroupType,
}

// skipField returns the number of bytes that the value of a field takes. b begins after the field's tag. The result
// is negative if the value is malformed.
func skipField(number protowire.Number, wire protowire.Type, b []byte) int {
	switch {
	case len(b) == 0 || b[0] >= 0x80:
	case wire == protowire.VarintType:
		return 1
	case wire == protowire.BytesType:
		if n := 1 + int(b[0]); n <= len(b) {
			return n
		}
		return -1
	}
	return protowire.ConsumeFieldValue(number, wire, b)
}

// nextField splits off the first field of a message. It returns the field's number, wire type and encoded value, and
// the bytes after it. If the message is malformed, the number is 0 and the result rest is nil.
func nextField(b []byte) (number protowire.Number, wire protowire.Type, v, rest []byte) {
	n := 1
	if tag := b[0]; tag < 0x80 {
		number, wire = protowire.Number(tag>>3), protowire.Type(tag&7)
	} else if number, wire, n = protowire.ConsumeTag(b); n < 0 {
		return 0, 0, nil, nil
	}
	b = b[n:]
	if n = skipField(number, wire, b); n < 0 || number == 0 {
		return 0, 0, nil, nil
	}
	return number, wire, b[:n], b[n:]
}

// each calls f for each occurrence of a repeated field in the message b. v is the encoded value, or, if packed is
// set, an encoded list of values. ok is false if the message is malformed.
func (r *fieldReader) each(b []byte, f func(v []byte, packed bool)) (ok bool) {
	for len(b) > 0 {
		number, wire, v, rest := nextField(b)
		switch {
		case number == 0:
			return false
		case number != r.number:
		case wire == r.wire:
			f(v, false)
		case r.packed && wire == protowire.BytesType:
			f(v, true)
		}
		b = rest
	}
	return true
}

// last returns the encoded value of the field's last occurrence, which is the valid one; nil if the field is not set.
// For a field that is a message, the result is the bytes of all occurrences one after the other, because together they
// encode one message. ok is false if b is malformed.
func (r *fieldReader) last(b []byte) (last []byte, ok bool) {
	if r.oneof != nil || r.message {
		return r.lastOfMany(b)
	}
	for at := 0; at < len(b); {
		tag := b[at]
		if wire := protowire.Type(tag & 7); tag < 0x80 && tag > 7 && at+1 < len(b) && b[at+1] < 0x80 && (wire == protowire.VarintType || wire == protowire.BytesType) {
			// The common case: a tag of one byte, and a length or a number of one byte.
			end := at + 2
			if wire == protowire.BytesType {
				if end += int(b[at+1]); end > len(b) {
					return nil, false
				}
			}
			if protowire.Number(tag>>3) == r.number && wire == r.wire {
				last = b[at+1 : end]
			}
			at = end
			continue
		}
		number, wire, v, rest := nextField(b[at:])
		if number == 0 {
			return nil, false
		}
		if number == r.number && wire == r.wire {
			last = v
		}
		at = len(b) - len(rest)
	}
	return last, true
}

// lastOfMany has the same result as the method last. It handles fields that are messages or belong to a oneof.
func (r *fieldReader) lastOfMany(b []byte) (last []byte, ok bool) {
	merged := false
	for len(b) > 0 {
		number, wire, v, rest := nextField(b)
		switch {
		case number == 0:
			return nil, false
		case number != r.number:
			if r.oneof != nil && slices.Contains(r.oneof, number) {
				last = nil
			}
		case wire != r.wire:
		case !r.message:
			last = v
		case last == nil:
			last, merged = r.body(v), false
		default:
			if !merged {
				last, merged = append([]byte(nil), last...), true
			}
			last = append(last, r.body(v)...)
		}
		b = rest
	}
	return last, true
}

// body returns the bytes of an embedded message, without its length prefix or its group's end tag.
func (r *fieldReader) body(v []byte) []byte {
	var body []byte
	if r.wire == protowire.StartGroupType {
		body, _ = protowire.ConsumeGroup(r.number, v)
	} else {
		body, _ = protowire.ConsumeBytes(v)
	}
	if body == nil {
		body = []byte{}
	}
	return body
}

// valueOf returns one encoded value of the field as an SQL value, which shares memory with v. For a field that is a
// message, v is the message's bytes. The result known is false if the field's enumeration is closed and does not have
// the number.
func (r *fieldReader) valueOf(v []byte) (_ value.Value, known bool, err error) {
	switch r.wire {
	case protowire.VarintType:
		u, n := protowire.ConsumeVarint(v)
		if n < 0 {
			return value.Value{}, false, errCorrupt(r.field.ContainingMessage().FullName())
		}
		return r.varint(u)
	case protowire.Fixed32Type:
		u, _ := protowire.ConsumeFixed32(v)
		switch r.field.Kind() {
		case protoreflect.FloatKind:
			return value.OfFloat32(math.Float32frombits(u)), true, nil
		case protoreflect.Fixed32Kind:
			return value.OfInt64(int64(u)), true, nil
		}
		return value.OfInt64(int64(int32(u))), true, nil
	case protowire.Fixed64Type:
		u, _ := protowire.ConsumeFixed64(v)
		switch r.field.Kind() {
		case protoreflect.DoubleKind:
			return value.OfFloat64(math.Float64frombits(u)), true, nil
		case protoreflect.Fixed64Kind:
			return r.unsigned(u)
		}
		return value.OfInt64(int64(u)), true, nil
	}
	if r.message {
		return value.OfProto(v), true, nil
	}
	text, _ := protowire.ConsumeBytes(v)
	if r.field.Kind() == protoreflect.BytesKind {
		return value.OfBytes(text), true, nil
	}
	if !utf8.Valid(text) {
		return value.Value{}, false, usererror.BadArgument("Field " + string(r.field.FullName()) + " of a protocol buffer is not valid UTF-8")
	}
	return value.OfString(unsafe.String(unsafe.SliceData(text), len(text))), true, nil
}

func (r *fieldReader) varint(u uint64) (_ value.Value, known bool, err error) {
	switch r.field.Kind() {
	case protoreflect.BoolKind:
		return value.OfBool(u != 0), true, nil
	case protoreflect.EnumKind:
		number := int32(u)
		known := !r.field.Enum().IsClosed() || r.field.Enum().Values().ByNumber(protoreflect.EnumNumber(number)) != nil
		return value.OfEnum(number), known, nil
	case protoreflect.Int32Kind:
		return value.OfInt64(int64(int32(u))), true, nil
	case protoreflect.Sint32Kind:
		return value.OfInt64(int64(int32(protowire.DecodeZigZag(u & math.MaxUint32)))), true, nil
	case protoreflect.Uint32Kind:
		return value.OfInt64(int64(uint32(u))), true, nil
	case protoreflect.Sint64Kind:
		return value.OfInt64(protowire.DecodeZigZag(u)), true, nil
	case protoreflect.Uint64Kind:
		return r.unsigned(u)
	}
	return value.OfInt64(int64(u)), true, nil
}

// unsigned converts an unsigned number to INT64. It fails for numbers above the largest INT64.
func (r *fieldReader) unsigned(u uint64) (_ value.Value, known bool, err error) {
	if u > math.MaxInt64 {
		return value.Value{}, false, usererror.BadArgument("The value of field " + string(r.field.FullName()) + " of a protocol buffer is out of the range of INT64")
	}
	return value.OfInt64(int64(u)), true, nil
}

// defaultOf returns the value that a field has while it is not set. The field must not be repeated.
func defaultOf(f protoreflect.FieldDescriptor) value.Value {
	d := f.Default()
	switch f.Kind() {
	case protoreflect.BoolKind:
		return value.OfBool(d.Bool())
	case protoreflect.EnumKind:
		return value.OfEnum(int32(d.Enum()))
	case protoreflect.FloatKind:
		return value.OfFloat32(float32(d.Float()))
	case protoreflect.DoubleKind:
		return value.OfFloat64(d.Float())
	case protoreflect.StringKind:
		return value.OfString(d.String())
	case protoreflect.BytesKind:
		return value.OfBytes(d.Bytes())
	case protoreflect.MessageKind, protoreflect.GroupKind:
		return value.Null(value.Proto)
	case protoreflect.Uint32Kind, protoreflect.Uint64Kind, protoreflect.Fixed32Kind, protoreflect.Fixed64Kind:
		return value.OfInt64(int64(d.Uint()))
	}
	return value.OfInt64(d.Int())
}

// fieldPath finds a field of a message, or a field of a message nested in it.
type fieldPath struct {
	outer []*fieldReader
	*fieldReader
}

func newFieldPath(path []protoreflect.FieldDescriptor) *fieldPath {
	p := &fieldPath{}
	for _, f := range path {
		p.outer = append(p.outer, newFieldReader(f))
	}
	p.outer, p.fieldReader = p.outer[:len(path)-1], p.outer[len(path)-1]
	return p
}

// parent returns the bytes of the message that contains the path's last field; nil if that message is not set.
func (p *fieldPath) parent(b []byte) ([]byte, error) {
	for _, r := range p.outer {
		v, ok := r.last(b)
		if !ok {
			return nil, errCorrupt(r.field.ContainingMessage().FullName())
		}
		if v == nil {
			return nil, nil
		}
		b = v
	}
	if b == nil {
		b = []byte{}
	}
	return b, nil
}

// A FieldReader returns the value of a field of a message. The value is NULL if a message on the path to the field is
// not set. The value may share memory with the message.
type FieldReader func(message []byte) (value.Value, error)

// maxDefault is the maximum size in bytes of a field's default value for which FieldOf returns a reader. Every row
// may have the default value, and callers copy the values of many rows into one buffer, so a large default would take
// much memory.
const maxDefault = 1 << 10

// FieldOf returns the FieldReader for a call of tree.ProtoField. It returns nil for other calls, for a repeated
// field, and for a field with a large default value.
func FieldOf(f *tree.Function) FieldReader {
	if f.Name != tree.ProtoField || f.Fields == nil || f.Safe {
		return nil
	}
	p := newFieldPath(f.Fields[0])
	if p.field.IsList() || p.field.IsMap() || value.KeepsTexts(f.Type.Kind) && len(defaultOf(p.field).AsBytes()) > maxDefault {
		return nil
	}
	return p.single(value.Null(f.Type.Kind))
}

// single returns a reader of a field that is not repeated. The parameter null is the reader's result if a message on
// the path to the field is not set.
func (p *fieldPath) single(null value.Value) FieldReader {
	unset := defaultOf(p.field)
	required := p.field.Cardinality() == protoreflect.Required
	return func(b []byte) (value.Value, error) {
		if len(p.outer) > 0 {
			var err error
			if b, err = p.parent(b); err != nil || b == nil {
				return null, err
			}
		}
		v, ok := p.last(b)
		switch {
		case !ok:
			return value.Value{}, errCorrupt(p.field.ContainingMessage().FullName())
		case v == nil && required:
			return value.Value{}, usererror.BadArgument("Protocol buffer missing required field " + string(p.field.FullName()))
		case v == nil:
			return unset, nil
		}
		got, known, err := p.valueOf(v)
		if !known && err == nil {
			return unset, nil
		}
		return got, err
	}
}

func protoField(f *tree.Function) fn.Body {
	p := newFieldPath(f.Fields[0])
	null := value.Null(f.Type.Kind)
	if p.field.IsList() || p.field.IsMap() {
		return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
			b, err := p.parent(a[0].AsBytes())
			if err != nil || b == nil {
				return null, err
			}
			return p.list(b)
		})
	}
	read := p.single(null)
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		v, err := read(a[0].AsBytes())
		return v.Own(), err
	})
}

// list returns the values of a repeated field.
func (p *fieldPath) list(b []byte) (value.Value, error) {
	list := []value.Value{}
	var failed error
	add := func(v []byte) {
		got, known, err := p.valueOf(v)
		if err != nil && failed == nil {
			failed = err
		}
		if known {
			list = append(list, got.Own())
		}
	}
	ok := p.each(b, func(v []byte, packed bool) {
		switch {
		case !packed && p.message:
			add(p.body(v))
		case !packed:
			add(v)
		default:
			values, _ := protowire.ConsumeBytes(v)
			for len(values) > 0 && failed == nil {
				n := protowire.ConsumeFieldValue(p.number, p.wire, values)
				if n < 0 {
					failed = errCorrupt(p.field.ContainingMessage().FullName())
					return
				}
				add(values[:n])
				values = values[n:]
			}
		}
	})
	if !ok {
		return value.Value{}, errCorrupt(p.field.ContainingMessage().FullName())
	}
	return value.OfArray(list), failed
}

func hasProtoField(f *tree.Function) fn.Body {
	p := newFieldPath(f.Fields[0])
	return fn.Strict(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		b, err := p.parent(a[0].AsBytes())
		if err != nil || b == nil {
			return value.Null(value.Bool), err
		}
		v, ok := p.last(b)
		if !ok {
			return value.Value{}, errCorrupt(p.field.ContainingMessage().FullName())
		}
		if v != nil && p.field.Kind() == protoreflect.EnumKind {
			_, known, err := p.valueOf(v)
			return value.OfBool(known), err
		}
		return value.OfBool(v != nil), nil
	})
}

// protoName returns the name of a message type as error messages show it.
func protoName(t *value.Type) string {
	return strings.TrimSuffix(strings.TrimPrefix(t.String(), "PROTO<"), ">")
}

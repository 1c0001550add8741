package protobuf

import (
	"math"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// appendField appends a field with all of its values, encoded as in a message. v must not be NULL.
func appendField(dst []byte, f protoreflect.FieldDescriptor, v value.Value) ([]byte, error) {
	if !f.IsList() && !f.IsMap() {
		return appendFieldValue(dst, f, v)
	}
	list := v.AsList()
	for _, e := range list {
		if e.IsNull() {
			return nil, usererror.BadArgument("Cannot encode a null value in repeated protocol message field " + string(f.FullName()))
		}
	}
	if !f.IsPacked() || len(list) == 0 {
		var err error
		for _, e := range list {
			if dst, err = appendFieldValue(dst, f, e); err != nil {
				return nil, err
			}
		}
		return dst, nil
	}
	var values []byte
	for _, e := range list {
		var err error
		if values, err = appendNumber(values, f, e); err != nil {
			return nil, err
		}
	}
	return protowire.AppendBytes(protowire.AppendTag(dst, f.Number(), protowire.BytesType), values), nil
}

// appendFieldValue appends one value of a field, with its tag.
func appendFieldValue(dst []byte, f protoreflect.FieldDescriptor, v value.Value) ([]byte, error) {
	dst = protowire.AppendTag(dst, f.Number(), wireTypes[f.Kind()])
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		return protowire.AppendBytes(dst, v.AsBytes()), nil
	case protoreflect.GroupKind:
		return protowire.AppendGroup(dst, f.Number(), v.AsBytes()), nil
	}
	return appendNumber(dst, f, v)
}

// appendNumber appends a value of a field that is neither text nor a message, without its tag.
func appendNumber(dst []byte, f protoreflect.FieldDescriptor, v value.Value) ([]byte, error) {
	i := v.AsInt64()
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protowire.AppendVarint(dst, protowire.EncodeBool(v.AsBool())), nil
	case protoreflect.FloatKind:
		return protowire.AppendFixed32(dst, math.Float32bits(v.AsFloat32())), nil
	case protoreflect.DoubleKind:
		return protowire.AppendFixed64(dst, math.Float64bits(v.AsFloat64())), nil
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		if i != int64(int32(i)) {
			return nil, usererror.CastOutOfRange("int32", strconv.FormatInt(i, 10))
		}
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		if i != int64(uint32(i)) {
			return nil, usererror.CastOutOfRange("uint32", strconv.FormatInt(i, 10))
		}
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		if i < 0 {
			return nil, usererror.CastOutOfRange("uint64", strconv.FormatInt(i, 10))
		}
	}
	switch f.Kind() {
	case protoreflect.Sint32Kind, protoreflect.Sint64Kind:
		return protowire.AppendVarint(dst, protowire.EncodeZigZag(i)), nil
	case protoreflect.Sfixed32Kind, protoreflect.Fixed32Kind:
		return protowire.AppendFixed32(dst, uint32(i)), nil
	case protoreflect.Sfixed64Kind, protoreflect.Fixed64Kind:
		return protowire.AppendFixed64(dst, uint64(i)), nil
	}
	return protowire.AppendVarint(dst, uint64(i)), nil
}

// isImplied reports whether a field with the value v means the same as an unset field. That is so if the field is a
// proto3 field without presence, and v is its default value.
func isImplied(f protoreflect.FieldDescriptor, v value.Value) bool {
	if f.HasPresence() || f.IsList() || f.IsMap() {
		return false
	}
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
		return len(v.AsBytes()) == 0
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return math.Float64bits(v.AsFloat64()) == 0
	case protoreflect.BoolKind:
		return !v.AsBool()
	}
	return v.AsInt64() == 0
}

// checkRequired returns an error if f is a required field. It is called when f would become unset.
func checkRequired(f protoreflect.FieldDescriptor) error {
	if f.Cardinality() == protoreflect.Required {
		return usererror.BadArgument("Cannot encode a null value in required protocol message field " + string(f.FullName()))
	}
	return nil
}

func makeProto(f *tree.Function) fn.Body {
	fields := make([]protoreflect.FieldDescriptor, len(f.Fields))
	order := make([]int, len(fields)) // indexes in fields, ordered by field number
	for i, path := range f.Fields {
		fields[i], order[i] = path[0], i
	}
	slices.SortFunc(order, func(i, j int) int { return int(fields[i].Number() - fields[j].Number()) })
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		message := []byte{}
		for _, i := range order {
			if a[i].IsNull() {
				if err := checkRequired(fields[i]); err != nil {
					return value.Value{}, err
				}
				continue
			}
			if isImplied(fields[i], a[i]) {
				continue
			}
			var err error
			if message, err = appendField(message, fields[i], a[i]); err != nil {
				return value.Value{}, err
			}
		}
		return value.OfProto(message), nil
	})
}

// replacement replaces the value of one field of a message, or of a message nested in it.
type replacement struct {
	outer []*fieldReader // the fields on the path to the replaced field, which are messages
	last  *fieldReader
	make  bool // create messages on the path that are not set
}

func replaceFields(f *tree.Function) fn.Body { return replacing(f, false) }

func setFields(f *tree.Function) fn.Body { return replacing(f, true) }

func replacing(f *tree.Function, create bool) fn.Body {
	list := make([]replacement, len(f.Fields))
	for i, path := range f.Fields {
		p := newFieldPath(path)
		list[i] = replacement{outer: p.outer, last: p.fieldReader, make: create}
	}
	return fn.Nullable(func(_ *fn.Context, a []value.Value) (value.Value, error) {
		if a[0].IsNull() {
			if create {
				return value.Value{}, usererror.BadArgument("Cannot set field of NULL `" + protoName(f.Type) + "`")
			}
			return a[0], nil
		}
		message := a[0].AsBytes()
		for i := range list {
			var err error
			if message, err = list[i].in(message, list[i].outer, a[i+1]); err != nil {
				return value.Value{}, err
			}
		}
		return value.OfProto(message), nil
	})
}

// in returns a copy of the given message in which the replaced field has the value v. The parameter outer lists the
// fields on the path from the given message to the nested message that has the replaced field.
func (r *replacement) in(message []byte, outer []*fieldReader, v value.Value) ([]byte, error) {
	if len(outer) == 0 {
		return r.set(message, v)
	}
	at := outer[0]
	inner, ok := at.last(message)
	switch {
	case !ok:
		return nil, errCorrupt(at.field.ContainingMessage().FullName())
	case inner == nil && !r.make:
		return nil, usererror.BadArgument("REPLACE_FIELDS() cannot be used to modify the fields of an unset message: " + string(at.field.FullName()))
	}
	inner, err := r.in(inner, outer[1:], v)
	if err != nil {
		return nil, err
	}
	rest, err := at.without(message, true)
	if err != nil {
		return nil, err
	}
	return appendFieldValue(rest, at.field, value.OfProto(inner))
}

// set returns a copy of the message in which the last field of the path has the value v. If v is NULL, the field is
// unset.
func (r *replacement) set(message []byte, v value.Value) ([]byte, error) {
	f := r.last.field
	if v.IsNull() {
		if err := checkRequired(f); err != nil {
			return nil, err
		}
	}
	rest, err := r.last.without(message, !v.IsNull())
	if err != nil || v.IsNull() || isImplied(f, v) {
		return rest, err
	}
	return appendField(rest, f, v)
}

// without returns a copy of a message that lacks the field. The parameter replaced says that the caller will append a
// new value of the field. In this case the copy also lacks the other fields of the field's oneof.
func (r *fieldReader) without(b []byte, replaced bool) ([]byte, error) {
	rest := make([]byte, 0, len(b)+16)
	for len(b) > 0 {
		number, wire, tag := protowire.ConsumeTag(b)
		n := -1
		if tag > 0 {
			n = protowire.ConsumeFieldValue(number, wire, b[tag:])
		}
		if n < 0 {
			return nil, errCorrupt(r.field.ContainingMessage().FullName())
		}
		if number != r.number && !(replaced && slices.Contains(r.oneof, number)) {
			rest = append(rest, b[:tag+n]...)
		}
		b = b[tag+n:]
	}
	return rest, nil
}

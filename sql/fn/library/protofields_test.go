package library

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/protobuf"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// everyKind returns a message type that has fields of every protobuf kind except groups. For each kind there is a
// single field, a repeated one, a packed repeated one (if values of the kind can be packed), and one in a oneof. The
// fields whose kind is a message have this message type itself, so its messages can be nested.
func everyKind(t *testing.T, syntax string) protoreflect.MessageDescriptor {
	m := &descriptorpb.DescriptorProto{Name: proto.String("M"), OneofDecl: []*descriptorpb.OneofDescriptorProto{{Name: proto.String("o")}}}
	number := int32(0)
	add := func(kind protoreflect.Kind, repeated, packed, oneof bool) {
		number++
		f := &descriptorpb.FieldDescriptorProto{
			Name: proto.String(fmt.Sprintf("f%d", number)), Number: proto.Int32(number), Type: descriptorpb.FieldDescriptorProto_Type(kind).Enum(),
			Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}
		switch kind {
		case protoreflect.MessageKind:
			f.TypeName = proto.String(".p.M")
		case protoreflect.EnumKind:
			f.TypeName = proto.String(".p.E")
		}
		if repeated {
			f.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
			if kind != protoreflect.StringKind && kind != protoreflect.BytesKind && kind != protoreflect.MessageKind {
				f.Options = &descriptorpb.FieldOptions{Packed: proto.Bool(packed)}
			}
		}
		if oneof {
			f.OneofIndex = proto.Int32(0)
		}
		m.Field = append(m.Field, f)
	}
	for kind := protoreflect.DoubleKind; kind <= protoreflect.Sint64Kind; kind++ {
		if kind != protoreflect.GroupKind {
			add(kind, false, false, false)
			add(kind, true, false, false)
			add(kind, true, true, false)
		}
	}
	for kind := protoreflect.DoubleKind; kind <= protoreflect.Sint64Kind; kind++ {
		if kind != protoreflect.GroupKind {
			add(kind, false, false, true)
		}
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("f"), Package: proto.String("p"), Syntax: proto.String(syntax), MessageType: []*descriptorpb.DescriptorProto{m},
		EnumType: []*descriptorpb.EnumDescriptorProto{{Name: proto.String("E"), Value: []*descriptorpb.EnumValueDescriptorProto{
			{Name: proto.String("A"), Number: proto.Int32(0)}, {Name: proto.String("B"), Number: proto.Int32(-3)},
		}}},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().Get(0)
}

// randomMessage returns a message in which some fields are set at random. The parameter depth limits how deep messages
// are nested.
func randomMessage(r *rand.Rand, d protoreflect.MessageDescriptor, depth int) *dynamicpb.Message {
	m := dynamicpb.NewMessage(d)
	for i := range d.Fields().Len() {
		f := d.Fields().Get(i)
		if r.IntN(3) > 0 || f.Message() != nil && depth == 0 {
			continue
		}
		if !f.IsList() {
			m.Set(f, randomField(r, f, depth))
			continue
		}
		for list := m.Mutable(f).List(); r.IntN(3) > 0; {
			list.Append(randomField(r, f, depth))
		}
	}
	return m
}

func randomField(r *rand.Rand, f protoreflect.FieldDescriptor, depth int) protoreflect.Value {
	n := r.Int64() >> r.IntN(64)
	if r.IntN(2) == 0 {
		n = -n
	}
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n > 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(f.Enum().Values().Get(r.IntN(2)).Number())
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(n)
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return protoreflect.ValueOfUint64(uint64(n) >> 1)
	case protoreflect.FloatKind:
		return protoreflect.ValueOfFloat32(float32(n))
	case protoreflect.DoubleKind:
		return protoreflect.ValueOfFloat64(float64(n))
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(fmt.Sprint("é", n))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte{0xff, byte(n)})
	}
	return protoreflect.ValueOfMessage(randomMessage(r, f.Message(), depth-1))
}

// typeOfField returns the SQL type of a field.
func typeOfField(f protoreflect.FieldDescriptor) *value.Type {
	t := value.Int64Type
	switch f.Kind() {
	case protoreflect.BoolKind:
		t = value.BoolType
	case protoreflect.EnumKind:
		t = value.EnumType(f.Enum())
	case protoreflect.FloatKind:
		t = value.Float32Type
	case protoreflect.DoubleKind:
		t = value.Float64Type
	case protoreflect.StringKind:
		t = value.StringType
	case protoreflect.BytesKind:
		t = value.BytesType
	case protoreflect.MessageKind:
		t = value.ProtoType(f.Message())
	}
	if f.IsList() {
		return value.ArrayOf(t)
	}
	return t
}

// callOnFields calls the function with the given name on the given fields, and returns the function's result.
func callOnFields(t *testing.T, name string, fields []protoreflect.FieldDescriptor, result *value.Type, types []*value.Type, args ...value.Value) value.Value {
	t.Helper()
	f := &tree.Function{Name: name, Args: types, Type: result, Fields: [][]protoreflect.FieldDescriptor{}}
	for _, field := range fields {
		f.Fields = append(f.Fields, []protoreflect.FieldDescriptor{field})
	}
	s, err := Lookup(f)
	if err != nil {
		t.Fatal(err)
	}
	v, err := s.Call(&fn.Context{}, args)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// TestRandomMessages checks that the functions on fields read the right values from random messages. It also checks
// that NEW and REPLACE_FIELDS make an equal message from these values, and that a message is equal after it is
// converted to text and back.
func TestRandomMessages(t *testing.T) {
	for _, syntax := range []string{"proto2", "proto3"} {
		d := everyKind(t, syntax)
		typ := value.ProtoType(d)
		r := rand.New(rand.NewPCG(1, 11))
		for range 300 {
			m := randomMessage(r, d, 2)
			data, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			var fields []protoreflect.FieldDescriptor
			var types []*value.Type
			var values []value.Value
			for i := range d.Fields().Len() {
				f := d.Fields().Get(i)
				field := []protoreflect.FieldDescriptor{f}
				if f.HasPresence() {
					if has := callOnFields(t, tree.HasProtoField, field, value.BoolType, []*value.Type{typ}, value.OfProto(data)); has.AsBool() != m.Has(f) {
						t.Fatalf("%s: has_%s is %v in %v", syntax, f.Name(), has.AsBool(), m)
					}
				}
				v := callOnFields(t, tree.ProtoField, field, typeOfField(f), []*value.Type{typ}, value.OfProto(data))
				if want := valueIn(m, f); !sameValue(v, want, typeOfField(f)) {
					t.Fatalf("%s: %s is %v in %v, want %v", syntax, f.Name(), v, m, want)
				}
				if m.Has(f) {
					fields, types, values = append(fields, f), append(types, typeOfField(f)), append(values, v)
				}
			}
			made := callOnFields(t, tree.MakeProto, fields, typ, types, values...)
			replaced := callOnFields(t, tree.ReplaceFields, fields, typ, append([]*value.Type{typ}, types...), append([]value.Value{value.OfProto(nil)}, values...)...)
			text, err := protobuf.Conversion(typ, value.StringType)(nil, []value.Value{value.OfProto(data)})
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := protobuf.Conversion(value.StringType, typ)(nil, []value.Value{text})
			if err != nil {
				t.Fatalf("%s: %v", text.AsString(), err)
			}
			for how, v := range map[string]value.Value{"NEW": made, "REPLACE_FIELDS": replaced, "text": parsed} {
				back := dynamicpb.NewMessage(d)
				if err := proto.Unmarshal(v.AsBytes(), back); err != nil || !proto.Equal(back, m) {
					t.Fatalf("%s by %s: got %v, want %v (%v)", syntax, how, back, m, err)
				}
			}
			// Reading a message that is cut off or corrupted must not panic. It may fail or return another message.
			if len(data) > 0 {
				spoilt := append([]byte(nil), data[:r.IntN(len(data))]...)
				for i := range spoilt {
					if r.IntN(8) == 0 {
						spoilt[i] = byte(r.Uint32())
					}
				}
				for i := range d.Fields().Len() {
					f := d.Fields().Get(i)
					s, _ := Lookup(&tree.Function{Name: tree.ProtoField, Args: []*value.Type{typ}, Type: typeOfField(f), Fields: [][]protoreflect.FieldDescriptor{{f}}})
					s.Call(&fn.Context{}, []value.Value{value.OfProto(spoilt)})
				}
			}
		}
	}
}

// valueIn returns the SQL value that field f of the message m should have. It takes the value from package dynamicpb,
// which made m.
func valueIn(m protoreflect.Message, f protoreflect.FieldDescriptor) value.Value {
	if f.IsList() {
		list := []value.Value{}
		for i := range m.Get(f).List().Len() {
			list = append(list, single(f, m.Get(f).List().Get(i)))
		}
		return value.OfArray(list)
	}
	if f.Message() != nil && !m.Has(f) {
		return value.Null(value.Proto)
	}
	return single(f, m.Get(f))
}

func single(f protoreflect.FieldDescriptor, v protoreflect.Value) value.Value {
	switch f.Kind() {
	case protoreflect.BoolKind:
		return value.OfBool(v.Bool())
	case protoreflect.EnumKind:
		return value.OfEnum(int32(v.Enum()))
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return value.OfInt64(int64(v.Uint()))
	case protoreflect.FloatKind:
		return value.OfFloat32(float32(v.Float()))
	case protoreflect.DoubleKind:
		return value.OfFloat64(v.Float())
	case protoreflect.StringKind:
		return value.OfString(v.String())
	case protoreflect.BytesKind:
		return value.OfBytes(v.Bytes())
	case protoreflect.MessageKind, protoreflect.GroupKind:
		b, _ := proto.Marshal(v.Message().Interface())
		return value.OfProto(b)
	}
	return value.OfInt64(v.Int())
}

// sameValue reports whether two values are equal. It compares messages by their contents, not by their bytes.
func sameValue(a, b value.Value, t *value.Type) bool {
	switch {
	case a.IsNull() || b.IsNull():
		return a.IsNull() == b.IsNull()
	case t.Elem != nil:
		return slices.EqualFunc(a.AsList(), b.AsList(), func(a, b value.Value) bool { return sameValue(a, b, t.Elem) })
	case t.Kind == value.Proto:
		m, n := dynamicpb.NewMessage(t.Message()), dynamicpb.NewMessage(t.Message())
		return proto.Unmarshal(a.AsBytes(), m) == nil && proto.Unmarshal(b.AsBytes(), n) == nil && proto.Equal(m, n)
	}
	return bytes.Equal(value.AppendRow(nil, a, t), value.AppendRow(nil, b, t))
}

// TestWireForms checks that the functions on fields read the same values as package dynamicpb from messages with an
// unusual encoding. In these messages, fields occur more than once and in any order, mixed with unknown fields, and
// several encoded messages follow each other.
func TestWireForms(t *testing.T) {
	for _, syntax := range []string{"proto2", "proto3"} {
		d := everyKind(t, syntax)
		typ := value.ProtoType(d)
		r := rand.New(rand.NewPCG(2, 11))
		for range 300 {
			var data []byte
			for range 1 + r.IntN(4) { // several encoded messages, one after the other, are one message
				part, err := proto.Marshal(randomMessage(r, d, 2))
				if err != nil {
					t.Fatal(err)
				}
				data = append(data, part...)
				data = protowire.AppendTag(data, protowire.Number(1000+r.IntN(100_000)), protowire.BytesType) // an unknown field
				data = protowire.AppendBytes(data, make([]byte, r.IntN(300)))
				data = protowire.AppendTag(data, 999, protowire.StartGroupType)
				data = protowire.AppendVarint(protowire.AppendTag(data, 1, protowire.VarintType), r.Uint64())
				data = protowire.AppendTag(data, 999, protowire.EndGroupType)
			}
			m := dynamicpb.NewMessage(d)
			if err := proto.Unmarshal(data, m); err != nil {
				t.Fatal(err)
			}
			for i := range d.Fields().Len() {
				f := d.Fields().Get(i)
				v := callOnFields(t, tree.ProtoField, []protoreflect.FieldDescriptor{f}, typeOfField(f), []*value.Type{typ}, value.OfProto(data))
				if want := valueIn(m, f); !sameValue(v, want, typeOfField(f)) {
					t.Fatalf("%s: %s is %v in %x, want %v", syntax, f.Name(), v, data, want)
				}
			}
		}
	}
}

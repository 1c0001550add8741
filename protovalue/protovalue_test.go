package protovalue

import (
	"bytes"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// lists returns a NULL inside n lists that are nested in each other. Each list has one element.
func lists(n int) *structpb.Value {
	v := structpb.NewNullValue()
	for range n {
		v = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})
	}
	return v
}

// message returns an encoded message that has values as the elements of the field with the given number. The message
// has one other field before these elements and one after them. rest is the encoding of the two other fields.
func message(t *testing.T, field protowire.Number, values ...*structpb.Value) (data, rest []byte) {
	t.Helper()
	front := protowire.AppendString(protowire.AppendTag(nil, 15, protowire.BytesType), "front")
	behind := protowire.AppendVarint(protowire.AppendTag(nil, 100, protowire.VarintType), 7)
	data = append(data, front...)
	for _, v := range values {
		encoded, err := proto.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		data = protowire.AppendBytes(protowire.AppendTag(data, field, protowire.BytesType), encoded)
	}
	return append(data, behind...), append(front, behind...)
}

// TestDecode checks that Decode returns the values and the other fields of a message, whichever number the field with
// the values has. (Tests in package resultset compare Decode with package proto for random and for malformed messages.)
func TestDecode(t *testing.T) {
	want := []*structpb.Value{
		structpb.NewNullValue(), structpb.NewBoolValue(true), structpb.NewNumberValue(1.5), structpb.NewStringValue("é"),
		structpb.NewStringValue(strings.Repeat("long", textBlock)), lists(3), lists(maxDepth),
	}
	for _, field := range []protowire.Number{1, 2, 14} {
		data, rest := message(t, field, want...)
		values, others, ok := Decode(data, field)
		if !ok || len(values) != len(want) || !bytes.Equal(others, rest) {
			t.Fatalf("field %d: %v, %d values, other fields %x, want %x", field, ok, len(values), others, rest)
		}
		for i, v := range values {
			if !proto.Equal(v, want[i]) {
				t.Errorf("field %d, value %d: %.100v, want %.100v", field, i, v, want[i])
			}
		}
	}
}

// TestLeft checks that Decode leaves unusual messages to package proto, by returning false.
func TestLeft(t *testing.T) {
	for name, v := range map[string]*structpb.Value{
		"no kind":  {},
		"a struct": structpb.NewStructValue(&structpb.Struct{}),
		"too deep": lists(maxDepth + 1),
	} {
		data, _ := message(t, 1, structpb.NewNullValue(), v)
		if values, rest, ok := Decode(data, 1); ok || values != nil || rest != nil {
			t.Errorf("%s: %v, %x", name, values, rest)
		}
	}
	data, _ := message(t, 1, structpb.NewStringValue("text"))
	for n := range len(data) {
		values, _, ok := Decode(data[:n], 1)
		if whole := new(structpb.ListValue); ok != (proto.Unmarshal(data[:n], whole) == nil) || ok && len(values) != len(whole.Values) {
			t.Errorf("%d bytes of %d: %v", n, len(data), ok)
		}
	}
}

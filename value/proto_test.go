package value

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

func TestTypesRoundTrip(t *testing.T) {
	for _, typ := range rowTypes {
		back, err := TypeFromProto(typ.Proto())
		if err != nil || !back.Equal(typ) {
			t.Errorf("%s came back as %s, error %v", typ, back, err)
		}
	}
}

func TestTypesRefused(t *testing.T) {
	ints := &spannerpb.Type{Code: spannerpb.TypeCode_ARRAY, ArrayElementType: &spannerpb.Type{Code: spannerpb.TypeCode_INT64}}
	deep := ints.ArrayElementType
	for range 10_000 {
		deep = &spannerpb.Type{Code: spannerpb.TypeCode_STRUCT, StructType: &spannerpb.StructType{Fields: []*spannerpb.StructType_Field{{Type: deep}}}}
	}
	for _, test := range []struct {
		p    *spannerpb.Type
		want string
	}{
		{nil, "type code TYPE_CODE_UNSPECIFIED is not supported"},
		{&spannerpb.Type{Code: spannerpb.TypeCode_PROTO}, "PROTO type without proto_type_fqn"},
		{&spannerpb.Type{Code: 99}, "type code 99 is not supported"},
		{&spannerpb.Type{Code: -1}, "type code -1 is not supported"},
		{&spannerpb.Type{Code: spannerpb.TypeCode_NUMERIC, TypeAnnotation: spannerpb.TypeAnnotationCode_PG_NUMERIC}, "type annotation PG_NUMERIC is not supported"},
		{&spannerpb.Type{Code: spannerpb.TypeCode_ARRAY}, "ARRAY type without array_element_type"},
		{&spannerpb.Type{Code: spannerpb.TypeCode_ARRAY, ArrayElementType: ints}, "ARRAY of ARRAY is not supported"},
		{&spannerpb.Type{Code: spannerpb.TypeCode_STRUCT}, "STRUCT type without struct_type"},
		{&spannerpb.Type{Code: spannerpb.TypeCode_STRUCT, StructType: &spannerpb.StructType{Fields: []*spannerpb.StructType_Field{nil}}},
			"STRUCT field 1: type code TYPE_CODE_UNSPECIFIED is not supported"},
		{deep, "type nests deeper than 100 levels"},
	} {
		if _, err := TypeFromProto(test.p); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got error %v, want %s", err, test.want)
		}
	}
}

func TestFieldsOfAllLengths(t *testing.T) {
	for _, n := range []int{0, 1, 127, 128, 129, 16383, 16384, 2097151, 2097152, 10 << 20} {
		body := bytes.Repeat([]byte("x"), n)
		dst, mark := BeginField([]byte("before"), 0x12)
		got := EndField(append(dst, body...), mark)
		want := append(binary.AppendUvarint([]byte("before\x12"), uint64(n)), body...)
		if !bytes.Equal(got, want) {
			t.Errorf("a field of %d bytes is wrong", n)
		}
	}
}

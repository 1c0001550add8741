package jsonlines

import (
	"encoding/json"
	"math"
	"testing"

	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

func scalar(code sppb.TypeCode) *sppb.Type { return &sppb.Type{Code: code} }

func arrayOf(element *sppb.Type) *sppb.Type {
	return &sppb.Type{Code: sppb.TypeCode_ARRAY, ArrayElementType: element}
}

// TestValues checks for each type that a value gets the JSON form that the comment of AppendValue states.
func TestValues(t *testing.T) {
	text, null := structpb.NewStringValue, structpb.NewNullValue()
	list := func(values ...*structpb.Value) *structpb.Value {
		return structpb.NewListValue(&structpb.ListValue{Values: values})
	}
	for _, c := range []struct {
		kind *sppb.Type
		v    *structpb.Value
		want string
	}{
		{scalar(sppb.TypeCode_BOOL), structpb.NewBoolValue(true), "true"},
		{scalar(sppb.TypeCode_INT64), text("9223372036854775807"), "9223372036854775807"},
		{scalar(sppb.TypeCode_INT64), text("-9007199254740993"), "-9007199254740993"},
		{scalar(sppb.TypeCode_INT64), null, "null"},
		{scalar(sppb.TypeCode_ENUM), text("3"), "3"},
		{scalar(sppb.TypeCode_FLOAT64), structpb.NewNumberValue(0.1), "0.1"},
		{scalar(sppb.TypeCode_FLOAT64), structpb.NewNumberValue(1e300), "1e+300"},
		{scalar(sppb.TypeCode_FLOAT64), structpb.NewNumberValue(math.Copysign(0, -1)), "-0"},
		{scalar(sppb.TypeCode_FLOAT64), text("-Infinity"), `"-Infinity"`},
		{scalar(sppb.TypeCode_FLOAT32), structpb.NewNumberValue(float64(float32(0.1))), "0.1"},
		{scalar(sppb.TypeCode_FLOAT32), text("NaN"), `"NaN"`},
		{scalar(sppb.TypeCode_STRING), text("<a> & \"b\" \\ \n\t\x01 é 🐦"), `"<a> & \"b\" \\ \n\u0009\u0001 é 🐦"`},
		{scalar(sppb.TypeCode_STRING), text("a\xffb"), "\"a\uFFFDb\""},
		{scalar(sppb.TypeCode_STRING), text("a\uFFFDb"), "\"a\uFFFDb\""},
		{scalar(sppb.TypeCode_BYTES), text("AP8="), `"AP8="`},
		{scalar(sppb.TypeCode_PROTO), text("CAE="), `"CAE="`},
		{scalar(sppb.TypeCode_DATE), text("2026-11-22"), `"2026-11-22"`},
		{scalar(sppb.TypeCode_TIMESTAMP), text("2026-11-22T10:00:00.123456789Z"), `"2026-11-22T10:00:00.123456789Z"`},
		{scalar(sppb.TypeCode_NUMERIC), text("3.14"), `"3.14"`},
		{scalar(sppb.TypeCode_JSON), text(`{"a":"b"}`), `"{\"a\":\"b\"}"`},
		{scalar(sppb.TypeCode_UUID), text("4192bff0-e1e0-43ce-a4db-912808c32493"), `"4192bff0-e1e0-43ce-a4db-912808c32493"`},
		{arrayOf(scalar(sppb.TypeCode_INT64)), list(text("1"), null, text("3")), "[1,null,3]"},
		{arrayOf(scalar(sppb.TypeCode_STRING)), list(), "[]"},
		{arrayOf(scalar(sppb.TypeCode_STRING)), null, "null"},
	} {
		got, err := AppendValue(nil, c.kind, c.v)
		if err != nil || string(got) != c.want || !json.Valid(got) {
			t.Errorf("%v %v: %s, %v; want %s", c.kind, c.v, got, err, c.want)
		}
	}
	for _, c := range []struct {
		kind *sppb.Type
		v    *structpb.Value
	}{
		{scalar(sppb.TypeCode_INT64), text("1e3")},
		{scalar(sppb.TypeCode_FLOAT64), structpb.NewNumberValue(math.NaN())},
		{scalar(sppb.TypeCode_STRING), structpb.NewNumberValue(1)},
		{arrayOf(scalar(sppb.TypeCode_INT64)), list(text(""))},
	} {
		if got, err := AppendValue(nil, c.kind, c.v); err == nil {
			t.Errorf("%v %v: %s, want an error", c.kind, c.v, got)
		}
	}
}

package avro

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/twmb/avro"
	"google.golang.org/protobuf/types/known/structpb"
)

func scalar(code sppb.TypeCode) *sppb.Type { return &sppb.Type{Code: code} }

func arrayOf(code sppb.TypeCode) *sppb.Type {
	return &sppb.Type{Code: sppb.TypeCode_ARRAY, ArrayElementType: scalar(code)}
}

func list(values ...*structpb.Value) *structpb.Value {
	return structpb.NewListValue(&structpb.ListValue{Values: values})
}

// numericPG is PostgreSQL's numeric.
var numericPG = &sppb.Type{Code: sppb.TypeCode_NUMERIC, TypeAnnotation: sppb.TypeAnnotationCode_PG_NUMERIC}

var (
	text = structpb.NewStringValue
	null = structpb.NewNullValue()
)

// TestTypes compares the Avro type of each Spanner type, and the bytes of a value, with the expected ones. It checks
// that the library github.com/twmb/avro decodes the bytes with the schema that Schema returns.
func TestTypes(t *testing.T) {
	for _, c := range []struct {
		kind      *sppb.Type
		v         *structpb.Value
		want      string
		wantType  string
		wantBytes string // the expected encoding, in hexadecimal
	}{
		{scalar(sppb.TypeCode_BOOL), structpb.NewBoolValue(true), "bool true", `"boolean"`, "01"},
		{scalar(sppb.TypeCode_BOOL), structpb.NewBoolValue(false), "bool false", `"boolean"`, "00"},
		{scalar(sppb.TypeCode_INT64), text("-9223372036854775808"), "int64 -9223372036854775808", `"long"`, "ffffffffffffffffff01"},
		{scalar(sppb.TypeCode_INT64), text("9223372036854775807"), "int64 9223372036854775807", `"long"`, "feffffffffffffffff01"},
		{scalar(sppb.TypeCode_ENUM), text("3"), "int64 3", `"long"`, "06"},
		{scalar(sppb.TypeCode_FLOAT32), structpb.NewNumberValue(0.5), "float32 0.5", `"float"`, "0000003f"},
		{scalar(sppb.TypeCode_FLOAT32), text("-Infinity"), "float32 -Inf", `"float"`, "000080ff"},
		{scalar(sppb.TypeCode_FLOAT64), structpb.NewNumberValue(math.MaxFloat64), "float64 1.7976931348623157e+308", `"double"`, "ffffffffffffef7f"},
		{scalar(sppb.TypeCode_FLOAT64), text("NaN"), "float64 NaN", `"double"`, "010000000000f87f"},
		{scalar(sppb.TypeCode_STRING), text("é 🐦"), "string é 🐦", `"string"`, "0ec3a920f09f90a6"},
		{scalar(sppb.TypeCode_STRING), text(""), "string ", `"string"`, "00"},
		{scalar(sppb.TypeCode_DATE), text("2026-11-22"), "string 2026-11-22", `"string"`, "14323032362d31312d3232"},
		{scalar(sppb.TypeCode_TIMESTAMP), text("2026-11-22T10:00:00.123456789Z"), "string 2026-11-22T10:00:00.123456789Z", `"string"`, "3c323032362d31312d32325431303a30303a30302e3132333435363738395a"},
		{scalar(sppb.TypeCode_JSON), text(`{"a":1}`), `string {"a":1}`, `"string"`, "0e7b2261223a317d"},
		{scalar(sppb.TypeCode_UUID), text("4192bff0-e1e0-43ce-a4db-912808c32493"), "string 4192bff0-e1e0-43ce-a4db-912808c32493", `{"type":"string","logicalType":"uuid"}`, "4834313932626666302d653165302d343363652d613464622d393132383038633332343933"},
		{scalar(sppb.TypeCode_BYTES), text("AP8="), "[]uint8 [0 255]", `"bytes"`, "0400ff"},
		{scalar(sppb.TypeCode_PROTO), text("CAE="), "[]uint8 [8 1]", `"bytes"`, "040801"},
		{scalar(sppb.TypeCode_NUMERIC), text("3.14"), "decimal 3.140000000", `{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}`, "0a00bb289900"},
		{arrayOf(sppb.TypeCode_INT64), list(text("1"), null, text("-300")), "[]interface {} [1 <nil> -300]", `{"type":"array","items":["null","long"]}`, "0602020002d70400"},
		{arrayOf(sppb.TypeCode_STRING), list(), "[]interface {} []", `{"type":"array","items":["null","string"]}`, "00"},
		{arrayOf(sppb.TypeCode_NUMERIC), list(null, text("1")), "[]interface {} [<nil> 1/1]", `{"type":"array","items":["null",{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}]}`, "040002083b9aca0000"},
		{scalar(sppb.TypeCode_NUMERIC), text("-0.000000129"), "decimal -0.000000129", `{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}`, "04ff7f"},
		{numericPG, text("NaN"), "string NaN", `"string"`, "064e614e"},
		{scalar(sppb.TypeCode_INTERVAL), text("P1Y"), "string P1Y", `"string"`, "06503159"},
		{scalar(sppb.TypeCode_BYTES), text(""), "[]uint8 []", `"bytes"`, "00"},
	} {
		for _, nullable := range []bool{false, true} {
			column := column(t, "C", c.kind, nullable)
			if got := decoded(t, column, c.v); got != c.want {
				t.Errorf("%v, nullable %v: %s, want %s", c.kind, nullable, got, c.want)
			}
			want := `{"name":"C","type":` + c.wantType + `}`
			wantBytes := c.wantBytes
			if nullable {
				want, wantBytes = `{"name":"C","type":["null",`+c.wantType+`],"default":null}`, "02"+wantBytes
			}
			schema, data := encoded(t, column, c.v)
			want = `{"type":"record","name":"T","fields":[` + want + `]}`
			if got := fmt.Sprintf("%x", data); schema != want || got != wantBytes {
				t.Errorf("%v, nullable %v:\n%s, %s; want\n%s, %s", c.kind, nullable, schema, got, want, wantBytes)
			}
		}
		if _, got := encoded(t, column(t, "C", c.kind, true), null); string(got) != "\x00" {
			t.Errorf("NULL of %v: % x", c.kind, got)
		}
	}
}

func column(t testing.TB, name string, kind *sppb.Type, nullable bool) Column {
	t.Helper()
	c, err := NewColumn(name, kind, nullable)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// encoded returns the schema of a record with one column, and the record's bytes.
func encoded(t *testing.T, c Column, v *structpb.Value) (schema string, data []byte) {
	t.Helper()
	data, err := c.AppendField(nil, v)
	if err != nil {
		t.Fatalf("%v: %v", v, err)
	}
	return Schema("", "T", []Column{c}), data
}

// decoded encodes a record with one column, and returns the type and the value that the library decodes.
func decoded(t *testing.T, c Column, v *structpb.Value) string {
	t.Helper()
	text, data := encoded(t, c, v)
	schema, err := avro.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	var record map[string]any
	rest, err := schema.Decode(data, &record)
	if err != nil || len(rest) > 0 {
		t.Fatalf("%s: % x, of which % x is left: %v", text, data, rest, err)
	}
	if decimal, ok := record["C"].(*big.Rat); ok {
		return "decimal " + decimal.FloatString(9)
	}
	return fmt.Sprintf("%T %[1]v", record["C"])
}

// TestNumerics checks that the library decodes NUMERIC values of every length, positive and negative, unchanged.
func TestNumerics(t *testing.T) {
	for _, number := range []string{
		"0.000000000", "0.000000001", "-0.000000001", "0.000000127", "0.000000128", "0.000000255", "0.000000256", "-0.000000128", "-0.000000129",
		"-0.000000256", "1.000000000", "-1.000000000", "99999999999999999999999999999.999999999", "-99999999999999999999999999999.999999999",
	} {
		if got := decoded(t, column(t, "C", scalar(sppb.TypeCode_NUMERIC), false), text(number)); got != "decimal "+number {
			t.Errorf("%s: %s", number, got)
		}
	}
}

// TestSchema compares the schema of a table with the expected text.
func TestSchema(t *testing.T) {
	got := Schema("music", "Singers", []Column{
		column(t, "SingerId", scalar(sppb.TypeCode_INT64), false),
		column(t, "Name", scalar(sppb.TypeCode_STRING), true),
		column(t, "Fee", scalar(sppb.TypeCode_NUMERIC), true),
		column(t, "Tags", arrayOf(sppb.TypeCode_STRING), false),
	})
	want := `{"type":"record","name":"Singers","namespace":"music","fields":[` +
		`{"name":"SingerId","type":"long"},` +
		`{"name":"Name","type":["null","string"],"default":null},` +
		`{"name":"Fee","type":["null",{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}],"default":null},` +
		`{"name":"Tags","type":{"type":"array","items":["null","string"]}}]}`
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestNotEncoded checks that a value that does not fit the schema gives an error that names the column.
func TestNotEncoded(t *testing.T) {
	for _, c := range []struct {
		code sppb.TypeCode
		v    *structpb.Value
	}{
		{sppb.TypeCode_INT64, null},
		{sppb.TypeCode_INT64, text("x")},
		{sppb.TypeCode_BYTES, text("?")},
		{sppb.TypeCode_NUMERIC, text("x")},
		{sppb.TypeCode_NUMERIC, text("0.0000000001")},
		{sppb.TypeCode_FLOAT64, text("x")},
	} {
		column := column(t, "C", scalar(c.code), false)
		got, err := column.AppendField(nil, c.v)
		if err == nil || !strings.Contains(err.Error(), "column C") {
			t.Errorf("%v %v: % x, %v", c.code, c.v, got, err)
		}
	}
}

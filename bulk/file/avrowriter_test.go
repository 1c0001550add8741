package file

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/crowfoot-db/crowfoot/arrowtype"
)

// TestAvroBytes checks that the writer gives a column of each Spanner type the right Avro type, and that it encodes
// values of the column as the right bytes.
func TestAvroBytes(t *testing.T) {
	for _, c := range []struct {
		ddl, value string
		timestamps arrowtype.Timestamps
		wantType   string
		wantBytes  string // in hex
	}{
		{"BOOL", "true", arrowtype.Text, `"boolean"`, "01"},
		{"INT64", "-9223372036854775808", arrowtype.Text, `"long"`, "ffffffffffffffffff01"},
		{"ENUM<a.b.E>", "3", arrowtype.Text, `"long"`, "06"},
		{"FLOAT32", "0.1", arrowtype.Text, `"float"`, "cdcccc3d"},
		{"FLOAT64", "-Infinity", arrowtype.Text, `"double"`, "000000000000f0ff"},
		{"NUMERIC", "3.14", arrowtype.Text, `{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}`, "0a00bb289900"},
		{"NUMERIC", "-0.000000129", arrowtype.Text, `{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}`, "04ff7f"},
		{"STRING(25)", "é 🐦", arrowtype.Text, `"string"`, "0ec3a920f09f90a6"},
		{"BYTES(MAX)", "AP8=", arrowtype.Text, `"bytes"`, "0400ff"},
		{"PROTO<a.b.C>", "CAE=", arrowtype.Text, `"bytes"`, "040801"},
		{"DATE", "2026-11-22", arrowtype.Text, `"string"`, "14323032362d31312d3232"},
		{"TIMESTAMP", "2026-11-22T10:00:00.123456789Z", arrowtype.Text, `"string"`, "3c323032362d31312d32325431303a30303a30302e3132333435363738395a"},
		{"TIMESTAMP", "1969-12-31T23:59:59.999999Z", arrowtype.Microseconds, `{"type":"long","logicalType":"timestamp-micros"}`, "01"},
		{"TIMESTAMP", "1969-12-31T23:59:59.999999Z", arrowtype.Nanoseconds, `{"type":"long","logicalType":"timestamp-nanos"}`, "cf0f"},
		{"JSON", `{"a":1}`, arrowtype.Text, `"string"`, "0e7b2261223a317d"},
		{"UUID", "4192bff0-e1e0-43ce-a4db-912808c32493", arrowtype.Text, `{"type":"string","logicalType":"uuid"}`, "4834313932626666302d653165302d343363652d613464622d393132383038633332343933"},
		{"INTERVAL", "P1Y2M3DT4H5M6.5S", arrowtype.Text, `"string"`, "20503159324d3344543448354d362e3553"},
		{"INTERVAL", "P1Y2M3DT4H5M6.5S", arrowtype.Nanoseconds, `"string"`, "20503159324d3344543448354d362e3553"},
		{"ARRAY<INT64>", "[1,null,-300]", arrowtype.Text, `{"type":"array","items":["null","long"]}`, "0602020002d70400"},
		{"ARRAY<STRING(MAX)>", "[]", arrowtype.Text, `{"type":"array","items":["null","string"]}`, "00"},
		{"ARRAY<NUMERIC>", `[null,"1"]`, arrowtype.Text, `{"type":"array","items":["null",{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}]}`, "040002083b9aca0000"},
		{"ARRAY<UUID>", `["4192bff0-e1e0-43ce-a4db-912808c32493"]`, arrowtype.Text, `{"type":"array","items":["null",{"type":"string","logicalType":"uuid"}]}`, "02024834313932626666302d653165302d343363652d613464622d39313238303863333234393300"},
		{"ARRAY<TIMESTAMP>", `["1969-12-31T23:59:59.999999Z",null]`, arrowtype.Microseconds, `{"type":"array","items":["null",{"type":"long","logicalType":"timestamp-micros"}]}`, "0402010000"},
	} {
		ddl := strings.NewReplacer("<", `\u003c`, ">", `\u003e`).Replace(c.ddl)
		for nullable, values := range map[bool][]string{false: {c.value}, true: {"", c.value}} {
			column, wantType, wantBytes := "C "+c.ddl, c.wantType, c.wantBytes
			if nullable {
				wantType, wantBytes = `["null",`+wantType+"]", "0002"+wantBytes // 00 is NULL, and 02 precedes a value
			} else {
				column += " NOT NULL"
			}
			gotSchema, gotBytes := avroOf(t, schemaOf(t, column, c.timestamps), values)
			wantSchema := `{"type":"record","name":"row","fields":[{"name":"C","type":` + wantType + `,"sqlType":"` + ddl + `"}]}`
			if gotSchema != wantSchema || gotBytes != wantBytes {
				t.Errorf("%s:\n%s, %s; want\n%s, %s", column, gotSchema, gotBytes, wantSchema, wantBytes)
			}
		}
	}
}

// avroOf returns the Avro schema of rows with one column, and the rows' bytes in hex. The text "" stands for NULL.
func avroOf(t *testing.T, schema *arrow.Schema, values []string) (text, rows string) {
	t.Helper()
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	_, kind, err := arrowtype.SpannerType(schema.Field(0))
	if err != nil {
		t.Fatal(err)
	}
	a, err := arrowtype.NewAppender(b.Field(0), kind)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range values {
		if v == "" {
			a.AppendNull()
		} else if err := a.AppendText([]byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	text, err = avroSchema(schema, AvroRecord{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := newAvroWriter(&bytes.Buffer{}, schema, AvroRecord{})
	if err == nil {
		err = w.Write(b.NewRecordBatch())
	}
	if err != nil {
		t.Fatal(err)
	}
	return text, fmt.Sprintf("%x", w.(*avroWriter).rows)
}

package arrowtype

import (
	"math"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	_ "github.com/apache/arrow-go/v18/arrow/extensions" // registers arrow.json and arrow.uuid
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// columnOf makes a column from texts. The text "NULL" becomes NULL.
func columnOf(t *testing.T, kind *spannerpb.Type, timestamps Timestamps, texts ...string) (arrow.Array, error) {
	t.Helper()
	f, err := Field("C", kind, "", true, timestamps)
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewBuilder(memory.DefaultAllocator, f.Type)
	a, err := NewAppender(b, kind)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		if text == "NULL" {
			a.AppendNull()
		} else if err := a.AppendText([]byte(text)); err != nil {
			return nil, err
		}
	}
	return b.NewArray(), nil
}

func arrayOf(code spannerpb.TypeCode) *spannerpb.Type {
	return &spannerpb.Type{Code: spannerpb.TypeCode_ARRAY, ArrayElementType: Scalar(code)}
}

// TestTexts checks that values can be appended to columns as texts, and that NewFormatter returns them in the form in
// which Spanner writes them.
func TestTexts(t *testing.T) {
	for _, c := range []struct {
		kind       *spannerpb.Type
		timestamps Timestamps
		text, want string // an empty want stands for the value of the field text
	}{
		{Scalar(spannerpb.TypeCode_BOOL), 0, "true", ""},
		{Scalar(spannerpb.TypeCode_BOOL), 0, "FALSE", "false"},
		{Scalar(spannerpb.TypeCode_INT64), 0, "-9223372036854775808", ""},
		{Scalar(spannerpb.TypeCode_INT64), 0, "9223372036854775807", ""},
		{Scalar(spannerpb.TypeCode_INT64), 0, "+007", "7"},
		{Scalar(spannerpb.TypeCode_FLOAT32), 0, "0.1", ""},
		{Scalar(spannerpb.TypeCode_FLOAT64), 0, "NaN", ""},
		{Scalar(spannerpb.TypeCode_FLOAT64), 0, "-Infinity", ""},
		{Scalar(spannerpb.TypeCode_FLOAT64), 0, "inf", "Infinity"},
		{Scalar(spannerpb.TypeCode_FLOAT64), 0, "1.7976931348623157e+308", ""},
		{Scalar(spannerpb.TypeCode_FLOAT64), 0, "5e-324", ""},
		{Scalar(spannerpb.TypeCode_FLOAT64), 0, "-0", ""},
		{Scalar(spannerpb.TypeCode_NUMERIC), 0, "0.000", "0"},
		{Scalar(spannerpb.TypeCode_NUMERIC), 0, "-0", "0"},
		{Scalar(spannerpb.TypeCode_NUMERIC), 0, "-0.000000001", ""},
		{Scalar(spannerpb.TypeCode_NUMERIC), 0, "99999999999999999999999999999.999999999", ""},
		{Scalar(spannerpb.TypeCode_NUMERIC), 0, "-99999999999999999999999999999.999999999", ""},
		{Scalar(spannerpb.TypeCode_NUMERIC), 0, "1.5e3", "1500"},
		{Scalar(spannerpb.TypeCode_NUMERIC), 0, "100", ""},
		{Scalar(spannerpb.TypeCode_NUMERIC), 0, ".5", "0.5"},
		{Scalar(spannerpb.TypeCode_NUMERIC), 0, "9557.5000000000", "9557.5"},
		{Scalar(spannerpb.TypeCode_STRING), 0, "é 🐦\n\"", ""},
		{Scalar(spannerpb.TypeCode_BYTES), 0, "AP8=", ""},
		{Scalar(spannerpb.TypeCode_PROTO), 0, "CAE=", ""},
		{Scalar(spannerpb.TypeCode_ENUM), 0, "3", ""},
		{Scalar(spannerpb.TypeCode_DATE), 0, "0001-01-01", ""},
		{Scalar(spannerpb.TypeCode_DATE), 0, "9999-12-31", ""},
		{Scalar(spannerpb.TypeCode_DATE), 0, "2024-02-29", ""},
		{Scalar(spannerpb.TypeCode_TIMESTAMP), 0, "1677-09-21T00:12:43.145224192Z", ""},
		{Scalar(spannerpb.TypeCode_TIMESTAMP), 0, "2262-04-11T23:47:16.854775807Z", ""},
		{Scalar(spannerpb.TypeCode_TIMESTAMP), 0, "1969-12-31T23:59:59.999999999Z", ""},
		{Scalar(spannerpb.TypeCode_TIMESTAMP), 0, "2026-11-22 10:00:00.5+02:00", "2026-11-22T08:00:00.5Z"},
		{Scalar(spannerpb.TypeCode_TIMESTAMP), 0, "2026-11-22 10:00:00", "2026-11-22T10:00:00Z"},
		{Scalar(spannerpb.TypeCode_TIMESTAMP), Microseconds, "0001-01-01T00:00:00.000001999Z", "0001-01-01T00:00:00.000001Z"},
		{Scalar(spannerpb.TypeCode_TIMESTAMP), Microseconds, "9999-12-31T23:59:59.999999Z", ""},
		{Scalar(spannerpb.TypeCode_TIMESTAMP), Text, "0001-01-01T00:00:00Z", ""},
		{Scalar(spannerpb.TypeCode_TIMESTAMP), Text, "9999-12-31T23:59:59.999999999Z", ""},
		{Scalar(spannerpb.TypeCode_JSON), 0, `{"a": [1, null]}`, ""},
		{Scalar(spannerpb.TypeCode_JSON), 0, `null`, ""},
		{Scalar(spannerpb.TypeCode_UUID), 0, "4192bff0-e1e0-43ce-a4db-912808c32493", ""},
		{Scalar(spannerpb.TypeCode_UUID), 0, "{4192BFF0-E1E0-43CE-A4DB-912808C32493}", "4192bff0-e1e0-43ce-a4db-912808c32493"},
		{Scalar(spannerpb.TypeCode_INTERVAL), 0, "P1Y2M3DT4H5M6.789S", ""},
		{Scalar(spannerpb.TypeCode_INTERVAL), 0, "P-1Y-2M-3DT-4H-5M-0.000000001S", ""},
		{Scalar(spannerpb.TypeCode_INTERVAL), 0, "P0Y", ""},
		{Scalar(spannerpb.TypeCode_INTERVAL), 0, "P10000Y3660000DT2562047H47M16.854775807S", ""},
		{Scalar(spannerpb.TypeCode_INTERVAL), 0, "P-10000Y-3660000DT-2562047H-47M-16.854775808S", ""},
		{Scalar(spannerpb.TypeCode_INTERVAL), Text, "PT87840000H", ""},
		{arrayOf(spannerpb.TypeCode_INT64), 0, "[1,null,-300]", ""},
		{arrayOf(spannerpb.TypeCode_INT64), 0, `["9223372036854775807"]`, "[9223372036854775807]"},
		{arrayOf(spannerpb.TypeCode_STRING), 0, `[]`, ""},
		{arrayOf(spannerpb.TypeCode_STRING), 0, ` [ "a\u00e9\ud83d\udc26\n\"\\" , null ] `, `["aé🐦\n\"\\",null]`},
		{arrayOf(spannerpb.TypeCode_FLOAT64), 0, `[1.5,"NaN",null]`, ""},
		{arrayOf(spannerpb.TypeCode_BOOL), 0, `[true,false,null]`, ""},
		{arrayOf(spannerpb.TypeCode_NUMERIC), 0, `["1.5",null]`, ""},
		{arrayOf(spannerpb.TypeCode_JSON), 0, `["{\"a\":1}","null",null,"\"s\""]`, ""},
		{arrayOf(spannerpb.TypeCode_TIMESTAMP), Text, `["0001-01-01T00:00:00Z"]`, ""},
	} {
		column, err := columnOf(t, c.kind, c.timestamps, "NULL", c.text)
		if err != nil {
			t.Errorf("%v %s: %v", c.kind, c.text, err)
			continue
		}
		format, err := NewFormatter(column)
		if err != nil {
			t.Fatal(err)
		}
		want := c.want
		if want == "" {
			want = c.text
		}
		if got := string(format(nil, 1)); got != want || !column.IsNull(0) {
			t.Errorf("%v %s: %s, want %s", c.kind, c.text, got, want)
		}
	}
}

// TestNoTexts checks that texts that are not values of the type give errors, and that nothing panics.
func TestNoTexts(t *testing.T) {
	for code, texts := range map[spannerpb.TypeCode][]string{
		spannerpb.TypeCode_BOOL:    {"", "yes", "2"},
		spannerpb.TypeCode_INT64:   {"", "-", "1.0", "9223372036854775808", "-9223372036854775809", "1e3", " 1", "0x10", "1_000"},
		spannerpb.TypeCode_FLOAT64: {"", "1e309", "0x1p3", "1_0", "1,5"},
		spannerpb.TypeCode_FLOAT32: {"1e39"},
		spannerpb.TypeCode_NUMERIC: {"", ".", "-", "1.0000000001", "100000000000000000000000000000", "1e29", "1e", "1.2.3", "NaN",
			strings.Repeat("9", 100), "1e99999", "1e-10"},
		spannerpb.TypeCode_STRING:    {"\xff"},
		spannerpb.TypeCode_BYTES:     {"?", "A"},
		spannerpb.TypeCode_DATE:      {"", "2026-1-1", "2026-02-29", "0000-01-01", "2026-13-01", "10000-01-01", "2026-11-22T00:00:00Z"},
		spannerpb.TypeCode_TIMESTAMP: {"", "2026-11-22", "2026-11-22T24:00:00Z", "2026-11-22T10:00:00.Z", "2026-11-22T10:00:00.1234567890Z", "2026-11-22T10:00:00+1", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-00:01", "2262-04-11T23:47:16.854775808Z", "1677-09-21T00:12:43.145224191Z", "9999-12-31T00:00:00Z"},
		spannerpb.TypeCode_JSON:      {"", "{", "\xff", "[1,]"},
		spannerpb.TypeCode_UUID:      {"", "x"},
		spannerpb.TypeCode_INTERVAL:  {"", "P", "1Y", "P1", "P1H", "PT1Y", "P1.5Y", "PT2562048H", "P999999999999Y", "P10000Y1M", "P3660001D", "PT2562047H47M16.854775808S"},
	} {
		for _, text := range texts {
			if column, err := columnOf(t, Scalar(code), Nanoseconds, text); err == nil {
				t.Errorf("%v takes %q as %v", code, text, column)
			}
		}
	}
	for _, text := range []string{"", "1", "[", "[1", "[1,", "[1,]", "[1 2]", "[[1]]", `["a]`, "[1]x", "[]]", "[nul]"} {
		if column, err := columnOf(t, arrayOf(spannerpb.TypeCode_INT64), Nanoseconds, text); err == nil {
			t.Errorf("ARRAY<INT64> takes %q as %v", text, column)
		}
	}
}

// TestDates compares the parsing and printing of dates with the standard library. It tests every thirteenth day of
// 10,000 years, so that every day of a month occurs.
func TestDates(t *testing.T) {
	for day := time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 10_000; day = day.AddDate(0, 0, 13) {
		text := day.Format(time.DateOnly)
		days, err := ParseDate([]byte(text))
		if err != nil || int64(days)*secondsPerDay != day.Unix() || string(AppendDate(nil, days)) != text {
			t.Fatalf("%s is day %d, %s, %v", text, days, AppendDate(nil, days), err)
		}
	}
}

// TestTypes checks that types can be parsed from DDL and printed as the same DDL, and that SpannerType finds the type
// of a field.
func TestTypes(t *testing.T) {
	for _, ddl := range []string{"BOOL", "INT64", "FLOAT32", "FLOAT64", "NUMERIC", "STRING(MAX)", "STRING(25)", "BYTES(MAX)", "BYTES(0x10)", "DATE", "TIMESTAMP", "JSON", "UUID",
		"ARRAY<STRING(10)>", "ARRAY<TIMESTAMP>", "ARRAY<FLOAT32>(vector_length=>128)", "ARRAY<FLOAT64>(vector_length => 3)", "PROTO<a.b.C>", "ENUM<a.b.E>", "ARRAY<PROTO<a.b.C>>"} {
		kind, _, err := ParseDDL(ddl)
		if err != nil {
			t.Errorf("%s: %v", ddl, err)
			continue
		}
		f, err := Field("C", kind, ddl, true, Nanoseconds)
		if err != nil {
			t.Errorf("%s: %v", ddl, err)
			continue
		}
		if back, _, err := SpannerType(f); err != nil || back != ddl {
			t.Errorf("%s comes back as %s, %v", ddl, back, err)
		}
		if plain := nearest(arrow.Field{Type: f.Type}); plain == nil {
			t.Errorf("%v has no nearest type", f.Type)
		}
	}
	for _, ddl := range []string{"", "STRING", "STRING(0)", "STRING(x)", "STRINGS", "ARRAY<", "ARRAY<X>", "INT64(3)", "INT64(vector_length=>3)"} {
		if kind, _, err := ParseDDL(ddl); err == nil && ddl != "STRING" {
			t.Errorf("%q is %v", ddl, kind)
		}
	}
	if _, length, _ := ParseDDL("ARRAY<STRING(10)>"); length != 10 {
		t.Errorf("the length of elements is %d", length)
	}
}

// TestFloats checks that floating-point numbers keep all their bits when they are printed and parsed.
func TestFloats(t *testing.T) {
	for _, f := range []float64{0, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64, 1e21, 123456789.125, 0.1} {
		back, err := ParseFloat(AppendFloat(nil, f, 64), 64)
		if err != nil || math.Float64bits(back) != math.Float64bits(f) {
			t.Errorf("%v comes back as %v, %v", f, back, err)
		}
	}
}

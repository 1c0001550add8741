package changestream

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/crowfoot-db/crowfoot/value"
)

// TestJSON checks that appendJSON writes values of each type in the form in which the API encodes them.
func TestJSON(t *testing.T) {
	decimal, _ := value.ParseDecimal("-99999999999999999999999999999.999999999")
	id, _ := value.ParseUUID("6B29FC40-CA47-1067-B31D-00DD010662DA")
	interval, _ := value.ParseInterval("1-2 3 4:5:6.789")
	for _, c := range []struct {
		typ  *value.Type
		v    value.Value
		want string
	}{
		{value.BoolType, value.OfBool(true), `true`},
		{value.Int64Type, value.OfInt64(math.MinInt64), `"-9223372036854775808"`},
		{value.Int64Type, value.Null(value.Int64), `null`},
		{value.Float64Type, value.OfFloat64(1), `1.0`},
		{value.Float64Type, value.OfFloat64(-1.5e300), `-1.5e+300`},
		{value.Float64Type, value.OfFloat64(math.NaN()), `"NaN"`},
		{value.Float64Type, value.OfFloat64(math.Inf(1)), `"Infinity"`},
		{value.Float64Type, value.OfFloat64(math.Inf(-1)), `"-Infinity"`},
		{value.Float32Type, value.OfFloat32(3.14), `3.140000104904175`},
		{value.NumericType, value.OfNumeric(decimal), `"-99999999999999999999999999999.999999999"`},
		{value.StringType, value.OfString("a\"\\/\n\x00é\u2028"), `"a\"\\/\n\u0000é` + "\u2028" + `"`},
		{value.StringType, value.OfString(""), `""`},
		{value.BytesType, value.OfBytes([]byte{0xfb, 0xff, 0}), `"+/8A"`},
		{value.TimestampType, value.OfTimestamp(0, 123_000_000), `"1970-01-01T00:00:00.123Z"`},
		{value.DateType, value.OfDate(-1), `"1969-12-31"`},
		{value.JSONType, value.OfJSON(`{"a":[1,"b"]}`), `"{\"a\":[1,\"b\"]}"`},
		{value.UUIDType, value.OfUUID(id), `"6b29fc40-ca47-1067-b31d-00dd010662da"`},
		{value.IntervalType, value.OfInterval(interval), `"P1Y2M3DT4H5M6.789S"`},
		{value.ArrayOf(value.Int64Type), value.OfArray([]value.Value{value.OfInt64(1), value.Null(value.Int64)}), `["1",null]`},
		{value.ArrayOf(value.StringType), value.OfArray(nil), `[]`},
		{value.ArrayOf(value.BytesType), value.Null(value.Array), `null`},
	} {
		got := string(appendJSON(nil, c.v, c.typ))
		if got != c.want || !json.Valid([]byte(got)) {
			t.Errorf("%s: got %s, want %s", c.typ, got, c.want)
		}
	}
}

// TestTypeJSON checks the JSON of column types in a record.
func TestTypeJSON(t *testing.T) {
	for want, typ := range map[string]*value.Type{
		`{"code":"INT64"}`:   value.Int64Type,
		`{"code":"FLOAT32"}`: value.Float32Type,
		`{"array_element_type":{"code":"STRING"},"code":"ARRAY"}`: value.ArrayOf(value.StringType),
	} {
		if got := string(appendType(nil, typ)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

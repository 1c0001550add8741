package columnar

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/crowfoot-db/crowfoot/value"
)

func text(s string) value.Value { return value.OfString(s) }

func decimal(s string) value.Value {
	d, err := value.ParseDecimal(s)
	if err != nil {
		panic(err)
	}
	return value.OfNumeric(d)
}

// samples are a few values of each type, including the least and greatest values of its Arrow type.
var samples = []struct {
	typ    *value.Type
	key    bool
	values []value.Value
}{
	{value.BoolType, true, []value.Value{value.OfBool(true), value.OfBool(false)}},
	{value.Int64Type, true, []value.Value{value.OfInt64(0), value.OfInt64(math.MaxInt64), value.OfInt64(math.MinInt64), value.OfInt64(-1)}},
	{value.Float64Type, true, []value.Value{value.OfFloat64(-1.5), value.OfFloat64(math.Inf(1))}},
	{value.Float32Type, true, []value.Value{value.OfFloat32(2.5), value.OfFloat32(-math.MaxFloat32)}},
	{value.NumericType, true, []value.Value{decimal("0"), decimal("-0.000000001"), value.OfNumeric(value.MaxDecimal), value.OfNumeric(value.MinDecimal)}},
	{value.StringType, true, []value.Value{text(""), text("a\x00b"), text("ÿ and more")}},
	{value.BytesType, true, []value.Value{value.OfBytes([]byte{}), value.OfBytes([]byte{0, 1, 255})}},
	{value.DateType, true, []value.Value{value.OfDate(0), value.OfDate(-719162), value.OfDate(2932896)}},
	{value.TimestampType, true, []value.Value{value.OfTimestamp(0, 0), value.OfTimestamp(-9_223_372_035, 1), value.OfTimestamp(9_223_372_035, 999_999_999)}},
	{value.UUIDType, true, []value.Value{value.OfUUID([16]byte{1, 2, 15: 3}), value.OfUUID([16]byte{})}},
	{value.JSONType, false, []value.Value{value.OfJSON(`{"a":1}`), value.OfJSON("null")}},
	{value.IntervalType, false, []value.Value{value.OfInterval(value.IntervalValue{Months: -1, Days: 2, Seconds: -3, Nanos: 4}), value.OfInterval(value.IntervalValue{Seconds: 9223372036, Nanos: 854775807}), value.OfInterval(value.IntervalValue{Seconds: -9223372037, Nanos: 145224192})}},
	{value.ArrayOf(value.StringType), false, []value.Value{value.OfArray(nil), value.OfArray([]value.Value{text("x"), value.Null(value.String), text("")})}},
	{value.ArrayOf(value.StructOf(value.Field{Name: "a", Type: value.Int64Type}, value.Field{Name: "b", Type: value.ArrayOf(value.BoolType)})), false, []value.Value{
		value.OfArray([]value.Value{value.Null(value.Struct), value.OfStruct([]value.Value{value.OfInt64(1), value.OfArray([]value.Value{value.OfBool(true)})})}),
	}},
}

// TestRoundTrip checks that values of every type, with NULLs among them, come back from a batch unchanged. It appends
// them as Values, from stored rows and from keys, and repeats the test with the batch's reused memory.
func TestRoundTrip(t *testing.T) {
	for _, s := range samples {
		b := NewBatch([]Column{{Name: "c", Type: s.typ}}, Options{})
		for round := range 3 { // append Values in round 0, stored rows in round 1, keys in round 2
			if round == 2 && !s.key {
				continue
			}
			var want []value.Value
			for i := range 200 {
				v := s.values[i%len(s.values)]
				if i > 7+round && i%5 == 0 {
					v = value.Null(s.typ.Kind)
				}
				want = append(want, v)
				if err := put(b.Columns[0], v, s.typ, round, i%2 == 1); err != nil {
					t.Fatalf("%s: %v", s.typ, err)
				}
			}
			r := b.Record(len(want))
			if got, err := TypeOf(r.Schema().Field(0)); err != nil || !got.Equal(s.typ) {
				t.Errorf("type %s, %v, want %s", got, err, s.typ)
			}
			for i, v := range want {
				got, err := ValueAt(r.Column(0), i, s.typ)
				if err != nil || string(got.AppendWire(nil, s.typ)) != string(v.AppendWire(nil, s.typ)) {
					t.Fatalf("%s, round %d, value %d: %s, %v", s.typ, round, i, r.Column(0).ValueStr(i), err)
				}
			}
			if n := r.Column(0).NullN(); n == 0 || r.NumRows() != 200 {
				t.Errorf("%s: %d NULLs in %d rows", s.typ, n, r.NumRows())
			}
			b.Reset()
		}
	}
}

// put appends v to the column c. The argument way says in which form: 0 is a Value, 1 a stored payload, 2 a key part.
func put(c value.Column, v value.Value, t *value.Type, way int, desc bool) error {
	switch {
	case way == 2:
		return c.AppendKey(append(value.AppendKey(nil, v, desc), "what follows"...), desc)
	case way == 1 && v.IsNull():
		c.AppendNull()
		return nil
	case way == 1:
		return c.AppendRow(value.AppendRow(nil, v, t))
	}
	return c.AppendValue(v)
}

// TestRange checks that a value that does not fit its Arrow type gives an error that names the column, and that no
// value is truncated.
func TestRange(t *testing.T) {
	for _, c := range []struct {
		typ *value.Type
		v   value.Value
	}{
		{value.TimestampType, value.OfTimestamp(253402300799, 0)},
		{value.TimestampType, value.OfTimestamp(-62135596800, 0)},
		{value.IntervalType, value.OfInterval(value.IntervalValue{Seconds: 1e10})},
	} {
		err := NewBatch([]Column{{Name: "c", Type: c.typ}}, Options{}).Columns[0].AppendValue(c.v)
		if r := (*RangeError)(nil); !errors.As(err, &r) || r.Column != "c" {
			t.Errorf("%s: %v", c.typ, err)
		}
	}
}

// TestForeignArrays checks the values or errors that ValueAt returns for arrays whose Arrow type is not the one that a
// Batch makes for the GoogleSQL type.
func TestForeignArrays(t *testing.T) {
	one := func(dt arrow.DataType, json string) arrow.Array {
		a, _, err := array.FromJSON(memory.DefaultAllocator, dt, strings.NewReader(json))
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, c := range []struct {
		dt   arrow.DataType
		json string
		typ  *value.Type
		want string // "" for an error
	}{
		{arrow.PrimitiveTypes.Uint64, "[18446744073709551615]", value.Int64Type, ""},
		{arrow.PrimitiveTypes.Uint64, "[18446744073709551615]", value.NumericType, "18446744073709551615"},
		{arrow.PrimitiveTypes.Int8, "[-1]", value.Int64Type, "-1"},
		{arrow.PrimitiveTypes.Int8, "[-1]", value.Float64Type, "-1"},
		{arrow.PrimitiveTypes.Float64, "[1e300]", value.Float32Type, ""},
		{arrow.PrimitiveTypes.Float64, "[1]", value.Int64Type, ""},
		{arrow.BinaryTypes.String, `["2024-02-29"]`, value.DateType, "2024-02-29"},
		{arrow.BinaryTypes.LargeString, `["1.5"]`, value.NumericType, "1.5"},
		{arrow.BinaryTypes.String, `["1"]`, value.Int64Type, ""},
		{arrow.BinaryTypes.String, `["00112233445566778899aabbccddeeff"]`, value.UUIDType, "00112233-4455-6677-8899-aabbccddeeff"},
		{&arrow.Decimal128Type{Precision: 20, Scale: 12}, `["1.000000000001"]`, value.NumericType, ""},
		{&arrow.Decimal128Type{Precision: 20, Scale: 2}, `["1.25"]`, value.NumericType, "1.25"},
		{arrow.FixedWidthTypes.Timestamp_s, `[1709164801]`, value.TimestampType, "2024-02-29T00:00:01Z"},
		{arrow.FixedWidthTypes.Boolean, "[true]", value.StringType, ""},
	} {
		v, err := ValueAt(one(c.dt, c.json), 0, c.typ)
		got := ""
		if err == nil {
			got = wireText(v, c.typ)
		}
		if got != c.want {
			t.Errorf("%s %s as %s: %q, %v, want %q", c.dt, c.json, c.typ, got, err, c.want)
		}
	}
}

// wireText returns a value as text.
func wireText(v value.Value, t *value.Type) string {
	if t.Kind == value.Float64 {
		return fmt.Sprint(v.AsFloat64())
	}
	return string(v.AppendWire(nil, t)[2:])
}

package tree

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// TestPrint checks that Print writes each node on a line of its own, with its inputs indented below it, and a subquery
// below the node whose expression contains the subquery.
func TestPrint(t *testing.T) {
	c := testCatalog(t)
	k, v := Col{1, "K", value.Int64Type}, Col{2, "V", value.Int64Type}
	sub := &Subquery{T: value.BoolType, Kind: InSubquery, Scan: scanOf(c, "T", 5, "A"), Out: Col{5, "A", value.Int64Type}, In: &Ref{k}}
	s := &Query{
		Hints:  Hints{"B": text("b"), "A": text("a"), "C": text("c")},
		Output: []Output{{"K", k}, {"", v}},
		Scan: &Limit{Count: &Param{value.Int64Type, "n"}, Input: &Filter{
			Cond:  callOf("$and", sub, callOf("$equal", &Ref{v}, &Subquery{T: value.Int64Type, Scan: new(SingleRow), Out: v})),
			Input: scanOf(c, "U", 1, "K", "V")}},
	}
	const want = `Query @{A="a", B="b", C="c"} [K=K#1 INT64, =V#2 INT64]
  Limit @n:INT64
    Filter $and(K#1 IN($1 A#5), $equal(V#2, SCALAR($2 V#2)))
      $1:
        Table T [A#5]
      $2:
        SingleRow
      Table U [K#1, V#2]
`
	for range 20 { // repeated, because the order of iteration over the hints, a map, is random
		if got := Print(s); got != want {
			t.Fatalf("printed\n%s\nwant\n%s", got, want)
		}
	}
}

// TestFormatLiteral checks the texts of constants of every type. Constants of different types must have different
// texts.
func TestFormatLiteral(t *testing.T) {
	numeric, err := value.FromText("1.50", value.NumericType)
	if err != nil {
		t.Fatal(err)
	}
	interval, ok := value.NewInterval(14, 3, 5, 0)
	if !ok {
		t.Fatal("no interval")
	}
	pair := value.StructOf(value.Field{Name: "a", Type: value.Int64Type}, value.Field{Name: "b", Type: value.StringType})
	enum := &value.Type{Kind: value.Enum, Name: "p.Kind"}
	message := &value.Type{Kind: value.Proto, Name: "p.Message"}
	texts := map[string]bool{}
	for _, test := range []struct {
		t    *value.Type
		v    value.Value
		want string
	}{
		{value.BoolType, value.OfBool(true), "TRUE"},
		{value.BoolType, value.OfBool(false), "FALSE"},
		{value.Int64Type, value.OfInt64(math.MinInt64), "-9223372036854775808"},
		{value.Int64Type, value.Null(value.Int64), "NULL:INT64"},
		{value.StringType, value.Null(value.String), "NULL:STRING"},
		{value.Float64Type, value.OfFloat64(1), "FLOAT64 1"},
		{value.Float64Type, value.OfFloat64(math.NaN()), "FLOAT64 NaN"},
		{value.Float64Type, value.OfFloat64(math.Inf(-1)), "FLOAT64 -Inf"},
		{value.Float32Type, value.OfFloat32(0.1), "FLOAT32 0.1"},
		{value.StringType, value.OfString("a\"\n\x00"), `"a\"\n\x00"`},
		{value.BytesType, value.OfBytes([]byte{0, 255}), "BYTES AP8="},
		{message, value.OfProto([]byte{8, 1}), "PROTO<p.Message> CAE="},
		{enum, value.OfEnum(3), "ENUM<p.Kind> 3"},
		{value.DateType, value.OfDate(-1), "DATE 1969-12-31"},
		{value.TimestampType, value.OfTime(time.Date(2026, 8, 1, 2, 3, 4, 5, time.UTC)), "TIMESTAMP 2026-08-01T02:03:04.000000005Z"},
		{value.NumericType, numeric, "NUMERIC 1.5"},
		{value.JSONType, value.OfJSON(`{"a":1}`), `JSON {"a":1}`},
		{value.IntervalType, value.OfInterval(interval), "INTERVAL P1Y2M3DT5S"},
		{value.UUIDType, value.OfUUID([16]byte{1}), "UUID 01000000-0000-0000-0000-000000000000"},
		{value.ArrayOf(value.StringType), value.OfArray([]value.Value{value.OfString("a, b"), value.Null(value.String)}), `["a, b", NULL:STRING]`},
		{value.ArrayOf(value.Int64Type), value.OfArray(nil), "[]"},
		{pair, value.OfStruct([]value.Value{value.OfInt64(1), value.OfString("x")}), `STRUCT(1, "x")`},
	} {
		got := FormatLiteral(&Literal{test.t, test.v})
		if got != test.want || texts[got] {
			t.Errorf("%s: %s (twice: %t); want %s", test.t, got, texts[got], test.want)
		}
		texts[got] = true
	}
}

// TestCols checks which columns each kind of scan returns, and their order.
func TestCols(t *testing.T) {
	a, b, d, e := Col{ID: 1}, Col{ID: 2}, Col{ID: 3}, Col{ID: 4}
	left, right := &WithRef{Out: []Col{a}}, &WithRef{Out: []Col{b, d}}
	for _, test := range []struct {
		s    Scan
		want []Col
	}{
		{new(SingleRow), nil},
		{left, []Col{a}},
		{&Filter{Input: right}, []Col{b, d}},
		{&OrderBy{Input: right}, []Col{b, d}},
		{&Limit{Input: right}, []Col{b, d}},
		{&Sample{Input: right}, []Col{b, d}},
		{&Project{Input: right, Out: []Col{e, b}}, []Col{e, b}},
		{&ViewScan{Input: right, Out: []Col{d}}, []Col{d}},
		{&SetOp{Inputs: []Scan{left, right}, Out: []Col{e}}, []Col{e}},
		{&With{Defs: []WithDef{{Scan: left}}, Body: right}, []Col{b, d}},
		{&Join{Left: right, Right: left}, []Col{b, d, a}},
		{&ArrayScan{Elems: []Col{b, d}}, []Col{b, d}},
		{&ArrayScan{Input: left, Elems: []Col{b}, Offset: &d}, []Col{a, b, d}},
		{&Aggregate{Input: left, GroupBy: []Computed{{Col: b}}, Aggs: []AggCall{{Col: d, Failure: &e}}, Grouping: []GroupingCall{{Col: a}}}, []Col{b, d, e, a}},
	} {
		if got := test.s.Cols(); !slices.Equal(got, test.want) {
			t.Errorf("%T: %v; want %v", test.s, got, test.want)
		}
	}
	join := &Join{Left: &WithRef{Out: make([]Col, 1, 4)}, Right: left}
	join.Cols()[0].ID = 99
	if got := join.Left.Cols()[0].ID; got == 99 {
		t.Error("the columns of a join share the memory of its left side")
	}
}

package resultset

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// compare checks that Unmarshal decodes data to the same message as package proto, or returns the same error. The
// messages must be equal in every respect, including details that proto.Equal ignores: whether a slice is nil or empty,
// and which message holds which unknown fields.
func compare(t *testing.T, data []byte) {
	t.Helper()
	kept := bytes.Clone(data)
	got, want := dirty(), dirty()
	gotErr, wantErr := Unmarshal(data, got), proto.Unmarshal(data, want)
	if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) {
		t.Fatalf("error %v, want %v\nof %x", gotErr, wantErr, data)
	}
	if !bytes.Equal(data, kept) {
		t.Fatalf("the message is changed: %x", kept)
	}
	clear(data) // the decoded messages must not change when gRPC reuses its buffer
	if wantErr != nil {
		return
	}
	if !proto.Equal(got, want) {
		t.Fatalf("decoded %v\nwant    %v\nof %x", got, want, kept)
	}
	if len(got.Values) != len(want.Values) || (got.Values == nil) != (want.Values == nil) {
		t.Fatalf("%d values, want %d", len(got.Values), len(want.Values))
	}
	for i := range got.Values {
		if !same(got.Values[i], want.Values[i]) {
			t.Fatalf("value %d is %v, want %v", i, got.Values[i], want.Values[i])
		}
	}
}

// dirty returns a message whose fields are already set. Decoding another message into it must remove the old values.
func dirty() *spannerpb.PartialResultSet {
	return &spannerpb.PartialResultSet{Last: true, ResumeToken: []byte("old"), Values: []*structpb.Value{structpb.NewBoolValue(true)}}
}

// same reports whether two values are equal as Go structs, including unknown fields.
func same(a, b *structpb.Value) bool {
	if reflect.TypeOf(a.Kind) != reflect.TypeOf(b.Kind) || !bytes.Equal(a.ProtoReflect().GetUnknown(), b.ProtoReflect().GetUnknown()) {
		return false
	}
	if _, ok := a.Kind.(*structpb.Value_ListValue); !ok {
		return proto.Equal(a, b)
	}
	x, y := a.GetListValue(), b.GetListValue()
	if (x == nil) != (y == nil) || (x.GetValues() == nil) != (y.GetValues() == nil) || len(x.GetValues()) != len(y.GetValues()) {
		return false
	}
	for i := range x.GetValues() {
		if !same(x.Values[i], y.Values[i]) {
			return false
		}
	}
	return true
}

func encode(t testing.TB, m proto.Message) []byte {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// randomValue mostly returns a value such as Spanner sends, and sometimes one that Spanner never sends.
func randomValue(r *rand.Rand, depth int) *structpb.Value {
	switch n := r.IntN(20); {
	case n < 2:
		return structpb.NewNullValue()
	case n < 4:
		return structpb.NewBoolValue(r.IntN(2) == 0)
	case n < 6:
		return structpb.NewNumberValue([]float64{0, 1.5, math.NaN(), math.Inf(-1), math.Copysign(0, -1), math.MaxFloat64}[r.IntN(6)])
	case n < 9 && depth < 5:
		v := &structpb.Value{Kind: &structpb.Value_ListValue{ListValue: &structpb.ListValue{}}}
		for range r.IntN(6) {
			v.GetListValue().Values = append(v.GetListValue().Values, randomValue(r, depth+1))
		}
		return v
	case n == 9 && depth < 5 && r.IntN(20) == 0:
		return structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"a": randomValue(r, depth+1), "": randomValue(r, depth+1)}})
	case n == 10 && r.IntN(100) == 0:
		return &structpb.Value{}
	}
	return structpb.NewStringValue(strings.Repeat([]string{"a", "é", "日本", "\x00"}[r.IntN(4)], r.IntN([]int{2, 10, 300, 3000}[r.IntN(4)])))
}

// randomMessage returns a message with random rows and some of the message's other fields.
func randomMessage(r *rand.Rand) *spannerpb.PartialResultSet {
	m := &spannerpb.PartialResultSet{ChunkedValue: r.IntN(4) == 0, Last: r.IntN(4) == 0}
	for range r.IntN([]int{1, 3, 40, 300}[r.IntN(4)]) {
		m.Values = append(m.Values, randomValue(r, 0))
	}
	if r.IntN(3) == 0 {
		m.ResumeToken = []byte("token")
	}
	if r.IntN(4) == 0 {
		m.Metadata = &spannerpb.ResultSetMetadata{RowType: &spannerpb.StructType{Fields: []*spannerpb.StructType_Field{
			{Name: "Id", Type: &spannerpb.Type{Code: spannerpb.TypeCode_INT64}},
		}}}
	}
	if r.IntN(4) == 0 {
		m.Stats = &spannerpb.ResultSetStats{QueryStats: &structpb.Struct{Fields: map[string]*structpb.Value{"rows": structpb.NewStringValue("1")}}}
	}
	if r.IntN(4) == 0 {
		m.PrecommitToken = &spannerpb.MultiplexedSessionPrecommitToken{PrecommitToken: []byte("p"), SeqNum: 3}
	}
	return m
}

// TestRandomMessages checks that Unmarshal gives the same results as package proto for random messages, and for random
// messages in which bytes were changed or from which bytes were cut off.
func TestRandomMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		data := encode(t, randomMessage(r))
		compare(t, bytes.Clone(data))
		for range 5 {
			if broken := bytes.Clone(data); len(broken) > 0 {
				broken[r.IntN(len(broken))] = byte(r.IntN(256))
				compare(t, broken)
				compare(t, bytes.Clone(data[:r.IntN(len(data))]))
			}
		}
	}
}

// The tags of fields: the field number times 8, plus the wire type
// (https://protobuf.dev/programming-guides/encoding/#structure).
const (
	valuesTag   = valuesField<<3 | byte(protowire.BytesType)
	elementsTag = 1<<3 | byte(protowire.BytesType) // the field named values of the message ListValue

	nullTag    = 1<<3 | byte(protowire.VarintType) // this and the following are fields of the message Value
	numberTag  = 2<<3 | byte(protowire.Fixed64Type)
	stringTag  = 3<<3 | byte(protowire.BytesType)
	booleanTag = 4<<3 | byte(protowire.VarintType)
	listTag    = 6<<3 | byte(protowire.BytesType)
)

// maxDepth is the nesting depth up to which protovalue decodes lists itself instead of leaving them to package proto.
const maxDepth = 64

// unusual returns malformed messages, and valid messages that Spanner never sends, by name.
func unusual(t testing.TB) map[string][]byte {
	value := func(fields ...byte) []byte { return protowire.AppendBytes([]byte{valuesTag}, fields) }
	nested := func(depth int) []byte {
		var v []byte
		for range depth {
			v = protowire.AppendBytes([]byte{listTag}, protowire.AppendBytes([]byte{elementsTag}, v))
		}
		return protowire.AppendBytes([]byte{valuesTag}, v)
	}
	row := encode(t, &spannerpb.PartialResultSet{Values: []*structpb.Value{structpb.NewStringValue("a"), structpb.NewBoolValue(true)}})
	metadata := encode(t, &spannerpb.PartialResultSet{Metadata: &spannerpb.ResultSetMetadata{RowType: &spannerpb.StructType{}}})
	return map[string][]byte{
		"nothing":               {},
		"a tag alone":           {valuesTag},
		"no kind":               value(),
		"a kind without value":  value(listTag),
		"two kinds":             value(stringTag, 1, 'a', booleanTag, 1),
		"two lists":             value(listTag, 4, elementsTag, 2, nullTag, 0, listTag, 4, elementsTag, 2, nullTag, 0),
		"an empty list":         value(listTag, 0),
		"an element of no kind": value(listTag, 2, elementsTag, 0),
		"another NULL":          value(nullTag, 7),
		"a long NULL":           value(nullTag, 0x80, 0),
		"a long boolean":        value(booleanTag, 0x80, 0x80, 1),
		"boolean 2":             value(booleanTag, 2),
		"a long length":         {valuesTag, 0x84, 0x00, stringTag, 0x82, 0x00, 'h'},
		"a longer length":       {valuesTag, 0x85, 0x80, 0x00, stringTag, 0x82, 0x00, 'h', 'i'},
		"a huge length":         {valuesTag, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"a length over 64 bits": {valuesTag, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1},
		"a negative length":     {valuesTag, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f},
		"a short number":        value(numberTag, 1, 2, 3),
		"invalid UTF-8":         value(stringTag, 1, 0xff),
		"an unknown field":      append(bytes.Clone(row), 0xfa, 0x3f, 1, 'x'),
		"unknown in a value":    value(stringTag, 1, 'a', 0x3a, 1, 'x'),
		"a wire type":           append(bytes.Clone(row), 2<<3, 1),
		"a long tag":            append([]byte{0x92, 0x00, 4, stringTag, 1, 'b', 0}, row...),
		"a long tag of a value": append([]byte{0x92, 0x00, 3, stringTag, 1, 'b'}, row...),
		"field 0":               append(bytes.Clone(row), 0, 1),
		"a group":               append(bytes.Clone(row), 0x7b, 0x08, 1, 0x7c),
		"a group of values":     append(bytes.Clone(row), 0x13, 0x14),
		"an end of a group":     append(bytes.Clone(row), 0x14),
		"open groups":           bytes.Repeat([]byte{0x7b}, 20_000),
		"metadata in between":   append(append(bytes.Clone(row), metadata...), row...),
		"metadata twice":        append(append(bytes.Clone(metadata), row...), metadata...),
		"broken metadata":       append(bytes.Clone(row), 0x0a, 2, 0x0a, 9),
		"as deep as Spanner":    nested(30),
		"as deep as maxDepth":   nested(maxDepth),
		"deeper":                nested(maxDepth + 1),
		"as deep as protobuf":   nested(4_999),
		"too deep":              nested(5_001),
		"far too deep":          nested(8_000),
	}
}

func TestUnusual(t *testing.T) {
	for name, data := range unusual(t) {
		t.Run(name, func(t *testing.T) { compare(t, data) })
	}
}

// TestHugeValues checks that Unmarshal gives the same results as package proto for a value of 5 MB, and for a list with
// many elements.
func TestHugeValues(t *testing.T) {
	long := structpb.NewStringValue(strings.Repeat("long ", 1<<20))
	compare(t, encode(t, &spannerpb.PartialResultSet{Values: []*structpb.Value{structpb.NewStringValue("a"), long, structpb.NewStringValue("b")}}))
	list := &structpb.ListValue{}
	for i := range 200_000 {
		list.Values = append(list.Values, structpb.NewStringValue(fmt.Sprint(i)))
	}
	compare(t, encode(t, &spannerpb.PartialResultSet{Values: []*structpb.Value{structpb.NewListValue(list), long}}))
}

// TestAppend checks that appending to a list does not overwrite the list's neighbour in memory. Clients append to a
// list to join its chunks.
func TestAppend(t *testing.T) {
	m := &spannerpb.PartialResultSet{}
	for i := range 3 {
		m.Values = append(m.Values, structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewNumberValue(float64(i))}}))
	}
	var got spannerpb.PartialResultSet
	if err := Unmarshal(encode(t, m), &got); err != nil {
		t.Fatal(err)
	}
	first := got.Values[0].GetListValue()
	first.Values = append(first.Values, structpb.NewStringValue("more"))
	if n := got.Values[1].GetListValue().Values[0].GetNumberValue(); n != 1 {
		t.Errorf("the neighbour's element is %v", n)
	}
}

// TestKept checks that keeping one string or value does not keep the whole message in memory.
func TestKept(t *testing.T) {
	m := new(spannerpb.PartialResultSet)
	for i := range 8000 {
		m.Values = append(m.Values, structpb.NewStringValue(fmt.Sprintf("%d %s", i, strings.Repeat("x", 100))))
	}
	data := encode(t, m)
	var texts []string
	var values []*structpb.Value
	before := heap()
	for range 200 {
		var got spannerpb.PartialResultSet
		if err := Unmarshal(data, &got); err != nil {
			t.Fatal(err)
		}
		texts, values = append(texts, got.Values[1].GetStringValue()), append(values, got.Values[7000])
	}
	perMessage := (heap() - before) / 200
	if perMessage > 16<<10 { // room for two blocks and a segment of values; a whole message takes two megabytes
		t.Errorf("a string and a value keep %d bytes of their message", perMessage)
	}
	runtime.KeepAlive(texts)
	runtime.KeepAlive(values)
}

func heap() uint64 {
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}

// TestAllocations checks that decoding rows of strings takes at most one allocation per row. Package proto takes three
// for each value.
func TestAllocations(t *testing.T) {
	data := encode(t, customers(1000))
	allocations := testing.AllocsPerRun(10, func() {
		if err := Unmarshal(data, new(spannerpb.PartialResultSet)); err != nil {
			t.Fatal(err)
		}
	})
	if allocations > 1000 {
		t.Errorf("%.0f allocations for 1000 rows", allocations)
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, data := range unusual(f) {
		if len(data) < 1000 {
			f.Add(data)
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		if data := encode(f, randomMessage(r)); len(data) < 2000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) { compare(t, bytes.Clone(data)) })
}

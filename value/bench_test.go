package value

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// benchValues has a typical value of most types that a column may have, one for each type.
var benchValues = []struct {
	t *Type
	v Value
}{
	{BoolType, OfBool(true)},
	{Int64Type, OfInt64(1234567890123)},
	{Float64Type, OfFloat64(1234.5678)},
	{Float32Type, OfFloat32(12.5)},
	{TimestampType, OfTimestamp(1_700_000_000, 123_456_000)},
	{DateType, OfDate(19_700)},
	{StringType, OfString(strings.Repeat("0123456789", 10))},
	{BytesType, OfBytes(make([]byte, 100))},
	{NumericType, OfNumeric(DecimalFromInt64(12345))},
	{UUIDType, OfUUID([16]byte{1, 2, 3})},
	{JSONType, OfJSON(`{"a":1,"b":[true,null]}`)},
	{ArrayOf(Int64Type), OfArray([]Value{OfInt64(1), Null(Int64), OfInt64(300)})},
}

func isKeyType(t *Type) bool { return t.Kind != JSON && t.Kind != Array }

// TestReadPathDoesNotAllocate checks that the read path encodes and decodes values without allocating memory. The one
// exception is the memory to which a decoded Value points, for a STRING, BYTES or UUID.
func TestReadPathDoesNotAllocate(t *testing.T) {
	buf := make([]byte, 0, 4096)
	none := func(what string, typ *Type, most float64, f func()) {
		t.Helper()
		if n := testing.AllocsPerRun(100, f); n > most {
			t.Errorf("%s of %s allocates %v times", what, typ, n)
		}
	}
	for _, bench := range benchValues {
		typ, v := bench.t, bench.v
		row := AppendRow(nil, v, typ)
		none("AppendRow", typ, 0, func() { AppendRow(buf, v, typ) })
		none("RowToWire", typ, 0, func() { RowToWire(buf, row, typ) })
		none("RowToWireField", typ, 0, func() { RowToWireField(buf, 0x12, row, typ) })
		none("AppendWire", typ, 0, func() { v.AppendWire(buf, typ) })
		if !isKeyType(typ) {
			continue
		}
		var kept float64
		if typ.Kind == String || typ.Kind == Bytes || typ.Kind == UUID {
			kept = 1
		}
		for _, desc := range []bool{false, true} {
			key := AppendKey(nil, v, desc)
			none("AppendKey", typ, 0, func() { AppendKey(buf, v, desc) })
			none("KeyToWire", typ, 0, func() { KeyToWire(buf, key, typ, desc) })
			none("SkipKey", typ, 0, func() { _, _ = SkipKey(key, typ, desc) })
			none("DecodeKey", typ, kept, func() { _, _, _ = DecodeKey(key, typ, desc) })
		}
		none("DecodeRow", typ, kept, func() { _, _ = DecodeRow(row, typ) })
	}
}

func BenchmarkCodings(b *testing.B) {
	buf := make([]byte, 0, 4096)
	for _, bench := range benchValues {
		typ, v := bench.t, bench.v
		run := func(what string, f func()) {
			b.Run(what+"/"+typ.String(), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					f()
				}
			})
		}
		row := AppendRow(nil, v, typ)
		run("AppendRow", func() { AppendRow(buf, v, typ) })
		run("RowToWire", func() { RowToWireField(buf, 0x12, row, typ) })
		run("AppendWire", func() { v.AppendWireField(buf, 0x12, typ) })
		run("DecodeRow", func() { _, _ = DecodeRow(row, typ) })
		if isKeyType(typ) {
			key := AppendKey(nil, v, false)
			run("AppendKey", func() { AppendKey(buf, v, false) })
			run("KeyToWire", func() { KeyToWireField(buf, 0x12, key, typ, false) })
			run("DecodeKey", func() { _, _, _ = DecodeKey(key, typ, false) })
		}
	}
}

func BenchmarkCompare(b *testing.B) {
	for _, bench := range benchValues {
		b.Run(bench.t.String(), func(b *testing.B) {
			for b.Loop() {
				Compare(bench.v, bench.v, bench.t)
			}
		})
	}
}

func BenchmarkDecimal(b *testing.B) {
	small, great := DecimalFromInt64(12345), MaxDecimal
	b.Run("Mul", func(b *testing.B) {
		for b.Loop() {
			small.Mul(small)
		}
	})
	b.Run("Div", func(b *testing.B) {
		for b.Loop() {
			small.Div(small)
		}
	})
	b.Run("MulGreat", func(b *testing.B) {
		for b.Loop() {
			great.Mul(small)
		}
	})
	b.Run("Parse", func(b *testing.B) {
		for b.Loop() {
			_, _ = ParseDecimal("12345.678")
		}
	})
}

func BenchmarkParseJSON(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 1))
	text := []byte{'['}
	for i := range 100 {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(text, `{"name":`...)
		text = AppendJSONString(text, randomString(r))
		text = append(text, `, "id": 12345, "price": 1.25, "tags": ["a", "b"]}`...)
	}
	text = append(text, ']')
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseJSON(string(text)); err != nil {
			b.Fatal(err)
		}
	}
}

package value

import (
	"math/rand/v2"
	"testing"
)

// TestDataSize checks the sizes that Spanner's documentation gives, and the size of the NUMERIC 0.
func TestDataSize(t *testing.T) {
	for _, c := range []struct {
		typ  *Type
		v    Value
		want int
	}{
		{BoolType, OfBool(false), 1},
		{Int64Type, OfInt64(0), 8},
		{Float64Type, OfFloat64(1), 8},
		{Float32Type, OfFloat32(1), 4},
		{DateType, OfDate(0), 4},
		{TimestampType, OfTimestamp(0, 0), 12},
		{StringType, OfString("héllo"), 6},
		{BytesType, OfBytes(make([]byte, 10)), 10},
		{JSONType, OfJSON(`{"a":1}`), 7},
		{UUIDType, OfUUID([16]byte{}), 16},
		{NumericType, OfNumeric(Decimal{}), 1},
		{NumericType, OfNumeric(MaxDecimal), 22},
		{ArrayOf(Int64Type), OfArray([]Value{OfInt64(1), Null(Int64), OfInt64(3)}), 16},
		{StructOf(Field{"a", StringType}, Field{"b", BoolType}), OfStruct([]Value{OfString("ab"), OfBool(true)}), 3},
		{StringType, Null(String), 0},
	} {
		if got := c.v.DataSize(c.typ); got != c.want {
			t.Errorf("%s: %d bytes, want %d", c.typ, got, c.want)
		}
	}
}

// TestDataSizeOfCodings checks that RowDataSize, and for scalars WireDataSize, give the same data size as the value
// itself.
func TestDataSizeOfCodings(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		for range 1000 {
			typ := rowTypes[r.IntN(len(rowTypes))]
			v := randomValue(r, typ)
			want := v.DataSize(typ)
			if !v.IsNull() {
				if got := RowDataSize(AppendRow(nil, v, typ), typ); got != want {
					t.Fatalf("%s: stored, it is %d bytes, want %d", typ, got, want)
				}
			}
			if typ.Kind == Array || typ.Kind == Struct {
				continue
			}
			if got := WireDataSize(v.AppendWireField(nil, 2<<3|2, typ), typ); got != want {
				t.Fatalf("%s: on the wire, it is %d bytes, want %d", typ, got, want)
			}
		}
	})
}

// FuzzRowDataSize computes the data size of damaged payloads and checks that this does not panic.
func FuzzRowDataSize(f *testing.F) {
	f.Add([]byte{3, 2, 0, 9, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200})
	f.Fuzz(func(_ *testing.T, payload []byte) {
		for _, typ := range rowTypes {
			RowDataSize(payload, typ)
		}
	})
}

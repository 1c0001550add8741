package value

import (
	"math/rand/v2"
	"testing"
)

// TestVectorBuilder appends random values of each type as values, stored payloads and key parts. Then it checks the
// values of the vector with At, with Put, and in wire form.
func TestVectorBuilder(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, typ := range []*Type{BoolType, Int64Type, Float64Type, Float32Type, DateType, TimestampType, StringType, BytesType, JSONType, NumericType, UUIDType, IntervalType, ArrayOf(Int64Type), {Kind: Proto, Name: "shop.Item"}} {
		b := NewVectorBuilder(typ)
		for range 50 {
			b.Reset()
			var want []Value
			for range r.IntN(20) {
				v := randomValue(r, typ)
				if r.IntN(4) == 0 {
					v = Null(typ.Kind)
				}
				want = append(want, v)
				appendAny(t, r, b, v, typ)
			}
			comparePut(t, r, b.Vector(), want, typ)
		}
	}
}

// appendAny appends v as a value, as a stored payload, or as a part of a key.
func appendAny(t *testing.T, r *rand.Rand, b *VectorBuilder, v Value, typ *Type) {
	var err error
	keyed := typ.Kind != JSON && typ.Kind != Array && typ.Kind != Interval && typ.Kind != Proto
	switch way := r.IntN(3); {
	case way == 0 && v.IsNull():
		b.AppendNull()
	case way == 0:
		err = b.AppendRow(AppendRow(nil, v, typ))
	case way == 1 && keyed:
		desc := r.IntN(2) == 0
		err = b.AppendKey(AppendKey(nil, v, desc), desc)
	default:
		err = b.AppendValue(v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func comparePut(t *testing.T, r *rand.Rand, v *Vector, want []Value, typ *Type) {
	var rows []int32
	for i := range want {
		if got := v.At(i); !Equal(got, want[i], typ) || got.Kind() != typ.Kind || v.IsNull(i) != want[i].IsNull() {
			t.Fatalf("%s %d: %v, want %v", typ, i, got, want[i])
		}
		const tag = 2<<3 | 2
		wire, size := AppendVectorsWire(nil, tag, []*Vector{v}, i)
		value := v.At(i)
		if most := VectorsWireSize([]*Vector{v}, i); string(wire) != string(value.AppendWireField(nil, tag, typ)) || size != value.DataSize(typ) || len(wire) > most {
			t.Fatalf("%s %d: %q of %d bytes of data, at most %d, want %q of %d", typ, i, wire, size, most, value.AppendWireField(nil, tag, typ), value.DataSize(typ))
		}
		if r.IntN(2) == 0 {
			rows = append(rows, int32(i))
		}
	}
	dst := make([]Value, 2*len(rows)+1)
	v.Put(dst, 2, rows)
	for k, i := range rows {
		if !Equal(dst[2*k], want[i], typ) || dst[2*k].Kind() != typ.Kind {
			t.Fatalf("%s %d: %v put, want %v", typ, i, dst[2*k], want[i])
		}
	}
}

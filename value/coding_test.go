package value

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"math"
	"math/rand/v2"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// mustEqual fails the test unless got and want are equal as in GROUP BY (see Equal) and got has the kind of typ.
func mustEqual(t *testing.T, typ *Type, got, want Value) {
	t.Helper()
	if !Equal(got, want, typ) || got.Kind() != typ.Kind {
		t.Fatalf("%s: got %x, want %x", typ, got.AppendWire(nil, typ), want.AppendWire(nil, typ))
	}
}

func TestKeyOrderAndRoundTrip(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		for range 3000 {
			typ, desc := keyTypes[r.IntN(len(keyTypes))], r.IntN(2) == 0
			a, b := randomValue(r, typ), randomValue(r, typ)
			keyA, keyB := AppendKey([]byte("prefix"), a, desc), AppendKey([]byte("prefix"), b, desc)
			order := Compare(a, b, typ)
			if desc {
				order = -order
			}
			if got := bytes.Compare(keyA, keyB); got != order {
				t.Fatalf("%s desc=%v: keys %x and %x compare %d, values %d", typ, desc, keyA, keyB, got, order)
			}
			part := keyA[len("prefix"):]
			if part[0] == 0 || part[0] == 0xFF {
				t.Fatalf("%s: key part begins with %x", typ, part[0])
			}
			v, rest, err := DecodeKey(append(part, "rest"...), typ, desc)
			if err != nil || string(rest) != "rest" {
				t.Fatalf("%s desc=%v %x: rest %q, error %v", typ, desc, part, rest, err)
			}
			mustEqual(t, typ, v, a)
			if rest, err = SkipKey(append(part, "rest"...), typ, desc); err != nil || string(rest) != "rest" {
				t.Fatalf("%s desc=%v %x: skipped to %q, error %v", typ, desc, part, rest, err)
			}
			wire, rest := KeyToWire(nil, append(part, "rest"...), typ, desc)
			if want := v.AppendWire(nil, typ); !bytes.Equal(wire, want) || string(rest) != "rest" {
				t.Fatalf("%s desc=%v %x: wire %x, want %x, rest %q", typ, desc, part, wire, want, rest)
			}
		}
	})
}

func TestCompositeKeyOrder(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		for range 1000 {
			var keyA, keyB []byte
			order := 0
			for range 1 + r.IntN(4) {
				typ, desc := keyTypes[r.IntN(len(keyTypes))], r.IntN(2) == 0
				a, b := randomValue(r, typ), randomValue(r, typ)
				if r.IntN(2) == 0 {
					b = a
				}
				c := Compare(a, b, typ)
				if desc {
					c = -c
				}
				order = cmp.Or(order, c)
				keyA, keyB = AppendKey(keyA, a, desc), AppendKey(keyB, b, desc)
			}
			// Package table ends the key of a row with the byte 00. The key of a child row begins with the key parts
			// of its parent row, and the next byte is not 00. If row A sorts before row B, the child rows of A must
			// also sort before B.
			if got := bytes.Compare(append(keyA, 0), append(keyB, 0)); got != order {
				t.Fatalf("%x and %x compare %d, values %d", keyA, keyB, got, order)
			}
			if order < 0 && bytes.Compare(append(keyA, 1, 2, 3), append(keyB, 0)) >= 0 {
				t.Fatalf("child of %x does not come before %x", keyA, keyB)
			}
		}
	})
}

func TestRowRoundTrip(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		for range 2000 {
			typ := rowTypes[r.IntN(len(rowTypes))]
			v := randomValue(r, typ)
			if v.IsNull() {
				continue
			}
			payload := AppendRow(nil, v, typ)
			if len(payload) != RowSize(v, typ) {
				t.Fatalf("%s: payload %x, announced as %d bytes", typ, payload, RowSize(v, typ))
			}
			got, err := DecodeRow(payload, typ)
			if err != nil {
				t.Fatal(err)
			}
			mustEqual(t, typ, got, v)
			want := v.AppendWire(nil, typ)
			if wire := RowToWire(nil, payload, typ); !bytes.Equal(wire, want) {
				t.Fatalf("%s %x: wire %x, want %x", typ, payload, wire, want)
			}
			field := RowToWireField([]byte("before"), 0x12, payload, typ)
			if wantField := v.AppendWireField([]byte("before"), 0x12, typ); !bytes.Equal(field, wantField) {
				t.Fatalf("%s %x: field %x, want %x", typ, payload, field, wantField)
			}
		}
	})
}

func TestWireRoundTrip(t *testing.T) {
	seeds(t, func(t *testing.T, r *rand.Rand) {
		for range 2000 {
			typ := rowTypes[r.IntN(len(rowTypes))]
			v := randomValue(r, typ)
			var pv structpb.Value
			if err := proto.Unmarshal(v.AppendWire(nil, typ), &pv); err != nil {
				t.Fatal(err)
			}
			got, err := FromWire(&pv, typ)
			if err != nil {
				t.Fatalf("%s %v: %v", typ, &pv, err)
			}
			mustEqual(t, typ, got, v)
			// The tag 0x0a makes the field one of the values in a ListValue.
			var list structpb.ListValue
			if err := proto.Unmarshal(NullField(v.AppendWireField(nil, 0x0a, typ), 0x0a), &list); err != nil {
				t.Fatal(err)
			}
			if !proto.Equal(&list, &structpb.ListValue{Values: []*structpb.Value{&pv, structpb.NewNullValue()}}) {
				t.Fatalf("%s: list %v, want %v", typ, &list, &pv)
			}
		}
	})
}

func TestEqualValuesHashAlike(t *testing.T) {
	seed := maphash.MakeSeed()
	hash := func(v Value, typ *Type) uint64 {
		var h maphash.Hash
		h.SetSeed(seed)
		Hash(&h, v, typ)
		return h.Sum64()
	}
	seeds(t, func(t *testing.T, r *rand.Rand) {
		for range 2000 {
			typ := rowTypes[r.IntN(len(rowTypes))]
			a, b := randomValue(r, typ), randomValue(r, typ)
			if equal := Equal(a, b, typ); equal != (Compare(a, b, typ) == 0) || equal != (Compare(b, a, typ) == 0) {
				t.Fatalf("%s: Equal is %v, Compare %d", typ, equal, Compare(a, b, typ))
			}
			if Equal(a, b, typ) != (hash(a, typ) == hash(b, typ)) {
				t.Fatalf("%s: Equal is %v, hashes %x %x", typ, Equal(a, b, typ), hash(a, typ), hash(b, typ))
			}
		}
	})
	month, days := OfInterval(IntervalValue{Months: 1}), OfInterval(IntervalValue{Days: 30})
	if !Equal(month, days, IntervalType) || hash(month, IntervalType) != hash(days, IntervalType) {
		t.Error("a month is not 30 days")
	}
}

func TestSQLEqual(t *testing.T) {
	one, null, nan := OfInt64(1), Null(Int64), OfFloat64(math.NaN())
	ints, floats := ArrayOf(Int64Type), ArrayOf(Float64Type)
	for _, test := range []struct {
		a, b        Value
		t           *Type
		equal, null bool
	}{
		{one, one, Int64Type, true, false},
		{nan, nan, Float64Type, false, false},
		{OfArray([]Value{one}), OfArray([]Value{one}), ints, true, false},
		{OfArray([]Value{null}), OfArray([]Value{null}), ints, false, true},
		{OfArray([]Value{null, one}), OfArray([]Value{null, OfInt64(2)}), ints, false, false},
		{OfArray([]Value{null}), OfArray([]Value{}), ints, false, false},
		{OfArray([]Value{nan}), OfArray([]Value{nan}), floats, false, false},
	} {
		if equal, null := SQLEqual(test.a, test.b, test.t); equal != test.equal || null != test.null {
			t.Errorf("%x = %x: %v, NULL %v", test.a.AppendWire(nil, test.t), test.b.AppendWire(nil, test.t), equal, null)
		}
	}
}

func TestPendingCommitTimestamp(t *testing.T) {
	pending, last := PendingCommitTimestamp(), OfTimestamp(MaxTimestampSeconds, 999_999_999)
	const seconds, nanos = 1_700_000_000, 123_456_000
	filled := OfTimestamp(seconds, nanos)
	for _, desc := range []bool{false, true} {
		key := AppendKey([]byte("k"), pending, desc)
		order := bytes.Compare(AppendKey([]byte("k"), last, desc), key)
		if order != map[bool]int{false: -1, true: 1}[desc] {
			t.Errorf("desc=%v: a pending timestamp does not come after all others", desc)
		}
		v, _, err := DecodeKey(key[1:], TimestampType, desc)
		if err != nil || !v.IsPending() {
			t.Errorf("desc=%v: decoded %v, error %v", desc, v, err)
		}
		FillKeyTimestamp(key[1+KeyTimestampOffset:], desc, seconds, nanos)
		if want := AppendKey([]byte("k"), filled, desc); !bytes.Equal(key, want) {
			t.Errorf("desc=%v: filled %x, want %x", desc, key, want)
		}
	}
	row := AppendRow(nil, pending, TimestampType)
	if v, err := DecodeRow(row, TimestampType); err != nil || !v.IsPending() {
		t.Errorf("decoded %v, error %v", v, err)
	}
	FillRowTimestamp(row, seconds, nanos)
	if want := AppendRow(nil, filled, TimestampType); !bytes.Equal(row, want) {
		t.Errorf("filled %x, want %x", row, want)
	}
}

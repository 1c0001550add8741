package value

import (
	"bytes"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// FuzzDecodeKey decodes arbitrary bytes as key parts. No function may panic, and KeyToWire must always append a valid
// message. If DecodeKey decodes the bytes, encoding the value must give the same bytes, and SkipKey and KeyToWire must
// agree with DecodeKey.
func FuzzDecodeKey(f *testing.F) {
	f.Add([]byte{0x20, 'a', 0, 0xFF, 0, 1}, 6, false)
	f.Add([]byte{0x6f, 0xb4, 0xc4, 0xb3, 0x57, 0xa5, 0x79, 0x3b, 0x85, 0xf6, 0x75, 0xdd, 0xc0, 0, 0, 0, 1}, 8, false)
	f.Add([]byte{0x30, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x3b, 0x9a, 0xca, 0}, 4, false)
	f.Add(AppendKey(nil, OfFloat64(-1.5), true), 2, true)
	f.Fuzz(func(t *testing.T, b []byte, kind int, desc bool) {
		typ := keyTypes[uint(kind)%uint(len(keyTypes))]
		v, rest, err := DecodeKey(b, typ, desc)
		skipped, skipErr := SkipKey(b, typ, desc)
		wire, wireRest := KeyToWire(nil, b, typ, desc)
		mustBeWire(t, wire)
		if err != nil {
			return
		}
		part := b[:len(b)-len(rest)]
		if !bytes.Equal(AppendKey(nil, v, desc), part) {
			t.Fatalf("%s desc=%v: %x decodes, but encodes as %x", typ, desc, part, AppendKey(nil, v, desc))
		}
		if skipErr != nil || len(skipped) != len(rest) || len(wireRest) != len(rest) {
			t.Fatalf("%s desc=%v: %x has rest %x, skipped %x (%v), on the wire %x", typ, desc, b, rest, skipped, skipErr, wireRest)
		}
		if want := v.AppendWire(nil, typ); !bytes.Equal(wire, want) {
			t.Fatalf("%s desc=%v %x: wire %x, want %x", typ, desc, part, wire, want)
		}
	})
}

func mustBeWire(t *testing.T, wire []byte) {
	t.Helper()
	// Unmarshal may fail only because a damaged STRING is not valid UTF-8. In all other respects the bytes must be a
	// message.
	var list structpb.ListValue
	if err := proto.Unmarshal(append([]byte{0x0a, byte(min(len(wire), 0x7f))}, wire[:min(len(wire), 0x7f)]...), &list); err != nil &&
		len(wire) <= 0x7f && !bytes.Contains([]byte(err.Error()), []byte("UTF-8")) {
		t.Fatalf("%x is no google.protobuf.Value: %v", wire, err)
	}
}

// FuzzDecodeRow decodes arbitrary bytes as stored payloads. If they decode, encoding the value and decoding it again
// must give the same value, and RowToWire must append the same bytes as AppendWire.
func FuzzDecodeRow(f *testing.F) {
	f.Add([]byte{3, 2, 2, 0, 3, 0xd8, 4}, 2)
	f.Add([]byte{3, 0x10, 2, 2, 4, 1, 2, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0xf8, 0x3f, 0, 5, 0, 2, 0, 0}, 5)
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, 3)
	f.Fuzz(func(t *testing.T, b []byte, kind int) {
		typ := rowTypes[uint(kind)%uint(len(rowTypes))]
		v, err := DecodeRow(b, typ)
		wire := RowToWire(nil, b, typ)
		mustBeWire(t, wire)
		if err != nil {
			return
		}
		if want := v.AppendWire(nil, typ); !bytes.Equal(wire, want) {
			t.Fatalf("%s %x: wire %x, want %x", typ, b, wire, want)
		}
		back, err := DecodeRow(AppendRow(nil, v, typ), typ)
		if err != nil || !Equal(back, v, typ) {
			t.Fatalf("%s: %x came back as another value, error %v", typ, b, err)
		}
	})
}

// FuzzFromWire decodes arbitrary protocol buffers as values of arbitrary types. The result must be an error, or a
// Value that stays the same when it is encoded and decoded again.
func FuzzFromWire(f *testing.F) {
	f.Add([]byte{0x1a, 1, '1'}, 0)
	f.Add(OfArray([]Value{OfInt64(1), Null(Int64)}).AppendWire(nil, ArrayOf(Int64Type)), 2)
	f.Fuzz(func(t *testing.T, b []byte, kind int) {
		typ := rowTypes[uint(kind)%uint(len(rowTypes))]
		var pv structpb.Value
		if proto.Unmarshal(b, &pv) != nil {
			return
		}
		v, err := FromWire(&pv, typ)
		if err != nil {
			return
		}
		if v.Kind() != typ.Kind {
			t.Fatalf("%v became a %s, want a %s", &pv, v.Kind(), typ)
		}
		if v.IsNull() || typ.Kind == Array || typ.Kind == Struct {
			return // a NULL has no payload; FuzzDecodeRow checks the payloads of ARRAYs and STRUCTs
		}
		if back, err := DecodeRow(AppendRow(nil, v, typ), typ); err != nil || !Equal(back, v, typ) {
			t.Fatalf("%v came back as another value, error %v", &pv, err)
		}
	})
}

// FuzzTexts parses arbitrary texts. No parser may panic. If a text parses, printing the value and parsing the result
// must give the same value.
func FuzzTexts(f *testing.F) {
	for _, s := range []string{
		"1.5e-3", "99999999999999999999999999999.9999999995", "P1Y2M3DT4H5M6.5S", "-1-2 3 -4:5:6.7", `{"b":[1,2.5e10,"\ud83d\ude00"],"a":{}}`,
		"2024-02-29 12:34:56.789 America/Los_Angeles", "2024-02-29T12:34:56Z", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "+14:00", "[[[[",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if d, err := ParseDecimal(s); err == nil {
			if back, err := ParseDecimalStrict(d.String()); err != nil || back != d || !d.InRange() {
				t.Fatalf("%q: %s, again %s, error %v", s, d, back, err)
			}
		}
		if text, err := ParseJSON(s); err == nil {
			if again, err := ParseJSON(text); err != nil || again != text {
				t.Fatalf("%q: %q, again %q, error %v", s, text, again, err)
			}
		}
		if i, err := ParseInterval(s); err == nil {
			if back, err := ParseInterval(string(i.Append(nil))); err != nil || back != i || !i.InRange() {
				t.Fatalf("%q: %+v, again %+v, error %v", s, i, back, err)
			}
		}
		if v, err := ParseTimestamp(s, time.UTC); err == nil {
			seconds, nanos := v.AsTimestamp()
			if back, err := ParseTimestampZ(string(AppendTimestamp(nil, seconds, nanos))); err != nil || !Equal(back, v, TimestampType) {
				t.Fatalf("%q: %v, error %v", s, v.AsTime(), err)
			}
		}
		if days, err := ParseDate(s); err == nil {
			if back, err := ParseDate(string(AppendDate(nil, days))); err != nil || back != days {
				t.Fatalf("%q: %d, again %d, error %v", s, days, back, err)
			}
		}
		if u, err := ParseUUID(s); err == nil {
			if back, err := ParseUUID(string(AppendUUID(nil, u))); err != nil || back != u {
				t.Fatalf("%q: %x, again %x, error %v", s, u, back, err)
			}
		}
		_, _ = LoadZone(s)
		_, _ = ParseJSONRounding(s)
	})
}

// FuzzType decodes arbitrary protocol buffers as types. The result must be an error, or a type that encodes to the
// same protocol buffer.
func FuzzType(f *testing.F) {
	seed, err := proto.Marshal(rowTypes[5].Proto())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, b []byte) {
		var p spannerpb.Type
		if proto.Unmarshal(b, &p) != nil {
			return
		}
		typ, err := TypeFromProto(&p)
		if err != nil {
			return
		}
		if back, err := TypeFromProto(typ.Proto()); err != nil || !back.Equal(typ) {
			t.Fatalf("%s came back as %s, error %v", typ, back, err)
		}
	})
}

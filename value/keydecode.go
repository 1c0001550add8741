package value

import (
	"bytes"
	"encoding/binary"
	"unsafe"
)

// DecodeKey decodes the key part of type t at the start of b, and returns the rest of b. The value does not refer to
// b.
func DecodeKey(b []byte, t *Type, desc bool) (v Value, rest []byte, err error) {
	n := keyLen(b, t, desc)
	if n < 0 {
		return Value{}, nil, badKey(b, t)
	}
	part, rest := b[:n], b[n:]
	if part[0]^mask(desc) == keyNull {
		return Null(t.Kind), rest, nil
	}
	v, ok := decodeKeyPart(part, t, desc)
	if !ok {
		return Value{}, nil, badKey(b, t)
	}
	return v, rest, nil
}

// decodeKeyPart decodes a part that is not NULL and whose length keyLen has found. It refuses bytes that AppendKey
// never writes, so that equal values always have equal keys.
func decodeKeyPart(part []byte, t *Type, desc bool) (Value, bool) {
	m := mask(desc)
	m64 := uint64(int64(int8(m))) // each of its 8 bytes is m
	body := part[1:]
	switch t.Kind {
	case Int64, Date, Enum:
		i, ok := keyInt(part, m)
		if t.Kind == Enum {
			return OfEnum(int32(i)), ok && i == int64(int32(i))
		}
		if t.Kind == Date {
			return OfDate(int32(i)), ok && ValidDate(i)
		}
		return OfInt64(i), ok
	case String, Bytes:
		text := keyTextBody(nil, part, desc)
		if t.Kind == String {
			return OfString(unsafe.String(unsafe.SliceData(text), len(text))), true
		}
		return OfBytes(text), true
	case Timestamp:
		return timestampOf(binary.BigEndian.Uint64(body)^m64, binary.BigEndian.Uint32(body[8:])^uint32(m64))
	case Bool:
		return OfBool(part[0]^m == keyTrue), true
	case Float64:
		f := unorderedFloat64(binary.BigEndian.Uint64(body) ^ m64)
		return OfFloat64(f), orderedFloat64(f) == binary.BigEndian.Uint64(body)^m64
	case Float32:
		f := unorderedFloat32(binary.BigEndian.Uint32(body) ^ uint32(m64))
		return OfFloat32(f), orderedFloat32(f) == binary.BigEndian.Uint32(body)^uint32(m64)
	case Numeric:
		d, ok := keyDecimal(part, m)
		return OfNumeric(d), ok && d.InRange()
	case UUID:
		u := [16]byte(body)
		if desc {
			invert(u[:])
		}
		return OfUUID(u), true
	}
	return Value{}, false
}

// keyInt decodes a part whose number has at most 8 bytes. m is the mask of the part. ok is false if the number is out
// of the range of INT64, or if a shorter part could hold the number: AppendKey always writes the shortest part.
func keyInt(part []byte, m byte) (i int64, ok bool) {
	n := len(part) - 1
	if n == 0 {
		return -int64(b2u(part[0]^m < keyPositive)), true
	}
	flip := uint64(int64(int8(m)))
	neg := part[0]^m < keyPositive
	if neg { // invert the bytes again: the complement of a negative number is not negative
		flip = ^flip
	}
	var b [8]byte
	copy(b[8-n:], part[1:])
	u := (binary.BigEndian.Uint64(b[:]) ^ flip) << (64 - 8*n) >> (64 - 8*n)
	if u>>(8*(n-1)) == 0 {
		return 0, false
	}
	if neg {
		return int64(^u), int64(u) >= 0
	}
	return int64(u), int64(u) >= 0
}

// takeKeyInt decodes the INT64 part at the start of key, and returns the rest of key. ok is false if the part is
// missing, NULL or malformed.
func takeKeyInt(key []byte, desc bool) (i int64, rest []byte, ok bool) {
	n := keyLen(key, Int64Type, desc)
	m := mask(desc)
	if n < 0 || key[0]^m == keyNull {
		return 0, nil, false
	}
	i, ok = keyInt(key[:n], m)
	return i, key[n:], ok
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func keyDecimal(part []byte, m byte) (d Decimal, ok bool) {
	if len(part) <= 9 {
		// A part with 8 bytes may hold a number outside the range of INT64 (>= 2^63 or < -2^63), which keyInt refuses.
		// The code below decodes such a number.
		if i, ok := keyInt(part, m); ok || len(part) < 9 {
			return Decimal{hi: i >> 63, lo: uint64(i)}, ok
		}
	}
	neg := part[0]^m < keyPositive
	var flip byte
	if neg {
		flip = 0xFF
	}
	if part[1]^m^flip == 0 {
		return Decimal{}, false
	}
	var hi, lo uint64
	for _, c := range part[1:] {
		hi = hi<<8 | lo>>56
		lo = lo<<8 | uint64(c^m^flip)
	}
	if neg {
		hi, lo = ^hi, ^lo
	}
	return Decimal{hi: int64(hi), lo: lo}, neg == (int64(hi) < 0)
}

// keyTextBody appends the text that a text part contains, unescaped.
func keyTextBody(dst, part []byte, desc bool) []byte {
	start := len(dst)
	m := mask(desc)
	s := part[1 : len(part)-2]
	if dst == nil {
		dst = make([]byte, 0, len(s))
	}
	for {
		i := bytes.IndexByte(s, textEscape^m)
		if i < 0 {
			break
		}
		dst = append(dst, s[:i+1]...)
		s = s[i+2:]
	}
	dst = append(dst, s...)
	if desc {
		invert(dst[start:])
	}
	return dst
}

// timestampOf decodes the 12 bytes of a TIMESTAMP, which the caller has split into seconds and nanoseconds.
func timestampOf(seconds uint64, nanos uint32) (Value, bool) {
	if seconds == 1<<64-1 && nanos == 1<<32-1 {
		return PendingCommitTimestamp(), true
	}
	s := int64(seconds ^ 1<<63)
	return OfTimestamp(s, int32(nanos)), ValidTimestamp(s, int64(nanos))
}

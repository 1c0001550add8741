package value

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// A key part encodes one value of a primary or index key as bytes. Compared with bytes.Compare, the bytes sort as the
// values do. The bytes of a part show where it ends, so a key is just the concatenation of its parts. The table
// gives the bytes, in hexadecimal, of a part that sorts in ascending order:
//
//	NULL               01
//	BOOL               02 (false) or 03 (true)
//	FLOAT64, FLOAT32   10 or 11, then 8 or 4 bytes: IEEE bits, sign flipped if positive, all flipped if
//	                   negative; NaN is all zero, -0 is 0
//	STRING, BYTES      20, the bytes with each 00 replaced by 00 FF, then 00 01
//	TIMESTAMP          30, seconds (8 bytes, sign flipped), nanoseconds (4 bytes); for a pending commit
//	                   timestamp, 30 and 12 times FF
//	UUID               31, 16 bytes
//	INT64, ENUM, DATE, if >= 0: 80+n, then the n (0-16) significant bytes of the number;
//	NUMERIC            if negative: 7F-n, then the n low bytes of the number, whose complement has n
//	                   significant bytes
//
// A part in descending order has every byte inverted. No part, ascending or descending, begins with 00 or FF. Package
// table uses these bytes to end keys and ranges.
const (
	keyNull      = 0x01
	keyFalse     = 0x02
	keyTrue      = 0x03
	keyFloat64   = 0x10
	keyFloat32   = 0x11
	keyText      = 0x20
	keyTimestamp = 0x30
	keyUUID      = 0x31
	keyNegative  = 0x7F
	keyPositive  = 0x80

	textEscape     = 0x00 // in the text of a key part; the byte textEnd or textZero follows
	textEnd        = 0x01
	textZero       = 0xFF
	timestampWidth = 12
)

// textFrame is the number of bytes that a text part has in addition to the text: one for the tag and two for the end.
const textFrame = 3

// KeyTimestampOffset is the offset in the key part of a TIMESTAMP at which FillKeyTimestamp writes.
const KeyTimestampOffset = 1

// AppendKey appends the key part of v. The kind of v must be one that can be in a key.
func AppendKey(dst []byte, v Value, desc bool) []byte {
	start := len(dst)
	dst = appendKeyAsc(dst, v)
	if desc {
		invert(dst[start:])
	}
	return dst
}

func appendKeyAsc(dst []byte, v Value) []byte {
	if v.state == stateNull {
		return append(dst, keyNull)
	}
	switch v.kind {
	case Int64, Date, Enum:
		return appendKeyInt(dst, int64(v.bits))
	case String, Bytes:
		return appendKeyText(dst, v.AsBytes())
	case Timestamp:
		return appendTimestamp(append(dst, keyTimestamp), v)
	case Bool:
		return append(dst, keyFalse+byte(v.bits))
	case Float64:
		return binary.BigEndian.AppendUint64(append(dst, keyFloat64), orderedFloat64(v.AsFloat64()))
	case Float32:
		return binary.BigEndian.AppendUint32(append(dst, keyFloat32), orderedFloat32(v.AsFloat32()))
	case Numeric:
		return appendKeyDecimal(dst, v.AsNumeric())
	case UUID:
		u := v.AsUUID()
		return append(append(dst, keyUUID), u[:]...)
	}
	panic("value: " + v.kind.String() + " cannot be a key")
}

// AsKey returns the value that the key part of v decodes to. It differs from v in two cases: -0 becomes 0, and every
// NaN becomes the same NaN.
func AsKey(v Value) Value {
	if v.state != stateSet {
		return v
	}
	switch v.kind {
	case Float64:
		return OfFloat64(unorderedFloat64(orderedFloat64(v.AsFloat64())))
	case Float32:
		return OfFloat32(unorderedFloat32(orderedFloat32(v.AsFloat32())))
	}
	return v
}

// KeyLoses reports whether AsKey can change values of type t.
func KeyLoses(t *Type) bool { return t.Kind == Float64 || t.Kind == Float32 }

func invert(b []byte) {
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, ^binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	for i := range b {
		b[i] = ^b[i]
	}
}

func appendKeyInt(dst []byte, i int64) []byte {
	u := uint64(i)
	n := byte(bits.Len64(u^uint64(i>>63))+7) >> 3
	if i < 0 {
		dst = append(dst, keyNegative-n)
	} else {
		dst = append(dst, keyPositive+n)
	}
	end := len(dst) + int(n)
	// Shifting by 64 gives 0, which is right for n = 0.
	return binary.BigEndian.AppendUint64(dst, u<<(64-8*n))[:end]
}

func appendKeyDecimal(dst []byte, d Decimal) []byte {
	if d.hi == int64(d.lo)>>63 {
		return appendKeyInt(dst, int64(d.lo))
	}
	// The number has 64 to 127 bits. If it has exactly 64, hi holds only the sign, and no byte of hi is stored.
	n := 8 + byte(bits.Len64(uint64(d.hi)^uint64(d.hi>>63))+7)>>3
	if d.hi < 0 {
		dst = append(dst, keyNegative-n)
	} else {
		dst = append(dst, keyPositive+n)
	}
	end := len(dst) + int(n)
	dst = binary.BigEndian.AppendUint64(dst, uint64(d.hi)<<(128-8*n))[:end-8]
	return binary.BigEndian.AppendUint64(dst, d.lo)
}

func appendKeyText(dst, s []byte) []byte {
	dst = append(dst, keyText)
	for {
		i := bytes.IndexByte(s, 0)
		if i < 0 {
			break
		}
		dst = append(dst, s[:i]...)
		dst = append(dst, textEscape, textZero)
		s = s[i+1:]
	}
	dst = append(dst, s...)
	return append(dst, textEscape, textEnd)
}

// appendTimestamp appends the 12 bytes of a TIMESTAMP. They are the same in keys and in rows.
func appendTimestamp(dst []byte, v Value) []byte {
	if v.state == statePending {
		return append(dst, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"...)
	}
	dst = binary.BigEndian.AppendUint64(dst, v.bits^1<<63)
	return binary.BigEndian.AppendUint32(dst, v.nanos)
}

// FillKeyTimestamp overwrites a pending timestamp in a key. The slice part must begin KeyTimestampOffset bytes after
// the start of the key part.
func FillKeyTimestamp(part []byte, desc bool, seconds int64, nanos int32) {
	FillRowTimestamp(part, seconds, nanos)
	if desc {
		invert(part[:timestampWidth])
	}
}

// orderedFloat64 maps each float to an integer, so that the integers sort as the floats do: NaN, -Inf, ..., 0 (also
// -0), ..., +Inf.
func orderedFloat64(f float64) uint64 {
	if f == 0 {
		return 1 << 63
	}
	if f != f {
		return 0
	}
	b := math.Float64bits(f)
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

func unorderedFloat64(u uint64) float64 {
	if u == 0 {
		return math.NaN()
	}
	return math.Float64frombits(u ^ (uint64(^int64(u)>>63) | 1<<63))
}

func orderedFloat32(f float32) uint32 {
	if f == 0 {
		return 1 << 31
	}
	if f != f {
		return 0
	}
	b := math.Float32bits(f)
	return b ^ (uint32(int32(b)>>31) | 1<<31)
}

func unorderedFloat32(u uint32) float32 {
	if u == 0 {
		return float32(math.NaN())
	}
	return math.Float32frombits(u ^ (uint32(^int32(u)>>31) | 1<<31))
}

// SkipKey returns what follows the key part of type t at the start of b.
func SkipKey(b []byte, t *Type, desc bool) (rest []byte, err error) {
	n := keyLen(b, t, desc)
	if n < 0 {
		return nil, badKey(b, t)
	}
	return b[n:], nil
}

func badKey(b []byte, t *Type) error {
	return fmt.Errorf("malformed key part of type %s: %x", t, b[:min(len(b), 32)])
}

// mask returns the byte with which each byte of a key part must be XORed to get its ascending form.
func mask(desc bool) byte {
	if desc {
		return 0xFF
	}
	return 0
}

// keyLen returns the length of the key part of type t at the front of b, or -1 if there is none.
func keyLen(b []byte, t *Type, desc bool) int {
	if len(b) == 0 {
		return -1
	}
	tag := b[0] ^ mask(desc)
	if tag == keyNull {
		return 1
	}
	n := -1
	switch t.Kind {
	case Int64, Date, Enum:
		n = keyIntLen(tag, 8)
	case Numeric:
		n = keyIntLen(tag, 16)
	case String, Bytes:
		if tag == keyText {
			n, _ = keyTextLen(b, desc)
		}
	case Timestamp:
		n = lenIf(tag == keyTimestamp, 1+timestampWidth)
	case Bool:
		n = lenIf(tag == keyFalse || tag == keyTrue, 1)
	case Float64:
		n = lenIf(tag == keyFloat64, 9)
	case Float32:
		n = lenIf(tag == keyFloat32, 5)
	case UUID:
		n = lenIf(tag == keyUUID, 17)
	}
	if n > len(b) {
		return -1
	}
	return n
}

func lenIf(ok bool, n int) int {
	if ok {
		return n
	}
	return -1
}

func keyIntLen(tag byte, most int) int {
	n := int(tag) - keyPositive
	if n < 0 {
		n = keyNegative - int(tag)
	}
	return lenIf(n <= most, 1+n)
}

// keyTextLen returns the length of a text part, including its tag and end, or -1 if the end is missing. zeros is the
// number of zero bytes in the text.
func keyTextLen(b []byte, desc bool) (n, zeros int) {
	m := mask(desc)
	for n = 1; ; n += 2 {
		i := bytes.IndexByte(b[n:], textEscape^m)
		if i < 0 || n+i+1 >= len(b) {
			return -1, 0
		}
		n += i
		switch b[n+1] ^ m {
		case textEnd:
			return n + 2, zeros
		case textZero:
			zeros++
		default:
			return -1, 0
		}
	}
}

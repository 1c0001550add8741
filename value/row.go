package value

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// A stored payload encodes a value that is not NULL. The payload does not contain its own length. The row that contains
// the payload also stores the length.
//
//	BOOL                 1 byte, 0 or 1
//	INT64, ENUM, DATE    zigzag varint
//	FLOAT64, FLOAT32     8 or 4 bytes, little endian
//	TIMESTAMP            seconds (8 bytes, big endian, sign flipped), nanoseconds (4 bytes); for a pending commit
//	                     timestamp, 12 times FF
//	STRING, BYTES, JSON, the bytes
//	PROTO
//	NUMERIC              0-16 bytes: the billionths, two's complement, big endian, as few bytes as possible
//	UUID                 16 bytes
//	INTERVAL             months, days, seconds (zigzag varints), nanoseconds (uvarint)
//	ARRAY                number of elements (uvarint), elements
//	STRUCT               fields
//
// An element or field consists of its payload's length + 1 (uvarint) and the payload. A NULL is the single byte 0.

// AppendRow appends the stored payload of v. v has type t and is not NULL.
func AppendRow(dst []byte, v Value, t *Type) []byte {
	switch t.Kind {
	case Bool:
		return append(dst, byte(v.bits))
	case Int64, Date, Enum:
		return binary.AppendVarint(dst, int64(v.bits))
	case Float64:
		return binary.LittleEndian.AppendUint64(dst, v.bits)
	case Float32:
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(v.AsFloat32()))
	case Timestamp:
		return appendTimestamp(dst, v)
	case String, Bytes, JSON, Proto:
		return append(dst, v.AsBytes()...)
	case Numeric:
		return appendRowDecimal(dst, v.AsNumeric())
	case UUID:
		u := v.AsUUID()
		return append(dst, u[:]...)
	case Interval:
		i := v.AsInterval()
		dst = binary.AppendVarint(dst, int64(i.Months))
		dst = binary.AppendVarint(dst, int64(i.Days))
		dst = binary.AppendVarint(dst, i.Seconds)
		return binary.AppendUvarint(dst, uint64(i.Nanos))
	case Array:
		dst = binary.AppendUvarint(dst, v.bits)
		for _, e := range v.AsList() {
			dst = AppendElement(dst, e, t.Elem)
		}
		return dst
	case Struct:
		for i, f := range v.AsList() {
			dst = AppendElement(dst, f, t.Fields[i].Type)
		}
		return dst
	}
	panic("value: " + t.String() + " cannot be stored")
}

// AppendElement appends v, of type t, as an element of a stored ARRAY or a field of a stored STRUCT: first the length,
// then the payload. v may be NULL.
func AppendElement(dst []byte, v Value, t *Type) []byte {
	if v.IsNull() {
		return append(dst, 0)
	}
	dst = binary.AppendUvarint(dst, uint64(RowSize(v, t))+1)
	return AppendRow(dst, v, t)
}

// RowSize returns the number of bytes that AppendRow appends.
func RowSize(v Value, t *Type) int {
	switch t.Kind {
	case Bool:
		return 1
	case Int64, Date, Enum:
		return varintSize(int64(v.bits))
	case Float64:
		return 8
	case Float32:
		return 4
	case Timestamp:
		return timestampWidth
	case String, Bytes, JSON, Proto:
		return int(v.bits)
	case Numeric:
		return decimalSize(v.AsNumeric())
	case UUID:
		return 16
	case Interval:
		i := v.AsInterval()
		return varintSize(int64(i.Months)) + varintSize(int64(i.Days)) + varintSize(i.Seconds) + uvarintSize(uint64(i.Nanos))
	case Array:
		n := uvarintSize(v.bits)
		for _, e := range v.AsList() {
			n += rowElementSize(e, t.Elem)
		}
		return n
	case Struct:
		n := 0
		for i, f := range v.AsList() {
			n += rowElementSize(f, t.Fields[i].Type)
		}
		return n
	}
	return 0
}

func rowElementSize(v Value, t *Type) int {
	if v.IsNull() {
		return 1
	}
	n := RowSize(v, t)
	return uvarintSize(uint64(n)+1) + n
}

func uvarintSize(u uint64) int { return (bits.Len64(u|1) + 6) / 7 }

func varintSize(i int64) int { return uvarintSize(uint64(i)<<1 ^ uint64(i>>63)) }

// decimalSize returns the number of bytes that d needs, including its sign. For the number 0, it returns 0.
func decimalSize(d Decimal) int {
	if d.hi == int64(d.lo)>>63 {
		if d.lo == 0 {
			return 0
		}
		return bits.Len64(d.lo^uint64(int64(d.lo)>>63))/8 + 1
	}
	return 8 + (bits.Len64(uint64(d.hi^d.hi>>63))+8)/8
}

func appendRowDecimal(dst []byte, d Decimal) []byte {
	n := decimalSize(d)
	if n == 0 {
		return dst
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], uint64(d.hi))
	binary.BigEndian.PutUint64(b[8:], d.lo)
	return append(dst, b[16-n:]...)
}

func rowDecimal(payload []byte) (d Decimal, ok bool) {
	if len(payload) > 16 {
		return Decimal{}, false
	}
	if len(payload) > 0 && payload[0] >= 0x80 {
		d = Decimal{hi: -1, lo: math.MaxUint64}
	}
	for _, c := range payload {
		d.hi = d.hi<<8 | int64(d.lo>>56)
		d.lo = d.lo<<8 | uint64(c)
	}
	return d, d.InRange()
}

// FillRowTimestamp overwrites a pending timestamp at the start of payload with the given time.
func FillRowTimestamp(payload []byte, seconds int64, nanos int32) {
	_ = payload[timestampWidth-1]
	binary.BigEndian.PutUint64(payload, uint64(seconds)^1<<63)
	binary.BigEndian.PutUint32(payload[8:], uint32(nanos))
}

// DecodeRow decodes a stored payload of type t. The value does not refer to payload.
func DecodeRow(payload []byte, t *Type) (Value, error) {
	v, ok := decodeRow(payload, t)
	if !ok {
		return Value{}, fmt.Errorf("malformed stored value of type %s: %x", t, payload[:min(len(payload), 32)])
	}
	return v, nil
}

func decodeRow(payload []byte, t *Type) (v Value, ok bool) {
	switch t.Kind {
	case Bool:
		return OfBool(len(payload) == 1 && payload[0] == 1), len(payload) == 1 && payload[0] <= 1
	case Int64, Date, Enum:
		i, n := binary.Varint(payload)
		if t.Kind == Enum {
			return OfEnum(int32(i)), n > 0 && n == len(payload) && i == int64(int32(i))
		}
		if t.Kind == Date {
			return OfDate(int32(i)), n > 0 && n == len(payload) && ValidDate(i)
		}
		return OfInt64(i), n > 0 && n == len(payload)
	case Float64:
		if len(payload) != 8 {
			return Value{}, false
		}
		return OfFloat64(math.Float64frombits(binary.LittleEndian.Uint64(payload))), true
	case Float32:
		if len(payload) != 4 {
			return Value{}, false
		}
		return OfFloat32(math.Float32frombits(binary.LittleEndian.Uint32(payload))), true
	case Timestamp:
		return rowTimestamp(payload)
	case String, JSON:
		return ofText(t.Kind, string(payload)), true
	case Bytes, Proto:
		return ofText(t.Kind, string(payload)), true
	case Numeric:
		d, ok := rowDecimal(payload)
		return OfNumeric(d), ok
	case UUID:
		if len(payload) != 16 {
			return Value{}, false
		}
		return OfUUID([16]byte(payload)), true
	case Interval:
		return decodeRowInterval(payload)
	case Array:
		return decodeRowArray(payload, t)
	case Struct:
		return decodeRowStruct(payload, t)
	}
	return Value{}, false
}

func rowTimestamp(payload []byte) (Value, bool) {
	if len(payload) != timestampWidth {
		return Value{}, false
	}
	return timestampOf(binary.BigEndian.Uint64(payload), binary.BigEndian.Uint32(payload[8:]))
}

func decodeRowInterval(payload []byte) (Value, bool) {
	var parts [3]int64
	for i := range parts {
		p, n := binary.Varint(payload)
		if n <= 0 {
			return Value{}, false
		}
		parts[i], payload = p, payload[n:]
	}
	nanos, n := binary.Uvarint(payload)
	if n <= 0 || n != len(payload) || nanos >= nanosPerSecond {
		return Value{}, false
	}
	if parts[0] != int64(int32(parts[0])) || parts[1] != int64(int32(parts[1])) {
		return Value{}, false
	}
	i := IntervalValue{Months: int32(parts[0]), Days: int32(parts[1]), Seconds: parts[2], Nanos: int32(nanos)}
	return OfInterval(i), i.InRange()
}

func decodeRowArray(payload []byte, t *Type) (Value, bool) {
	count, n := binary.Uvarint(payload)
	// Each element has at least one byte.
	if n <= 0 || count > uint64(len(payload)-n) {
		return Value{}, false
	}
	payload = payload[n:]
	elems := make([]Value, count)
	for i := range elems {
		var ok bool
		if elems[i], payload, ok = DecodeElement(payload, t.Elem); !ok {
			return Value{}, false
		}
	}
	return OfArray(elems), len(payload) == 0
}

func decodeRowStruct(payload []byte, t *Type) (Value, bool) {
	fields := make([]Value, len(t.Fields))
	for i := range fields {
		var ok bool
		if fields[i], payload, ok = DecodeElement(payload, t.Fields[i].Type); !ok {
			return Value{}, false
		}
	}
	return OfStruct(fields), len(payload) == 0
}

// DecodeElement decodes the element at the start of b, which AppendElement has written, and returns the rest of b. The
// value does not refer to b. ok is false if b is malformed.
func DecodeElement(b []byte, t *Type) (v Value, rest []byte, ok bool) {
	payload, rest, null, ok := rowElement(b)
	if !ok || null {
		return Null(t.Kind), rest, ok
	}
	v, ok = decodeRow(payload, t)
	return v, rest, ok
}

// rowElement splits b into the payload of its first element and the rest.
func rowElement(b []byte) (payload, rest []byte, null, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 {
		return nil, nil, false, false
	}
	b = b[n:]
	if size == 0 {
		return nil, b, true, true
	}
	if size-1 > uint64(len(b)) {
		return nil, nil, false, false
	}
	return b[:size-1], b[size-1:], false, true
}

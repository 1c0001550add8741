package value

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
)

// The tags of the fields of google.protobuf.Value: field number times 8, plus the wire type.
const (
	wireNull   = 1 << 3   // null_value: a zero byte follows, NULL_VALUE
	wireNumber = 2<<3 | 1 // number_value: 8 bytes follow, little endian
	wireString = 3<<3 | 2 // string_value: the length and the bytes follow
	wireBool   = 4 << 3   // bool_value: a byte 0 or 1 follows
	wireList   = 6<<3 | 2 // list_value: the length and the ListValue follow
	wireValue  = 1<<3 | 2 // the field values of a ListValue: the length and a Value follow
)

// AppendWire appends v, of type t, as the body of a google.protobuf.Value, that is, without the tag and length of the
// message.
func (v Value) AppendWire(dst []byte, t *Type) []byte {
	if v.state != stateSet {
		return appendWireNull(dst)
	}
	switch t.Kind {
	case Bool:
		return append(dst, wireBool, byte(v.bits))
	case Int64, Enum:
		return appendWireInt(dst, int64(v.bits))
	case Float64, Float32:
		return appendWireFloat(dst, v.AsFloat64())
	case Timestamp:
		return appendWireTimestamp(dst, int64(v.bits), int32(v.nanos))
	case Date:
		return appendWireDate(dst, v.AsDate())
	case String, JSON:
		return append(appendWireHead(dst, wireString, int(v.bits)), v.AsBytes()...)
	case Bytes, Proto:
		return appendWireBytes(dst, v.AsBytes())
	case Numeric:
		return appendWireDecimal(dst, v.AsNumeric())
	case UUID:
		u := v.AsUUID()
		return appendWireUUID(dst, u[:])
	case Interval:
		dst, mark := BeginField(dst, wireString)
		return EndField(v.AsInterval().Append(dst), mark)
	case Array:
		dst, mark := BeginField(dst, wireList)
		for _, e := range v.AsList() {
			dst = e.AppendWireField(dst, wireValue, t.Elem)
		}
		return EndField(dst, mark)
	case Struct:
		dst, mark := BeginField(dst, wireList)
		for i, f := range v.AsList() {
			dst = f.AppendWireField(dst, wireValue, t.Fields[i].Type)
		}
		return EndField(dst, mark)
	}
	return appendWireNull(dst)
}

// RowToWire appends a stored payload of type t as the body of a google.protobuf.Value. AppendRow must have written the
// payload; a damaged payload gives NULL.
func RowToWire(dst, payload []byte, t *Type) []byte {
	switch t.Kind {
	case String, JSON:
		return append(appendWireHead(dst, wireString, len(payload)), payload...)
	case Int64, Enum:
		if i, n := binary.Varint(payload); n > 0 {
			return appendWireInt(dst, i)
		}
	case Timestamp:
		if v, ok := rowTimestamp(payload); ok && v.state == stateSet {
			return appendWireTimestamp(dst, int64(v.bits), int32(v.nanos))
		}
	case Float64:
		if len(payload) == 8 {
			return appendWireFloat(dst, math.Float64frombits(binary.LittleEndian.Uint64(payload)))
		}
	case Float32:
		if len(payload) == 4 {
			return appendWireFloat(dst, float64(math.Float32frombits(binary.LittleEndian.Uint32(payload))))
		}
	case Bool:
		if len(payload) == 1 {
			return append(dst, wireBool, payload[0]&1)
		}
	case Date:
		if i, n := binary.Varint(payload); n > 0 && ValidDate(i) {
			return appendWireDate(dst, int32(i))
		}
	case Bytes, Proto:
		return appendWireBytes(dst, payload)
	case Numeric:
		if d, ok := rowDecimal(payload); ok {
			return appendWireDecimal(dst, d)
		}
	case UUID:
		if len(payload) == 16 {
			return appendWireUUID(dst, payload)
		}
	case Array:
		return rowArrayToWire(dst, payload, t)
	case Struct:
		dst, mark := BeginField(dst, wireList)
		for i := range t.Fields {
			dst, payload = rowElementToWire(dst, payload, t.Fields[i].Type)
		}
		return EndField(dst, mark)
	case Interval:
		if v, ok := decodeRowInterval(payload); ok {
			return v.AppendWire(dst, t)
		}
	}
	return appendWireNull(dst)
}

func rowArrayToWire(dst, payload []byte, t *Type) []byte {
	count, n := binary.Uvarint(payload)
	payload = payload[max(n, 0):]
	dst, mark := BeginField(dst, wireList)
	for ; count > 0 && len(payload) > 0; count-- {
		dst, payload = rowElementToWire(dst, payload, t.Elem)
	}
	return EndField(dst, mark)
}

func rowElementToWire(dst, b []byte, t *Type) (out, rest []byte) {
	payload, rest, null, ok := rowElement(b)
	if !ok || null {
		return NullField(dst, wireValue), rest
	}
	return RowToWireField(dst, wireValue, payload, t), rest
}

// KeyToWire appends the key part of type t at the start of key as the body of a google.protobuf.Value, and returns the
// rest of key. AppendKey must have written the part; a damaged part gives NULL and an empty rest.
func KeyToWire(dst, key []byte, t *Type, desc bool) (out, rest []byte) {
	if t.Kind == String || t.Kind == Bytes {
		return keyTextToWire(dst, key, t.Kind, desc)
	}
	n := keyLen(key, t, desc)
	if n < 0 {
		return appendWireNull(dst), nil
	}
	part, rest := key[:n], key[n:]
	m := mask(desc)
	if part[0]^m == keyNull {
		return appendWireNull(dst), rest
	}
	switch t.Kind {
	case UUID:
		dst = appendWireHead(dst, wireString, 36)
		var u [16]byte
		copy(u[:], part[1:])
		if desc {
			invert(u[:])
		}
		return appendUUID(dst, u[:]), rest
	case Numeric:
		d, _ := keyDecimal(part, m)
		return appendWireDecimal(dst, d), rest
	}
	v, ok := decodeKeyPart(part, t, desc)
	if !ok {
		return appendWireNull(dst), rest
	}
	return v.AppendWire(dst, t), rest
}

func keyTextToWire(dst, key []byte, k Kind, desc bool) (out, rest []byte) {
	if len(key) > 0 && key[0]^mask(desc) == keyNull {
		return appendWireNull(dst), key[1:]
	}
	if len(key) == 0 || key[0]^mask(desc) != keyText {
		return appendWireNull(dst), nil
	}
	n, zeros := keyTextLen(key, desc)
	if n < 0 {
		return appendWireNull(dst), nil
	}
	part, rest := key[:n], key[n:]
	size := n - textFrame - zeros
	if k == String {
		return keyTextBody(appendWireHead(dst, wireString, size), part, desc), rest
	}
	// dst gets room for the base64 form, and the unescaped bytes after this room. The bytes are encoded from there, and
	// then cut off.
	enc := base64.StdEncoding.EncodedLen(size)
	dst = appendWireHead(dst, wireString, enc)
	start := len(dst)
	dst = keyTextBody(extend(dst, enc), part, desc)
	encodeBase64(dst[start:start+enc], dst[start+enc:])
	return dst[:start+enc], rest
}

// extend makes dst n bytes longer. The caller must then write these n bytes.
func extend(dst []byte, n int) []byte {
	dst = slices.Grow(dst, n)
	return dst[:len(dst)+n]
}

// AppendWireField appends v as a whole field that contains a google.protobuf.Value: tag, length and body. The tag is
// one byte: it stands for a field number from 1 to 15 and wire type 2.
func (v Value) AppendWireField(dst []byte, tag byte, t *Type) []byte {
	if v.state == stateSet {
		switch t.Kind { // as in RowToWireField, these types have a faster way than BeginField and EndField
		case String, JSON:
			return appendTextField(dst, tag, v.AsBytes())
		case Bytes, Proto:
			return appendBytesField(dst, tag, v.AsBytes())
		case Int64, Enum:
			return appendIntField(dst, tag, int64(v.bits))
		case Numeric:
			if d := v.AsNumeric(); d.isShort() {
				return appendShortDecimalField(dst, tag, d)
			}
		}
	}
	dst, mark := BeginField(dst, tag)
	return EndField(v.AppendWire(dst, t), mark)
}

// RowToWireField appends a stored payload as RowToWire does, but as a whole field (see AppendWireField).
func RowToWireField(dst []byte, tag byte, payload []byte, t *Type) []byte {
	switch t.Kind { // the most frequent types have a faster way than BeginField and EndField
	case String, JSON:
		return appendTextField(dst, tag, payload)
	case Bytes, Proto:
		return appendBytesField(dst, tag, payload)
	case Int64, Enum:
		if i, n := binary.Varint(payload); n > 0 {
			return appendIntField(dst, tag, i)
		}
	case Numeric:
		if d, ok := rowDecimal(payload); ok && d.isShort() {
			return appendShortDecimalField(dst, tag, d)
		}
	}
	dst, mark := BeginField(dst, tag)
	return EndField(RowToWire(dst, payload, t), mark)
}

// KeyToWireField appends a key part as KeyToWire does, but as a whole field (see AppendWireField).
func KeyToWireField(dst []byte, tag byte, key []byte, t *Type, desc bool) (out, rest []byte) {
	if t.Kind == Int64 {
		if i, rest, ok := takeKeyInt(key, desc); ok {
			return appendIntField(dst, tag, i), rest
		}
	}
	dst, mark := BeginField(dst, tag)
	dst, rest = KeyToWire(dst, key, t, desc)
	return EndField(dst, mark), rest
}

// NullField appends NULL as a whole field (see AppendWireField).
func NullField(dst []byte, tag byte) []byte { return append(dst, tag, 2, wireNull, 0) }

// IsNullField reports whether a whole field is NULL.
func IsNullField(field []byte) bool { return field[1] == 2 && field[2] == wireNull }

// BeginField begins a field whose length is not yet known. It reserves one byte for the length. Pass mark to EndField,
// which writes the length; if the length needs more bytes, EndField moves the body.
func BeginField(dst []byte, tag byte) (out []byte, mark int) {
	return append(dst, tag, 0), len(dst) + 2
}

// EndField ends the field that BeginField began.
func EndField(dst []byte, mark int) []byte {
	n := len(dst) - mark
	if n < 1<<7 {
		dst[mark-1] = byte(n)
		return dst
	}
	more := uvarintSize(uint64(n)) - 1
	dst = extend(dst, more)
	copy(dst[mark+more:], dst[mark:mark+n])
	binary.PutUvarint(dst[mark-1:], uint64(n))
	return dst
}

// appendWireHead appends the tag and the length of a field of n bytes.
func appendWireHead(dst []byte, tag byte, n int) []byte {
	if n < 1<<7 {
		return append(dst, tag, byte(n))
	}
	return binary.AppendUvarint(append(dst, tag), uint64(n))
}

func appendWireNull(dst []byte) []byte { return append(dst, wireNull, 0) }

func appendWireInt(dst []byte, i int64) []byte {
	dst, mark := BeginField(dst, wireString)
	return EndField(strconv.AppendInt(dst, i, 10), mark)
}

func appendWireFloat(dst []byte, f float64) []byte {
	switch {
	case f != f:
		return append(dst, "\x1a\x03NaN"...)
	case f > math.MaxFloat64:
		return append(dst, "\x1a\x08Infinity"...)
	case f < -math.MaxFloat64:
		return append(dst, "\x1a\x09-Infinity"...)
	}
	return binary.LittleEndian.AppendUint64(append(dst, wireNumber), math.Float64bits(f))
}

func appendWireTimestamp(dst []byte, seconds int64, nanos int32) []byte {
	dst, mark := BeginField(dst, wireString)
	return EndField(AppendTimestamp(dst, seconds, nanos), mark)
}

func appendWireDate(dst []byte, days int32) []byte {
	dst, mark := BeginField(dst, wireString)
	return EndField(AppendDate(dst, days), mark)
}

func appendWireDecimal(dst []byte, d Decimal) []byte {
	dst, mark := BeginField(dst, wireString)
	return EndField(d.Append(dst), mark)
}

func appendWireUUID(dst, u []byte) []byte {
	return appendUUID(appendWireHead(dst, wireString, 36), u)
}

// appendUUID appends 16 bytes as 8-4-4-4-12 hexadecimal digits.
func appendUUID(dst, u []byte) []byte {
	dst = append(hex.AppendEncode(dst, u[:4]), '-')
	dst = append(hex.AppendEncode(dst, u[4:6]), '-')
	dst = append(hex.AppendEncode(dst, u[6:8]), '-')
	dst = append(hex.AppendEncode(dst, u[8:10]), '-')
	return hex.AppendEncode(dst, u[10:16])
}

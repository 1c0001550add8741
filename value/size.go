package value

import (
	"encoding/base64"
	"encoding/binary"
)

// These constants serve to count bytes of data as Spanner does:
// https://cloud.google.com/spanner/docs/reference/standard-sql/data-types#storage_size_for_data_types. The counts do
// not depend on Crowfoot's encoding. A NULL has size 0. For the size of a NUMERIC, that page gives only a range, 6 to
// 22 bytes. Crowfoot counts numericZero for the number 0; for any other number, it counts numericFixed and the bytes
// that the number needs. A UUID has the same size as an INTERVAL.
const (
	numericFixed = 6
	numericZero  = 1
	intervalSize = 16
)

// FixedSize returns the data size in bytes that all values of a kind except NULL have. It returns 0 if they differ in
// size.
func FixedSize(k Kind) int {
	switch k {
	case Bool:
		return 1
	case Float32, Date:
		return 4
	case Int64, Float64, Enum:
		return 8
	case Timestamp:
		return timestampWidth
	case UUID, Interval:
		return intervalSize
	}
	return 0
}

// DataSize returns the data size of v, of type t, in bytes, by the rules of Spanner's documentation.
func (v Value) DataSize(t *Type) int {
	if v.IsNull() {
		return 0
	}
	if n := FixedSize(t.Kind); n > 0 {
		return n
	}
	n := 0
	switch t.Kind {
	case String, Bytes, JSON, Proto:
		return int(v.bits)
	case Numeric:
		return numericSize(decimalSize(v.AsNumeric()))
	case Array:
		for _, e := range v.AsList() {
			n += e.DataSize(t.Elem)
		}
	case Struct:
		for i, f := range v.AsList() {
			n += f.DataSize(t.Fields[i].Type)
		}
	}
	return n
}

// wireHeads and wireDigit are upper bounds, in bytes, for the wire form of a value. wireHeads is the bound of all tags
// and lengths in a field that holds a google.protobuf.Value. wireDigit is the bound of the whole field, if the value is
// not a STRING, BYTES, JSON, PROTO, ARRAY or STRUCT.
const (
	wireHeads = 12
	wireDigit = 64
)

// WireSize returns an upper bound of the bytes that AppendWireField appends for v.
func (v Value) WireSize() int {
	if v.IsNull() {
		return wireHeads
	}
	switch v.Kind() {
	case String, JSON:
		return wireHeads + int(v.bits)
	case Bytes, Proto:
		return wireHeads + base64.StdEncoding.EncodedLen(int(v.bits))
	case Array, Struct:
		n := wireHeads
		for _, e := range v.AsList() {
			n += e.WireSize()
		}
		return n
	}
	return wireDigit
}

// RowWireSize estimates how many bytes RowToWireField appends for a stored payload of n bytes. Except for a list, the
// estimate is an upper bound. For a list, it counts four bytes on the wire for each stored byte, as a NULL element
// needs. Some elements with a short payload need more, such as a DATE near 1970-01-01.
func RowWireSize(n int, t *Type) int {
	switch t.Kind {
	case String, JSON:
		return wireHeads + n
	case Bytes, Proto:
		return wireHeads + base64.StdEncoding.EncodedLen(n)
	case Array, Struct:
		return wireHeads + 4*n
	}
	return wireDigit
}

func numericSize(digits int) int {
	if digits == 0 {
		return numericZero
	}
	return numericFixed + digits
}

// RowDataSize returns the DataSize of a stored payload of type t.
func RowDataSize(payload []byte, t *Type) int {
	if n := FixedSize(t.Kind); n > 0 {
		return n
	}
	switch t.Kind {
	case Numeric:
		return numericSize(len(payload))
	case Array:
		return rowArraySize(payload, t.Elem)
	case Struct:
		size := 0
		for _, f := range t.Fields {
			n := 0
			n, payload = rowElementSizeAt(payload, f.Type)
			size += n
		}
		return size
	}
	return len(payload)
}

func rowArraySize(payload []byte, t *Type) (size int) {
	_, head := binary.Uvarint(payload)
	payload = payload[max(head, 0):]
	for len(payload) > 0 {
		n := 0
		n, payload = rowElementSizeAt(payload, t)
		size += n
	}
	return size
}

// rowElementSizeAt returns the data size of the element at the start of b, and the rest of b. If the element is
// malformed, the rest is empty.
func rowElementSizeAt(b []byte, t *Type) (size int, rest []byte) {
	payload, rest, null, ok := rowElement(b)
	if !ok || null {
		return 0, rest
	}
	return RowDataSize(payload, t), rest
}

// KeyDataSize returns the data size in bytes of the key part of type t at the start of key. It returns 0 if the part
// is malformed.
func KeyDataSize(key []byte, t *Type, desc bool) int {
	switch {
	case len(key) == 0 || key[0]^mask(desc) == keyNull:
		return 0
	case FixedSize(t.Kind) > 0:
		return FixedSize(t.Kind)
	case t.Kind == Numeric:
		v, _, _ := DecodeKey(key, t, desc)
		return v.DataSize(t)
	}
	n, zeros := keyTextLen(key, desc)
	return max(n-textFrame-zeros, 0)
}

// WireDataSize returns the DataSize of a scalar of type t. field is the wire form of the scalar, as AppendWireField or
// KeyToWireField has appended it.
func WireDataSize(field []byte, t *Type) int {
	_, head := binary.Uvarint(field[1:])
	body := field[1+head:]
	if body[0] == wireNull {
		return 0
	}
	if n := FixedSize(t.Kind); n > 0 {
		return n
	}
	_, head = binary.Uvarint(body[1:])
	text := body[1+head:]
	switch t.Kind {
	case Bytes, Proto:
		return base64Size(text)
	case Numeric:
		d, _ := ParseDecimal(string(text)) // the method Append has printed the text, so there is no error
		return numericSize(decimalSize(d))
	}
	return len(text)
}

// base64Size returns the number of bytes that a base64 text with padding encodes.
func base64Size(text []byte) int {
	n := len(text) / 4 * 3
	for i := len(text) - 1; i >= 0 && text[i] == '='; i-- {
		n--
	}
	return n
}

package value

import (
	"encoding/base64"
	"encoding/binary"
)

// What counts as a byte of data: the storage sizes of
// https://cloud.google.com/spanner/docs/reference/standard-sql/data-types#storage_size_for_data_types,
// however a value is coded here. A NULL has none. Of NUMERIC that page gives a range, 6 to 22 bytes, which is as many as
// hold the number beside a fixed part.
const (
	numericFixed = 6
	numericZero  = 1
	intervalSize = 16
)

// FixedSize is the data size of every value of a kind that is not NULL; 0 if they differ.
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

// DataSize is how many bytes of data a value of type t is.
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

// What wire coding adds to a value at most: the head of a field, of a Value and of a text, and for values that are not texts their digits.
const (
	wireHeads = 12
	wireDigit = 64
)

// WireSize is how many bytes AppendWireField appends for v at most.
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

// RowWireSize is how many bytes RowToWireField appends at most for a stored payload of n bytes. Each byte of a list may become four: a NULL among its
// elements is one byte there.
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

// RowDataSize is the DataSize of a stored payload of type t.
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

// rowElementSizeAt is the data size of the element at the front of b; behind one that is malformed there is nothing.
func rowElementSizeAt(b []byte, t *Type) (size int, rest []byte) {
	payload, rest, null, ok := rowElement(b)
	if !ok || null {
		return 0, rest
	}
	return RowDataSize(payload, t), rest
}

// KeyDataSize is the DataSize of the key part of type t at the front of key; 0 if it is malformed.
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

// WireDataSize is the DataSize of a scalar of type t that AppendWireField or KeyToWireField has appended as field.
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
		d, _ := ParseDecimal(string(text)) // which was printed here
		return numericSize(decimalSize(d))
	}
	return len(text)
}

// base64Size is how many bytes a padded base64 text holds.
func base64Size(text []byte) int {
	n := len(text) / 4 * 3
	for i := len(text) - 1; i >= 0 && text[i] == '='; i-- {
		n--
	}
	return n
}

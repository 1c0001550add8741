package value

import (
	"encoding/binary"
	"fmt"
)

// A Column takes the values of one column, one after the other, from wherever they are: from the bytes of a stored row or key, or as Values. It keeps
// them in a form of its own and does not refer to what it was given.
type Column interface {
	AppendNull()
	// AppendRow appends a value that is not NULL from its stored payload, as AppendRow writes it.
	AppendRow(payload []byte) error
	// AppendKey appends the value of the key part at the front of key, as AppendKey writes it.
	AppendKey(key []byte, desc bool) error
	// AppendValue appends v, which may be NULL.
	AppendValue(v Value) error
}

// A Source gives the values of one column of many rows, by the number of the row, in the forms in which rows are stored. All are values of the column's
// type.
type Source interface {
	IsNull(row int) bool
	// IsShort says whether a STRING or BYTES that is not NULL has no more than limit characters or bytes, and is UTF-8 if it is a STRING. With limit 0
	// any length will do. It may say no of a value of more than limit bytes.
	IsShort(row int, limit int64) bool
	// AppendRow appends the stored payload of a value that is not NULL, as the function AppendRow does, and RowSize is its length.
	AppendRow(dst []byte, row int) []byte
	RowSize(row int) int
	// AppendKey appends the key part of a value, as the function AppendKey does.
	AppendKey(dst []byte, row int, desc bool) []byte
	// Value is the value. It does not refer to the source's memory.
	Value(row int) Value
}

// KeyText is the text of the key part of a STRING or BYTES at the front of key. It refers to key, or to buf if the text had to be changed there; buf is
// returned for the next call. null says that the value is NULL.
func KeyText(key, buf []byte, t *Type, desc bool) (text, room []byte, null bool, err error) {
	n := keyLen(key, t, desc)
	if n < 0 {
		return nil, buf, false, badKey(key, t)
	}
	if key[0]^mask(desc) == keyNull {
		return nil, buf, true, nil
	}
	if _, zeros := keyTextLen(key, desc); zeros == 0 && !desc {
		return key[1 : n-2], buf, false, nil
	}
	if buf == nil {
		buf = make([]byte, 0, n)
	}
	buf = keyTextBody(buf[:0], key[:n], desc)
	return buf, buf, false, nil
}

// KeyInt64 is the INT64 of the key part at the front of key. ok is false for NULL and for a part that is malformed.
func KeyInt64(key []byte, desc bool) (i int64, ok bool) {
	if len(key) == 0 || key[0]^mask(desc) == keyNull {
		return 0, false
	}
	n := keyIntLen(key[0]^mask(desc), 8)
	if n < 0 || n > len(key) {
		return 0, false
	}
	return keyInt(key[:n], mask(desc))
}

// RowElements is the number of elements of a stored ARRAY, and the elements, which NextElement takes one by one.
func RowElements(payload []byte) (count int, elements []byte, err error) {
	n, size := binary.Uvarint(payload)
	if size <= 0 || n > uint64(len(payload)-size) { // every element has at least one byte
		return 0, nil, fmt.Errorf("malformed stored array: %x", payload[:min(len(payload), 32)])
	}
	return int(n), payload[size:], nil
}

// NextElement takes the element or field at the front of b, as AppendElement writes it. The payload of NULL is nil.
func NextElement(b []byte) (payload, rest []byte, err error) {
	payload, rest, null, ok := rowElement(b)
	switch {
	case !ok:
		return nil, nil, fmt.Errorf("malformed stored element: %x", b[:min(len(b), 32)])
	case null:
		return nil, rest, nil
	}
	return payload, rest, nil
}

package value

import (
	"encoding/binary"
	"fmt"
)

// A Column collects the values of one column, one after the other. Its methods take a value from the bytes of a stored
// row or key, or as a Value. They copy the value and keep no reference to their arguments.
type Column interface {
	AppendNull()
	// AppendRow appends a value that is not NULL. payload is its stored form, as the function AppendRow writes it.
	AppendRow(payload []byte) error
	// AppendKey decodes the key part at the start of key and appends its value. The function AppendKey of this package
	// must have written the part. The argument desc of both calls must be equal.
	AppendKey(key []byte, desc bool) error
	// AppendValue appends v, which may be NULL.
	AppendValue(v Value) error
}

// A Source gives the values of one column of many rows, addressed by row number. It can append them in the forms in
// which rows and keys are stored. All values have the column's type.
type Source interface {
	IsNull(row int) bool
	// IsShort returns true only if the value in the given row is a STRING of valid UTF-8 with at most limit characters,
	// or a BYTES value with at most limit bytes. If limit is 0, the value may have any length. The value must not be
	// NULL. A result of false proves nothing, because an implementation may omit the check or count bytes instead of
	// characters. The caller must then get the Value and check it.
	IsShort(row int, limit int64) bool
	// AppendRow appends the stored payload of a value that is not NULL, as the function AppendRow does. RowSize
	// returns the length of that payload.
	AppendRow(dst []byte, row int) []byte
	RowSize(row int) int
	// AppendKey appends the key part of a value, as the function AppendKey does.
	AppendKey(dst []byte, row int, desc bool) []byte
	// Value returns the value of a row. The returned Value does not refer to the source's memory.
	Value(row int) Value
}

// KeyText returns the text of the STRING or BYTES key part at the start of key. If the part contains the text as it is,
// the returned text is a slice of key. If the text had to be unescaped or inverted, it is a slice of the result room.
// This result is buf or a larger buffer that replaces buf. The caller passes it as buf to the next call. null is true
// if the value is NULL.
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

// KeyInt64 returns the number of the INT64 key part at the front of key. ok is false for NULL and for a malformed part.
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

// RowElements returns the number of elements of a stored ARRAY, and their encoded bytes. NextElement splits these bytes
// into the elements.
func RowElements(payload []byte) (count int, elements []byte, err error) {
	n, size := binary.Uvarint(payload)
	if size <= 0 || n > uint64(len(payload)-size) { // each element has at least one byte
		return 0, nil, fmt.Errorf("malformed stored array: %x", payload[:min(len(payload), 32)])
	}
	return int(n), payload[size:], nil
}

// NextElement returns the payload of the element or field at the start of b, and the rest of b. AppendElement must have
// written the element. If the element is NULL, payload is nil.
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

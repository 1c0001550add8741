package value

import (
	"encoding/binary"
	"fmt"
)

// A Column collects the values of one column, one after the other. It takes them from the bytes of a stored row or
// key, or as Values. It copies them into a form of its own and does not refer to its arguments.
type Column interface {
	AppendNull()
	// AppendRow appends a value that is not NULL. payload is its stored form, as the function AppendRow writes it.
	AppendRow(payload []byte) error
	// AppendKey appends the value of the key part at the start of key. The function AppendKey must have written the
	// part.
	AppendKey(key []byte, desc bool) error
	// AppendValue appends v, which may be NULL.
	AppendValue(v Value) error
}

// A Source gives the values of one column of many rows, addressed by row number. It can append them in the forms in
// which rows and keys are stored. All values have the column's type.
type Source interface {
	IsNull(row int) bool
	// IsShort returns true only if a STRING is valid UTF-8 and has at most limit characters, or a BYTES value has at
	// most limit bytes. If limit is 0, any length passes. The value must not be NULL. A false result is not certain,
	// because IsShort need not count characters or look at the value at all. After false, the caller must check the
	// Value itself.
	IsShort(row int, limit int64) bool
	// AppendRow appends the stored payload of a value that is not NULL, as the function AppendRow does. RowSize
	// returns the length of that payload.
	AppendRow(dst []byte, row int) []byte
	RowSize(row int) int
	// AppendKey appends the key part of a value, as the function AppendKey does.
	AppendKey(dst []byte, row int, desc bool) []byte
	// Value returns the value of a row. It does not refer to the source's memory.
	Value(row int) Value
}

// KeyText returns the text of the STRING or BYTES key part at the start of key. The text refers to the memory of key
// or, if it had to be unescaped, to that of buf. room is buf, perhaps enlarged; the caller passes it as buf to the next
// call. null is true if the value is NULL.
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

// RowElements returns the number of elements of a stored ARRAY, and their encoded bytes. NextElement decodes these
// bytes one element at a time.
func RowElements(payload []byte) (count int, elements []byte, err error) {
	n, size := binary.Uvarint(payload)
	if size <= 0 || n > uint64(len(payload)-size) { // each element has at least one byte
		return 0, nil, fmt.Errorf("malformed stored array: %x", payload[:min(len(payload), 32)])
	}
	return int(n), payload[size:], nil
}

// NextElement decodes the element or field at the start of b, which AppendElement has written. It returns the rest of
// b. For NULL, payload is nil.
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

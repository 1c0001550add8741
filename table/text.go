package table

import (
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// keyText formats a key, or the first parts of a key, for error messages: {Int64(1), String("a")}.
func keyText(key []value.Value) string {
	var b strings.Builder
	b.WriteByte('{')
	for i, v := range key {
		if i > 0 {
			b.WriteString(", ")
		}
		writePart(&b, v)
	}
	b.WriteByte('}')
	return b.String()
}

// rowText formats the key of a row for error messages. The values of row are indexed by Ordinal.
func (l *Layout) rowText(row []value.Value) string { return keyText(keyOf(row, l.Key)) }

func keyOf(row []value.Value, parts []schema.KeyPart) []value.Value {
	key := make([]value.Value, len(parts))
	for i, p := range parts {
		key[i] = row[p.Column.Ordinal]
	}
	return key
}

// KeyText formats a stored key of this layout for an error message.
func (l *Layout) KeyText(key []byte) string { return l.storedText(key) }

// storedText formats a stored key as keyText does. For a malformed key it returns {}.
func (l *Layout) storedText(key []byte) string {
	vals, err := l.DecodeKey(nil, key)
	if err != nil {
		return "{}"
	}
	return keyText(vals)
}

var kindNames = map[value.Kind]string{
	value.Bool: "Bool", value.Int64: "Int64", value.Float64: "Float64", value.Float32: "Float32",
	value.Timestamp: "Timestamp", value.Date: "Date", value.String: "String", value.Bytes: "Bytes",
	value.Numeric: "Numeric", value.UUID: "Uuid", value.Enum: "Enum",
}

// maxShown is how many bytes of a STRING or BYTES value in a key an error message shows.
const maxShown = 64

func writePart(b *strings.Builder, v value.Value) {
	switch {
	case v.IsPending():
		b.WriteString("spanner.commit_timestamp()")
		return
	case v.IsNull():
		b.WriteString("NULL")
		return
	}
	b.WriteString(kindNames[v.Kind()])
	b.WriteByte('(')
	switch v.Kind() {
	case value.Bool:
		b.WriteString(strconv.FormatBool(v.AsBool()))
	case value.Int64, value.Enum:
		b.WriteString(strconv.FormatInt(v.AsInt64(), 10))
	case value.Float64:
		b.WriteString(strconv.FormatFloat(v.AsFloat64(), 'g', -1, 64))
	case value.Float32:
		b.WriteString(strconv.FormatFloat(v.AsFloat64(), 'g', -1, 32))
	case value.Timestamp:
		b.WriteString(timestampText(v))
	case value.Date:
		b.Write(value.AppendDate(nil, v.AsDate()))
	case value.String, value.Bytes:
		s := string(v.AsBytes())
		if len(s) > maxShown {
			s = s[:maxShown] + "..."
		}
		b.WriteString(strconv.Quote(s))
	case value.Numeric:
		b.WriteString(v.AsNumeric().String())
	case value.UUID:
		b.Write(value.AppendUUID(nil, v.AsUUID()))
	}
	b.WriteByte(')')
}

func timestampText(v value.Value) string {
	s, n := v.AsTimestamp()
	return string(value.AppendTimestamp(nil, s, n))
}

package stats

import (
	"encoding/base64"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/value"
)

// maxKeyPart is how many bytes of a string in a key are shown.
const maxKeyPart = 256

// KeyText formats a key as ROW_RANGE_START_KEY and the split tables show it. The text albums(2,1) means one row. If
// open is set, the text is albums(2,1+), which means a range that starts at that key.
func KeyText(table string, key []value.Value, open bool) string {
	var b strings.Builder
	b.WriteString(table)
	b.WriteByte('(')
	for i, v := range key {
		if i > 0 {
			b.WriteByte(',')
		}
		writeKeyPart(&b, v)
	}
	if open {
		b.WriteByte('+')
	}
	b.WriteByte(')')
	return b.String()
}

func writeKeyPart(b *strings.Builder, v value.Value) {
	if v.IsNull() {
		b.WriteString("NULL")
		return
	}
	var room [64]byte
	switch v.Kind() {
	case value.Bool:
		b.WriteString(strconv.FormatBool(v.AsBool()))
	case value.Int64, value.Enum:
		b.Write(strconv.AppendInt(room[:0], v.AsInt64(), 10))
	case value.Float64:
		b.Write(value.AppendFloat64(room[:0], v.AsFloat64()))
	case value.Float32:
		b.Write(value.AppendFloat32(room[:0], v.AsFloat32()))
	case value.String, value.JSON:
		b.WriteString(cut(v.AsString(), maxKeyPart))
	case value.Bytes:
		data := v.AsBytes()
		b.WriteString(base64.StdEncoding.EncodeToString(data[:min(len(data), maxKeyPart)]))
	case value.Date:
		b.Write(value.AppendDate(room[:0], v.AsDate()))
	case value.Timestamp:
		seconds, nanos := v.AsTimestamp()
		b.Write(value.AppendTimestamp(room[:0], seconds, nanos))
	case value.Numeric:
		b.Write(v.AsNumeric().Append(room[:0]))
	case value.UUID:
		b.Write(value.AppendUUID(room[:0], v.AsUUID()))
	}
}

// IndexKeyText formats a split point of an index as USER_SPLIT_POINTS shows it. A nil tableKey means that the split
// point lies before all entries with the index key. The text then has <begin> in place of each part of the table's key;
// parts is the number of these parts.
func IndexKeyText(index, table string, key, tableKey []value.Value, parts int) string {
	behind := KeyText("", tableKey, false)
	if tableKey == nil {
		behind = "(" + strings.TrimSuffix(strings.Repeat(SplitBegin+",", parts), ",") + ")"
	}
	return "Index: " + index + " on " + table + ", Index Key: " + KeyText("", key, false) + ", Primary Table Key: " + behind
}

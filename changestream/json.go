package changestream

import (
	"encoding/base64"
	"math"
	"strconv"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// The JSON of a record encodes values as the API encodes them in google.protobuf.Value
// (https://cloud.google.com/spanner/docs/reference/rpc/google.spanner.v1#typecode). INT64, NUMERIC, TIMESTAMP, DATE,
// BYTES, JSON, UUID and INTERVAL are strings. FLOAT64 and FLOAT32 are numbers, or strings if they are not finite. The
// members of an object are sorted by name, as in Spanner's normalised JSON.

// timestampLayout is the format of a commit timestamp. It has a fixed width, so that the timestamp can be written into
// its place when it is known.
const (
	timestampLayout = "2006-01-02T15:04:05.000000Z"
	timestampWidth  = len(timestampLayout)
)

// appendObject appends a JSON object with columns of a row. It appends to pending the offsets in dst at which commit
// timestamps must be written when they are known.
func appendObject(dst []byte, columns []*schema.Column, row []value.Value, pending []int) ([]byte, []int) {
	dst = append(dst, '{')
	for i, c := range columns {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(dst, '"'), c.Name...), '"', ':')
		v := row[c.Ordinal]
		if v.IsPending() {
			pending = append(pending, len(dst)+1)
			dst = append(append(append(dst, '"'), timestampLayout...), '"')
			continue
		}
		dst = appendJSON(dst, v, c.Type)
	}
	return append(dst, '}'), pending
}

// appendJSON appends a value of type t.
func appendJSON(dst []byte, v value.Value, t *value.Type) []byte {
	if v.IsNull() {
		return append(dst, "null"...)
	}
	switch t.Kind {
	case value.Bool:
		return strconv.AppendBool(dst, v.AsBool())
	case value.Float64, value.Float32:
		return appendFloat(dst, v.AsFloat64())
	case value.String, value.JSON:
		return value.AppendJSONString(dst, v.AsString())
	case value.Array:
		dst = append(dst, '[')
		for i, e := range v.AsList() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, e, t.Elem)
		}
		return append(dst, ']')
	}
	return append(appendUnescaped(append(dst, '"'), v, t), '"')
}

// appendUnescaped appends a value of a type that is a string in JSON and never contains characters that must be
// escaped.
func appendUnescaped(dst []byte, v value.Value, t *value.Type) []byte {
	switch t.Kind {
	case value.Int64, value.Enum:
		return strconv.AppendInt(dst, v.AsInt64(), 10)
	case value.Timestamp:
		seconds, nanos := v.AsTimestamp()
		return value.AppendTimestamp(dst, seconds, nanos)
	case value.Date:
		return value.AppendDate(dst, v.AsDate())
	case value.Bytes, value.Proto:
		return base64.StdEncoding.AppendEncode(dst, v.AsBytes())
	case value.Numeric:
		return v.AsNumeric().Append(dst)
	case value.Interval:
		return v.AsInterval().Append(dst)
	case value.UUID:
		return value.AppendUUID(dst, v.AsUUID())
	}
	panic("changestream: a column of type " + t.String())
}

func appendFloat(dst []byte, f float64) []byte {
	switch {
	case f != f:
		return append(dst, `"NaN"`...)
	case f > math.MaxFloat64:
		return append(dst, `"Infinity"`...)
	case f < -math.MaxFloat64:
		return append(dst, `"-Infinity"`...)
	}
	return value.AppendJSONFloat(dst, f)
}

// appendType appends the JSON of a google.spanner.v1.Type.
func appendType(dst []byte, t *value.Type) []byte {
	if t.Kind == value.Array {
		dst = appendType(append(dst, `{"array_element_type":`...), t.Elem)
		return append(dst, `,"code":"ARRAY"}`...)
	}
	dst = append(append(append(dst, `{"code":"`...), t.Kind.String()...), '"')
	if t.Name != "" {
		dst = append(append(append(dst, `,"proto_type_fqn":"`...), t.Name...), '"')
	}
	return append(dst, '}')
}

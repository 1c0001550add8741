package arrowtype

import (
	"fmt"
	"strconv"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// Scalar returns the type with the given code. The type must have no parameters.
func Scalar(code spannerpb.TypeCode) *spannerpb.Type { return &spannerpb.Type{Code: code} }

// scalars holds the types whose name in DDL is the same as the name of their code.
var scalars = map[string]spannerpb.TypeCode{
	"BOOL": spannerpb.TypeCode_BOOL, "INT64": spannerpb.TypeCode_INT64, "FLOAT32": spannerpb.TypeCode_FLOAT32, "FLOAT64": spannerpb.TypeCode_FLOAT64,
	"NUMERIC": spannerpb.TypeCode_NUMERIC, "STRING": spannerpb.TypeCode_STRING, "BYTES": spannerpb.TypeCode_BYTES, "DATE": spannerpb.TypeCode_DATE,
	"TIMESTAMP": spannerpb.TypeCode_TIMESTAMP, "JSON": spannerpb.TypeCode_JSON, "UUID": spannerpb.TypeCode_UUID, "INTERVAL": spannerpb.TypeCode_INTERVAL,
}

// ParseDDL reads a type in the form of a column in DDL and INFORMATION_SCHEMA: STRING(25), ARRAY<BYTES(MAX)>,
// PROTO<a.b.C>. maxLength is the limit of STRING values in characters, or of BYTES values in bytes. For an array, it is
// the limit of the elements. 0 means Spanner's own limit.
func ParseDDL(text string) (t *spannerpb.Type, maxLength int, err error) {
	text = withoutVectorLength(strings.TrimSpace(text))
	name := strings.ToUpper(text)
	if code, ok := scalars[name]; ok {
		return Scalar(code), 0, nil
	}
	inner, ok := strings.CutPrefix(name, "ARRAY<")
	if ok && strings.HasSuffix(inner, ">") {
		elem, length, err := ParseDDL(text[len("ARRAY<") : len(text)-1])
		return &spannerpb.Type{Code: spannerpb.TypeCode_ARRAY, ArrayElementType: elem}, length, err
	}
	for prefix, code := range map[string]spannerpb.TypeCode{"PROTO<": spannerpb.TypeCode_PROTO, "ENUM<": spannerpb.TypeCode_ENUM} {
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, ">") {
			return &spannerpb.Type{Code: code, ProtoTypeFqn: strings.Trim(text[len(prefix):len(text)-1], "`")}, 0, nil
		}
	}
	base, size, ok := strings.Cut(strings.TrimSuffix(name, ")"), "(")
	if code, known := scalars[base]; ok && known && (base == "STRING" || base == "BYTES") {
		if size == "MAX" {
			return Scalar(code), 0, nil
		}
		if n, err := strconv.ParseInt(size, 0, 32); err == nil && n > 0 {
			return Scalar(code), int(n), nil
		}
	}
	return nil, 0, fmt.Errorf("%q is not the type of a column", text)
}

// withoutVectorLength removes (vector_length=>n) from the text of an array type, because a length does not change the
// type of the array's values.
func withoutVectorLength(text string) string {
	if end := strings.LastIndexByte(text, '>'); strings.HasSuffix(text, ")") && end > 0 && text[end-1] == '=' {
		if open := strings.LastIndexByte(text[:end], '>'); open >= 0 {
			return text[:open+1]
		}
	}
	return text
}

// DDL returns the text of a type in DDL. STRING and BYTES get the length MAX.
func DDL(t *spannerpb.Type) string {
	switch t.GetCode() {
	case spannerpb.TypeCode_STRING, spannerpb.TypeCode_BYTES:
		return t.GetCode().String() + "(MAX)"
	case spannerpb.TypeCode_PROTO, spannerpb.TypeCode_ENUM:
		return t.GetCode().String() + "<" + t.GetProtoTypeFqn() + ">"
	case spannerpb.TypeCode_ARRAY:
		return "ARRAY<" + DDL(t.GetArrayElementType()) + ">"
	case spannerpb.TypeCode_STRUCT:
		fields := make([]string, len(t.GetStructType().GetFields()))
		for i, f := range t.GetStructType().GetFields() {
			fields[i] = strings.TrimSpace(f.GetName() + " " + DDL(f.GetType()))
		}
		return "STRUCT<" + strings.Join(fields, ", ") + ">"
	}
	return t.GetCode().String()
}

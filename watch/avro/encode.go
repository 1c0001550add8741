package avro

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"

	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
)

// AppendField appends one field of a record to b, in Avro's binary encoding. The caller appends the fields in the
// schema's order, which makes the record. A NULL in a column that is not nullable is an error.
func AppendField(b []byte, c Column, v *structpb.Value) ([]byte, error) {
	_, null := v.GetKind().(*structpb.Value_NullValue)
	if null && !c.Nullable {
		return nil, fmt.Errorf("column %s is NULL, and NOT NULL in the schema", c.Name)
	}
	appendOne := appendValue
	if c.Nullable {
		appendOne = appendNullable
	}
	b, err := appendOne(b, c.Type, v)
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", c.Name, err)
	}
	return b, nil
}

// Indexes of the two types in a union that nullOr makes.
const (
	unionNull  = 0
	unionValue = 1
)

func appendNullable(b []byte, t *sppb.Type, v *structpb.Value) ([]byte, error) {
	if _, null := v.GetKind().(*structpb.Value_NullValue); null {
		return binary.AppendVarint(b, unionNull), nil
	}
	return appendValue(binary.AppendVarint(b, unionValue), t, v)
}

// appendValue appends a value that is not NULL. Avro's longs are the signed varints of package binary.
func appendValue(b []byte, t *sppb.Type, v *structpb.Value) ([]byte, error) {
	switch t.GetCode() {
	case sppb.TypeCode_BOOL:
		if v.GetBoolValue() {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case sppb.TypeCode_INT64, sppb.TypeCode_ENUM:
		n, err := strconv.ParseInt(v.GetStringValue(), 10, 64)
		return binary.AppendVarint(b, n), err
	case sppb.TypeCode_FLOAT32:
		f, err := float(v)
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(f))), err
	case sppb.TypeCode_FLOAT64:
		f, err := float(v)
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(f)), err
	case sppb.TypeCode_BYTES, sppb.TypeCode_PROTO:
		decoded, err := base64.StdEncoding.DecodeString(v.GetStringValue())
		return appendText(b, string(decoded)), err
	case sppb.TypeCode_NUMERIC:
		if t.GetTypeAnnotation() != sppb.TypeAnnotationCode_PG_NUMERIC {
			return appendNumeric(b, v.GetStringValue())
		}
	case sppb.TypeCode_ARRAY:
		return appendArray(b, t.GetArrayElementType(), v.GetListValue().GetValues())
	}
	return appendText(b, v.GetStringValue()), nil
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendVarint(b, int64(len(s))), s...)
}

// float returns a number. Spanner's API sends NaN, Infinity and -Infinity as strings.
func float(v *structpb.Value) (float64, error) {
	if text, ok := v.GetKind().(*structpb.Value_StringValue); ok {
		return strconv.ParseFloat(text.StringValue, 64)
	}
	return v.GetNumberValue(), nil
}

// appendArray appends one block with all elements, and then the empty block with which Avro ends an array.
func appendArray(b []byte, element *sppb.Type, values []*structpb.Value) (_ []byte, err error) {
	if len(values) > 0 {
		b = binary.AppendVarint(b, int64(len(values)))
	}
	for _, v := range values {
		if b, err = appendNullable(b, element, v); err != nil {
			return nil, err
		}
	}
	return binary.AppendVarint(b, 0), nil
}

// appendNumeric appends a NUMERIC as Avro's logical type decimal: the value times 10^9, as a big-endian number in two's complement.
func appendNumeric(b []byte, text string) ([]byte, error) {
	value, ok := new(big.Rat).SetString(text)
	if !ok {
		return nil, fmt.Errorf("%q is no NUMERIC", text)
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(numericScale), nil)
	scaled := value.Mul(value, new(big.Rat).SetInt(unit))
	if !scaled.IsInt() {
		return nil, fmt.Errorf("%q has more than %d digits behind its point", text, numericScale)
	}
	return appendText(b, string(twosComplement(scaled.Num()))), nil
}

// twosComplement returns a number in two's complement, with as few bytes as possible but at least one, in big-endian
// order.
func twosComplement(n *big.Int) []byte {
	if n.Sign() >= 0 {
		return append([]byte{0}, n.Bytes()...)[signByte(n):]
	}
	inverted := new(big.Int).Not(n) // -n-1
	bytes := append([]byte{0}, inverted.Bytes()...)[signByte(inverted):]
	for i := range bytes {
		bytes[i] = ^bytes[i]
	}
	return bytes
}

// signByte returns 0 if a zero byte must precede the bytes of n so that the first bit of its two's complement is 0.
// Otherwise it returns 1. n must not be negative.
func signByte(n *big.Int) int {
	if n.BitLen()%8 == 0 {
		return 0
	}
	return 1
}

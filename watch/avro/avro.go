// Package avro encodes rows in Apache Avro's binary encoding
// (https://avro.apache.org/docs/1.12.0/specification/#binary-encoding), with a schema derived from their table. A
// datum contains neither a schema nor a header, so its reader needs the schema, which Encoder.Schema returns.
//
// Imports of this module: avrotype, watch.
package avro

import (
	"encoding/base64"
	"fmt"
	"strconv"

	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/twmb/avro"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/avrotype"
)

// Column is a column of a table.
type Column struct {
	name     string
	kind     *sppb.Type
	nullable bool
	avroType string       // the Avro type of values that are not NULL, as JSON
	values   *avro.Schema // the schema that the JSON in avroType describes
}

// NewColumn returns a column, which may be NULL if nullable is true.
func NewColumn(name string, kind *sppb.Type, nullable bool) (Column, error) {
	text, err := avrotype.Of(kind, avrotype.Text)
	if err != nil {
		return Column{}, fmt.Errorf("column %s: %w", name, err)
	}
	values, err := avro.Parse(text)
	return Column{name, kind, nullable, text, values}, err
}

// Schema returns the Avro schema, as JSON, of the rows of a table. schema is the table's named schema, or "" for the
// default one. The Avro schema is a record with the table's name, in the namespace of the named schema, with a field
// for each column.
func Schema(schema, table string, columns []Column) string {
	record := avrotype.Record{Name: table, Namespace: schema}
	for _, c := range columns {
		record.Fields = append(record.Fields, avrotype.Field{Name: c.name, Type: c.avroType, Nullable: c.nullable, DefaultNull: c.nullable})
	}
	return record.JSON()
}

// The first byte of a column that may be NULL, in Avro's encoding. It says which type of the union ["null", T] follows:
// index 0 or 1, as a zigzag varint. This package writes the byte itself, because encoding takes one and a half times as
// long if the library github.com/twmb/avro encodes the union.
const (
	unionNull  = 0
	unionValue = 2
)

// AppendField appends the column's field of a record to b, in Avro's binary encoding. The caller makes a record by
// appending the fields in the order of the schema. A NULL in a column that is not nullable is an error.
func (c *Column) AppendField(b []byte, v *structpb.Value) ([]byte, error) {
	_, null := v.GetKind().(*structpb.Value_NullValue)
	switch {
	case null && c.nullable:
		return append(b, unionNull), nil
	case null:
		return nil, fmt.Errorf("column %s is NULL, and NOT NULL in the schema", c.name)
	case c.nullable:
		b = append(b, unionValue)
	}
	value, err := native(c.kind, v)
	if err == nil {
		b, err = c.values.AppendEncode(b, value)
	}
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", c.name, err)
	}
	return b, nil
}

// native returns a value in the form in which the library github.com/twmb/avro accepts it. Where possible this is a
// pointer into v, which needs no memory of its own.
func native(t *sppb.Type, v *structpb.Value) (any, error) {
	switch k := v.GetKind().(type) {
	case *structpb.Value_BoolValue:
		return &k.BoolValue, nil
	case *structpb.Value_NumberValue:
		return &k.NumberValue, nil
	case *structpb.Value_StringValue:
		switch t.GetCode() {
		case sppb.TypeCode_INT64, sppb.TypeCode_ENUM:
			return strconv.ParseInt(k.StringValue, 10, 64)
		case sppb.TypeCode_FLOAT32, sppb.TypeCode_FLOAT64: // NaN, Infinity or -Infinity
			return strconv.ParseFloat(k.StringValue, 64)
		case sppb.TypeCode_BYTES, sppb.TypeCode_PROTO:
			return base64.StdEncoding.DecodeString(k.StringValue)
		}
		return &k.StringValue, nil
	case *structpb.Value_ListValue:
		list := make([]any, len(k.ListValue.GetValues()))
		for i, element := range k.ListValue.GetValues() {
			var err error
			if list[i], err = native(t.GetArrayElementType(), element); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, nil
}

// Package avro encodes rows in Apache Avro's binary encoding
// (https://avro.apache.org/docs/1.12.0/specification/#binary-encoding), with a schema derived from their table. A
// datum contains neither a schema nor a header, so its reader needs the schema, which Encoder.Schema returns.
//
// This package implements the encoding itself, since it is short. Tests read the result with another library.
//
// Imports of this module: watch.
package avro

import (
	"encoding/json"
	"fmt"

	sppb "cloud.google.com/go/spanner/apiv1/spannerpb"
)

// Column is a column of a table.
type Column struct {
	Name     string
	Type     *sppb.Type
	Nullable bool // whether the column may be NULL
}

// Schema returns the Avro schema, as JSON, of the rows of a table. schema is the table's named schema, or "" for the default one. The Avro schema
// is a record with the table's name, in the namespace of the named schema, with a field for each column.
//
//	BOOL                              boolean
//	INT64, ENUM                       long
//	FLOAT32, FLOAT64                  float, double
//	STRING, DATE, TIMESTAMP, JSON     string, as Spanner's API writes it: "2026-11-22", "2026-11-22T10:00:00.123456Z"
//	UUID                              string with the logical type uuid
//	BYTES, PROTO                      bytes
//	NUMERIC                           bytes with the logical type decimal, precision 38, scale 9
//	ARRAY                             array of the union of null and its elements' type
//	anything else                     string
//
// A column that may be NULL is the union of null and its type. The publisher of Google's Java library uses the same Avro types for the types that
// it knows.
func Schema(schema, table string, columns []Column) (string, error) {
	type field struct {
		Name string `json:"name"`
		Type any    `json:"type"`
		// Default is JSON's null for a field that may be null, else it is missing.
		Default json.RawMessage `json:"default,omitempty"`
	}
	record := struct {
		Type      string  `json:"type"`
		Name      string  `json:"name"`
		Namespace string  `json:"namespace,omitempty"`
		Fields    []field `json:"fields"`
	}{"record", table, schema, []field{}}
	for _, c := range columns {
		f := field{Name: c.Name, Type: typeOf(c.Type)}
		if c.Nullable {
			f.Type, f.Default = nullOr(f.Type), json.RawMessage("null")
		}
		record.Fields = append(record.Fields, f)
	}
	text, err := json.Marshal(record)
	if err != nil {
		return "", fmt.Errorf("the Avro schema of table %s: %w", table, err)
	}
	return string(text), nil
}

// logical is the JSON of an Avro type with a logical type.
type logical struct {
	Type      string `json:"type"`
	Logical   string `json:"logicalType"`
	Precision int    `json:"precision,omitempty"`
	Scale     int    `json:"scale,omitempty"`
}

// Precision and scale of GoogleSQL's NUMERIC: https://cloud.google.com/spanner/docs/reference/standard-sql/data-types#numeric_type.
const (
	numericPrecision = 38
	numericScale     = 9
)

func typeOf(t *sppb.Type) any {
	switch t.GetCode() {
	case sppb.TypeCode_BOOL:
		return "boolean"
	case sppb.TypeCode_INT64, sppb.TypeCode_ENUM:
		return "long"
	case sppb.TypeCode_FLOAT32:
		return "float"
	case sppb.TypeCode_FLOAT64:
		return "double"
	case sppb.TypeCode_BYTES, sppb.TypeCode_PROTO:
		return "bytes"
	case sppb.TypeCode_UUID:
		return logical{Type: "string", Logical: "uuid"}
	case sppb.TypeCode_NUMERIC:
		if t.GetTypeAnnotation() == sppb.TypeAnnotationCode_PG_NUMERIC { // up to 147,455 digits, and NaN
			return "string"
		}
		return logical{Type: "bytes", Logical: "decimal", Precision: numericPrecision, Scale: numericScale}
	case sppb.TypeCode_ARRAY:
		return struct {
			Type  string `json:"type"`
			Items any    `json:"items"`
		}{"array", nullOr(typeOf(t.GetArrayElementType()))}
	}
	return "string"
}

func nullOr(t any) []any { return []any{"null", t} }

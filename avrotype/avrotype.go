// Package avrotype maps the types of Cloud Spanner to those of Apache Avro
// (https://avro.apache.org/docs/1.12.0/specification/), and writes the schemas of rows. Files (bulk/file) and messages
// (watch/avro) both use it, so that a column is the same everywhere. The Avro types are those of Spanner's own
// exports. The publisher of Google's Java library Spanner Change Watcher supports fewer types of Spanner, and maps them
// in the same way.
//
//	BOOL                              boolean
//	INT64, ENUM                       long
//	FLOAT32, FLOAT64                  float, double
//	STRING, DATE, JSON, INTERVAL      string, as Spanner's API writes it: "2026-11-22"
//	TIMESTAMP                         string: "2026-11-22T10:00:00.123456Z"; or long with timestamp-micros or timestamp-nanos
//	UUID                              string with the logical type uuid
//	BYTES, PROTO                      bytes
//	NUMERIC                           bytes with the logical type decimal, precision 38, scale 9
//	PostgreSQL's numeric              string, because it has up to 147,455 digits, and NaN
//	ARRAY                             array of the union of null and its elements' type
//
// A value that may be NULL has the union of null and its type.
//
// Imports of this module: nothing.
package avrotype

import (
	"encoding/json"
	"errors"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// The Avro types of TIMESTAMP, as JSON. Messages (watch/avro) always use Text, since it is exact for all times. A file
// (bulk/file) uses the type that corresponds to the Arrow type of TIMESTAMP in its record batches.
const (
	Text         = `"string"`
	Microseconds = `{"type":"long","logicalType":"timestamp-micros"}`
	Nanoseconds  = `{"type":"long","logicalType":"timestamp-nanos"}`
)

// Of returns the Avro type of a Spanner type, as JSON. timestamp is the Avro type of TIMESTAMP.
func Of(t *spannerpb.Type, timestamp string) (string, error) {
	switch t.GetCode() {
	case spannerpb.TypeCode_BOOL:
		return `"boolean"`, nil
	case spannerpb.TypeCode_INT64, spannerpb.TypeCode_ENUM:
		return `"long"`, nil
	case spannerpb.TypeCode_FLOAT32:
		return `"float"`, nil
	case spannerpb.TypeCode_FLOAT64:
		return `"double"`, nil
	case spannerpb.TypeCode_TIMESTAMP:
		return timestamp, nil
	case spannerpb.TypeCode_UUID:
		return `{"type":"string","logicalType":"uuid"}`, nil
	case spannerpb.TypeCode_BYTES, spannerpb.TypeCode_PROTO:
		return `"bytes"`, nil
	case spannerpb.TypeCode_NUMERIC:
		if t.GetTypeAnnotation() != spannerpb.TypeAnnotationCode_PG_NUMERIC {
			return `{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}`, nil
		}
	case spannerpb.TypeCode_ARRAY:
		items, err := Of(t.GetArrayElementType(), timestamp)
		return `{"type":"array","items":` + orNull(items) + `}`, err
	case spannerpb.TypeCode_STRUCT:
		return "", errors.New("there is no type of Avro for STRUCT")
	}
	return `"string"`, nil // also for types that are newer than this package
}

func orNull(t string) string { return `["null",` + t + `]` }

// Record is the schema of rows.
type Record struct {
	Name, Namespace string // Namespace may be empty
	Properties      []Property
	Fields          []Field
}

// Field is the schema of a column.
type Field struct {
	Name        string
	Type        string // the Avro type as JSON, without the union of null
	Nullable    bool   // the field has the union of null, which is first, and Type
	DefaultNull bool   // a reader whose schema has the field takes null when it reads rows without the field
	Properties  []Property
}

// Property is a property of a record or a field that Avro itself does not define.
type Property struct{ Name, Value string }

// JSON returns the schema as JSON.
func (r *Record) JSON() string {
	text := `{"type":"record","name":` + quoted(r.Name)
	if r.Namespace != "" {
		text += `,"namespace":` + quoted(r.Namespace)
	}
	text += properties(r.Properties) + `,"fields":[`
	for i, f := range r.Fields {
		if i > 0 {
			text += ","
		}
		if f.Nullable {
			f.Type = orNull(f.Type)
		}
		text += `{"name":` + quoted(f.Name) + `,"type":` + f.Type
		if f.DefaultNull {
			text += `,"default":null`
		}
		text += properties(f.Properties) + "}"
	}
	return text + "]}"
}

func properties(list []Property) (text string) {
	for _, p := range list {
		text += "," + quoted(p.Name) + ":" + quoted(p.Value)
	}
	return text
}

func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // Marshal never fails for a string
	}
	return string(text)
}

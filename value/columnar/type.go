// Package columnar is GoogleSQL's types as Apache Arrow's, and columns of values as Arrow's arrays, in both directions. Servers and clients share it.
//
// The types:
//
//	BOOL              bool
//	INT64             int64
//	FLOAT32, FLOAT64  float, double
//	NUMERIC           decimal128(38, 9)
//	STRING            utf8
//	BYTES             binary
//	DATE              date32
//	TIMESTAMP         timestamp[ns, UTC], or timestamp[us, UTC] if asked for
//	JSON              utf8 as the extension arrow.json
//	UUID              fixed_size_binary[16] as the extension arrow.uuid
//	INTERVAL          month_day_nano_interval
//	ARRAY<T>          list<item: T>
//	STRUCT<a T, ...>  struct<a: T, ...>
//
// Nanoseconds reach from 1677-09-21 to 2262-04-11: a TIMESTAMP beyond is an error, never another time. Microseconds reach everywhere, and
// what is below them is cut off. An INTERVAL whose time part is longer than 292 years is an error. Strings are not dictionary-encoded.
//
// It promises that values are appended without memory of their own, and that a batch's memory is used again for the next one.
// It leaves out files and streams of record batches, which Arrow's library reads and writes, and PROTO and ENUM, which package value leaves out, too.
//
// Imports of this module: value.
package columnar

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/value"
)

// Names of Arrow's canonical extension types (https://arrow.apache.org/docs/format/CanonicalExtensions.html) and of a field's metadata that says which it is.
const (
	ExtensionName     = "ARROW:extension:name"
	extensionMetadata = "ARROW:extension:metadata"
	jsonExtension     = "arrow.json"
	uuidExtension     = "arrow.uuid"
)

// uuidBytes is the size of a UUID.
const uuidBytes = 16

// A Column is the name and type of a column.
type Column struct {
	Name     string
	Type     *value.Type
	Required bool // no value is NULL
}

// Options choose where there is more than one Arrow type for a type.
type Options struct {
	Microseconds bool // TIMESTAMP is timestamp[us, UTC]
}

// Schema is Arrow's schema of columns.
func Schema(columns []Column, o Options) *arrow.Schema {
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		fields[i] = FieldOf(c, o)
	}
	return arrow.NewSchema(fields, nil)
}

// FieldOf is Arrow's field of a column.
func FieldOf(c Column, o Options) arrow.Field {
	f := arrow.Field{Name: c.Name, Type: dataType(c.Type, o), Nullable: !c.Required}
	switch c.Type.Kind {
	case value.JSON:
		f.Metadata = extension(jsonExtension)
	case value.UUID:
		f.Metadata = extension(uuidExtension)
	}
	return f
}

func extension(name string) arrow.Metadata {
	return arrow.NewMetadata([]string{ExtensionName, extensionMetadata}, []string{name, ""})
}

func dataType(t *value.Type, o Options) arrow.DataType {
	switch t.Kind {
	case value.Bool:
		return arrow.FixedWidthTypes.Boolean
	case value.Int64:
		return arrow.PrimitiveTypes.Int64
	case value.Float32:
		return arrow.PrimitiveTypes.Float32
	case value.Float64:
		return arrow.PrimitiveTypes.Float64
	case value.Numeric:
		return &arrow.Decimal128Type{Precision: 38, Scale: 9}
	case value.Bytes:
		return arrow.BinaryTypes.Binary
	case value.Date:
		return arrow.FixedWidthTypes.Date32
	case value.Timestamp:
		if o.Microseconds {
			return arrow.FixedWidthTypes.Timestamp_us
		}
		return arrow.FixedWidthTypes.Timestamp_ns
	case value.UUID:
		return &arrow.FixedSizeBinaryType{ByteWidth: uuidBytes}
	case value.Interval:
		return arrow.FixedWidthTypes.MonthDayNanoInterval
	case value.Array:
		return arrow.ListOfField(FieldOf(Column{Name: "item", Type: t.Elem}, o))
	case value.Struct:
		fields := make([]arrow.Field, len(t.Fields))
		for i, f := range t.Fields {
			fields[i] = FieldOf(Column{Name: f.Name, Type: f.Type}, o)
		}
		return arrow.StructOf(fields...)
	}
	return arrow.BinaryTypes.String // STRING and JSON
}

// TypeOf is the GoogleSQL type that takes all values of an Arrow field. Its error names the type if there is none.
func TypeOf(f arrow.Field) (*value.Type, error) {
	t := f.Type
	if e, ok := t.(arrow.ExtensionType); ok {
		if kind := extensionKind(e.ExtensionName()); kind != nil {
			return kind, nil
		}
		t = e.StorageType()
	}
	if name, ok := f.Metadata.GetValue(ExtensionName); ok {
		if kind := extensionKind(name); kind != nil {
			return kind, nil
		}
	}
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return TypeOf(arrow.Field{Type: t.ValueType})
	case *arrow.ListType:
		return arrayOf(t.ElemField())
	case *arrow.LargeListType:
		return arrayOf(t.ElemField())
	case *arrow.FixedSizeListType:
		return arrayOf(t.ElemField())
	case *arrow.StructType:
		return structOf(t)
	}
	if kind := scalarTypes[t.ID()]; kind != nil {
		return kind, nil
	}
	return nil, fmt.Errorf("no type of GoogleSQL takes the values of Arrow's %s", f.Type)
}

// scalarTypes are the types that take all values of Arrow's types. UINT64 is not among INT64's: the greater half of its values has no place there.
var scalarTypes = map[arrow.Type]*value.Type{
	arrow.BOOL: value.BoolType,
	arrow.INT8: value.Int64Type, arrow.INT16: value.Int64Type, arrow.INT32: value.Int64Type, arrow.INT64: value.Int64Type,
	arrow.UINT8: value.Int64Type, arrow.UINT16: value.Int64Type, arrow.UINT32: value.Int64Type, arrow.UINT64: value.NumericType,
	arrow.FLOAT16: value.Float32Type, arrow.FLOAT32: value.Float32Type, arrow.FLOAT64: value.Float64Type,
	arrow.DECIMAL32: value.NumericType, arrow.DECIMAL64: value.NumericType, arrow.DECIMAL128: value.NumericType,
	arrow.STRING: value.StringType, arrow.LARGE_STRING: value.StringType, arrow.STRING_VIEW: value.StringType,
	arrow.BINARY: value.BytesType, arrow.LARGE_BINARY: value.BytesType, arrow.BINARY_VIEW: value.BytesType, arrow.FIXED_SIZE_BINARY: value.BytesType,
	arrow.DATE32: value.DateType, arrow.DATE64: value.DateType, arrow.TIMESTAMP: value.TimestampType,
	arrow.INTERVAL_MONTHS: value.IntervalType, arrow.INTERVAL_DAY_TIME: value.IntervalType, arrow.INTERVAL_MONTH_DAY_NANO: value.IntervalType, arrow.DURATION: value.IntervalType,
	arrow.NULL: value.StringType,
}

func extensionKind(name string) *value.Type {
	switch name {
	case jsonExtension:
		return value.JSONType
	case uuidExtension:
		return value.UUIDType
	}
	return nil
}

func arrayOf(elem arrow.Field) (*value.Type, error) {
	t, err := TypeOf(elem)
	if err != nil {
		return nil, err
	}
	return value.ArrayOf(t), nil
}

func structOf(t *arrow.StructType) (*value.Type, error) {
	fields := make([]value.Field, t.NumFields())
	for i, f := range t.Fields() {
		ft, err := TypeOf(f)
		if err != nil {
			return nil, err
		}
		fields[i] = value.Field{Name: f.Name, Type: ft}
	}
	return value.StructOf(fields...), nil
}

package arrowtype

import (
	"fmt"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// TypeKey is the key in a field's metadata whose value is the field's Spanner type as text in DDL, such as STRING(25)
// or ARRAY<NUMERIC>.
const TypeKey = "spanner:type"

// Timestamps selects the Arrow type that is used for TIMESTAMP.
type Timestamps int

const (
	Nanoseconds  Timestamps = iota // exact, from 1677 to 2262
	Microseconds                   // all times, rounded to microseconds towards the past
	Text                           // all times, exact
)

// The parameters of Spanner's NUMERIC: https://cloud.google.com/spanner/docs/reference/standard-sql/data-types#numeric_type
const (
	numericPrecision = 38
	numericScale     = 9
)

// Names of Arrow's canonical extension types (https://arrow.apache.org/docs/format/CanonicalExtensions.html).
const (
	jsonExtension = "arrow.json"
	uuidExtension = "arrow.uuid"
)

var (
	numericType = &arrow.Decimal128Type{Precision: numericPrecision, Scale: numericScale}
	uuidType    = &arrow.FixedSizeBinaryType{ByteWidth: 16}
)

// Field returns the Arrow field that describes a column of a record batch in memory. ddl is the column's type as text
// in DDL; "" stands for the DDL of t. JSON and UUID are extension types in the field if the program has registered
// these types, by importing Arrow's package extensions. Otherwise they have their storage types. Arrow's own readers
// behave in the same way. Package bulk registers the types.
func Field(name string, t *spannerpb.Type, ddl string, nullable bool, timestamps Timestamps) (arrow.Field, error) {
	f, err := StorageField(name, t, ddl, nullable, timestamps)
	if err != nil {
		return f, err
	}
	return registered(f)
}

// StorageField returns the field of a column in a stream or a file of Arrow. There, JSON and UUID always have their
// storage types, and the field's metadata names the extension type.
func StorageField(name string, t *spannerpb.Type, ddl string, nullable bool, timestamps Timestamps) (arrow.Field, error) {
	f, err := storageField(name, t, nullable, timestamps)
	if err != nil {
		return f, fmt.Errorf("column %s: %w", name, err)
	}
	if ddl == "" {
		ddl = DDL(t)
	}
	if _, _, err := ParseDDL(ddl); err != nil {
		return f, nil // a STRUCT needs no DDL, since its Arrow type shows the fields
	}
	metadata := f.Metadata.ToMap()
	metadata[TypeKey] = ddl
	f.Metadata = arrow.MetadataFrom(metadata)
	return f, nil
}

// storageField returns the field of a column, of a field of a STRUCT, or of the elements of an ARRAY.
func storageField(name string, t *spannerpb.Type, nullable bool, timestamps Timestamps) (f arrow.Field, err error) {
	f = arrow.Field{Name: name, Nullable: nullable}
	switch t.GetCode() {
	case spannerpb.TypeCode_JSON:
		f.Metadata = extension(jsonExtension)
	case spannerpb.TypeCode_UUID:
		f.Metadata = extension(uuidExtension)
	}
	f.Type, err = storageType(t, timestamps)
	return f, err
}

func extension(name string) arrow.Metadata {
	return arrow.NewMetadata([]string{ipc.ExtensionTypeKeyName, ipc.ExtensionMetadataKeyName}, []string{name, ""})
}

func storageType(t *spannerpb.Type, timestamps Timestamps) (arrow.DataType, error) {
	switch t.GetCode() {
	case spannerpb.TypeCode_BOOL:
		return arrow.FixedWidthTypes.Boolean, nil
	case spannerpb.TypeCode_INT64, spannerpb.TypeCode_ENUM:
		return arrow.PrimitiveTypes.Int64, nil
	case spannerpb.TypeCode_FLOAT32:
		return arrow.PrimitiveTypes.Float32, nil
	case spannerpb.TypeCode_FLOAT64:
		return arrow.PrimitiveTypes.Float64, nil
	case spannerpb.TypeCode_NUMERIC:
		return numericType, nil
	case spannerpb.TypeCode_STRING, spannerpb.TypeCode_JSON:
		return arrow.BinaryTypes.String, nil
	case spannerpb.TypeCode_BYTES, spannerpb.TypeCode_PROTO:
		return arrow.BinaryTypes.Binary, nil
	case spannerpb.TypeCode_DATE:
		return arrow.FixedWidthTypes.Date32, nil
	case spannerpb.TypeCode_TIMESTAMP:
		return timestampType(timestamps), nil
	case spannerpb.TypeCode_UUID:
		return uuidType, nil
	case spannerpb.TypeCode_INTERVAL:
		if timestamps == Text {
			return arrow.BinaryTypes.String, nil
		}
		return arrow.FixedWidthTypes.MonthDayNanoInterval, nil
	case spannerpb.TypeCode_ARRAY:
		elem, err := storageField("item", t.GetArrayElementType(), true, timestamps)
		return arrow.ListOfField(elem), err
	case spannerpb.TypeCode_STRUCT:
		return structType(t.GetStructType(), timestamps)
	}
	return nil, fmt.Errorf("there is no Arrow type for the Spanner type %v", t.GetCode())
}

func timestampType(timestamps Timestamps) arrow.DataType {
	switch timestamps {
	case Microseconds:
		return arrow.FixedWidthTypes.Timestamp_us
	case Text:
		return arrow.BinaryTypes.String
	}
	return arrow.FixedWidthTypes.Timestamp_ns
}

func structType(t *spannerpb.StructType, timestamps Timestamps) (arrow.DataType, error) {
	fields := make([]arrow.Field, len(t.GetFields()))
	for i, f := range t.GetFields() {
		var err error
		if fields[i], err = storageField(f.GetName(), f.GetType(), true, timestamps); err != nil {
			return nil, err
		}
	}
	return arrow.StructOf(fields...), nil
}

// registered replaces storage types by those extension types that the program has registered, as Arrow's readers do.
func registered(f arrow.Field) (arrow.Field, error) {
	var err error
	switch t := f.Type.(type) {
	case *arrow.ListType:
		elem, elemErr := registered(t.ElemField())
		f.Type, err = arrow.ListOfField(elem), elemErr
	case *arrow.StructType:
		fields := t.Fields()
		for i := range fields {
			if fields[i], err = registered(fields[i]); err != nil {
				return f, err
			}
		}
		f.Type = arrow.StructOf(fields...)
	}
	name, _ := f.Metadata.GetValue(ipc.ExtensionTypeKeyName)
	if e := arrow.GetExtensionType(name); e != nil && err == nil {
		f.Type, err = e.Deserialize(f.Type, "")
		metadata := f.Metadata.ToMap()
		delete(metadata, ipc.ExtensionTypeKeyName)
		delete(metadata, ipc.ExtensionMetadataKeyName)
		f.Metadata = arrow.MetadataFrom(metadata)
	}
	return f, err
}

// SpannerType returns the type that a column has, or should have, in Spanner. It takes the type from the field's
// metadata. If the metadata does not name a type, SpannerType returns one that can hold all values of the field's Arrow
// type, or an error if there is none.
func SpannerType(f arrow.Field) (ddl string, t *spannerpb.Type, err error) {
	if ddl, ok := f.Metadata.GetValue(TypeKey); ok {
		t, _, err := ParseDDL(ddl)
		return ddl, t, err
	}
	if t = nearest(f); t == nil {
		return "", nil, fmt.Errorf("column %s: there is no Spanner type for the Arrow type %v", f.Name, f.Type)
	}
	return DDL(t), t, nil
}

// nearest returns the Spanner type that can hold all values of a field; nil if there is none.
func nearest(f arrow.Field) *spannerpb.Type {
	dt := f.Type
	name, _ := f.Metadata.GetValue(ipc.ExtensionTypeKeyName)
	if e, ok := dt.(arrow.ExtensionType); ok {
		name, dt = e.ExtensionName(), e.StorageType()
	}
	switch name {
	case jsonExtension:
		return Scalar(spannerpb.TypeCode_JSON)
	case uuidExtension:
		return Scalar(spannerpb.TypeCode_UUID)
	}
	switch dt := dt.(type) {
	case *arrow.DictionaryType:
		return nearest(arrow.Field{Type: dt.ValueType})
	case arrow.ListLikeType:
		elem := nearest(dt.ElemField())
		if elem == nil || elem.Code == spannerpb.TypeCode_ARRAY {
			return nil // Spanner has no arrays of arrays
		}
		return &spannerpb.Type{Code: spannerpb.TypeCode_ARRAY, ArrayElementType: elem}
	case *arrow.StructType:
		return nearestStruct(dt)
	case arrow.DecimalType:
		return Scalar(spannerpb.TypeCode_NUMERIC)
	}
	if code, ok := nearestScalars[dt.ID()]; ok {
		return Scalar(code)
	}
	return nil
}

func nearestStruct(dt *arrow.StructType) *spannerpb.Type {
	t := &spannerpb.Type{Code: spannerpb.TypeCode_STRUCT, StructType: &spannerpb.StructType{}}
	for _, f := range dt.Fields() {
		field := nearest(f)
		if field == nil {
			return nil
		}
		t.StructType.Fields = append(t.StructType.Fields, &spannerpb.StructType_Field{Name: f.Name, Type: field})
	}
	return t
}

// nearestScalars maps Arrow types to Spanner types that can hold all their values. The type for UINT64 is NUMERIC,
// because INT64 cannot hold the greater half of UINT64's values.
var nearestScalars = map[arrow.Type]spannerpb.TypeCode{
	arrow.BOOL: spannerpb.TypeCode_BOOL,
	arrow.INT8: spannerpb.TypeCode_INT64, arrow.INT16: spannerpb.TypeCode_INT64, arrow.INT32: spannerpb.TypeCode_INT64, arrow.INT64: spannerpb.TypeCode_INT64,
	arrow.UINT8: spannerpb.TypeCode_INT64, arrow.UINT16: spannerpb.TypeCode_INT64, arrow.UINT32: spannerpb.TypeCode_INT64, arrow.UINT64: spannerpb.TypeCode_NUMERIC,
	arrow.FLOAT16: spannerpb.TypeCode_FLOAT32, arrow.FLOAT32: spannerpb.TypeCode_FLOAT32, arrow.FLOAT64: spannerpb.TypeCode_FLOAT64,
	arrow.STRING: spannerpb.TypeCode_STRING, arrow.LARGE_STRING: spannerpb.TypeCode_STRING, arrow.STRING_VIEW: spannerpb.TypeCode_STRING,
	arrow.BINARY: spannerpb.TypeCode_BYTES, arrow.LARGE_BINARY: spannerpb.TypeCode_BYTES, arrow.BINARY_VIEW: spannerpb.TypeCode_BYTES,
	arrow.FIXED_SIZE_BINARY: spannerpb.TypeCode_BYTES,
	arrow.DATE32:            spannerpb.TypeCode_DATE, arrow.DATE64: spannerpb.TypeCode_DATE, arrow.TIMESTAMP: spannerpb.TypeCode_TIMESTAMP,
	arrow.INTERVAL_MONTHS: spannerpb.TypeCode_INTERVAL, arrow.INTERVAL_DAY_TIME: spannerpb.TypeCode_INTERVAL, arrow.INTERVAL_MONTH_DAY_NANO: spannerpb.TypeCode_INTERVAL,
	arrow.DURATION: spannerpb.TypeCode_INTERVAL, arrow.NULL: spannerpb.TypeCode_STRING,
}

package arrowtype

import (
	"fmt"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/extensions"
)

// TypeKey is the key of a field's metadata that has its Spanner type as DDL says it: STRING(25), ARRAY<NUMERIC>.
const TypeKey = "spanner:type"

// Timestamps says what TIMESTAMP becomes in Arrow.
type Timestamps int

const (
	Nanoseconds  Timestamps = iota // exact, from 1677 to 2262
	Microseconds                   // of all times, without what is below a microsecond
	Text                           // exact and of all times
)

// The parameters of Spanner's NUMERIC: https://cloud.google.com/spanner/docs/reference/standard-sql/data-types#numeric_type
const (
	numericPrecision = 38
	numericScale     = 9
)

var (
	numericType = &arrow.Decimal128Type{Precision: numericPrecision, Scale: numericScale}
	uuidType    = extensions.NewUUIDType()
	jsonType    = newJSONType()
)

func newJSONType() arrow.DataType {
	t, err := extensions.NewJSONType(arrow.BinaryTypes.String)
	if err != nil {
		panic(err) // utf8 is one of the storage types that it accepts
	}
	return t
}

// DataType is the Arrow type of a Spanner type.
func DataType(t *spannerpb.Type, timestamps Timestamps) (arrow.DataType, error) {
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
	case spannerpb.TypeCode_STRING:
		return arrow.BinaryTypes.String, nil
	case spannerpb.TypeCode_BYTES, spannerpb.TypeCode_PROTO:
		return arrow.BinaryTypes.Binary, nil
	case spannerpb.TypeCode_DATE:
		return arrow.FixedWidthTypes.Date32, nil
	case spannerpb.TypeCode_TIMESTAMP:
		return timestampType(timestamps), nil
	case spannerpb.TypeCode_JSON:
		return jsonType, nil
	case spannerpb.TypeCode_UUID:
		return uuidType, nil
	case spannerpb.TypeCode_INTERVAL:
		if timestamps == Text {
			return arrow.BinaryTypes.String, nil
		}
		return arrow.FixedWidthTypes.MonthDayNanoInterval, nil
	case spannerpb.TypeCode_ARRAY:
		elem, err := DataType(t.GetArrayElementType(), timestamps)
		if err != nil {
			return nil, err
		}
		return arrow.ListOf(elem), nil
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
		dt, err := DataType(f.GetType(), timestamps)
		if err != nil {
			return nil, err
		}
		fields[i] = arrow.Field{Name: f.GetName(), Type: dt, Nullable: true}
	}
	return arrow.StructOf(fields...), nil
}

// Field is a column. ddl is its type as DDL says it; "" stands for t as it is.
func Field(name string, t *spannerpb.Type, ddl string, nullable bool, timestamps Timestamps) (arrow.Field, error) {
	dt, err := DataType(t, timestamps)
	if err != nil {
		return arrow.Field{}, fmt.Errorf("column %s: %w", name, err)
	}
	if ddl == "" {
		ddl = DDL(t)
	}
	return arrow.Field{Name: name, Type: dt, Nullable: nullable, Metadata: arrow.NewMetadata([]string{TypeKey}, []string{ddl})}, nil
}

// SpannerType is the type that a column has, or should have, in Spanner: the one that its metadata names, or else the nearest.
func SpannerType(f arrow.Field) (ddl string, t *spannerpb.Type, err error) {
	if ddl, ok := f.Metadata.GetValue(TypeKey); ok {
		t, _, err := ParseDDL(ddl)
		return ddl, t, err
	}
	if t = nearest(f.Type); t == nil {
		return "", nil, fmt.Errorf("column %s: there is no Spanner type for the Arrow type %v", f.Name, f.Type)
	}
	return DDL(t), t, nil
}

// nearest is the Spanner type that takes all values of an Arrow type, or nil.
func nearest(dt arrow.DataType) *spannerpb.Type {
	switch dt := dt.(type) {
	case arrow.ExtensionType:
		switch dt.ExtensionName() {
		case "arrow.json":
			return Scalar(spannerpb.TypeCode_JSON)
		case "arrow.uuid":
			return Scalar(spannerpb.TypeCode_UUID)
		}
		return nearest(dt.StorageType())
	case *arrow.DictionaryType:
		return nearest(dt.ValueType)
	case arrow.ListLikeType:
		elem := nearest(dt.Elem())
		if elem == nil || elem.Code == spannerpb.TypeCode_ARRAY {
			return nil // Spanner has no arrays of arrays
		}
		return &spannerpb.Type{Code: spannerpb.TypeCode_ARRAY, ArrayElementType: elem}
	case arrow.DecimalType:
		return Scalar(spannerpb.TypeCode_NUMERIC)
	}
	if code, ok := nearestScalars[dt.ID()]; ok {
		return Scalar(code)
	}
	return nil
}

var nearestScalars = map[arrow.Type]spannerpb.TypeCode{
	arrow.BOOL: spannerpb.TypeCode_BOOL,
	arrow.INT8: spannerpb.TypeCode_INT64, arrow.INT16: spannerpb.TypeCode_INT64, arrow.INT32: spannerpb.TypeCode_INT64, arrow.INT64: spannerpb.TypeCode_INT64,
	arrow.UINT8: spannerpb.TypeCode_INT64, arrow.UINT16: spannerpb.TypeCode_INT64, arrow.UINT32: spannerpb.TypeCode_INT64, arrow.UINT64: spannerpb.TypeCode_NUMERIC,
	arrow.FLOAT16: spannerpb.TypeCode_FLOAT32, arrow.FLOAT32: spannerpb.TypeCode_FLOAT32, arrow.FLOAT64: spannerpb.TypeCode_FLOAT64,
	arrow.STRING: spannerpb.TypeCode_STRING, arrow.LARGE_STRING: spannerpb.TypeCode_STRING, arrow.STRING_VIEW: spannerpb.TypeCode_STRING,
	arrow.BINARY: spannerpb.TypeCode_BYTES, arrow.LARGE_BINARY: spannerpb.TypeCode_BYTES, arrow.BINARY_VIEW: spannerpb.TypeCode_BYTES,
	arrow.FIXED_SIZE_BINARY: spannerpb.TypeCode_BYTES,
	arrow.DATE32:            spannerpb.TypeCode_DATE, arrow.DATE64: spannerpb.TypeCode_DATE, arrow.TIMESTAMP: spannerpb.TypeCode_TIMESTAMP,
	arrow.INTERVAL_MONTH_DAY_NANO: spannerpb.TypeCode_INTERVAL,
}

package main

import (
	"database/sql"
	"database/sql/driver"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"
)

// spannerValue is a parameter of a type that database/sql does not support.
type spannerValue struct {
	text  *structpb.Value
	value *spannerpb.Type
}

// parameters encodes arguments for the driver, with their types. An argument without a name gets the name p1, p2 and
// so on; the driver uses these names for question marks.
func parameters(args []driver.NamedValue) (*structpb.Struct, map[string]*spannerpb.Type, error) {
	values, types := map[string]*structpb.Value{}, map[string]*spannerpb.Type{}
	for _, arg := range args {
		name := arg.Name
		if name == "" {
			name = "p" + strconv.Itoa(arg.Ordinal)
		}
		value, code := structpb.NewNullValue(), spannerpb.TypeCode_TYPE_CODE_UNSPECIFIED
		switch v := arg.Value.(type) {
		case nil: // NULL has no type
			values[name] = value
			continue
		case spannerValue:
			values[name], types[name] = v.text, v.value
			continue
		case bool:
			value, code = structpb.NewBoolValue(v), spannerpb.TypeCode_BOOL
		case int64:
			value, code = structpb.NewStringValue(strconv.FormatInt(v, 10)), spannerpb.TypeCode_INT64
		case float64:
			value, code = structpb.NewNumberValue(v), spannerpb.TypeCode_FLOAT64
		case string:
			value, code = structpb.NewStringValue(v), spannerpb.TypeCode_STRING
		case []byte:
			value, code = structpb.NewStringValue(base64.StdEncoding.EncodeToString(v)), spannerpb.TypeCode_BYTES
		case time.Time:
			value, code = structpb.NewStringValue(v.UTC().Format(time.RFC3339Nano)), spannerpb.TypeCode_TIMESTAMP
		default:
			return nil, nil, fmt.Errorf("parameter %s is a %T", name, v)
		}
		values[name], types[name] = value, &spannerpb.Type{Code: code}
	}
	return &structpb.Struct{Fields: values}, types, nil
}

var scanTypes = map[spannerpb.TypeCode]reflect.Type{
	spannerpb.TypeCode_BOOL:      reflect.TypeFor[sql.NullBool](),
	spannerpb.TypeCode_INT64:     reflect.TypeFor[sql.NullInt64](),
	spannerpb.TypeCode_FLOAT32:   reflect.TypeFor[sql.NullFloat64](),
	spannerpb.TypeCode_FLOAT64:   reflect.TypeFor[sql.NullFloat64](),
	spannerpb.TypeCode_STRING:    reflect.TypeFor[sql.NullString](),
	spannerpb.TypeCode_BYTES:     reflect.TypeFor[[]byte](),
	spannerpb.TypeCode_TIMESTAMP: reflect.TypeFor[sql.NullTime](),
	spannerpb.TypeCode_DATE:      reflect.TypeFor[sql.NullString](),
	spannerpb.TypeCode_NUMERIC:   reflect.TypeFor[sql.NullString](),
	spannerpb.TypeCode_JSON:      reflect.TypeFor[sql.NullString](),
	spannerpb.TypeCode_ARRAY:     reflect.TypeFor[sql.NullString](),
}

// decode converts a value to a type that database/sql supports. DATE, NUMERIC, JSON and ARRAY values become strings.
func decode(v *structpb.Value, t *spannerpb.Type) (driver.Value, error) {
	if _, null := v.Kind.(*structpb.Value_NullValue); null {
		return nil, nil
	}
	switch t.Code {
	case spannerpb.TypeCode_BOOL:
		return v.GetBoolValue(), nil
	case spannerpb.TypeCode_INT64:
		return strconv.ParseInt(v.GetStringValue(), 10, 64)
	case spannerpb.TypeCode_FLOAT32, spannerpb.TypeCode_FLOAT64:
		if text, ok := v.Kind.(*structpb.Value_StringValue); ok { // NaN and the infinities are strings
			return strconv.ParseFloat(text.StringValue, 64)
		}
		return v.GetNumberValue(), nil
	case spannerpb.TypeCode_BYTES:
		return base64.StdEncoding.DecodeString(v.GetStringValue())
	case spannerpb.TypeCode_TIMESTAMP:
		return time.Parse(time.RFC3339Nano, v.GetStringValue())
	case spannerpb.TypeCode_ARRAY:
		text, err := v.GetListValue().MarshalJSON()
		return string(text), err
	default:
		return v.GetStringValue(), nil
	}
}

// document, decimal, date and texts are the field types for columns of JSON, NUMERIC, DATE and ARRAY<STRING>.
type (
	document string
	decimal  string
	date     string
	texts    []string
)

func (document) GormDataType() string { return "JSON" }
func (decimal) GormDataType() string  { return "NUMERIC" }
func (date) GormDataType() string     { return "DATE" }
func (texts) GormDataType() string    { return "ARRAY<STRING(MAX)>" }

// GormDBDataType returns the column's type in DDL. The field's tag size gives the length of the strings; without the
// tag, the length is MAX.
func (texts) GormDBDataType(_ *gorm.DB, field *schema.Field) string {
	if field.Size == 0 {
		return "ARRAY<STRING(MAX)>"
	}
	return fmt.Sprintf("ARRAY<STRING(%d)>", field.Size)
}

func (d document) Value() (driver.Value, error) {
	return scalar(string(d), spannerpb.TypeCode_JSON), nil
}
func (d decimal) Value() (driver.Value, error) {
	return scalar(string(d), spannerpb.TypeCode_NUMERIC), nil
}
func (d date) Value() (driver.Value, error) { return scalar(string(d), spannerpb.TypeCode_DATE), nil }

func (t texts) Value() (driver.Value, error) {
	array := &spannerpb.Type{Code: spannerpb.TypeCode_ARRAY, ArrayElementType: &spannerpb.Type{Code: spannerpb.TypeCode_STRING}}
	if t == nil {
		return spannerValue{structpb.NewNullValue(), array}, nil
	}
	list := &structpb.ListValue{}
	for _, s := range t {
		list.Values = append(list.Values, structpb.NewStringValue(s))
	}
	return spannerValue{structpb.NewListValue(list), array}, nil
}

// Scan parses the string that decode returns for an array.
func (t *texts) Scan(value any) error {
	if value == nil {
		*t = nil
		return nil
	}
	return json.Unmarshal([]byte(value.(string)), t)
}

// scalar returns a parameter of a type whose values are encoded as strings. The empty string becomes NULL.
func scalar(text string, code spannerpb.TypeCode) spannerValue {
	if text == "" {
		return spannerValue{structpb.NewNullValue(), &spannerpb.Type{Code: code}}
	}
	return spannerValue{structpb.NewStringValue(text), &spannerpb.Type{Code: code}}
}

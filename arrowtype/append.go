package arrowtype

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
	"unsafe"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"google.golang.org/protobuf/types/known/structpb"
)

// Appender appends values of one Spanner type to the builder of an Arrow column. The column must have the type of the
// field that Field or StorageField returns. Builder is nil only in the zero Appender.
type Appender struct {
	Builder array.Builder // the builder of the column

	code    spannerpb.TypeCode
	bools   *array.BooleanBuilder
	ints    *array.Int64Builder
	float32 *array.Float32Builder
	float64 *array.Float64Builder
	numbers *array.Decimal128Builder
	bytes   *array.BinaryBuilder // for STRING, BYTES, PROTO and JSON, and for TIMESTAMP and INTERVAL as text
	dates   *array.Date32Builder
	times   *array.TimestampBuilder
	micros  bool // whether the builder times takes microseconds; otherwise it takes nanoseconds
	fixed   *array.FixedSizeBinaryBuilder
	spans   *array.MonthDayNanoIntervalBuilder
	list    *array.ListBuilder
	fields  *array.StructBuilder
	inner   []*Appender // for the elements of an array, or the fields of a struct
	scratch []byte      // a buffer for the text or bytes of a value, kept for reuse
}

// NewAppender makes an Appender from a column's builder.
func NewAppender(b array.Builder, t *spannerpb.Type) (*Appender, error) {
	a := &Appender{Builder: b, code: t.GetCode()}
	storage := b
	if e, ok := b.(interface{ StorageBuilder() array.Builder }); ok {
		storage = e.StorageBuilder()
	}
	switch s := storage.(type) {
	case *array.BooleanBuilder:
		a.bools = s
	case *array.Int64Builder:
		a.ints = s
	case *array.Float32Builder:
		a.float32 = s
	case *array.Float64Builder:
		a.float64 = s
	case *array.Decimal128Builder:
		a.numbers = s
	case *array.StringBuilder:
		a.bytes = s.BinaryBuilder
	case *array.BinaryBuilder:
		a.bytes = s
	case *array.Date32Builder:
		a.dates = s
	case *array.TimestampBuilder:
		a.times, a.micros = s, s.Type().(*arrow.TimestampType).Unit == arrow.Microsecond
	case *array.FixedSizeBinaryBuilder:
		a.fixed = s
	case *array.MonthDayNanoIntervalBuilder:
		a.spans = s
	case *array.ListBuilder:
		a.list = s
		return a, a.add(s.ValueBuilder(), t.GetArrayElementType())
	case *array.StructBuilder:
		a.fields = s
		for i, f := range t.GetStructType().GetFields() {
			if err := a.add(s.FieldBuilder(i), f.GetType()); err != nil {
				return nil, err
			}
		}
	default:
		return nil, fmt.Errorf("a column of %v cannot hold a %v", b.Type(), t.GetCode())
	}
	return a, nil
}

func (a *Appender) add(b array.Builder, t *spannerpb.Type) error {
	inner, err := NewAppender(b, t)
	a.inner = append(a.inner, inner)
	return err
}

// AppendNull appends NULL.
func (a *Appender) AppendNull() { a.Builder.AppendNull() }

// AppendText appends the value that a text represents. It does not keep the slice. The text of an array is a JSON
// array whose elements are the texts of the values, or JSON numbers and booleans.
func (a *Appender) AppendText(text []byte) error {
	switch a.code {
	case spannerpb.TypeCode_STRING:
		if !utf8.Valid(text) {
			return errors.New("the text is not UTF-8")
		}
		a.bytes.Append(text)
		return nil
	case spannerpb.TypeCode_INT64, spannerpb.TypeCode_ENUM:
		n, err := ParseInt64(text)
		if err == nil {
			a.ints.Append(n)
		}
		return err
	case spannerpb.TypeCode_NUMERIC:
		n, err := ParseNumeric(text)
		if err == nil {
			a.numbers.Append(n)
		}
		return err
	case spannerpb.TypeCode_FLOAT64:
		f, err := ParseFloat(text, 64)
		if err == nil {
			a.float64.Append(f)
		}
		return err
	case spannerpb.TypeCode_DATE:
		days, err := ParseDate(text)
		if err == nil {
			a.dates.Append(arrow.Date32(days))
		}
		return err
	case spannerpb.TypeCode_TIMESTAMP:
		return a.appendTimestamp(text)
	}
	return a.appendRareText(text)
}

func (a *Appender) appendRareText(text []byte) error {
	switch a.code {
	case spannerpb.TypeCode_BOOL:
		b, err := ParseBool(text)
		if err == nil {
			a.bools.Append(b)
		}
		return err
	case spannerpb.TypeCode_FLOAT32:
		f, err := ParseFloat(text, 32)
		if err == nil {
			a.float32.Append(float32(f))
		}
		return err
	case spannerpb.TypeCode_BYTES, spannerpb.TypeCode_PROTO:
		return a.appendBase64(text)
	case spannerpb.TypeCode_JSON:
		if !json.Valid(text) || !utf8.Valid(text) {
			return notA("JSON", text)
		}
		a.bytes.Append(text)
		return nil
	case spannerpb.TypeCode_UUID:
		u, err := ParseUUID(text)
		if err == nil {
			a.fixed.Append(u[:])
		}
		return err
	case spannerpb.TypeCode_INTERVAL:
		return a.appendInterval(text)
	}
	return a.AppendJSON(text)
}

func (a *Appender) appendTimestamp(text []byte) error {
	seconds, nanos, err := ParseTimestamp(text)
	if err != nil {
		return err
	}
	return a.AppendTime(seconds, nanos)
}

func (a *Appender) appendInterval(text []byte) error {
	if a.bytes != nil {
		a.bytes.Append(text)
		return nil
	}
	v, err := ParseInterval(text)
	if err == nil {
		a.spans.Append(v)
	}
	return err
}

func (a *Appender) appendBase64(text []byte) error {
	decoded, err := base64.StdEncoding.AppendDecode(a.scratch[:0], text)
	a.scratch = decoded[:0]
	if err != nil {
		return notA("base64", text)
	}
	a.bytes.Append(decoded)
	return nil
}

// AppendTime appends a TIMESTAMP given as seconds since 1970-01-01T00:00:00Z and nanoseconds.
func (a *Appender) AppendTime(seconds int64, nanos int32) error {
	if seconds < minTimestamp || seconds > maxTimestamp {
		return fmt.Errorf("%d seconds since 1970 are not a TIMESTAMP", seconds)
	}
	switch {
	case a.bytes != nil:
		a.scratch = AppendTimestamp(a.scratch[:0], seconds, nanos)
		a.bytes.Append(a.scratch)
		return nil
	case a.micros:
		a.times.Append(arrow.Timestamp(seconds*1_000_000 + int64(nanos)/1000))
		return nil
	}
	n, ok := UnixNanos(seconds, nanos)
	if !ok {
		return fmt.Errorf("%s is out of the range of Arrow's timestamp[ns], 1677 to 2262: choose microseconds or text", AppendTimestamp(nil, seconds, nanos))
	}
	a.times.Append(arrow.Timestamp(n))
	return nil
}

// AppendBytes appends a BYTES or PROTO value, given as raw bytes. It does not keep the slice.
func (a *Appender) AppendBytes(value []byte) { a.bytes.Append(value) }

// AppendList begins an ARRAY value. The caller then appends the elements to the Appender that Elements returns.
func (a *Appender) AppendList() { a.list.Append(true) }

// Elements returns the Appender for the elements of an ARRAY.
func (a *Appender) Elements() *Appender { return a.inner[0] }

// AppendInt64 appends an INT64 or ENUM.
func (a *Appender) AppendInt64(n int64) { a.ints.Append(n) }

// AppendFloat appends a FLOAT64 or FLOAT32.
func (a *Appender) AppendFloat(f float64) {
	if a.float32 != nil {
		a.float32.Append(float32(f))
		return
	}
	a.float64.Append(f)
}

// AppendBool appends a BOOL.
func (a *Appender) AppendBool(b bool) { a.bools.Append(b) }

// AppendDays appends a DATE given as days since 1970-01-01.
func (a *Appender) AppendDays(days int32) { a.dates.Append(arrow.Date32(days)) }

// AppendWire appends a value in the form in which Spanner's API returns it.
func (a *Appender) AppendWire(v *structpb.Value) error {
	switch k := v.GetKind().(type) {
	case nil, *structpb.Value_NullValue:
		a.AppendNull()
		return nil
	case *structpb.Value_StringValue:
		if a.code == spannerpb.TypeCode_STRING { // the text is not checked, since a server sends only valid UTF-8
			a.bytes.Append(bytesOf(k.StringValue))
			return nil
		}
		return a.AppendText(bytesOf(k.StringValue))
	case *structpb.Value_NumberValue:
		switch a.code {
		case spannerpb.TypeCode_FLOAT64:
			a.float64.Append(k.NumberValue)
			return nil
		case spannerpb.TypeCode_FLOAT32:
			a.float32.Append(float32(k.NumberValue))
			return nil
		}
	case *structpb.Value_BoolValue:
		if a.bools != nil {
			a.bools.Append(k.BoolValue)
			return nil
		}
	case *structpb.Value_ListValue:
		return a.appendWireList(k.ListValue.GetValues())
	}
	return fmt.Errorf("a %v comes as %T", a.code, v.GetKind())
}

func (a *Appender) appendWireList(values []*structpb.Value) error {
	switch {
	case a.list != nil:
		a.list.Append(true)
		for _, v := range values {
			if err := a.inner[0].AppendWire(v); err != nil {
				return err
			}
		}
		return nil
	case a.fields != nil && len(values) == len(a.inner):
		a.fields.Append(true)
		for i, v := range values {
			if err := a.inner[i].AppendWire(v); err != nil {
				return err
			}
		}
		return nil
	}
	return fmt.Errorf("a %v comes as a list of %d values", a.code, len(values))
}

// bytesOf returns the bytes of a string without copying them. The caller must not change the bytes.
func bytesOf(text string) []byte { return unsafe.Slice(unsafe.StringData(text), len(text)) }

package file

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/twmb/avro"

	"github.com/crowfoot-db/crowfoot/arrowtype"
)

// avroBytes are encoded rows.
type avroBytes []byte

// mostScale is the maximum scale of a decimal. It cannot be larger because decimalOf returns at most 38 digits.
const mostScale = 38

var errAvroEnd = errors.New("the block ends within a value")

func (b *avroBytes) long() (int64, error) {
	v, n := binary.Varint(*b)
	if n <= 0 {
		return 0, errAvroEnd
	}
	*b = (*b)[n:]
	return v, nil
}

func (b *avroBytes) fixed(n int64) ([]byte, error) {
	if n < 0 || n > int64(len(*b)) {
		return nil, errAvroEnd
	}
	v := (*b)[:n]
	*b = (*b)[n:]
	return v, nil
}

func (b *avroBytes) bytes() ([]byte, error) {
	n, err := b.long()
	if err != nil {
		return nil, err
	}
	return b.fixed(n)
}

// avroField is a field of the rows. Its function decode appends the field's next value to a column.
type avroField struct {
	name   string
	decode func(b *avroBytes) error
}

// sqlType is the name of a property in Spanner's own exports, which holds the DDL type of a field.
const sqlType = "sqlType"

// avroColumns returns the columns of rows whose Avro schema is the parameter root. It leaves out fields of type null,
// because in Spanner's exports these are generated columns, which have no values.
func avroColumns(root *avro.SchemaNode) (*arrow.Schema, error) {
	if root.Type != "record" {
		return nil, fmt.Errorf("its rows are of the type %s, want record", root.Type)
	}
	var fields []arrow.Field
	for _, f := range root.Fields {
		if f.Type.Type == "null" {
			continue
		}
		kind, nullable, err := avroKind(&f.Type)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		ddl, _ := f.Props[sqlType].(string)
		if ddl != "" {
			if kind, _, err = arrowtype.ParseDDL(ddl); err != nil {
				return nil, fmt.Errorf("column %s: %w", f.Name, err)
			}
		}
		field, err := arrowtype.Field(f.Name, kind, ddl, nullable, arrowtype.Text)
		if err != nil {
			return nil, err
		}
		fields = append(fields, field)
	}
	return arrow.NewSchema(fields, nil), nil
}

// AvroColumns returns the DDL types of a schema's columns, by column name. The type of a column that is not nullable
// ends with NOT NULL.
func AvroColumns(root *avro.SchemaNode) (map[string]string, error) {
	schema, err := avroColumns(root)
	if err != nil {
		return nil, err
	}
	types := map[string]string{}
	for _, f := range schema.Fields() {
		ddl, _, err := arrowtype.SpannerType(f)
		if err != nil {
			return nil, err
		}
		if !f.Nullable {
			ddl += " NOT NULL"
		}
		types[f.Name] = ddl
	}
	return types, nil
}

// avroKind returns the Spanner type in which values of an Avro type are read.
func avroKind(n *avro.SchemaNode) (kind *spannerpb.Type, nullable bool, err error) {
	if n.Type == "union" {
		inner, _, err := notNull(n)
		if err != nil {
			return nil, false, err
		}
		kind, _, err = avroKind(inner)
		return kind, true, err
	}
	if n.Type == "array" {
		elem, _, err := avroKind(n.Items)
		if err == nil && elem.Code == spannerpb.TypeCode_ARRAY {
			err = errors.New("an array of arrays has no Spanner type")
		}
		return &spannerpb.Type{Code: spannerpb.TypeCode_ARRAY, ArrayElementType: elem}, false, err
	}
	code, ok := map[string]spannerpb.TypeCode{
		"int date": spannerpb.TypeCode_DATE, "long timestamp-millis": spannerpb.TypeCode_TIMESTAMP, "long timestamp-micros": spannerpb.TypeCode_TIMESTAMP,
		"long timestamp-nanos": spannerpb.TypeCode_TIMESTAMP, "string uuid": spannerpb.TypeCode_UUID, "bytes decimal": spannerpb.TypeCode_NUMERIC,
		"fixed decimal": spannerpb.TypeCode_NUMERIC,
	}[n.Type+" "+n.LogicalType]
	if !ok {
		code, ok = map[string]spannerpb.TypeCode{
			"boolean": spannerpb.TypeCode_BOOL, "int": spannerpb.TypeCode_INT64, "long": spannerpb.TypeCode_INT64, "float": spannerpb.TypeCode_FLOAT32,
			"double": spannerpb.TypeCode_FLOAT64, "string": spannerpb.TypeCode_STRING, "enum": spannerpb.TypeCode_STRING,
			"bytes": spannerpb.TypeCode_BYTES, "fixed": spannerpb.TypeCode_BYTES,
		}[n.Type]
	}
	switch {
	case !ok:
		return nil, false, fmt.Errorf("the Avro type %s has no Spanner type", n.Type)
	case n.Type == "fixed" && n.Size == 0: // refused, because a file of a few bytes could claim any number of them
		return nil, false, errors.New("the Avro type fixed of 0 bytes has no Spanner type")
	case n.LogicalType == "decimal" && n.Scale > mostScale:
		return nil, false, fmt.Errorf("an Avro decimal with a scale of %d has no Spanner type", n.Scale)
	}
	return arrowtype.Scalar(code), false, nil
}

// notNull takes a union of two types, one of which is null. It returns the type that is not null, and the index of null
// in the union. For any other union, it returns an error.
func notNull(n *avro.SchemaNode) (inner *avro.SchemaNode, null int64, err error) {
	if len(n.Branches) == 2 {
		for i := range n.Branches {
			if n.Branches[i].Type == "null" {
				return &n.Branches[1-i], int64(i), nil
			}
		}
	}
	return nil, 0, fmt.Errorf("a union of %d types has no Spanner type, but one of null and another", len(n.Branches))
}

// avroDecoders returns a decoder for each field of a row. The decoders append the field's values to the columns of the
// builder.
func avroDecoders(root *avro.SchemaNode, b *array.RecordBuilder) (fields []avroField, err error) {
	column := 0
	for i := range root.Fields {
		f := &root.Fields[i]
		if f.Type.Type == "null" {
			continue // a value of the type null takes no bytes
		}
		_, kind, err := arrowtype.SpannerType(b.Schema().Field(column))
		if err != nil {
			return nil, err
		}
		a, err := arrowtype.NewAppender(b.Field(column), kind)
		if err != nil {
			return nil, err
		}
		decode, err := avroDecoder(&f.Type, a, kind)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", f.Name, err)
		}
		fields = append(fields, avroField{f.Name, decode})
		column++
	}
	return fields, nil
}

func avroDecoder(n *avro.SchemaNode, a *arrowtype.Appender, kind *spannerpb.Type) (func(b *avroBytes) error, error) {
	switch n.Type {
	case "union":
		inner, null, err := notNull(n)
		if err != nil {
			return nil, err
		}
		decode, err := avroDecoder(inner, a, kind)
		return func(b *avroBytes) error {
			switch branch, err := b.long(); {
			case err != nil:
				return err
			case branch == null:
				a.AppendNull()
				return nil
			case branch != 1-null:
				return fmt.Errorf("a union of two types has a value of type %d", branch)
			}
			return decode(b)
		}, err
	case "array":
		return avroArrayDecoder(n, a, kind)
	}
	value := avroScalarDecoder(n, a)
	own, _, err := avroKind(n)
	if err != nil {
		return nil, err
	}
	if own.Code == kind.Code || value != nil && kind.Code == spannerpb.TypeCode_ENUM && own.Code == spannerpb.TypeCode_INT64 ||
		kind.Code == spannerpb.TypeCode_PROTO && own.Code == spannerpb.TypeCode_BYTES {
		return value, nil
	}
	return avroTextDecoder(n, a, kind)
}

// avroTextDecoder returns a decoder for a field whose property sqlType names another type than avroKind returns. In
// Spanner's exports, the values of such a field are strings, or integers for timestamps.
func avroTextDecoder(n *avro.SchemaNode, a *arrowtype.Appender, kind *spannerpb.Type) (func(b *avroBytes) error, error) {
	switch {
	case n.Type == "string":
		return func(b *avroBytes) error {
			text, err := b.bytes()
			if err != nil {
				return err
			}
			return a.AppendText(text)
		}, nil
	case kind.Code == spannerpb.TypeCode_TIMESTAMP && n.Type == "long":
		micros := *n
		micros.LogicalType = "timestamp-micros"
		return avroScalarDecoder(&micros, a), nil
	}
	return nil, fmt.Errorf("the Avro type %s is not that of %v", n.Type, kind.Code)
}

func avroArrayDecoder(n *avro.SchemaNode, a *arrowtype.Appender, kind *spannerpb.Type) (func(b *avroBytes) error, error) {
	if kind.Code != spannerpb.TypeCode_ARRAY {
		return nil, fmt.Errorf("the Avro type array is not that of %v", kind.Code)
	}
	elem, err := avroDecoder(n.Items, a.Elements(), kind.ArrayElementType)
	return func(b *avroBytes) error {
		a.AppendList()
		for {
			count, err := b.long()
			if err != nil || count == 0 {
				return err
			}
			if count < 0 { // a negative count is followed by the size in bytes
				if count = -count; count < 0 {
					return errAvroEnd
				}
				if _, err := b.long(); err != nil {
					return err
				}
			}
			if count > int64(len(*b)) { // every element has at least one byte
				return errAvroEnd
			}
			for range count {
				if err := elem(b); err != nil {
					return err
				}
			}
		}
	}, err
}

// avroScalarDecoder returns a decoder that appends values to a column of the Spanner type that avroKind returns.
func avroScalarDecoder(n *avro.SchemaNode, a *arrowtype.Appender) func(b *avroBytes) error {
	switch n.Type {
	case "boolean":
		return func(b *avroBytes) error {
			v, err := b.fixed(1)
			if err == nil {
				a.AppendBool(v[0] != 0)
			}
			return err
		}
	case "int", "long":
		return avroLongDecoder(n, a)
	case "float":
		return func(b *avroBytes) error {
			v, err := b.fixed(4)
			if err == nil {
				a.AppendFloat(float64(math.Float32frombits(binary.LittleEndian.Uint32(v))))
			}
			return err
		}
	case "double":
		return func(b *avroBytes) error {
			v, err := b.fixed(8)
			if err == nil {
				a.AppendFloat(math.Float64frombits(binary.LittleEndian.Uint64(v)))
			}
			return err
		}
	case "enum":
		return func(b *avroBytes) error {
			i, err := b.long()
			if err == nil && (i < 0 || i >= int64(len(n.Symbols))) {
				err = fmt.Errorf("symbol %d of %d", i, len(n.Symbols))
			}
			if err != nil {
				return err
			}
			return a.AppendText([]byte(n.Symbols[i]))
		}
	}
	read := (*avroBytes).bytes
	if n.Type == "fixed" {
		read = func(b *avroBytes) ([]byte, error) { return b.fixed(int64(n.Size)) }
	}
	return avroBytesDecoder(n, a, read)
}

func avroBytesDecoder(n *avro.SchemaNode, a *arrowtype.Appender, read func(*avroBytes) ([]byte, error)) func(b *avroBytes) error {
	return func(b *avroBytes) error {
		v, err := read(b)
		switch {
		case err != nil:
			return err
		case n.LogicalType == "decimal":
			d, err := decimalOf(v)
			if err != nil {
				return err
			}
			return a.AppendText(arrowtype.AppendDecimal(nil, d, n.Scale))
		case n.Type == "string":
			return a.AppendText(v)
		}
		a.AppendBytes(v)
		return nil
	}
}

// decimalOf decodes a number in two's complement, in big-endian order.
func decimalOf(v []byte) (decimal128.Num, error) {
	for len(v) > 16 && (v[0] == 0 && v[1] < 0x80 || v[0] == 0xff && v[1] >= 0x80) {
		v = v[1:] // the byte only repeats the sign
	}
	if len(v) > 16 {
		return decimal128.Num{}, fmt.Errorf("a decimal of %d bytes is out of range", len(v))
	}
	full := slices.Repeat([]byte{0}, 16)
	if len(v) > 0 && v[0] >= 0x80 {
		full = slices.Repeat([]byte{0xff}, 16)
	}
	copy(full[16-len(v):], v)
	return decimal128.New(int64(binary.BigEndian.Uint64(full)), binary.BigEndian.Uint64(full[8:])), nil
}

func avroLongDecoder(n *avro.SchemaNode, a *arrowtype.Appender) func(b *avroBytes) error {
	perSecond := map[string]int64{"timestamp-millis": 1_000, "timestamp-micros": 1_000_000, "timestamp-nanos": 1_000_000_000}[n.LogicalType]
	return func(b *avroBytes) error {
		v, err := b.long()
		switch {
		case err != nil:
			return err
		case n.LogicalType == "date" && n.Type == "int":
			if v < math.MinInt32 || v > math.MaxInt32 {
				return errors.New("an int is beyond 32 bits")
			}
			a.AppendDays(int32(v))
			return nil
		case perSecond > 0:
			seconds := v / perSecond
			if v%perSecond < 0 {
				seconds--
			}
			return a.AppendTime(seconds, int32((v-seconds*perSecond)*(1_000_000_000/perSecond)))
		}
		a.AppendInt64(v)
		return nil
	}
}

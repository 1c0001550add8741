package transfer

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"unicode/utf8"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
)

// A row is put into a mutation in its protobuf wire encoding, without allocating a message for each value:
//
//	google.spanner.v1.Mutation.Write.values = 3  tag 0x1a, length
//	  google.protobuf.ListValue.values = 1       tag 0x0a, length; one for each column
//	    google.protobuf.Value                    null_value 08 00, number_value 11 and 8 bytes, string_value 1a and length, bool_value 20 and 0 or 1, list_value 32 and length
const (
	tagRow    = 0x1a
	tagValue  = 0x0a
	tagNull   = 0x08
	tagNumber = 0x11
	tagString = 0x1a
	tagBool   = 0x20
	tagList   = 0x32
)

// encoder appends rows of a batch in the encoding of Mutation.Write.
type encoder struct {
	columns []*columnEncoder
	row     []byte // the encoded values of the current row; the buffer is reused
}

// columnEncoder appends the values of one column.
type columnEncoder struct {
	to      bulk.ColumnInfo
	kind    spannerpb.TypeCode
	column  arrow.Array
	bytes   func(row int) []byte
	text    arrowtype.Formatter
	elems   *columnEncoder // encodes the elements; only for an ARRAY
	list    array.ListLike
	scratch []byte
	check   bool // whether normalize must check the values: they are texts, and may be invalid for the column's type
}

// newEncoder returns an encoder that writes batches of a schema to columns of a table. Field i of the schema is
// written to column to[i].
func newEncoder(schema *arrow.Schema, to []bulk.ColumnInfo) (*encoder, error) {
	e := &encoder{}
	for i, c := range to {
		f := schema.Field(i)
		if !fits(f.Type, c.Type) {
			return nil, fmt.Errorf("column %s is %v in the file, which does not go into the %s of the table", f.Name, f.Type, c.DDL)
		}
		e.columns = append(e.columns, newColumnEncoder(c, c.Type))
	}
	return e, nil
}

func newColumnEncoder(c bulk.ColumnInfo, t *spannerpb.Type) *columnEncoder {
	e := &columnEncoder{to: c, kind: t.Code}
	if t.Code == spannerpb.TypeCode_ARRAY {
		e.elems = newColumnEncoder(c, t.ArrayElementType)
		e.elems.to.Nullable = true
	}
	return e
}

// set makes the parameter batch the current batch. The method append encodes rows of the current batch.
func (e *encoder) set(batch arrow.RecordBatch) error {
	for i, c := range e.columns {
		if err := c.set(batch.Column(i)); err != nil {
			return fmt.Errorf("column %s: %w", c.to.Name, err)
		}
	}
	return nil
}

func (c *columnEncoder) set(column arrow.Array) (err error) {
	c.column, c.bytes, c.list = column, arrowtype.Bytes(column), nil
	if l, ok := column.(array.ListLike); ok && c.elems != nil {
		c.list = l
		return c.elems.set(l.ListValues())
	}
	c.check = isText(column.DataType()) && c.kind != spannerpb.TypeCode_STRING
	c.text, err = arrowtype.NewFormatter(column)
	return err
}

// append appends the encoded form of a row of the current batch to a slice, and returns the extended slice.
func (e *encoder) append(to []byte, row int) ([]byte, error) {
	e.row = e.row[:0]
	for _, c := range e.columns {
		var err error
		if e.row, err = c.append(e.row, row); err != nil {
			return to, fmt.Errorf("column %s: %w", c.to.Name, err)
		}
	}
	to = append(to, tagRow)
	to = protowire.AppendVarint(to, uint64(len(e.row)))
	return append(to, e.row...), nil
}

func (c *columnEncoder) append(to []byte, row int) ([]byte, error) {
	if c.column.IsNull(row) {
		if !c.to.Nullable {
			return to, fmt.Errorf("it is NOT NULL, and there is no value")
		}
		return append(to, tagValue, 2, tagNull, 0), nil
	}
	switch c.kind {
	case spannerpb.TypeCode_STRING:
		value := c.bytes(row)
		if n := c.to.MaxLength; n > 0 && len(value) > n && utf8.RuneCount(value) > n {
			return to, fmt.Errorf("the value has %d characters, and the column takes %d", utf8.RuneCount(value), n)
		}
		if !utf8.Valid(value) {
			return to, fmt.Errorf("the text is not UTF-8")
		}
		return appendString(to, value), nil
	case spannerpb.TypeCode_BYTES, spannerpb.TypeCode_PROTO:
		return c.appendBytes(to, row)
	case spannerpb.TypeCode_BOOL:
		c.scratch = c.text(c.scratch[:0], row)
		b, err := arrowtype.ParseBool(c.scratch)
		if b {
			return append(to, tagValue, 2, tagBool, 1), err
		}
		return append(to, tagValue, 2, tagBool, 0), err
	case spannerpb.TypeCode_FLOAT64, spannerpb.TypeCode_FLOAT32:
		return c.appendFloat(to, row)
	case spannerpb.TypeCode_ARRAY:
		return c.appendList(to, row)
	}
	c.scratch = c.text(c.scratch[:0], row)
	if err := c.normalize(); err != nil {
		return to, err
	}
	return appendString(to, c.scratch), nil
}

func appendString(to, value []byte) []byte {
	n := uint64(len(value))
	to = protowire.AppendVarint(append(to, tagValue), 1+uint64(protowire.SizeVarint(n))+n)
	to = protowire.AppendVarint(append(to, tagString), n)
	return append(to, value...)
}

func (c *columnEncoder) appendBytes(to []byte, row int) ([]byte, error) {
	value := c.bytes(row)
	if n := c.to.MaxLength; n > 0 && len(value) > n {
		return to, fmt.Errorf("the value has %d bytes, and the column takes %d", len(value), n)
	}
	c.scratch = base64.StdEncoding.AppendEncode(c.scratch[:0], value)
	return appendString(to, c.scratch), nil
}

func (c *columnEncoder) appendFloat(to []byte, row int) ([]byte, error) {
	var f float64
	switch column := c.column.(type) {
	case *array.Float64:
		f = column.Value(row)
	default:
		c.scratch = c.text(c.scratch[:0], row)
		var err error
		bits := 64
		// The shortest decimal text of the greatest FLOAT32, parsed as a FLOAT64, would exceed the range of FLOAT32.
		if c.kind == spannerpb.TypeCode_FLOAT32 {
			bits = 32
		}
		if f, err = arrowtype.ParseFloat(c.scratch, bits); err != nil {
			return to, err
		}
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return appendString(to, arrowtype.AppendFloat(nil, f, 64)), nil
	}
	return binary.LittleEndian.AppendUint64(append(to, tagValue, 9, tagNumber), math.Float64bits(f)), nil
}

func (c *columnEncoder) appendList(to []byte, row int) ([]byte, error) {
	if c.list == nil {
		return to, fmt.Errorf("it is not a list")
	}
	from, end := c.list.ValueOffsets(row)
	c.scratch = c.scratch[:0]
	for i := int(from); i < int(end); i++ {
		var err error
		if c.scratch, err = c.elems.append(c.scratch, i); err != nil {
			return to, fmt.Errorf("element %d: %w", i-int(from), err)
		}
	}
	n := uint64(len(c.scratch))
	to = protowire.AppendVarint(append(to, tagValue), 1+uint64(protowire.SizeVarint(n))+n)
	to = protowire.AppendVarint(append(to, tagList), n)
	return append(to, c.scratch...), nil
}

// normalize checks that the text in scratch is a value of the column's type, and converts it to the form that Spanner
// uses. It skips checks that are not needed for the type of the source's column.
func (c *columnEncoder) normalize() error {
	switch c.kind {
	case spannerpb.TypeCode_TIMESTAMP:
		seconds, nanos, err := arrowtype.ParseTimestamp(c.scratch)
		c.scratch = arrowtype.AppendTimestamp(c.scratch[:0], seconds, nanos)
		return err
	case spannerpb.TypeCode_NUMERIC:
		n, err := arrowtype.ParseNumeric(c.scratch)
		c.scratch = arrowtype.AppendDecimal(c.scratch[:0], n, 9)
		return err
	case spannerpb.TypeCode_INT64, spannerpb.TypeCode_ENUM:
		if c.column.DataType().ID() == arrow.INT64 {
			return nil
		}
		_, err := arrowtype.ParseInt64(c.scratch)
		return err
	case spannerpb.TypeCode_DATE:
		_, err := arrowtype.ParseDate(c.scratch)
		return err
	}
	if !c.check {
		return nil
	}
	switch c.kind {
	case spannerpb.TypeCode_UUID:
		_, err := arrowtype.ParseUUID(c.scratch)
		return err
	case spannerpb.TypeCode_JSON:
		if !json.Valid(c.scratch) {
			return fmt.Errorf("the text is not JSON")
		}
	}
	return nil
}

func isText(t arrow.DataType) bool {
	switch t := t.(type) {
	case *arrow.DictionaryType:
		return isText(t.ValueType)
	case arrow.ExtensionType:
		return isText(t.StorageType())
	}
	return t.ID() == arrow.STRING || t.ID() == arrow.LARGE_STRING || t.ID() == arrow.STRING_VIEW
}

// fits reports whether values of an Arrow type can be values of a Spanner type. A single value may still be invalid,
// which makes its row bad.
func fits(from arrow.DataType, to *spannerpb.Type) bool {
	switch t := from.(type) {
	case *arrow.DictionaryType:
		return fits(t.ValueType, to)
	case arrow.ExtensionType:
		if t.ExtensionName() == "arrow.uuid" {
			return to.Code == spannerpb.TypeCode_UUID || to.Code == spannerpb.TypeCode_BYTES
		}
		return fits(t.StorageType(), to)
	case arrow.ListLikeType:
		return to.Code == spannerpb.TypeCode_ARRAY && fits(t.Elem(), to.ArrayElementType)
	}
	id := from.ID()
	integer, float, number := arrow.IsInteger(id), arrow.IsFloating(id), arrow.IsDecimal(id)
	switch to.Code {
	case spannerpb.TypeCode_STRING, spannerpb.TypeCode_JSON:
		return isText(from)
	case spannerpb.TypeCode_BYTES, spannerpb.TypeCode_PROTO:
		return id == arrow.BINARY || id == arrow.LARGE_BINARY || id == arrow.BINARY_VIEW || id == arrow.FIXED_SIZE_BINARY
	case spannerpb.TypeCode_INT64, spannerpb.TypeCode_ENUM:
		return integer || number || isText(from)
	case spannerpb.TypeCode_FLOAT64, spannerpb.TypeCode_FLOAT32, spannerpb.TypeCode_NUMERIC:
		return integer || float || number || isText(from)
	case spannerpb.TypeCode_BOOL:
		return id == arrow.BOOL || isText(from)
	case spannerpb.TypeCode_DATE:
		return id == arrow.DATE32 || id == arrow.DATE64 || isText(from)
	case spannerpb.TypeCode_TIMESTAMP:
		return id == arrow.TIMESTAMP || isText(from)
	case spannerpb.TypeCode_UUID:
		return isText(from)
	}
	return false
}

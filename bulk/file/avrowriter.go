package file

import (
	"crypto/md5"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/twmb/avro/ocf"

	"github.com/crowfoot-db/crowfoot/arrowtype"
)

// AvroRecord holds what an Avro schema contains in addition to the columns' names and types.
type AvroRecord struct {
	Name       string // the name of the record; "row" if empty
	Namespace  string
	Properties []AvroProperty
	// Columns lists all columns of the record, in order. If it is empty, the record has the columns of the batches.
	Columns []AvroColumn
}

// AvroColumn is a column of a record.
type AvroColumn struct {
	Name       string
	Generated  bool // the column is in the schema but its values are not in the file
	Properties []AvroProperty
}

// AvroProperty is a property of a record or a field.
type AvroProperty struct{ Name, Value string }

// The Avro types are the ones that Spanner's own exports have: INT64 and ENUM are long, FLOAT32 is float, FLOAT64 is
// double, NUMERIC is bytes with the logical type decimal, UUID is string with the logical type uuid, BYTES and PROTO
// are bytes, DATE and JSON are string. TIMESTAMP is string; with the Arrow type timestamp it is long with
// timestamp-micros or timestamp-nanos. A column that may be NULL is a union of null and its type, and so are elements
// of arrays. The property sqlType holds the DDL type.

// avroType returns the JSON of a column's Avro type.
func avroType(t arrow.DataType, kind *spannerpb.Type, nullable bool) (text string, err error) {
	switch kind.Code {
	case spannerpb.TypeCode_BOOL:
		text = `"boolean"`
	case spannerpb.TypeCode_INT64, spannerpb.TypeCode_ENUM:
		text = `"long"`
	case spannerpb.TypeCode_FLOAT32:
		text = `"float"`
	case spannerpb.TypeCode_FLOAT64:
		text = `"double"`
	case spannerpb.TypeCode_NUMERIC:
		text = `{"type":"bytes","logicalType":"decimal","precision":38,"scale":9}`
	case spannerpb.TypeCode_UUID:
		text = `{"type":"string","logicalType":"uuid"}`
	case spannerpb.TypeCode_BYTES, spannerpb.TypeCode_PROTO:
		text = `"bytes"`
	case spannerpb.TypeCode_STRING, spannerpb.TypeCode_DATE, spannerpb.TypeCode_JSON, spannerpb.TypeCode_INTERVAL:
		text = `"string"`
	case spannerpb.TypeCode_TIMESTAMP:
		text = timestampAvroType(t)
	case spannerpb.TypeCode_ARRAY:
		list, ok := t.(arrow.ListLikeType)
		if !ok {
			return "", fmt.Errorf("%v is not the type of an ARRAY", t)
		}
		items, err := avroType(list.Elem(), kind.ArrayElementType, true)
		if err != nil {
			return "", err
		}
		text = `{"type":"array","items":` + items + `}`
	default:
		return "", fmt.Errorf("there is no type of Avro for %v", kind.Code)
	}
	if nullable {
		return `["null",` + text + `]`, nil
	}
	return text, nil
}

func timestampAvroType(t arrow.DataType) string {
	switch t {
	case arrow.FixedWidthTypes.Timestamp_ns:
		return `{"type":"long","logicalType":"timestamp-nanos"}`
	case arrow.FixedWidthTypes.Timestamp_us:
		return `{"type":"long","logicalType":"timestamp-micros"}`
	}
	return `"string"`
}

// avroSchema returns the JSON of a file's schema.
func avroSchema(schema *arrow.Schema, r AvroRecord) (string, error) {
	if r.Name == "" {
		r.Name = "row"
	}
	if len(r.Columns) == 0 {
		for _, f := range schema.Fields() {
			r.Columns = append(r.Columns, AvroColumn{Name: f.Name})
		}
	}
	text := `{"type":"record","name":` + quoted(r.Name)
	if r.Namespace != "" {
		text += `,"namespace":` + quoted(r.Namespace)
	}
	text += properties(r.Properties) + `,"fields":[`
	for i, c := range r.Columns {
		if i > 0 {
			text += ","
		}
		text += `{"name":` + quoted(c.Name) + `,"type":`
		if c.Generated {
			text += `"null","default":null` + properties(c.Properties) + "}"
			continue
		}
		at := slices.IndexFunc(schema.Fields(), func(f arrow.Field) bool { return f.Name == c.Name })
		if at < 0 {
			return "", fmt.Errorf("there is no column %s", c.Name)
		}
		ddl, kind, err := arrowtype.SpannerType(schema.Field(at))
		if err != nil {
			return "", err
		}
		t, err := avroType(schema.Field(at).Type, kind, schema.Field(at).Nullable)
		if err != nil {
			return "", fmt.Errorf("column %s: %w", c.Name, err)
		}
		text += t + `,"` + sqlType + `":` + quoted(ddl) + properties(c.Properties) + "}"
	}
	return text + "]}", nil
}

func properties(list []AvroProperty) (text string) {
	for _, p := range list {
		text += "," + quoted(p.Name) + ":" + quoted(p.Value)
	}
	return text
}

func quoted(s string) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err) // it never fails for a string
	}
	return string(text)
}

// avroBlockBytes is the number of uncompressed bytes after which a block ends.
const avroBlockBytes = 256 << 10

// avroWriter writes an Avro file.
type avroWriter struct {
	to      io.Writer
	codec   ocf.Codec
	mark    [avroMark]byte
	kinds   []*spannerpb.Type // the types of the batches' columns
	columns []int             // for each column of the record, in order, the index of the column in the batches
	fields  []arrow.Field     // the fields of the batches
	rows    []byte
	count   int64
}

// NewAvroWriter begins an Avro file. r holds properties and columns that are added to the file's schema.
func NewAvroWriter(to io.Writer, schema *arrow.Schema, r AvroRecord) (Writer, error) {
	return newAvroWriter(to, schema, r)
}

func newAvroWriter(to io.Writer, schema *arrow.Schema, r AvroRecord) (Writer, error) {
	text, err := avroSchema(schema, r)
	if err != nil {
		return nil, err
	}
	w := &avroWriter{to: to, codec: ocf.SnappyCodec(), mark: md5.Sum([]byte(text)), fields: schema.Fields()}
	for _, f := range schema.Fields() {
		_, kind, err := arrowtype.SpannerType(f)
		if err != nil {
			return nil, err
		}
		if !isMapped(f.Type, kind) {
			return nil, fmt.Errorf("column %s is %v, which is not the Arrow type of %v", f.Name, f.Type, kind.Code)
		}
		w.kinds = append(w.kinds, kind)
	}
	for i := range schema.NumFields() {
		w.columns = append(w.columns, i)
	}
	if len(r.Columns) > 0 {
		w.columns = w.columns[:0]
		for _, c := range r.Columns {
			if at := slices.IndexFunc(w.fields, func(f arrow.Field) bool { return f.Name == c.Name }); at >= 0 && !c.Generated {
				w.columns = append(w.columns, at)
			}
		}
	}
	header := append([]byte(avroMagic), 4) // a map with two entries
	for _, s := range []string{"avro.codec", w.codec.Name(), "avro.schema", text} {
		header = append(binary.AppendVarint(header, int64(len(s))), s...)
	}
	_, err = to.Write(append(append(header, 0), w.mark[:]...))
	return w, err
}

// isMapped reports whether a column's Arrow type is one of those that package arrowtype uses for the Spanner type
// kind.
func isMapped(t arrow.DataType, kind *spannerpb.Type) bool {
	for _, timestamps := range []arrowtype.Timestamps{arrowtype.Nanoseconds, arrowtype.Microseconds, arrowtype.Text} {
		if mapped, err := arrowtype.Field("", kind, "", true, timestamps); err == nil && arrow.TypeEqual(mapped.Type, t) {
			return true
		}
	}
	return false
}

// Write appends rows.
func (w *avroWriter) Write(batch arrow.RecordBatch) error {
	encoders := make([]avroEncoder, len(w.columns))
	for i, c := range w.columns {
		var err error
		if encoders[i], err = newAvroEncoder(batch.Column(c), w.kinds[c], w.fields[c].Nullable); err != nil {
			return fmt.Errorf("column %s: %w", w.fields[c].Name, err)
		}
	}
	for row := range int(batch.NumRows()) {
		for _, encode := range encoders {
			w.rows = encode(w.rows, row)
		}
		if w.count++; len(w.rows) >= avroBlockBytes {
			if err := w.Close(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close writes the last block.
func (w *avroWriter) Close() error {
	if w.count == 0 {
		return nil
	}
	stored, err := w.codec.Compress(w.rows)
	if err != nil {
		return err
	}
	block := binary.AppendVarint(nil, w.count)
	block = append(binary.AppendVarint(block, int64(len(stored))), stored...)
	w.rows, w.count = w.rows[:0], 0
	_, err = w.to.Write(append(block, w.mark[:]...))
	return err
}

// avroEncoder is a function that appends the encoded value of a row to a slice, and returns the extended slice.
type avroEncoder func(to []byte, row int) []byte

// newAvroEncoder returns the encoder of a column, or of the elements of arrays. If the type is a union, the index of
// the value's type in the union precedes the value: 0 for null, and 1 for the other type.
func newAvroEncoder(column arrow.Array, kind *spannerpb.Type, nullable bool) (avroEncoder, error) {
	value, err := newAvroValueEncoder(column, kind)
	if err != nil || !nullable {
		return value, err
	}
	return func(to []byte, row int) []byte {
		if column.IsNull(row) {
			return append(to, 0)
		}
		return value(append(to, 2), row)
	}, nil
}

func newAvroValueEncoder(column arrow.Array, kind *spannerpb.Type) (avroEncoder, error) {
	switch c := column.(type) {
	case *array.Boolean:
		return func(to []byte, row int) []byte {
			if c.Value(row) {
				return append(to, 1)
			}
			return append(to, 0)
		}, nil
	case *array.Int64:
		return func(to []byte, row int) []byte { return binary.AppendVarint(to, c.Value(row)) }, nil
	case *array.Timestamp:
		return func(to []byte, row int) []byte { return binary.AppendVarint(to, int64(c.Value(row))) }, nil
	case *array.Float32:
		return func(to []byte, row int) []byte {
			return binary.LittleEndian.AppendUint32(to, math.Float32bits(c.Value(row)))
		}, nil
	case *array.Float64:
		return func(to []byte, row int) []byte {
			return binary.LittleEndian.AppendUint64(to, math.Float64bits(c.Value(row)))
		}, nil
	case *array.Decimal128:
		return func(to []byte, row int) []byte { return appendAvroDecimal(to, c.Value(row)) }, nil
	case array.ListLike:
		return newAvroArrayEncoder(c, kind)
	}
	if value := arrowtype.Bytes(column); value != nil && kind.Code != spannerpb.TypeCode_UUID {
		return func(to []byte, row int) []byte {
			v := value(row)
			return append(binary.AppendVarint(to, int64(len(v))), v...)
		}, nil
	}
	format, err := arrowtype.NewFormatter(column)
	var text []byte
	return func(to []byte, row int) []byte {
		text = format(text[:0], row)
		return append(binary.AppendVarint(to, int64(len(text))), text...)
	}, err
}

func newAvroArrayEncoder(c array.ListLike, kind *spannerpb.Type) (avroEncoder, error) {
	elem, err := newAvroEncoder(c.ListValues(), kind.GetArrayElementType(), true)
	return func(to []byte, row int) []byte {
		from, end := c.ValueOffsets(row)
		if end > from {
			to = binary.AppendVarint(to, end-from)
			for i := from; i < end; i++ {
				to = elem(to, int(i))
			}
		}
		return append(to, 0)
	}, err
}

// appendAvroDecimal appends the length of a number, and then the number in two's complement, in big-endian order and
// with as few bytes as possible.
func appendAvroDecimal(to []byte, d decimal128.Num) []byte {
	var full [16]byte
	binary.BigEndian.PutUint64(full[:], uint64(d.HighBits()))
	binary.BigEndian.PutUint64(full[8:], d.LowBits())
	v := full[:]
	for len(v) > 1 && (v[0] == 0 && v[1] < 0x80 || v[0] == 0xff && v[1] >= 0x80) {
		v = v[1:]
	}
	return append(binary.AppendVarint(to, int64(len(v))), v...)
}

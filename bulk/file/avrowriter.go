package file

import (
	"crypto/md5"
	"encoding/binary"
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
	"github.com/crowfoot-db/crowfoot/avrotype"
)

// AvroRecord holds what an Avro schema contains in addition to the columns' names and types.
type AvroRecord struct {
	Name       string // the name of the record; "row" if empty
	Namespace  string
	Properties []avrotype.Property
	// Columns lists all columns of the record, in order. If it is empty, the record has the columns of the batches.
	Columns []AvroColumn
}

// AvroColumn is a column of a record.
type AvroColumn struct {
	Name       string
	Generated  bool // the column is in the schema but its values are not in the file
	Properties []avrotype.Property
}

// timestampAvroType returns the Avro type with which TIMESTAMP values are written, or the elements of ARRAY<TIMESTAMP>.
// The parameter t is the Arrow type of the column.
func timestampAvroType(t arrow.DataType) string {
	if list, ok := t.(arrow.ListLikeType); ok {
		t = list.Elem()
	}
	switch t {
	case arrow.FixedWidthTypes.Timestamp_ns:
		return avrotype.Nanoseconds
	case arrow.FixedWidthTypes.Timestamp_us:
		return avrotype.Microseconds
	}
	return avrotype.Text
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
	record := avrotype.Record{Name: r.Name, Namespace: r.Namespace, Properties: r.Properties}
	for _, c := range r.Columns {
		if c.Generated {
			record.Fields = append(record.Fields, avrotype.Field{Name: c.Name, Type: `"null"`, DefaultNull: true, Properties: c.Properties})
			continue
		}
		at := slices.IndexFunc(schema.Fields(), func(f arrow.Field) bool { return f.Name == c.Name })
		if at < 0 {
			return "", fmt.Errorf("there is no column %s", c.Name)
		}
		f := schema.Field(at)
		ddl, kind, err := arrowtype.SpannerType(f)
		if err != nil {
			return "", err
		}
		t, err := avrotype.Of(kind, timestampAvroType(f.Type))
		if err != nil {
			return "", fmt.Errorf("column %s: %w", c.Name, err)
		}
		properties := append([]avrotype.Property{{Name: sqlType, Value: ddl}}, c.Properties...)
		record.Fields = append(record.Fields, avrotype.Field{Name: c.Name, Type: t, Nullable: f.Nullable, Properties: properties})
	}
	return record.JSON(), nil
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
	header := append([]byte(avroMagic), 4) // a map with two entries follows; Avro encodes 2 as 4
	for _, s := range []string{"avro.codec", w.codec.Name(), "avro.schema", text} {
		header = append(binary.AppendVarint(header, int64(len(s))), s...)
	}
	_, err = to.Write(append(append(header, 0), w.mark[:]...))
	return w, err
}

// isMapped reports whether package arrowtype uses a column's Arrow type for values of a Spanner type. The parameter t
// is the Arrow type, and the parameter kind is the Spanner type.
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

// newAvroEncoder returns the encoder of a column, or of the elements of arrays. If values can be NULL, the Avro type is
// a union of null and the value's type. The type's index in the union then precedes the value: 0 for null, 1 for a
// value.
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

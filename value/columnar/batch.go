package columnar

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"github.com/crowfoot-db/crowfoot/value"
)

// A Batch collects rows, column by column, and turns them into an Arrow record batch. It reuses its memory for the
// next record batch.
type Batch struct {
	Schema *arrow.Schema
	// Columns collect the values. The caller must append one value to each of them for every row.
	Columns []value.Column

	columns []column
}

// A column is a value.Column that can be turned into an Arrow array.
type column interface {
	value.Column
	len() int
	size() int64 // the bytes of memory that the column takes, including unused capacity
	used() int64 // the bytes of memory in which the column holds values
	truncate()   // removes all values
	data() arrow.ArrayData
	// appendArray appends the values [from, to) of array a. This array must be the data of a column of the same type as
	// this column.
	appendArray(a arrow.ArrayData, from, to int) error
}

// NewBatch makes an empty batch.
func NewBatch(columns []Column, o Options) *Batch {
	b := &Batch{Schema: Schema(columns, o), Columns: make([]value.Column, len(columns)), columns: make([]column, len(columns))}
	for i, c := range columns {
		b.columns[i] = newColumn(c.Name, c.Type, b.Schema.Field(i).Type)
		if o.Lossless {
			b.columns[i] = lossless(b.columns[i], c.Type)
		}
		b.Columns[i] = b.columns[i]
	}
	return b
}

// Size returns the memory of the batch in bytes, including unused capacity.
func (b *Batch) Size() (n int64) {
	for _, c := range b.columns {
		n += c.size()
	}
	return n
}

// Used returns how many bytes of the batch's memory hold values.
func (b *Batch) Used() (n int64) {
	for _, c := range b.columns {
		n += c.used()
	}
	return n
}

// Record returns the batch as an Arrow record batch with the given number of rows. The record batch refers to the
// batch's memory and is valid until Reset.
func (b *Batch) Record(rows int) arrow.RecordBatch {
	arrays := make([]arrow.Array, len(b.columns))
	for i, c := range b.columns {
		arrays[i] = array.MakeFromData(c.data())
	}
	return array.NewRecordBatch(b.Schema, arrays, int64(rows))
}

// Array returns column i of the batch as an Arrow array. It refers to the batch's memory and is valid until Reset.
func (b *Batch) Array(i int) arrow.Array { return array.MakeFromData(b.columns[i].data()) }

// AppendArray appends the values [from, to) of array a to column i. The array must be column i of a Batch that was made
// with the columns and Options of b.
func (b *Batch) AppendArray(i int, a arrow.Array, from, to int) error {
	return b.columns[i].appendArray(a.Data(), from, to)
}

// Reset empties the batch.
func (b *Batch) Reset() {
	for _, c := range b.columns {
		c.truncate()
	}
}

// A RangeError is the error for a value that is outside of the range of its Arrow type.
type RangeError struct{ Column, Type, Value, Arrow string }

func (e *RangeError) Error() string {
	return fmt.Sprintf("column %s: %s %s is out of the range of Arrow's %s", e.Column, e.Type, e.Value, e.Arrow)
}

// base is the part that all columns have in common: the number of values, and which of them are NULL.
type base struct {
	name  string
	typ   *value.Type
	arrow arrow.DataType
	n     int
	nulls int
	valid []byte // a bit for each value, 1 if it is not NULL; empty until the first NULL
}

func (b *base) len() int { return b.n }

// set counts one more value, which is not NULL.
func (b *base) set() {
	if b.nulls > 0 {
		b.growBitmap()
		b.valid[b.n>>3] |= 1 << (b.n & 7)
	}
	b.n++
}

// validity counts the values [from, to) of array a, and records which of them are NULL.
func (b *base) validity(a arrow.ArrayData, from, to int) {
	if a.NullN() == 0 && b.nulls == 0 {
		b.n += to - from
		return
	}
	var valid []byte
	if a.NullN() != 0 {
		valid = a.Buffers()[0].Bytes()
	}
	for i := a.Offset() + from; i < a.Offset()+to; i++ {
		if valid == nil || valid[i>>3]>>(i&7)&1 == 1 {
			b.set()
		} else {
			b.null()
		}
	}
}

// null counts one more value, which is NULL.
func (b *base) null() {
	if b.nulls == 0 {
		b.valid = b.valid[:0]
		for range b.n >> 3 {
			b.valid = append(b.valid, 0xff)
		}
		if rest := b.n & 7; rest > 0 {
			b.valid = append(b.valid, 1<<rest-1)
		}
	}
	b.nulls++
	b.growBitmap()
	b.n++
}

// growBitmap adds a byte to the bitmap if the bit of the next value needs one.
func (b *base) growBitmap() {
	if b.n>>3 == len(b.valid) {
		b.valid = append(b.valid, 0)
	}
}

func (b *base) truncate() { b.n, b.nulls, b.valid = 0, 0, b.valid[:0] }

// arrayData returns the Arrow data of the column. The caller passes the children, and the buffers that follow the
// validity bitmap.
func (b *base) arrayData(children []arrow.ArrayData, buffers ...[]byte) arrow.ArrayData {
	list := make([]*memory.Buffer, 1, 1+len(buffers))
	if b.nulls > 0 {
		list[0] = memory.NewBufferBytes(b.valid)
	}
	for _, p := range buffers {
		list = append(list, memory.NewBufferBytes(p))
	}
	return array.NewData(b.arrow, b.n, list, children, b.nulls, 0)
}

func (b *base) outOfRange(text []byte) error {
	return &RangeError{Column: b.name, Type: b.typ.String(), Value: string(text), Arrow: b.arrow.String()}
}

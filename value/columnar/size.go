package columnar

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/crowfoot-db/crowfoot/value"
)

// DataSize returns the number of bytes of data in an array that a Batch has made from values of type t. It equals the
// sum of value.Value.DataSize over the values.
func DataSize(a arrow.Array, t *value.Type) (n int64) {
	if size := value.FixedSize(t.Kind); size > 0 {
		return int64(size) * int64(a.Len()-a.NullN())
	}
	if value.KeepsTexts(t.Kind) && a.Len() > 0 {
		data := a.Data()
		offsets := arrow.Int32Traits.CastFromBytes(data.Buffers()[1].Bytes())[data.Offset():]
		return int64(offsets[data.Len()] - offsets[0])
	}
	for i := range a.Len() {
		if v, err := StoredValueAt(a, i, t); err == nil {
			n += int64(v.DataSize(t))
		}
	}
	return n
}

// elementBytes is an estimate, in bytes, of the memory that an element of a list or a value of a dictionary takes, in
// addition to its text, when it becomes a separate value.
const elementBytes = 16

// BytesOf estimates the bytes of data of the values [from, to) of an array of any type. A value of a dictionary counts
// each time it is referred to. BytesOf may stop counting once the count is greater than the parameter most.
func BytesOf(a arrow.Array, from, to int, most int64) (n int64) {
	if from == to {
		return 0
	}
	switch a := a.(type) {
	case array.ExtensionArray:
		return BytesOf(a.Storage(), from, to, most)
	case *array.Dictionary:
		for i := from; i < to && n <= most; i++ {
			if n += elementBytes; !a.IsNull(i) {
				at := a.GetValueIndex(i)
				n += BytesOf(a.Dictionary(), at, at+1, most-n)
			}
		}
		return n
	case *array.Struct:
		for i := range a.NumField() {
			n += BytesOf(a.Field(i), from, to, most-n)
		}
		return n
	case array.ListLike:
		if id := a.DataType().ID(); id == arrow.LIST_VIEW || id == arrow.LARGE_LIST_VIEW {
			for i := from; i < to && n <= most; i++ {
				first, end := a.ValueOffsets(i)
				n += elementBytes*(1+end-first) + BytesOf(a.ListValues(), int(first), int(end), most-n)
			}
			return n
		}
		first, _ := a.ValueOffsets(from)
		_, end := a.ValueOffsets(to - 1)
		return elementBytes*(int64(to-from)+end-first) + BytesOf(a.ListValues(), int(first), int(end), most)
	case array.BinaryLike:
		return int64(4*(to-from)+a.ValueLen(to-1)) + a.ValueOffset64(to-1) - a.ValueOffset64(from)
	case array.ViewLike:
		for i := from; i < to && n <= most; i++ {
			if n += elementBytes; !a.IsNull(i) {
				n += int64(a.ValueHeader(i).Len())
			}
		}
		return n
	}
	if t, ok := a.DataType().(arrow.FixedWidthDataType); ok {
		return (int64(t.BitWidth())*int64(to-from) + 7) / 8
	}
	return int64(to - from) // Arrow's null type: one byte for each value
}

package columnar

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Convert converts an array of column c to the type to. A Batch with Options.Lossless has made the array, and a Batch
// with other Options would give it the type to. If the array has that type, Convert returns it unchanged. If the type
// cannot hold a value, the error is a *RangeError.
func Convert(a arrow.Array, c Column, to arrow.DataType) (arrow.Array, error) {
	if arrow.TypeEqual(a.DataType(), to) {
		return a, nil
	}
	made := newColumn(c.Name, c.Type, to)
	for i := range a.Len() {
		v, err := StoredValueAt(a, i, c.Type)
		if err != nil {
			return nil, err
		}
		if err := made.AppendValue(v); err != nil {
			return nil, err
		}
	}
	return array.MakeFromData(made.data()), nil
}

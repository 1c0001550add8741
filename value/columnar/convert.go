package columnar

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Convert converts an array of column c to the Arrow type given by the parameter to. The array must come from a Batch
// with Options.Lossless. The Arrow type must be the one that column c has in a Batch without Options.Lossless. If the
// array already has that type, Convert returns the array unchanged. If a value does not fit the type, the error is a
// *RangeError.
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

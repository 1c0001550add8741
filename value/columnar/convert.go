package columnar

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// Convert gives an array of values of column c, of the types of a Batch with Options.Lossless, the type that another Batch gives them. It is the array itself if it
// has the type. The error of a value that the type cannot hold is a *RangeError.
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

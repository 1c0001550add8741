package columnar

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/value"
)

// DataSize is how many bytes of data the values of an array are, which a Batch has made of values of type t: what value.Value.DataSize says of each.
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

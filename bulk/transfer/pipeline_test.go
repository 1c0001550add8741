package transfer

import (
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

// TestFitting checks that fitting limits the bytes of the rows of one commit: it returns fewer rows where the rows are
// large, even if most rows of the batch are small.
func TestFitting(t *testing.T) {
	const rows, large = 1500, 40
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "K", Type: arrow.PrimitiveTypes.Int64}, {Name: "S", Type: arrow.BinaryTypes.String}, {Name: "L", Type: arrow.ListOf(arrow.BinaryTypes.LargeString)},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	size := func(row int) int {
		if row%(rows/2) < large {
			return commitBytes / 8
		}
		return 10
	}
	for row := range rows {
		b.Field(0).(*array.Int64Builder).Append(int64(row))
		b.Field(1).(*array.StringBuilder).Append(strings.Repeat("x", size(row)))
		list := b.Field(2).(*array.ListBuilder)
		list.Append(true)
		list.ValueBuilder().(*array.LargeStringBuilder).Append(strings.Repeat("x", size(row)))
	}
	batch := b.NewRecordBatch().NewSlice(1, rows)
	for from := 0; from < rows-1; {
		n, bytes := fitting(batch, from, 1000), 0
		for row := from; row < from+n; row++ {
			bytes += 2 * size(row+1)
		}
		if n == 0 || bytes > 2*commitBytes || n < 20 && bytes < commitBytes/2 {
			t.Fatalf("%d rows from %d on have %d bytes", n, from, bytes)
		}
		from += n
	}
}

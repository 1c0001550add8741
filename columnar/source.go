package columnar

import (
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// A Source gives the rows of a table, or the entries of an index, at a timestamp. Copy.Write and Copy.Renew use it to
// write and renew chunks.
type Source struct {
	*table.Projection // the projection to all columns of the copy; the function Columns makes it
	View              table.View
	At                mvcc.Timestamp // the timestamp at which View reads
	// Memory is an account of the budget that is charged for the memory of writing a chunk. Write opens accounts of its
	// own in this budget. If Memory is nil, nothing is charged.
	Memory *memory.Account
	Rows   int // maximum number of rows of a chunk, if it is not 0 and below MaxRows
}

// Columns returns the projection to all columns of a columnar copy. If x is nil, this is a copy of the table t, and
// otherwise of its index x. The columns include generated columns that the table does not store. Their values are
// computed from the row.
func Columns(t *schema.Table, x *schema.Index) (*table.Projection, error) {
	if x == nil {
		return table.NewProjection(t, nil, t.Columns)
	}
	var columns []*schema.Column
	for _, p := range x.Key {
		columns = append(columns, p.Column)
	}
	for _, p := range x.Suffix {
		columns = append(columns, p.Column)
	}
	return table.NewProjection(t, x, append(columns, x.Storing...))
}

// batchOf returns an empty batch with the columns.
func batchOf(list []*schema.Column) *columnar.Batch {
	columns := make([]columnar.Column, len(list))
	for i, c := range list {
		columns[i] = columnar.Column{Name: c.Name, Type: c.Type}
	}
	return columnar.NewBatch(columns, columnar.Options{Lossless: true})
}

// arrowType returns the Arrow type of a column of a chunk.
func arrowType(t *value.Type, stored bool) arrow.DataType {
	if stored {
		return arrow.BinaryTypes.Binary
	}
	return columnar.Schema([]columnar.Column{{Type: t}}, columnar.Options{}).Field(0).Type
}

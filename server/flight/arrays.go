package flight

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"

	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// streamArrays sends a result whose rows are already Arrow arrays. It copies the values once, into the messages.
func streamArrays(ctx context.Context, c *rpc.Call, r *result.Result, from *exec.ArrayRows, o columnar.Options) error {
	columns := columnsOf(r.Columns)
	w := newWriter(ctx, c, columnar.Schema(columns, o))
	w.rows = r.Rows
	for size := firstBatch; ; {
		before := r.Rows.DataSize()
		rows, arrays, err := from.NextArrays()
		if err != nil {
			return err
		}
		if rows == 0 {
			return w.finish()
		}
		rowSize := int(r.Rows.DataSize()-before)/rows + 1
		for at := 0; at < rows; size = min(2*size, fullBatch) {
			end := min(at+max(size/rowSize, 1), at+maxRows, rows)
			if err := w.writeArrays(columns, arrays, at, end); err != nil {
				return arrowError(err)
			}
			r.Sent += int64(end - at)
			at = end
			if err := ctx.Err(); err != nil {
				return err // CancelFlightInfo has ended ctx but not the call, so sending does not fail
			}
		}
	}
}

// writeArrays sends a batch with the values whose indexes in the arrays are in [at, end).
func (w *writer) writeArrays(columns []columnar.Column, arrays []arrow.Array, at, end int) error {
	list := make([]arrow.Array, len(arrays))
	for i, a := range arrays {
		var err error
		if list[i], err = columnar.Convert(array.NewSlice(a, int64(at), int64(end)), columns[i], w.schema.Field(i).Type); err != nil {
			return err
		}
	}
	return w.Write(array.NewRecordBatch(w.schema, list, int64(end-at)))
}

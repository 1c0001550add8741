package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// ArraySource is a ColumnSource whose columns are Arrow arrays.
type ArraySource interface {
	ColumnSource
	// NextArrays moves to the next rows, as many as the source holds in one set of arrays. It returns their number, 0 at the end.
	NextArrays() (rows int, err error)
	// Array returns column i of the scan for the rows that NextArrays moved to. It is valid until the next move.
	Array(i int) arrow.Array
}

// ArrayRows are Rows that a ColumnSource returns as Arrow arrays. A reader uses either NextArrays or the other methods.
type ArrayRows struct {
	operatorRows
	source ArraySource
	arrays []arrow.Array
}

// NextArrays moves to the next rows. It returns their number, 0 at the end, and the columns of the result for them, which are valid until the next
// call. The arrays have the types that package value/columnar gives without Options, or hold stored payloads (see columnar.IsStored).
func (a *ArrayRows) NextArrays() (rows int, arrays []arrow.Array, err error) {
	if a.root == nil {
		return 0, nil, a.err
	}
	if a.err = a.run.check(); a.err == nil {
		rows, a.err = a.source.NextArrays()
	}
	if rows == 0 || a.err != nil {
		if err := a.Close(); a.err == nil {
			a.err = err
		}
		return 0, nil, a.err
	}
	for i, c := range a.columns {
		a.arrays[i] = a.source.Array(i)
		a.data += columnar.DataSize(a.arrays[i], c.Type)
	}
	a.run.stats.RowsScanned += int64(rows)
	a.run.stats.RowsReturned += int64(rows)
	return rows, a.arrays, nil
}

// readColumns runs a key read by columns. It returns nil if there is no source for it.
func (p *Program) readColumns(r *run) (Rows, error) {
	op := &scanOp{keyScan: p.read, out: newBatch(len(p.plan.Columns))}
	if err := op.locate(r, &op.place); err != nil || !op.byColumns(r) {
		return nil, err
	}
	if err := op.openColumns(r); err != nil || !op.isByColumns() {
		return nil, err
	}
	op.left = op.place.limit
	return rowsOf(r, op, p.plan.Columns), nil
}

// SourceRows returns the rows of a source. Its columns are those of the result.
func SourceRows(ctx context.Context, columns []plan.Column, source ColumnSource) Rows {
	r := &run{ctx: ctx}
	scan := &columnScan{source: source, cols: make([]fn.Column, len(columns))}
	r.byColumns = append(r.byColumns, scan)
	return rowsOf(r, &scanOp{keyScan: &keyScan{node: new(plan.Scan)}, columns: scan, left: -1, out: newBatch(len(columns))}, columns)
}

// rowsOf returns the rows of a scan that is open by columns.
func rowsOf(r *run, op *scanOp, columns []plan.Column) Rows {
	rows := operatorRows{batchRows: batchRows{columns: columns}, run: r, root: op}
	if source, ok := op.columns.source.(ArraySource); ok && op.left < 0 {
		return &ArrayRows{operatorRows: rows, source: source, arrays: make([]arrow.Array, len(columns))}
	}
	return &rows
}

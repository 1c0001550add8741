package exec

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// ColumnSource returns the rows of a scan column by column, in the order of the rows' keys.
type ColumnSource interface {
	// Next moves to the next rows; most is the greatest number of rows to move to. It returns how many rows it
	// moved to, 0 at the end.
	Next(most int) (rows int, err error)
	// Column returns the values of column i of the scan for the rows that Next moved to. The values are valid until
	// the next call of Next.
	Column(i int) (fn.Column, error)
	// Chunks returns how many chunks of a columnar copy the source reads.
	Chunks() int
	// Release closes the cursors that the source holds in the storage engine. A later call of Next continues after
	// the current rows.
	Release()
	// Close closes the source. The caller must call it exactly once.
	Close() error
}

// ColumnRead describes what a scan reads from a ColumnSource: all rows of the spans, in the order of their keys.
type ColumnRead struct {
	Projection *table.Projection
	Spans      []table.Span
	Method     plan.ScanMethod // the scan method that a hint sets; AutomaticScan without a hint
}

// columnScan is the state of a scan that reads its rows from a ColumnSource.
type columnScan struct {
	source ColumnSource // nil if the scan is not open
	cols   []fn.Column
}

// release closes the cursors that the scan's ColumnSource holds in the storage engine.
func (s *columnScan) release() {
	if s.source != nil {
		s.source.Release()
	}
}

// byColumns reports whether the scan can read from a ColumnSource. The result is false if Env.Columns is nil, if the
// scan has no spans, or if o.columnar is false. It is false for DML (a run with a Writer), because a columnar copy does
// not have the writes of the DML's own transaction. It is also false if a LIMIT or EXISTS can stop the scan before its
// last row, unless a hint asks for a columnar scan: a ColumnSource decodes whole chunks, and most of the decoded rows
// would not be needed.
func (o *scanOp) byColumns(r *run) bool {
	return r.env.Columns != nil && r.env.Writer == nil && o.columnar && (!o.partial || o.node.Method == plan.ColumnarScan) && len(o.place.spans) > 0
}

// openColumns opens a ColumnSource for the scan. If Env.Columns returns nil, the scan gets no source, and
// isByColumns then returns false.
func (o *scanOp) openColumns(r *run) error {
	source, err := r.env.Columns(ColumnRead{o.projection, o.place.spans, o.node.Method})
	if source == nil || err != nil {
		return err
	}
	if o.columns == nil {
		o.columns = &columnScan{cols: make([]fn.Column, len(o.node.Columns))}
		r.byColumns = append(r.byColumns, o.columns)
	}
	o.columns.source = source
	r.stats.Chunks += int64(source.Chunks())
	return nil
}

// isByColumns reports whether the scan has an open ColumnSource.
func (o *scanOp) isByColumns() bool { return o.columns != nil && o.columns.source != nil }

// nextColumns returns the next batch of a scan with an open ColumnSource, nil at the end.
func (o *scanOp) nextColumns(r *run) (*batch, error) {
	for o.left != 0 {
		o.out.begin()
		most := int64(columnBatch)
		if o.left > 0 && o.residual == nil {
			most = min(o.left, most)
		}
		n, err := o.columns.source.Next(int(most))
		if n == 0 || err != nil {
			return nil, err
		}
		for i := range o.columns.cols {
			if o.columns.cols[i], err = o.columns.source.Column(i); err != nil {
				return nil, err
			}
		}
		if some, err := o.takeColumns(r, o.columns.cols, n); some || err != nil {
			return &o.out, err
		}
	}
	return nil, nil
}

// takeColumns makes a batch of the n rows of cols. It drops the rows for which the residual condition is not TRUE, and
// the rows after the scan's limit. Its first result says whether the batch has any rows.
func (o *scanOp) takeColumns(r *run, cols []fn.Column, n int) (some bool, err error) {
	r.stats.RowsScanned += int64(n)
	o.out.setColumns(cols, n)
	if o.residual != nil {
		if err := o.chosen.keep(r, &o.out, o.residual); err != nil {
			return false, err
		}
	}
	if o.left > 0 {
		o.out.truncate(int(min(o.left, int64(o.out.n))))
		o.left -= int64(o.out.n)
	}
	if o.out.n > 0 {
		return true, nil
	}
	return false, r.check()
}

// vectorsFrom is the least number of rows of a batch for which a scan decodes the rows into vectors, if the scan's
// parent accepts columns. The first batches of a scan are smaller and have flat rows. For a query that reads only these
// batches, allocating vectors would cost more than it saves.
const vectorsFrom = 256

// vectorBytes is about how many bytes of stored rows a scan decodes into one batch of vectors.
const vectorBytes = 1 << 20

// scanVectors holds the columns into which a scan decodes stored rows.
type scanVectors struct {
	builders []*value.VectorBuilder
	into     []value.Column // the same builders, as a slice of the type that FillBatch takes
	cols     []fn.Column
	err      error // an error of FillBatch; the scan returns it after the rows that were decoded before the error
}

// nextVectors decodes the next stored rows into vectors and returns them as a batch of columns, nil at the end.
func (o *scanOp) nextVectors(r *run) (*batch, error) {
	v := o.vectors
	if v == nil {
		v = &scanVectors{cols: make([]fn.Column, len(o.node.Columns))}
		for _, c := range o.node.Columns {
			b := value.NewVectorBuilder(c.Type)
			v.builders, v.into = append(v.builders, b), append(v.into, b)
		}
		o.vectors = v
	}
	for o.left != 0 && v.err == nil {
		o.out.begin()
		for i, b := range v.builders {
			b.Reset()
			v.cols[i] = fn.Column{}
		}
		var n int
		if n, v.err = o.rows.FillBatch(v.into, columnBatch, vectorBytes); n == 0 {
			o.left = 0
			break
		}
		for i, b := range v.builders {
			v.cols[i].Vector = b.Vector()
		}
		if some, err := o.takeColumns(r, v.cols, n); some || err != nil {
			return &o.out, err
		}
	}
	return nil, v.err
}

// closeColumns closes the scan's ColumnSource, if it has an open one.
func (o *scanOp) closeColumns() error {
	if !o.isByColumns() {
		return nil
	}
	source := o.columns.source
	o.columns.source = nil
	return source.Close()
}

// ArraySource is a ColumnSource whose columns are Arrow arrays.
type ArraySource interface {
	ColumnSource
	// NextArrays moves to the next rows, as many as the source holds in one set of arrays. It returns their number,
	// 0 at the end.
	NextArrays() (rows int, err error)
	// Array returns column i of the scan for the rows that NextArrays moved to. The array is valid until the next
	// call of NextArrays.
	Array(i int) arrow.Array
}

// ArrayRows are the Rows of a scan that reads an ArraySource. A caller reads them either as Arrow arrays, by NextArrays,
// or row by row, by the methods of Rows. It must not mix both.
type ArrayRows struct {
	operatorRows
	source ArraySource
	arrays []arrow.Array
}

// NextArrays moves to the next rows. It returns their number, 0 at the end, and one array for each column of the
// result. The arrays are valid until the next call. Their types are those that package value/columnar gives without
// Options. The exception is an array with a value that its Arrow type cannot hold: that array is a Binary array of
// values in stored form (see columnar.IsStored).
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

// readColumns runs a plan that only reads rows of one table or index by key (p.read), and takes the rows from a
// ColumnSource. It returns nil if there is no ColumnSource for these rows.
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

// SourceRows returns the rows of a source as Rows with the given columns. The source must return these columns, in
// this order.
func SourceRows(ctx context.Context, columns []plan.Column, source ColumnSource) Rows {
	r := &run{ctx: ctx}
	scan := &columnScan{source: source, cols: make([]fn.Column, len(columns))}
	r.byColumns = append(r.byColumns, scan)
	return rowsOf(r, &scanOp{keyScan: &keyScan{node: new(plan.Scan)}, columns: scan, left: -1, out: newBatch(len(columns))}, columns)
}

// rowsOf returns the rows of a scan that has an open ColumnSource. They are ArrayRows if the source is an
// ArraySource and the scan has no limit.
func rowsOf(r *run, op *scanOp, columns []plan.Column) Rows {
	rows := operatorRows{batchRows: batchRows{columns: columns}, run: r, root: op}
	if source, ok := op.columns.source.(ArraySource); ok && op.left < 0 {
		return &ArrayRows{operatorRows: rows, source: source, arrays: make([]arrow.Array, len(columns))}
	}
	return &rows
}

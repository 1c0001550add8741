package prepare

import (
	"context"

	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	arrays "github.com/crowfoot-db/crowfoot/value/columnar"
)

// copiesOf reports whether a plan has a scan that may read the columnar copy of its table or index.
func copiesOf(c *schema.Catalog, p *plan.Plan) bool {
	found := false
	plan.Walk(p.Root, func(n plan.Node) {
		if s, ok := n.(*plan.Scan); ok && s.MayReadColumnar() {
			found = found || s.Index == nil && c.TableIsColumnar(s.Table) || s.Index != nil && c.IndexIsColumnar(s.Index)
		}
	})
	return found
}

// columnReads opens reads of columnar copies for one run of a statement, or for one READ: see exec.Env.Columns.
type columnReads struct {
	ctx    context.Context
	copies *columnar.Copies
	view   table.BatchView
	memory *memory.Account
}

// columns returns the function exec.Env.Columns for a run; nil if the run cannot read copies.
func (s *Statement) columns(ctx context.Context, r Run) func(exec.ColumnRead) (exec.ColumnSource, error) {
	view, ok := r.View.(table.BatchView)
	if !s.copied || !ok {
		return nil
	}
	return (&columnReads{ctx, s.preparer.cfg.Copies, view, r.Memory}).open
}

// ReadColumns opens a read of the columnar copy of a table or index. It returns nil if the rows must be read without
// the copy: because there is no copy, because reading without it is cheaper, because the read is reverse or has a
// limit, or because view is not a table.BatchView. It takes no locks.
func ReadColumns(ctx context.Context, copies *columnar.Copies, read table.Read, view table.View) (exec.Rows, error) {
	snapshot, ok := view.(table.BatchView)
	if !ok || read.Limit > 0 || read.Reverse {
		return nil, nil
	}
	reads := columnReads{ctx, copies, snapshot, read.Memory}
	source, err := reads.open(exec.ColumnRead{Projection: read.Projection, Spans: read.Spans})
	if source == nil || err != nil {
		return nil, err
	}
	columns := make([]plan.Column, len(read.Columns))
	for i, c := range read.Columns {
		columns[i] = plan.Column{Name: c.Name, Type: c.Type}
	}
	return exec.SourceRows(ctx, columns, source), nil
}

func (c *columnReads) open(read exec.ColumnRead) (exec.ColumnSource, error) {
	tableCopy := c.copies.Of(read.Projection.ID())
	if tableCopy == nil {
		return nil, nil
	}
	of := columnar.Read{Projection: read.Projection, Spans: read.Spans, At: c.view.Timestamp(), Memory: c.memory}
	e := tableCopy.Estimate(of)
	if read.Method == plan.ColumnarScan && e.Chunks == 0 || read.Method != plan.ColumnarScan && !isCheaper(e) {
		return nil, nil
	}
	if t, ok := c.view.(interface{ ReadCopy([]table.Span, int64) }); ok {
		t.ReadCopy(read.Spans, e.Rows)
	}
	return &columnSource{reader: tableCopy.Open(c.ctx, c.view, of), columns: read.Projection.Columns, viewers: make([]arrays.Viewer, len(read.Projection.Columns)), chunks: e.Chunks}, nil
}

// A copy is read if that is cheaper than reading from the table. Reading a chunk of a copy decodes all of its rows.
// Decoding a chunk takes less time than reading all of these rows from the table one by one, but more time than reading
// a few of them. If a chunk lies only partly in the spans to read, it is unknown how many of its rows the read needs.
const (
	// leastWhole is the first condition for reading the copy: the chunks that lie completely in the spans must have at
	// least this many rows together. Fewer rows are quickly read one by one.
	leastWhole = 1000
	// mostPartial is the second condition, and both must be met: the chunks that lie only partly in the spans must have
	// at most mostPartial times as many rows as those that lie completely in them.
	mostPartial = 4
)

// isCheaper reports whether reading the columnar copy costs less than reading from the table.
func isCheaper(e columnar.Estimate) bool {
	return e.Whole >= leastWhole && e.Partial <= mostPartial*e.Whole
}

// columnSource passes the rows of a columnar copy to the executor, as vectors and as arrays.
type columnSource struct {
	reader  *columnar.Reader
	columns []*schema.Column
	viewers []arrays.Viewer
	chunks  int
	run     int // number of rows that the latest call of reader.Next has returned
	// n is the number of rows that the latest call of Next has returned. from is the index of the first of these rows
	// among the rows that the latest call of reader.Next has returned.
	from, n int
}

// Next implements exec.ColumnSource.
func (s *columnSource) Next(most int) (rows int, err error) {
	if s.from += s.n; s.from == s.run {
		s.from, s.n = 0, 0
		if s.run, err = s.reader.Next(); err != nil {
			return 0, err
		}
	}
	s.n = min(most, s.run-s.from)
	return s.n, nil
}

// Column implements exec.ColumnSource.
func (s *columnSource) Column(i int) (fn.Column, error) {
	v, err := s.viewers[i].View(s.reader.Array(i), s.columns[i].Type, s.from, s.n)
	return fn.Column{Vector: v}, err
}

// NextArrays implements exec.ArraySource.
func (s *columnSource) NextArrays() (rows int, err error) { return s.reader.Next() }

// Array implements exec.ArraySource.
func (s *columnSource) Array(i int) arrow.Array { return s.reader.Array(i) }

// Chunks implements exec.ColumnSource.
func (s *columnSource) Chunks() int { return s.chunks }

// Release implements exec.ColumnSource.
func (s *columnSource) Release() { s.reader.Release() }

// Close implements exec.ColumnSource.
func (s *columnSource) Close() error { return s.reader.Close() }

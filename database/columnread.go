package database

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

// copiesOf says whether a plan has scans of what a columnar copy is kept of.
func copiesOf(c *schema.Catalog, p *plan.Plan) bool {
	found := false
	plan.Walk(p.Root, func(n plan.Node) {
		if s, ok := n.(*plan.Scan); ok && s.MayReadColumnar() {
			found = found || s.Index == nil && c.TableIsColumnar(s.Table) || s.Index != nil && c.IndexIsColumnar(s.Index)
		}
	})
	return found
}

// columnReads opens reads of columnar copies: see exec.Env.Columns.
type columnReads struct {
	ctx    context.Context
	copies *columnar.Copies
	view   table.BatchView
	memory *memory.Account
}

// columns is exec.Env.Columns of a run; nil if it reads no copies.
func (s *Statement) columns(ctx context.Context, r Run) func(exec.ColumnRead) (exec.ColumnSource, error) {
	view, ok := r.View.(table.BatchView)
	if !s.copied || !ok {
		return nil
	}
	return (&columnReads{ctx, s.version.copies, view, r.Memory}).open
}

// ReadColumns opens a read of all rows by columns, if there is a columnar copy that makes it cheaper; else the rows are nil. Nothing is locked.
func (d *Database) ReadColumns(ctx context.Context, read table.Read, view table.View) (exec.Rows, error) {
	snapshot, ok := view.(table.BatchView)
	if !ok || read.Limit > 0 || read.Reverse {
		return nil, nil
	}
	reads := columnReads{ctx, d.Copies(), snapshot, read.Memory}
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
	copy := c.copies.Of(read.Projection.ID())
	if copy == nil {
		return nil, nil
	}
	of := columnar.Read{Projection: read.Projection, Spans: read.Spans, At: c.view.Timestamp(), Memory: c.memory}
	e := copy.Estimate(of)
	if read.Method == plan.ColumnarScan && e.Chunks == 0 || read.Method != plan.ColumnarScan && !isCheaper(e) {
		return nil, nil
	}
	if t, ok := c.view.(interface{ ReadCopy([]table.Span, int64) }); ok {
		t.ReadCopy(read.Spans, e.Rows)
	}
	return &columnSource{reader: copy.Open(c.ctx, c.view, of), columns: read.Projection.Columns, viewers: make([]arrays.Viewer, len(read.Projection.Columns)), chunks: e.Chunks}, nil
}

// To read a chunk costs the decoding of all its rows, which takes a fraction of the time in which rows are read one by one, so that a chunk of which few
// rows are wanted is dearer than these rows. How many they are of a chunk that lies in the spans in part is not known.
const (
	// leastWhole is how many rows are to be read in chunks that lie in the spans as a whole: fewer are soon read one by one.
	leastWhole = 1000
	// mostPartial is how many rows other chunks may have for each of them.
	mostPartial = 4
)

// isCheaper says whether a read of a columnar copy costs less than one of rows.
func isCheaper(e columnar.Estimate) bool {
	return e.Whole >= leastWhole && e.Partial <= mostPartial*e.Whole
}

// columnSource gives the rows of a columnar copy to the executor, as vectors and as arrays.
type columnSource struct {
	reader  *columnar.Reader
	columns []*schema.Column
	viewers []arrays.Viewer
	chunks  int
	run     int // rows of the reader's run
	from, n int // those that Next moved to
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

package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
)

// ColumnSource gives the rows of a scan column by column, in the order of their keys.
type ColumnSource interface {
	// Next moves to the rows that follow, at most so many. It returns how many they are, 0 at the end.
	Next(most int) (rows int, err error)
	// Column is the values of a column of the scan for these rows. They are good until Next.
	Column(i int) (fn.Column, error)
	// Close ends the read. It is called once.
	Close() error
}

// ColumnRead is what a scan wants of a ColumnSource: all rows of the spans, in the order of their keys.
type ColumnRead struct {
	Scan       *plan.Scan
	Projection *table.Projection
	Spans      []table.Span
}

// columnScan is a scan whose rows a ColumnSource gives.
type columnScan struct {
	source ColumnSource
	cols   []fn.Column
}

// byColumns says whether the scan wants all rows of ranges, to which nothing is done one by one.
func (o *scanOp) byColumns(r *run) bool {
	return r.env.Columns != nil && r.env.Writer == nil && o.point == nil && o.skip == nil && !o.partial && !o.node.Reverse && len(o.place.spans) > 0
}

// openColumns opens the scan by columns, if there is a source for it.
func (o *scanOp) openColumns(r *run) error {
	source, err := r.env.Columns(ColumnRead{Scan: o.node, Projection: o.projection, Spans: o.place.spans})
	if source == nil || err != nil {
		return err
	}
	o.columns = &columnScan{source: source, cols: make([]fn.Column, len(o.node.Columns))}
	return nil
}

// nextColumns is next of a scan by columns.
func (o *scanOp) nextColumns(r *run) (*batch, error) {
	for {
		o.out.begin()
		n, err := o.columns.source.Next(columnBatch)
		if n == 0 || err != nil {
			return nil, err
		}
		for i := range o.columns.cols {
			if o.columns.cols[i], err = o.columns.source.Column(i); err != nil {
				return nil, err
			}
		}
		r.stats.RowsScanned += int64(n)
		o.out.setColumns(o.columns.cols, n)
		if o.residual != nil {
			if err := o.chosen.keep(r, &o.out, o.residual); err != nil {
				return nil, err
			}
		}
		if o.out.n > 0 {
			return &o.out, nil
		}
		if err := r.check(); err != nil {
			return nil, err
		}
	}
}

// closeColumns ends a scan by columns.
func (o *scanOp) closeColumns() error {
	if o.columns == nil {
		return nil
	}
	source := o.columns.source
	o.columns = nil
	return source.Close()
}

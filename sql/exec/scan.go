package exec

import (
	"github.com/crowfoot-db/crowfoot/fault"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// keyScan is a compiled Scan of a stored table or index.
type keyScan struct {
	node       *plan.Scan
	projection *table.Projection
	seeks      []seekCode
	residual   eval
	limit      eval
}

func (c *compiler) keyScan(n *plan.Scan) (*keyScan, error) {
	p, err := table.NewProjection(n.Table, n.Index, n.Columns)
	if err != nil {
		return nil, err
	}
	s := &keyScan{node: n, projection: p}
	for i := range n.Seeks {
		code, err := c.seek(&n.Seeks[i], p.Layout)
		if err != nil {
			return nil, err
		}
		s.seeks = append(s.seeks, code)
	}
	if s.residual, err = c.optional(n.Residual); err != nil {
		return nil, err
	}
	s.limit, err = c.optional(n.Limit)
	return s, err
}

// read is the table read that the scan is now; limit is -1 for all rows. It does not see the residual condition.
func (s *keyScan) read(r *run) (read table.Read, limit int64, err error) {
	read = table.Read{Projection: s.projection, Reverse: s.node.Reverse}
	if s.node.Exclusive {
		read.Lock = table.LockExclusive
	}
	if limit, err = s.limitOf(r); err != nil || limit == 0 {
		return read, limit, err
	}
	if read.Spans, err = s.spans(r); err != nil {
		return read, limit, err
	}
	if r.env.Restrict != nil && (s == r.prog.read || s.node == r.driving) {
		read.Spans = table.Within(read.Spans, *r.env.Restrict)
	}
	if limit > 0 && s.residual == nil {
		read.Limit = limit
	}
	return read, limit, nil
}

func (s *keyScan) limitOf(r *run) (int64, error) {
	if s.limit == nil {
		return -1, nil
	}
	return rowLimit(r, s.limit, "LIMIT")
}

// rowLimit computes a LIMIT or OFFSET.
func rowLimit(r *run, f eval, clause string) (int64, error) {
	v, err := f(r, nil)
	if err != nil {
		return 0, err
	}
	if v.IsNull() {
		return 0, fault.NullLimit(clause)
	}
	if v.AsInt64() < 0 {
		return 0, fault.NegativeRowLimit(clause, v.AsInt64())
	}
	return v.AsInt64(), nil
}

func (s *keyScan) spans(r *run) ([]table.Span, error) {
	var set table.KeySet
	if s.seeks == nil {
		set.All = true
	}
	for i := range s.seeks {
		if err := s.seeks[i].add(r, &set); err != nil {
			return nil, err
		}
	}
	return s.projection.Spans(set)
}

// rows runs the scan as the whole query.
func (s *keyScan) rows(r *run, columns []plan.Column) (Rows, error) {
	read, limit, err := s.read(r)
	if err != nil {
		return nil, err
	}
	if limit == 0 {
		read.Spans = nil
	}
	return &keyRows{Rows: read.Open(r.ctx, r.view), columns: columns}, nil
}

// scanOp reads rows of a table or index.
type scanOp struct {
	*keyScan
	rows *table.Rows
	left int64 // rows still wanted, -1 for all
	out  batch
}

func (c *compiler) scan(n *plan.Scan) (maker, error) {
	if n.Table.Rows != nil {
		return c.systemScan(n)
	}
	s, err := c.keyScan(n)
	if err != nil {
		return nil, err
	}
	width := len(n.Columns)
	return func(*run) operator { return &scanOp{keyScan: s, out: newBatch(width)} }, nil
}

func (o *scanOp) open(r *run) error {
	if err := o.close(); err != nil {
		return err
	}
	read, limit, err := o.read(r)
	if err != nil {
		return err
	}
	o.out.reset()
	o.left = limit
	if limit != 0 {
		o.rows = read.Open(r.ctx, r.view)
	}
	return nil
}

func (o *scanOp) next(r *run) (*batch, error) {
	if o.rows == nil || o.left == 0 {
		return nil, o.close()
	}
	if err := r.ctx.Err(); err != nil {
		return nil, err
	}
	o.out.begin()
	for !o.out.full() && o.left != 0 {
		ok, err := o.rows.Next()
		if err != nil {
			return nil, err
		}
		if !ok {
			err := o.close()
			return o.out.some(), err
		}
		r.stats.RowsScanned++
		o.out.vals = o.rows.Values(o.out.vals)
		o.out.n++
		if o.residual != nil {
			pass, err := isTrue(o.residual, r, o.out.row(o.out.n-1))
			if err != nil {
				return nil, err
			}
			if !pass {
				o.out.drop()
				continue
			}
		}
		if o.left > 0 {
			o.left--
		}
	}
	return o.out.some(), nil
}

func (o *scanOp) close() error {
	if o.rows == nil {
		return nil
	}
	rows := o.rows
	o.rows = nil
	return rows.Close()
}

// systemOp reads a system table.
type systemOp struct {
	node     *plan.Scan
	residual eval
	limit    eval
	rows     [][]value.Value
	left     int64
	out      batch
}

func (c *compiler) systemScan(n *plan.Scan) (maker, error) {
	residual, err := c.optional(n.Residual)
	if err != nil {
		return nil, err
	}
	limit, err := c.optional(n.Limit)
	if err != nil {
		return nil, err
	}
	return func(*run) operator {
		return &systemOp{node: n, residual: residual, limit: limit, out: newBatch(len(n.Columns))}
	}, nil
}

func (o *systemOp) open(r *run) error {
	o.left = -1
	var err error
	if o.limit != nil {
		if o.left, err = rowLimit(r, o.limit, "LIMIT"); err != nil {
			return err
		}
	}
	o.out.reset()
	o.rows, err = o.node.Table.Rows(r.ctx)
	return err
}

func (o *systemOp) close() error { o.rows = nil; return nil }

func (o *systemOp) next(r *run) (*batch, error) {
	o.out.begin()
	for len(o.rows) > 0 && !o.out.full() && o.left != 0 {
		row := o.rows[0]
		o.rows = o.rows[1:]
		r.stats.RowsScanned++
		made := o.out.grow()
		for i, c := range o.node.Columns {
			made[i] = row[c.Ordinal]
		}
		pass, err := isTrue(o.residual, r, made)
		if err != nil {
			return nil, err
		}
		if !pass {
			o.out.drop()
			continue
		}
		if o.left > 0 {
			o.left--
		}
	}
	return o.out.some(), nil
}

package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// unitOp returns one row without columns.
type unitOp struct {
	out  batch
	done bool
}

func (o *unitOp) open(*run) error { o.done = false; return nil }
func (o *unitOp) close() error    { return nil }
func (o *unitOp) next(*run) (*batch, error) {
	if o.done {
		return nil, nil
	}
	o.done = true
	o.out.n = 1
	return &o.out, nil
}

// emptyOp returns no rows.
type emptyOp struct{}

func (emptyOp) open(*run) error           { return nil }
func (emptyOp) close() error              { return nil }
func (emptyOp) next(*run) (*batch, error) { return nil, nil }

// filterOp returns the rows of its input for which cond is TRUE.
type filterOp struct {
	in     operator
	cond   *condition
	chosen chosen
}

func (c *compiler) filter(n *plan.Filter, columns bool) (maker, error) {
	cond, err := c.condition(n.Cond)
	if err != nil {
		return nil, err
	}
	c.columns = columns && cond.vector != nil
	in, err := c.node(n.Input)
	if err != nil {
		return nil, err
	}
	return func(r *run) operator { return &filterOp{in: in(r), cond: cond} }, nil
}

func (o *filterOp) open(r *run) error { return o.in.open(r) }
func (o *filterOp) close() error      { return o.in.close() }

func (o *filterOp) next(r *run) (*batch, error) {
	for {
		b, err := r.pull(o.in)
		if b == nil || err != nil {
			return nil, err
		}
		if err := o.chosen.keep(r, b, o.cond); err != nil {
			return nil, err
		}
		if b.n > 0 {
			return b, nil
		}
	}
}

// computeOp computes a new row from each row of its input.
type computeOp struct {
	in      operator
	vectors vectors
	byRow   bool // at least one of the expressions can only be computed row by row
	out     batch

	rows *batch // the current batch of the input
	at   int    // index of the next row in the batch rows
}

// computedBytes limits the size in bytes of the large values (see largeValue) that are computed for one batch. When
// their sum reaches computedBytes, computeOp returns the batch, even if it has not computed all rows of its input batch.
const computedBytes = 1 << 20

func (c *compiler) compute(n *plan.Compute, columns bool) (maker, error) {
	exprs, err := c.vectorExprs(n.Exprs)
	if err != nil {
		return nil, err
	}
	byRow := anyByRow(exprs)
	c.columns = columns && !byRow
	in, err := c.node(n.Input)
	if err != nil {
		return nil, err
	}
	return func(r *run) operator {
		return &computeOp{in: in(r), vectors: vectors{exprs: exprs, cols: make([]fn.Column, len(exprs))}, byRow: byRow, out: newBatch(len(exprs))}
	}, nil
}

func (o *computeOp) open(r *run) error {
	o.rows, o.at = nil, 0
	return o.in.open(r)
}
func (o *computeOp) close() error { return o.in.close() }

func (o *computeOp) next(r *run) (*batch, error) {
	if o.rows == nil || o.at == o.rows.n {
		var err error
		if o.rows, err = r.pull(o.in); o.rows == nil || err != nil {
			return nil, err
		}
		o.at = 0
		if !o.byRow && !o.rows.isSmall() { // compute the expressions for all rows of the batch at once
			in := o.rows
			o.rows = nil
			if _, err := o.vectors.compute(r, in, in.places()); err != nil {
				return nil, err
			}
			o.out.begin()
			o.out.cols, o.out.n, o.out.at, o.out.size = o.vectors.cols, in.n, in.places(), in.span()
			return &o.out, nil
		}
		o.rows.toRows()
	}
	o.out.begin()
	for before := r.made.bytes; o.at < o.rows.n && r.made.bytes-before < computedBytes; o.at++ {
		row := o.rows.row(o.at)
		made := o.out.appendRow()
		for j := range o.vectors.exprs {
			v, err := o.vectors.exprs[j].eval(r, row)
			if err != nil {
				return nil, err
			}
			made[j] = v
		}
	}
	return &o.out, nil
}

// limitOp is LIMIT and OFFSET: it skips the first rows of its input, and returns no more than a given number of the
// rows that follow.
type limitOp struct {
	in            operator
	count, offset eval
	// skip is the number of rows that must still be skipped, and left the number of rows that may be returned after
	// them; left is -1 without a limit.
	skip, left int64
}

func (c *compiler) limit(n *plan.Limit) (maker, error) {
	in, err := c.input(n.Input, c.partial || n.Count != nil)
	if err != nil {
		return nil, err
	}
	count, err := c.optional(n.Count)
	if err != nil {
		return nil, err
	}
	offset, err := c.optional(n.Offset)
	if err != nil {
		return nil, err
	}
	return func(r *run) operator { return &limitOp{in: in(r), count: count, offset: offset} }, nil
}

func (o *limitOp) open(r *run) error {
	o.skip = 0
	var err error
	if o.left, err = optionalLimit(r, o.count); err != nil {
		return err
	}
	if o.offset != nil {
		if o.skip, err = rowLimit(r, o.offset, "OFFSET"); err != nil {
			return err
		}
	}
	return o.in.open(r)
}

func (o *limitOp) close() error { return o.in.close() }

func (o *limitOp) next(r *run) (*batch, error) {
	for o.left != 0 {
		b, err := r.pull(o.in)
		if b == nil || err != nil {
			return nil, err
		}
		if o.skip >= int64(b.n) {
			o.skip -= int64(b.n)
			continue
		}
		if o.skip > 0 {
			b.skip(int(o.skip))
			o.skip = 0
		}
		if o.left > 0 {
			if int64(b.n) > o.left {
				b.truncate(int(o.left))
			}
			o.left -= int64(b.n)
		}
		return b, nil
	}
	return nil, nil
}

// optionalLimit computes the number of rows of a LIMIT. It returns -1 if f is nil.
func optionalLimit(r *run, f eval) (int64, error) {
	if f == nil {
		return -1, nil
	}
	return rowLimit(r, f, "LIMIT")
}

// rowLimit computes the number of rows of a LIMIT or OFFSET clause. NULL and negative numbers are errors.
func rowLimit(r *run, f eval, clause string) (int64, error) {
	v, err := f(r, nil)
	if err != nil {
		return 0, err
	}
	if v.IsNull() {
		return 0, usererror.NullLimit(clause)
	}
	if v.AsInt64() < 0 {
		return 0, usererror.NegativeRowLimit(clause, v.AsInt64())
	}
	return v.AsInt64(), nil
}

// nullsOf returns a row of NULLs, one for each type.
func nullsOf(types []*value.Type) []value.Value {
	row := make([]value.Value, len(types))
	for i, t := range types {
		row[i] = value.Null(t.Kind)
	}
	return row
}

package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// spool holds the rows of a named subquery (WITH) in a run.
type spool struct {
	op     operator
	rows   rowList
	filled bool
}

// withOp is a WITH clause. When it is opened, it empties the spools whose rows depend on the enclosing row.
type withOp struct {
	operator
	dependent []int // numbers of the spools whose rows depend on the enclosing row
}

func (c *compiler) with(n *plan.With) (maker, error) {
	var dependent []int
	for _, d := range n.Defs {
		mk, err := c.whole(d.Plan)
		if err != nil {
			return nil, err
		}
		c.prog.spoolMakers[d.Number] = mk
		c.prog.spoolTypes[d.Number] = plan.Types(d.Plan)
		if !plan.Independent(d.Plan) {
			dependent = append(dependent, d.Number)
		}
	}
	body, err := c.node(n.Body)
	if err != nil {
		return nil, err
	}
	return func(r *run) operator { return &withOp{operator: body(r), dependent: dependent} }, nil
}

func (o *withOp) open(r *run) error {
	for _, i := range o.dependent {
		r.spools[i].filled = false
	}
	return o.operator.open(r)
}

// fill computes the rows of a spool, unless they are computed already.
func (r *run) fill(number int) (*spool, error) {
	s := &r.spools[number]
	if s.filled {
		return s, nil
	}
	if s.op == nil {
		s.op = r.prog.spoolMakers[number](r)
		s.rows.types = r.prog.spoolTypes[number]
	}
	s.rows.reset(r)
	err := drain(r, s.op, func(row []value.Value) error { return s.rows.add(r, row) })
	if err == nil {
		err = s.rows.finish()
	}
	s.filled = err == nil
	return s, err
}

// spoolScanOp reads a spool.
type spoolScanOp struct {
	number int
	rows   rowReader
	out    batch
}

func (c *compiler) spoolScan(n *plan.SpoolScan) maker {
	out := c.batch(n.Width())
	return func(*run) operator { return &spoolScanOp{number: n.Number, out: out} }
}

func (o *spoolScanOp) open(r *run) error {
	s, err := r.fill(o.number)
	if err != nil {
		return err
	}
	o.rows = s.rows.read()
	o.out.reset()
	return nil
}

func (o *spoolScanOp) close() error { return nil }

func (o *spoolScanOp) next(*run) (*batch, error) {
	o.out.begin()
	if err := o.rows.fill(&o.out); err != nil {
		return nil, err
	}
	return o.out.some(), nil
}

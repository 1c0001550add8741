package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// spool holds the rows of a named subquery in a run.
type spool struct {
	op       operator
	rows     []value.Value // flat
	width, n int
	held     held
	filled   bool
}

// withOp is a With. When it is opened, it empties the spools whose rows depend on the enclosing row.
type withOp struct {
	operator
	dependent []int // spools whose rows change with the enclosing row
}

func (c *compiler) with(n *plan.With) (maker, error) {
	var dependent []int
	for _, d := range n.Defs {
		mk, err := c.whole(d.Plan)
		if err != nil {
			return nil, err
		}
		c.prog.spoolMakers[d.Number] = mk
		c.prog.spoolWidths[d.Number] = d.Plan.Width()
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

// fill computes the rows of a spool, unless it has them.
func (r *run) fill(number int) (*spool, error) {
	s := &r.spools[number]
	if s.filled {
		return s, nil
	}
	if s.op == nil {
		s.op = r.prog.spoolMakers[number](r)
		s.width = r.prog.spoolWidths[number]
	}
	s.rows, s.n = nil, 0
	r.memory.release(&s.held)
	err := drain(r, s.op, func(row []value.Value) error {
		s.rows = append(s.rows, row...)
		s.n++
		return r.memory.keep(&s.held, row)
	})
	s.filled = err == nil
	return s, err
}

// spoolScanOp reads a spool.
type spoolScanOp struct {
	number int
	spool  *spool
	at     int
	out    batch
}

func (c *compiler) spoolScan(n *plan.SpoolScan) maker {
	out := c.batch(n.Width())
	return func(*run) operator { return &spoolScanOp{number: n.Number, out: out} }
}

func (o *spoolScanOp) open(r *run) error {
	var err error
	if o.spool, err = r.fill(o.number); err != nil {
		return err
	}
	o.at = 0
	o.out.reset()
	return nil
}

func (o *spoolScanOp) close() error { return nil }

func (o *spoolScanOp) next(*run) (*batch, error) {
	o.out.begin()
	n := min(o.out.target, o.spool.n-o.at)
	o.out.vals = append(o.out.vals, o.spool.rows[o.at*o.spool.width:(o.at+n)*o.spool.width]...)
	o.out.n = n
	o.at += n
	return o.out.some(), nil
}

package exec

import "github.com/crowfoot-db/crowfoot/sql/plan"

// limitOp is LIMIT and OFFSET: it skips the first rows and returns some of the others.
type limitOp struct {
	in            operator
	count, offset eval
	skip, left    int64 // rows still to skip, and rows to return after that; left is -1 for all
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

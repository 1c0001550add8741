package exec

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// sampleOp is TABLESAMPLE: BERNOULLI returns each row with a given probability, and RESERVOIR returns a given
// number of random rows.
type sampleOp struct {
	node       *plan.Sample
	in         operator
	size, seed eval
	rand       *rand.Rand
	percent    float64
	rows       []value.Value // the chosen rows of RESERVOIR, which are never spilled
	held       held
	n, at      int
	out        batch
}

func (c *compiler) sample(n *plan.Sample) (maker, error) {
	in, err := c.input(n.Input, c.partial && n.Percent)
	if err != nil {
		return nil, err
	}
	size, err := c.expr(n.Size)
	if err != nil {
		return nil, err
	}
	seed, err := c.optional(n.Seed)
	if err != nil {
		return nil, err
	}
	out := c.batch(n.Width())
	return func(r *run) operator {
		return &sampleOp{node: n, in: in(r), size: size, seed: seed, out: out}
	}, nil
}

func (o *sampleOp) open(r *run) error {
	source, err := o.source(r)
	if err != nil {
		return err
	}
	o.rand = rand.New(source)
	v, err := o.size(r, nil)
	if err != nil {
		return err
	}
	o.out.reset()
	if o.node.Percent {
		if o.percent, err = percentOf(v); err != nil {
			return err
		}
		return o.in.open(r)
	}
	if v.IsNull() || v.AsInt64() < 0 {
		return usererror.SampleSize()
	}
	return o.fill(r, v.AsInt64())
}

// source returns a source of random numbers. Its seed is the argument of REPEATABLE. Without REPEATABLE, the seed
// is read from the run's source of randomness.
func (o *sampleOp) source(r *run) (rand.Source, error) {
	var seed [16]byte
	if o.seed != nil {
		v, err := o.seed(r, nil)
		if err != nil {
			return nil, err
		}
		binary.BigEndian.PutUint64(seed[:], uint64(v.AsInt64()))
	} else if r.fns.Random != nil {
		if _, err := r.fns.Random.Read(seed[:]); err != nil {
			return nil, err
		}
	}
	return rand.NewPCG(binary.BigEndian.Uint64(seed[:]), binary.BigEndian.Uint64(seed[8:])), nil
}

func percentOf(v value.Value) (float64, error) {
	p := -1.0
	if !v.IsNull() {
		switch v.Kind() {
		case value.Int64:
			p = float64(v.AsInt64())
		case value.Float64:
			p = v.AsFloat64()
		}
	}
	if !(p >= 0 && p <= 100) {
		return 0, usererror.SamplePercent()
	}
	return p, nil
}

func (o *sampleOp) fill(r *run, size int64) error {
	o.rows, o.n, o.at = nil, 0, 0
	r.memory.release(&o.held)
	w, count := o.node.Width(), int64(0)
	return drain(r, o.in, func(row []value.Value) error {
		count++
		if int64(o.n) < size {
			o.rows = append(o.rows, row...)
			o.n++
			return r.memory.keep(&o.held, row)
		} else if i := o.rand.Int64N(count); i < size {
			copy(o.rows[int(i)*w:], row)
		}
		return nil
	})
}

func (o *sampleOp) close() error { return o.in.close() }

func (o *sampleOp) next(r *run) (*batch, error) {
	if !o.node.Percent {
		o.out.begin()
		w := o.out.width
		n := min(o.out.target, o.n-o.at)
		o.out.vals = append(o.out.vals, o.rows[o.at*w:(o.at+n)*w]...)
		o.out.n = n
		o.at += n
		return o.out.some(), nil
	}
	for {
		b, err := r.pullRows(o.in)
		if b == nil || err != nil {
			return nil, err
		}
		kept := 0
		for i := range b.n {
			if o.rand.Float64()*100 < o.percent {
				copy(b.row(kept), b.row(i))
				kept++
			}
		}
		b.truncate(kept)
		if kept > 0 {
			return b, nil
		}
	}
}

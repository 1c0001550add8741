package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// unnestOp is UNNEST: it computes arrays from each row of its input, and returns one row for each element. Several
// arrays are read in parallel, so one row holds an element of each.
type unnestOp struct {
	node   *plan.Unnest
	in     operator
	arrays []eval
	cond   eval
	nulls  []value.Value // NULLs for the elements that a shorter array lacks
	out    batch

	outer   *batch
	at      int
	lists   [][]value.Value // the arrays of the current row
	element int
	length  int
	begun   bool
	hit     bool
}

func (c *compiler) unnest(n *plan.Unnest) (maker, error) {
	in, err := c.node(n.Input)
	if err != nil {
		return nil, err
	}
	arrays, err := c.exprs(n.Arrays)
	if err != nil {
		return nil, err
	}
	cond, err := c.optional(n.Cond)
	if err != nil {
		return nil, err
	}
	nulls := nullsOf(plan.Types(n)[n.Input.Width():])
	out := c.batch(n.Width())
	return func(r *run) operator {
		return &unnestOp{node: n, in: in(r), arrays: arrays, cond: cond, nulls: nulls, out: out, lists: make([][]value.Value, len(arrays))}
	}, nil
}

func (o *unnestOp) open(r *run) error {
	o.outer, o.at, o.begun = nil, 0, false
	o.out.reset()
	return o.in.open(r)
}

func (o *unnestOp) close() error { return o.in.close() }

func (o *unnestOp) next(r *run) (*batch, error) {
	o.out.begin()
	for !o.out.full() {
		if !o.begun {
			more, err := o.advance(r)
			if err != nil {
				return nil, err
			}
			if !more {
				break
			}
		}
		if err := o.elements(r); err != nil {
			return nil, err
		}
	}
	return o.out.some(), nil
}

// advance moves to the next row of the input and computes its arrays. It returns false at the end of the input.
func (o *unnestOp) advance(r *run) (bool, error) {
	if o.outer != nil {
		o.at++
	}
	if o.outer == nil || o.at == o.outer.n {
		var err error
		if o.outer, err = r.pullRows(o.in); err != nil || o.outer == nil {
			return false, err
		}
		o.at = 0
	}
	shortest, longest := -1, 0
	for i, f := range o.arrays {
		v, err := f(r, o.outer.row(o.at))
		if err != nil {
			return false, err
		}
		o.lists[i] = nil
		if !v.IsNull() {
			o.lists[i] = v.AsList()
		}
		longest = max(longest, len(o.lists[i]))
		if shortest < 0 || len(o.lists[i]) < shortest {
			shortest = len(o.lists[i])
		}
	}
	o.length = longest
	if shortest != longest {
		switch o.node.Zip {
		case tree.ZipTruncate:
			o.length = shortest
		case tree.ZipStrict:
			return false, usererror.UnnestLengths()
		}
	}
	o.begun, o.hit, o.element = true, false, 0
	return true, nil
}

// elements adds rows for the elements of the current row's arrays, until the batch is full or no element is left.
func (o *unnestOp) elements(r *run) error {
	row := o.outer.row(o.at)
	for ; o.element < o.length && !o.out.full(); o.element++ {
		made := o.out.appendRow()
		w := copy(made, row)
		for i, list := range o.lists {
			made[w+i] = o.nulls[i]
			if o.element < len(list) {
				made[w+i] = list[o.element]
			}
		}
		if o.node.Offset {
			made[len(made)-1] = value.OfInt64(int64(o.element))
		}
		ok, err := isTrue(o.cond, r, made)
		if err != nil {
			return err
		}
		if !ok {
			if err := o.out.drop(r); err != nil {
				return err
			}
			continue
		}
		o.hit = true
	}
	if o.element < o.length {
		return nil
	}
	o.begun = false
	if o.node.Outer && !o.hit {
		o.out.add(row, o.nulls)
	}
	return nil
}

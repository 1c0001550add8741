package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// minorSortOp sorts an input that is sorted by the first keys already. It collects the rows that are equal by these keys, sorts them by the others,
// and returns them before it reads on. So a limit ends the reading early.
type minorSortOp struct {
	in     operator
	limit  eval
	major  int
	sorter sorter
	out    batch

	from *batch // the current batch of in
	at   int    // index of the next row in from
	left int64  // how many more rows are wanted, -1 for all
	full bool   // sorter holds all rows that are equal by the first keys, sorted
	done bool   // in has no more rows

	first, keys []value.Value // the keys of the first row in sorter, and those of the next row
}

func (c *compiler) minorSort(n *plan.Sort) (maker, error) {
	in, err := c.input(n.Input, c.partial || n.Limit != nil)
	if err != nil {
		return nil, err
	}
	code, err := c.sortCode(n)
	if err != nil {
		return nil, err
	}
	out := c.batch(len(code.types))
	return func(r *run) operator {
		return &minorSortOp{in: in(r), limit: code.limit, major: n.Major, sorter: code.sorter(), out: out}
	}, nil
}

func (o *minorSortOp) open(r *run) error {
	var err error
	if o.left, err = optionalLimit(r, o.limit); err != nil {
		return err
	}
	o.sorter.reset(r, o.left)
	o.from, o.at, o.full, o.done = nil, 0, false, false
	o.out.reset()
	return o.in.open(r)
}

func (o *minorSortOp) close() error { return o.in.close() }

func (o *minorSortOp) next(r *run) (*batch, error) {
	o.out.begin()
	for !o.out.full() && o.left != 0 {
		if !o.full {
			more, err := o.collect(r)
			if err != nil {
				return nil, err
			}
			if !more {
				o.left = 0
				break
			}
			o.full = true
		}
		row, ok, err := o.sorter.nextRow()
		if err != nil {
			return nil, err
		}
		if !ok {
			o.clear(r)
			continue
		}
		o.out.add(row, nil)
		if o.left > 0 {
			o.left--
		}
	}
	return o.out.some(), nil
}

// clear empties the sorter. It keeps the sorter's memory, because usually only a few rows are equal.
func (o *minorSortOp) clear(r *run) {
	if o.full = false; o.sorter.merged != nil {
		o.sorter.reset(r, o.left)
		return
	}
	o.sorter.empty(r)
	o.sorter.at, o.sorter.last, o.sorter.limit = 0, nil, o.left
}

// collect fills the sorter with the next rows that are equal by the first keys. It returns false if there are no more rows.
func (o *minorSortOp) collect(r *run) (bool, error) {
	o.first = o.first[:0]
	for !o.done {
		if o.from == nil || o.at == o.from.n {
			var err error
			if o.from, err = r.pullRows(o.in); err != nil {
				return false, err
			}
			o.at, o.done = 0, o.from == nil
			continue
		}
		row := o.from.row(o.at)
		var err error
		if o.keys, err = o.sorter.append(r, o.keys[:0], row); err != nil {
			return false, err
		}
		if len(o.first) == 0 {
			o.first = append(o.first, o.keys...)
		} else if !o.equal(o.first, o.keys) {
			break
		}
		if err := o.sorter.addWith(r, row, o.keys); err != nil {
			return false, err
		}
		o.at++
	}
	if len(o.first) == 0 {
		return false, nil
	}
	return true, o.sorter.finish(r)
}

// equal reports whether rows with the keys a and b are equal by the first keys.
func (o *minorSortOp) equal(a, b []value.Value) bool {
	for i := range o.major {
		if o.sorter.compareKey(i, a[i], b[i]) != 0 {
			return false
		}
	}
	return true
}

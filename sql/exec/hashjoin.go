package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/value"
)

// hashJoinCode is a compiled plan.HashJoin, which all runs of the plan share.
type hashJoinCode struct {
	node                *plan.HashJoin
	left, right         maker
	leftKeys, rightKeys []eval
	computed            []bool // for each of rightKeys, whether it is more than a column of the row (see isComputed)
	cond                eval
	keyTypes            []*value.Type
	leftTypes           []*value.Type
	rightTypes          []*value.Type
	outTypes            []*value.Type
	leftNulls           []value.Value // leftNulls and rightNulls stand for a missing row in an outer join
	rightNulls          []value.Value
	constant            bool // the right input uses no column of an enclosing query, so a run fills the hash table once
}

func (c *compiler) hashJoin(n *plan.HashJoin) (maker, error) {
	code := &hashJoinCode{node: n, constant: plan.Independent(n.Right)}
	var err error
	if code.left, err = c.node(n.Left); err != nil {
		return nil, err
	}
	if code.right, err = c.whole(n.Right); err != nil {
		return nil, err
	}
	if code.leftKeys, err = c.exprs(n.LeftKeys); err != nil {
		return nil, err
	}
	if code.rightKeys, err = c.exprs(n.RightKeys); err != nil {
		return nil, err
	}
	if code.cond, err = c.optional(n.Cond); err != nil {
		return nil, err
	}
	for _, k := range n.RightKeys {
		code.computed = append(code.computed, isComputed(k))
		code.keyTypes = append(code.keyTypes, k.Type())
	}
	code.leftTypes, code.rightTypes, code.outTypes = plan.Types(n.Left), plan.Types(n.Right), plan.Types(n)
	code.leftNulls, code.rightNulls = nullsOf(code.leftTypes), nullsOf(code.rightTypes)
	out := c.batch(n.Width())
	return func(r *run) operator {
		return &hashJoinOp{
			hashJoinCode: code,
			probe:        code.left(r),
			build:        code.right(r),
			key:          make([]value.Value, len(code.keyTypes)),
			joined:       make([]value.Value, len(code.leftNulls)+len(code.rightNulls)),
			out:          out,
		}
	}, nil
}

// hashJoinOp puts the rows of build in a hash table, and looks up the join key of each row of probe in the table.
type hashJoinOp struct {
	*hashJoinCode
	probe, build operator
	table        *hashTable
	rows         []value.Value // the rows of build in the table, one after the other; row i belongs to entry i of table
	loose        []value.Value // rows of build whose key contains NULL or NaN, one after the other; only for a full join
	held         held
	matched      []bool       // for each entry of table, whether a row of probe has matched it; only for a full join
	spilled      *spilledJoin // nil if build fits into memory
	key, joined  []value.Value
	out          batch

	outer *batch
	at    int
	entry int // the next entry of table to join with the current row of probe; -1 if there is none
	begun bool
	hit   bool // the current row of probe has matched a row of build
	rest  int  // for a full join, how many rows of build the method unmatched has looked at
	ended bool
}

func (o *hashJoinOp) open(r *run) error {
	if o.table == nil || !o.constant {
		if err := o.fill(r); err != nil {
			return err
		}
	}
	o.outer, o.at, o.begun, o.ended, o.rest = nil, 0, false, false, 0
	clear(o.matched)
	o.out.reset()
	if o.spilled != nil {
		o.spilled.begun = false
		return nil
	}
	return o.probe.open(r)
}

func (o *hashJoinOp) close() error { return closeAll(o.probe, o.build) }

// fill reads all rows of build into the table. If the rows take too much memory, it writes them to partitions on
// disk instead.
func (o *hashJoinOp) fill(r *run) error {
	o.spilled.free(r)
	o.spilled = nil
	o.clear(r)
	err := drain(r, o.build, func(row []value.Value) error { return o.keep(r, row) })
	if s := o.spilled; err == nil && s != nil {
		if s.build, err = s.parts.finish(r); err == nil {
			err = s.loose.finish()
		}
	}
	if o.node.Kind == plan.FullJoin {
		o.matched = make([]bool, o.table.len())
	}
	return err
}

// clear empties the table.
func (o *hashJoinOp) clear(r *run) {
	o.table = newHashTable(o.keyTypes)
	o.rows, o.loose = nil, nil
	r.memory.release(&o.held)
}

// keep adds a row of build to the table. If rows of build are on disk already, it adds the row to a partition
// there.
func (o *hashJoinOp) keep(r *run, row []value.Value) error {
	whole, err := o.keyOf(r, o.rightKeys, row)
	switch {
	case err != nil || !whole && o.node.Kind != plan.FullJoin:
		return err
	case o.spilled != nil:
		return o.spilled.keep(r, row, whole)
	case whole:
		o.table.add(o.key)
		o.rows = append(o.rows, row...)
		err = r.memory.keepBytes(&o.held, o.entryBytes(row))
	default:
		o.loose = append(o.loose, row...)
		err = r.memory.keep(&o.held, row)
	}
	if err != nil || !r.memory.full(o.held) {
		return err
	}
	o.spilled, err = o.spill(r)
	return err
}

// entryBytes returns how many bytes of memory a row of build takes in the table. o.key must be the row's key.
func (o *hashJoinOp) entryBytes(row []value.Value) int64 {
	return entryBytes + rowBytes(row) + besideRow(o.key, o.computed)
}

// keyOf computes the join key of a row into o.key. whole is false if the key contains NULL or NaN, because such a
// key equals no other key.
func (o *hashJoinOp) keyOf(r *run, keys []eval, row []value.Value) (whole bool, err error) {
	for i, f := range keys {
		v, err := f(r, row)
		if err != nil {
			return false, err
		}
		if equalsNothing(v) {
			return false, nil
		}
		o.key[i] = v
	}
	return true, nil
}

func (o *hashJoinOp) next(r *run) (*batch, error) {
	o.out.begin()
	if o.spilled != nil {
		err := o.spilled.fill(r, &o.out)
		return o.out.some(), err
	}
	for !o.out.full() && !o.ended {
		if !o.begun {
			more, err := o.advance(r)
			if err != nil {
				return nil, err
			}
			if !more {
				o.ended = true
				break
			}
		}
		if err := o.match(r); err != nil {
			return nil, err
		}
	}
	if o.ended && o.node.Kind == plan.FullJoin {
		o.unmatched()
	}
	return o.out.some(), nil
}

// advance moves to the next row of probe and finds the first entry of the table that has the row's key. It returns
// false at the end of probe.
func (o *hashJoinOp) advance(r *run) (bool, error) {
	if o.outer != nil {
		o.at++
	}
	if o.outer == nil || o.at == o.outer.n {
		var err error
		if o.outer, err = r.pullRows(o.probe); err != nil || o.outer == nil {
			return false, err
		}
		o.at = 0
	}
	if o.at == 0 || len(o.leftKeys) == 0 { // without keys, each row is joined with all rows of build
		if err := r.check(); err != nil {
			return false, err
		}
	}
	whole, err := o.keyOf(r, o.leftKeys, o.outer.row(o.at))
	if err != nil {
		return false, err
	}
	o.entry, o.begun, o.hit = -1, true, false
	if whole {
		o.entry = o.table.first(o.key)
	}
	return true, nil
}

// match joins the current row of probe with the entries that have the row's key, until the batch is full or no
// entry is left.
func (o *hashJoinOp) match(r *run) error {
	row, w := o.outer.row(o.at), len(o.rightNulls)
	for o.entry >= 0 && !o.out.full() {
		entry := o.entry
		o.entry = o.table.after(entry, o.table.key(entry))
		other := o.rows[entry*w : entry*w+w]
		if o.cond != nil {
			ok, err := isTrue(o.cond, r, o.join(row, other))
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
		}
		o.hit = true
		switch o.node.Kind {
		case plan.SemiJoin, plan.AntiJoin:
			o.entry = -1
			continue
		case plan.FullJoin:
			o.matched[entry] = true
		}
		o.out.add(row, other)
	}
	if o.entry < 0 {
		o.finish(row)
	}
	return nil
}

// join returns one slice with the values of the two rows, one after the other. The slice is valid until the next call.
func (o *hashJoinOp) join(row, other []value.Value) []value.Value {
	copy(o.joined[copy(o.joined, row):], other)
	return o.joined
}

// finish ends the current row of probe after its last match. A left or full join adds the row with NULLs if it had
// no match. A semi join adds the row if it had a match, and an anti join if it had none.
func (o *hashJoinOp) finish(row []value.Value) {
	o.begun = false
	switch o.node.Kind {
	case plan.SemiJoin, plan.AntiJoin:
		if o.hit == (o.node.Kind == plan.SemiJoin) {
			o.out.add(row, nil)
		}
	case plan.LeftJoin, plan.FullJoin:
		if !o.hit {
			o.out.add(row, o.rightNulls)
		}
	}
}

// unmatched adds the rows of build that no row of probe has matched, until the batch is full.
func (o *hashJoinOp) unmatched() {
	w := len(o.rightNulls)
	for ; o.rest < len(o.matched) && !o.out.full(); o.rest++ {
		if !o.matched[o.rest] {
			o.out.add(o.leftNulls, o.rows[o.rest*w:o.rest*w+w])
		}
	}
	for ; o.rest >= len(o.matched) && (o.rest-len(o.matched))*w < len(o.loose) && !o.out.full(); o.rest++ {
		at := (o.rest - len(o.matched)) * w
		o.out.add(o.leftNulls, o.loose[at:at+w])
	}
}

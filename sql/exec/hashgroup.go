package exec

import (
	"github.com/crowfoot-db/crowfoot/value"
)

// hashOp groups rows that come in any order, for each grouping set. The groups of a set are returned in the order of their first rows.
type hashOp struct {
	grouping
	sets    []*groups // one for each set
	filled  bool
	set     int // index of the set whose groups are returned now
	at      int
	spilled *tagged // the result rows of this set, if it did not fit into memory
	row     []value.Value
}

func (o *hashOp) open(r *run) error {
	for _, g := range o.sets {
		g.release(r)
	}
	o.spilled.close(r)
	o.sets, o.spilled = nil, nil
	o.filled, o.set, o.at = false, 0, 0
	o.out.reset()
	return nil
}

// setAt returns the indexes of the keys of grouping set i; nil means all keys.
func (o *hashOp) setAt(i int) []int {
	if o.node.Sets == nil {
		return nil
	}
	return append([]int{}, o.node.Sets[i]...)
}

func (o *hashOp) fill(r *run) error {
	for i := range max(1, len(o.node.Sets)) {
		o.sets = append(o.sets, newGroups(&o.grouping, o.setAt(i)))
	}
	rows := int64(1)
	number := func(place int32) int64 { return rows + int64(place) }
	err := drainBatches(r, o.in, func(b *batch) error {
		err := o.each(r, b, func(places []int32) error {
			for _, g := range o.sets {
				if err := g.add(r, b, places, number); err != nil {
					return err
				}
			}
			return nil
		})
		rows += int64(b.span())
		return err
	})
	if err != nil {
		return err
	}
	for _, g := range o.sets { // the empty grouping set has one group even if there are no rows
		if g.set != nil && len(g.set) == 0 && g.table.len() == 0 {
			key := nullsOf(g.types)
			g.begin(key, g.table.hashOf(key), 0)
			g.resizeStates()
		}
	}
	o.filled = true
	return nil
}

func (o *hashOp) next(r *run) (*batch, error) {
	if !o.filled {
		if err := o.fill(r); err != nil {
			return nil, err
		}
	}
	o.out.begin()
	for o.set < len(o.sets) && !o.out.full() {
		more, err := o.emit(r, o.sets[o.set])
		if err != nil {
			return nil, err
		}
		if !more {
			o.spilled.close(r)
			o.set, o.at, o.spilled = o.set+1, 0, nil
		}
	}
	return o.out.some(), nil
}

// emit adds the result row of the next group of a set. more is false if there is none.
func (o *hashOp) emit(r *run, g *groups) (more bool, err error) {
	if g.spilled() && o.spilled == nil {
		o.spilled = newTagged(o.outTypes)
		if err := g.finishAll(r, o.spilled, o.row); err != nil {
			return false, err
		}
		if err := o.spilled.finish(r); err != nil {
			return false, err
		}
	}
	if o.spilled != nil {
		row, ok, err := o.spilled.nextRow()
		if ok {
			o.out.add(row[:len(o.outTypes)], nil)
		}
		return ok, err
	}
	if o.at == g.table.len() {
		return false, nil
	}
	err = o.finish(r, o.out.appendRow(), g.table.key(o.at), g.states, o.at, g.set)
	o.at++
	return true, err
}

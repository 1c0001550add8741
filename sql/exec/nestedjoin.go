package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// nestedJoin joins a partition whose rows of build all have the same key and do not fit into memory. It reads all rows of build for each row of
// probe. It computes its rows as they are read, because the disk may not have room for so many.
type nestedJoin struct {
	op   *hashJoinOp
	run  *run
	part joinPart

	probe   *spill.Reader
	left    []value.Value // the current row of probe, and its tag
	key     []value.Value // the key of left
	build   *spill.Reader // nil if there is no current row of probe
	right   []value.Value
	entry   int  // the number of right in build
	hit     bool // the current row has matched
	matched []bool
	rest    *spill.Reader // reads build again after the last row of probe: a full join then looks for rows that have not matched
}

func newNestedJoin(r *run, o *hashJoinOp, p joinPart) *nestedJoin {
	j := &nestedJoin{
		op: o, run: r, part: p,
		left:  make([]value.Value, len(o.leftTypes)+1),
		right: make([]value.Value, len(o.rightTypes)+1),
	}
	if p.probe != nil {
		j.probe = p.probe.Read()
	}
	if o.node.Kind == plan.FullJoin {
		j.matched = make([]bool, p.build.Len())
	}
	return j
}

// Close implements rowStream.
func (j *nestedJoin) Close() { j.part.free() }

// Next implements rowStream.
func (j *nestedJoin) Next(row []value.Value) (bool, error) {
	for j.rest == nil {
		if j.build == nil {
			more, err := j.advance()
			if err != nil {
				return false, err
			}
			if !more {
				j.rest = j.part.build.Read()
				j.entry = 0
				break
			}
		}
		made, err := j.match()
		if err != nil {
			return false, err
		}
		if made != nil {
			last := copy(row, made)
			row[last] = j.left[len(j.left)-1]
			return true, nil
		}
	}
	return j.unmatched(row)
}

// advance moves to the next row of probe.
func (j *nestedJoin) advance() (bool, error) {
	if j.probe == nil {
		return false, nil
	}
	ok, err := j.probe.Next(j.left)
	if !ok || err != nil {
		return false, err
	}
	if _, err := j.op.keyOf(j.run, j.op.leftKeys, j.left[:len(j.left)-1]); err != nil {
		return false, err
	}
	j.key = append(j.key[:0], j.op.key...)
	j.build, j.entry, j.hit = j.part.build.Read(), 0, false
	return true, nil
}

// match returns the next row that the current row of probe makes, nil if there are no more.
func (j *nestedJoin) match() ([]value.Value, error) {
	o := j.op
	left, right := j.left[:len(j.left)-1], j.right[:len(j.right)-1]
	for {
		ok, err := j.build.Next(j.right)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		if j.entry++; j.entry == 1 {
			same, err := j.sameKey(right)
			if err != nil {
				return nil, err
			}
			if !same {
				break
			}
		}
		joined := o.join(left, right)
		ok, err = isTrue(o.cond, j.run, joined)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		j.hit = true
		if o.node.Kind == plan.SemiJoin || o.node.Kind == plan.AntiJoin {
			break
		}
		if j.matched != nil {
			j.matched[j.entry-1] = true
		}
		return joined, nil
	}
	j.build = nil
	return o.alone(left, j.hit), nil
}

// sameKey reports whether a row of build has the key of the current row of probe. All rows of build have the same key.
func (j *nestedJoin) sameKey(right []value.Value) (bool, error) {
	_, err := j.op.keyOf(j.run, j.op.rightKeys, right)
	return err == nil && j.op.table.equal(j.key, j.op.key), err
}

// unmatched sets row to the next row of build that has not matched, with NULLs for probe. Only a full join has such rows. It returns false at the
// end.
func (j *nestedJoin) unmatched(row []value.Value) (bool, error) {
	if j.op.node.Kind != plan.FullJoin {
		return false, nil
	}
	for {
		ok, err := j.rest.Next(j.right)
		if !ok || err != nil {
			return false, err
		}
		j.entry++
		if j.matched[j.entry-1] {
			continue
		}
		number := len(j.right) - 1
		last := copy(row, j.op.join(j.op.leftNulls, j.right[:number]))
		row[last] = value.OfInt64(unmatchedTag + j.right[number].AsInt64())
		return true, nil
	}
}

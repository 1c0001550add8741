package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// setOp is INTERSECT or EXCEPT. It first counts how often each row occurs in its right input. The counts decide which
// rows of its left input it returns. Those rows come in the order of the left input.
type setOp struct {
	left, right operator
	rows        *setRows
	number      int64 // the position of the current row in left
	// putOff is nil until all rows of left are read. It then holds the rows of left that are in the result, but for
	// which this was not known before because the rows of right are on disk.
	putOff *tagged
	out    batch
}

func (c *compiler) setOp(n *plan.SetOp) (maker, error) {
	left, err := c.node(n.Left)
	if err != nil {
		return nil, err
	}
	right, err := c.whole(n.Right)
	if err != nil {
		return nil, err
	}
	return func(r *run) operator {
		return &setOp{left: left(r), right: right(r), rows: newSetRows(n), out: newBatch(n.Width())}
	}, nil
}

func (o *setOp) open(r *run) error {
	o.putOff.close(r)
	o.rows.reset(r)
	o.putOff, o.number = nil, 0
	o.out.reset()
	if err := drain(r, o.right, func(row []value.Value) error { return o.rows.addRight(r, row, 1, false) }); err != nil {
		return err
	}
	return o.left.open(r)
}

func (o *setOp) close() error { return closeAll(o.left, o.right) }

func (o *setOp) next(r *run) (*batch, error) {
	for o.putOff == nil {
		b, err := r.pullRows(o.left)
		if err != nil {
			return nil, err
		}
		if b == nil { // left has ended: find the result rows among the rows of left that are on disk
			o.putOff = newTagged(o.rows.node.Types)
			if err := o.rows.finish(r, o.putOff); err != nil {
				return nil, err
			}
			if err := o.putOff.finish(r); err != nil {
				return nil, err
			}
			break
		}
		if err := o.keepPassing(r, b); err != nil || b.n > 0 {
			return b, err
		}
	}
	o.out.begin()
	if err := o.out.fill(o.putOff.nextRow); err != nil {
		return nil, err
	}
	return o.out.some(), nil
}

// keepPassing keeps those rows of b, a batch of left, that are known to be in the result. It drops all other rows:
// those that are not in the result, and those for which this is known only at the end of left.
func (o *setOp) keepPassing(r *run, b *batch) error {
	kept := 0
	for i := range b.n {
		row := b.row(i)
		o.number++
		passes, err := o.rows.passes(r, row, o.number)
		if err != nil {
			return err
		}
		if !passes {
			continue
		}
		if kept != i {
			copy(b.row(kept), row)
		}
		kept++
	}
	b.truncate(kept)
	return nil
}

// setRows holds the distinct rows of the right input of a setOp and how often each occurs. If they do not fit into
// memory, setRows moves them to partitions on disk, and writes the rows of left to partitions too. At the end it
// compares the partitions one by one.
type setRows struct {
	node   *plan.SetOp
	table  *hashTable
	counts []int64 // for each row of table, how often it is in right; ALL operations subtract 1 for each equal row of left
	passed []bool  // for each row of table, whether a DISTINCT operation has returned it already
	held   held

	// The fields right and left are nil while the rows of table are in memory.
	right *partitions // the rows of table, moved to disk; each row is followed by its elements of counts and passed
	left  *partitions // the rows of the left input that come after table was moved to disk, each with its position
}

func newSetRows(n *plan.SetOp) *setRows { return &setRows{node: n, table: newHashTable(n.Types)} }

func (s *setRows) reset(r *run) {
	r.memory.release(&s.held)
	s.table.clear()
	s.counts, s.passed = s.counts[:0], s.passed[:0]
	for _, p := range []*partitions{s.right, s.left} {
		if p != nil {
			p.drop(r)
		}
	}
	s.right, s.left = nil, nil
}

// addRight adds a row that occurs count times in right. passed says that a DISTINCT operation has returned the row
// already.
func (s *setRows) addRight(r *run, row []value.Value, count int64, passed bool) error {
	if s.right != nil {
		return s.right.add(r, s.table.hashOf(row), row, value.OfInt64(count), value.OfBool(passed))
	}
	entry, err := s.entry(r, row)
	if err != nil {
		return err
	}
	s.counts[entry] += count
	s.passed[entry] = s.passed[entry] || passed
	return s.makeRoom(r)
}

// entry returns the number of a row in table. If the row is new, entry adds it, with count 0.
func (s *setRows) entry(r *run, row []value.Value) (int, error) {
	entry, isNew := s.table.find(row)
	if !isNew {
		return entry, nil
	}
	s.counts, s.passed = append(s.counts, 0), append(s.passed, false)
	return entry, r.memory.keepEntry(&s.held, row)
}

// makeRoom moves the rows to partitions on disk if they take too much memory. It keeps a single row in memory:
// finishPart reads each partition back into memory, and a partition with one row would go to disk again and again.
func (s *setRows) makeRoom(r *run) error {
	if !r.memory.full(s.held) || s.table.len() == 1 {
		return nil
	}
	s.right = &partitions{types: append(withTag(s.node.Types), value.BoolType)}
	s.left = &partitions{types: withTag(s.node.Types)}
	for i := range s.table.len() {
		key := s.table.key(i)
		if err := s.right.add(r, s.table.hashOf(key), key, value.OfInt64(s.counts[i]), value.OfBool(s.passed[i])); err != nil {
			return err
		}
	}
	s.table.clear()
	s.counts, s.passed = nil, nil
	r.memory.release(&s.held)
	return nil
}

// passes reports whether the next row of left is in the result. If the rows of right are on disk, passes cannot
// know that yet: it writes the row to a partition and returns false. number is the position of the row in left.
func (s *setRows) passes(r *run, row []value.Value, number int64) (bool, error) {
	h := s.table.hashOf(row)
	if s.left != nil {
		return false, s.left.add(r, h, row, value.OfInt64(number))
	}
	entry := s.table.firstHashed(row, h)
	inRight := entry >= 0 && s.counts[entry] > 0
	if s.node.All {
		if inRight {
			s.counts[entry]--
		}
		return inRight == (s.node.Kind == tree.Intersect), nil
	}
	if inRight != (s.node.Kind == tree.Intersect) || entry >= 0 && s.passed[entry] {
		return false, nil
	}
	if entry < 0 { // the row is not in right, and the operation is EXCEPT DISTINCT
		var err error
		if entry, err = s.entry(r, row); err != nil {
			return false, err
		}
	}
	s.passed[entry] = true
	return true, s.makeRoom(r)
}

// finish compares the rows of left that passes has written to partitions with the rows of right, and adds those that
// are in the result to out. It does nothing if the rows of right are in memory.
func (s *setRows) finish(r *run, out *tagged) error {
	if s.right == nil {
		return nil
	}
	right, err := s.right.finish(r)
	if err != nil {
		return err
	}
	left, err := s.left.finish(r)
	if err != nil {
		return err
	}
	for i := range right {
		if err := s.finishPart(r, right[i], left[i], out); err != nil {
			return err
		}
	}
	return nil
}

// finishPart compares one partition of left with the same partition of right, and adds the result rows to out. left
// or right is nil if it has no rows in the partition.
func (s *setRows) finishPart(r *run, right, left *spill.Rows, out *tagged) error {
	if left == nil {
		if right != nil {
			right.Free()
		}
		return nil
	}
	part := newSetRows(s.node)
	defer part.reset(r)
	n := len(s.node.Types)
	row := make([]value.Value, n+2)
	if right != nil {
		err := readLast(right, row, func() error { return part.addRight(r, row[:n], row[n].AsInt64(), row[n+1].AsBool()) })
		if err != nil {
			return err
		}
	}
	if err := out.begin(r); err != nil {
		return err
	}
	err := readLast(left, row[:n+1], func() error {
		number := row[n].AsInt64()
		passes, err := part.passes(r, row[:n], number)
		if err == nil && passes {
			err = out.add(number, row[:n])
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := out.end(); err != nil {
		return err
	}
	return part.finish(r, out)
}

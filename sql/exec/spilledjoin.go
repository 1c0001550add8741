package exec

import (
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/value"
)

// spilledJoin is a hash join whose build side does not fit into memory (a Grace hash join). It divides both sides,
// build and probe, into partitions by the hash of the join key. For each partition, it puts the rows of build in a hash
// table and looks up the rows of probe in the table. A partition that is still too large is divided again by another
// hash. A partition whose rows of build all have the same key cannot be divided. For such a partition, nestedJoin
// compares each row of probe that has this key with the rows of build. In a join without a further condition
// (plan.HashJoin.Cond), all these rows match, so there are hardly more comparisons than result rows.
//
// The rows come out in the order of probe: their tags are the positions of the rows of probe. A full join also
// returns the rows of build without a match. They come last, in the order of build.
type spilledJoin struct {
	op    *hashJoinOp
	keys  hasher
	parts *partitions // rows of build with their positions in build; used until all rows are added
	build [partitionCount]*spill.Rows
	count int64   // the number of rows of build
	loose rowList // rows of build whose key contains NULL or NaN; only for a full join
	out   *tagged // the result rows of the join
	begun bool    // the field out holds all result rows for the current opening of the join
}

// The tag of a row of build that matches no row of probe is unmatchedTag plus the row's position in build. Rows of
// build whose key contains NULL or NaN are numbered from looseTag. All these tags are larger than the positions of
// rows of probe, so these rows come last.
const (
	unmatchedTag = 1 << 61
	looseTag     = 1 << 62
)

// spill moves the rows of build from the table to partitions on disk.
func (o *hashJoinOp) spill(r *run) (*spilledJoin, error) {
	s := &spilledJoin{op: o, keys: newHasher(o.keyTypes), parts: &partitions{types: withTag(o.rightTypes)}}
	s.loose.types = o.rightTypes
	w := len(o.rightTypes)
	for i := range o.table.len() {
		copy(o.key, o.table.key(i))
		if err := s.keep(r, o.rows[i*w:(i+1)*w], true); err != nil {
			return nil, err
		}
	}
	for at := 0; at < len(o.loose); at += w {
		if err := s.keep(r, o.loose[at:at+w], false); err != nil {
			return nil, err
		}
	}
	o.clear(r)
	return s, nil
}

// keep adds a row of build, whose key is in op.key, to a partition. If the key contains NULL or NaN (whole is false),
// keep adds the row to the list s.loose instead.
func (s *spilledJoin) keep(r *run, row []value.Value, whole bool) error {
	if !whole {
		return s.loose.add(r, row)
	}
	s.count++
	return s.parts.add(r, s.keys.hashOf(s.op.key), row, value.OfInt64(s.count))
}

// free frees all rows on disk. s can be nil.
func (s *spilledJoin) free(r *run) {
	if s == nil {
		return
	}
	for _, l := range s.build {
		if l != nil {
			l.Free()
		}
	}
	s.loose.reset(r)
	s.out.close(r)
}

// fill adds the next result rows of the join to b, until b is full or no row is left.
func (s *spilledJoin) fill(r *run, b *batch) error {
	if !s.begun {
		if err := s.join(r); err != nil {
			return err
		}
		s.begun = true
	}
	return b.fill(s.out.nextRow)
}

// join computes all result rows of the join and adds them to s.out.
func (s *spilledJoin) join(r *run) error {
	o := s.op
	s.out.close(r)
	s.out = newTagged(o.outTypes)
	probe, err := s.partProbe(r)
	if err != nil {
		return err
	}
	for i := range probe {
		if err := s.joinPart(r, joinPart{s.build[i], probe[i], !o.constant}); err != nil {
			return err
		}
		if !o.constant {
			s.build[i] = nil
		}
	}
	if err := s.addLoose(r); err != nil {
		return err
	}
	return s.out.finish(r)
}

// partProbe divides the rows of probe into partitions. A row whose key contains NULL or NaN matches nothing, so
// partProbe adds its result row, if any, to out at once.
func (s *spilledJoin) partProbe(r *run) (lists [partitionCount]*spill.Rows, err error) {
	o := s.op
	parts := &partitions{types: withTag(o.leftTypes)}
	if err := s.out.begin(r); err != nil {
		return lists, err
	}
	number := int64(0)
	err = drain(r, o.probe, func(row []value.Value) error {
		number++
		whole, err := o.keyOf(r, o.leftKeys, row)
		if err != nil {
			return err
		}
		if whole {
			return parts.add(r, s.keys.hashOf(o.key), row, value.OfInt64(number))
		}
		if made := o.alone(row, false); made != nil {
			return s.out.add(number, made)
		}
		return nil
	})
	if err != nil {
		return lists, err
	}
	if err := s.out.end(); err != nil {
		return lists, err
	}
	return parts.finish(r)
}

// alone returns the row that a row of probe adds to the result on its own, in addition to its joined rows; nil if it
// adds none. hit says whether the row of probe has matched a row of build. In a left or full join, a row without a
// match is returned with NULLs for build. A semi join returns the row itself if it has matched, and an anti join
// returns it if it has not. The result is valid until the next call of alone or join.
func (o *hashJoinOp) alone(row []value.Value, hit bool) []value.Value {
	switch o.node.Kind {
	case plan.SemiJoin, plan.AntiJoin:
		if hit == (o.node.Kind == plan.SemiJoin) {
			return row
		}
	case plan.LeftJoin, plan.FullJoin:
		if !hit {
			return o.join(row, o.rightNulls)
		}
	}
	return nil
}

// addLoose adds the rows of build whose key contains NULL or NaN to out, with NULLs for probe. Only a full join has
// kept such rows.
func (s *spilledJoin) addLoose(r *run) error {
	if err := s.out.begin(r); err != nil {
		return err
	}
	rows := s.loose.read()
	for tag := int64(looseTag); ; tag++ {
		row, ok, err := rows.nextRow()
		if err != nil {
			return err
		}
		if !ok {
			return s.out.end()
		}
		if err := s.out.add(tag, s.op.join(s.op.leftNulls, row)); err != nil {
			return err
		}
	}
}

// joinPart is one partition of both sides of a spilled join. If a side has no rows in the partition, it is nil.
type joinPart struct {
	build, probe *spill.Rows
	last         bool // build is not needed for a later opening of the join, and may be freed
}

// free frees the rows of probe, and those of build if no later opening needs them.
func (p *joinPart) free() {
	if p.probe != nil {
		p.probe.Free()
	}
	if p.build != nil && p.last {
		p.build.Free()
	}
}

// joinPart adds the result rows of a partition to out, and frees the partition.
func (s *spilledJoin) joinPart(r *run, p joinPart) error {
	if p.probe == nil && (p.build == nil || s.op.node.Kind != plan.FullJoin) {
		p.free()
		return nil
	}
	table := joinTable{hashJoinOp: s.op}
	defer table.release(r)
	fits, err := table.load(r, p.build)
	if err != nil {
		return err
	}
	if fits {
		err = s.lookUp(r, &table, p.probe)
		p.free()
		return err
	}
	table.release(r)
	return s.split(r, p)
}

// split joins a partition that does not fit into memory: it divides the partition again, or leaves it to a
// nestedJoin if all rows of build have the same key.
func (s *spilledJoin) split(r *run, p joinPart) error {
	o := s.op
	hash := newHasher(o.keyTypes)
	build, same, err := s.partAgain(r, &hash, p.build, o.rightTypes, o.rightKeys)
	if err != nil {
		return err
	}
	if same {
		for _, l := range build {
			if l != nil {
				l.Free()
			}
		}
		s.out.others = append(s.out.others, newNestedJoin(r, o, p))
		return nil
	}
	probe, _, err := s.partAgain(r, &hash, p.probe, o.leftTypes, o.leftKeys)
	if err != nil {
		return err
	}
	p.free()
	for i := range build {
		if err := s.joinPart(r, joinPart{build[i], probe[i], true}); err != nil {
			return err
		}
	}
	return nil
}

// partAgain divides the rows of a list into partitions by another hash of their keys. same reports whether all rows
// have the same key.
func (s *spilledJoin) partAgain(r *run, hash *hasher, list *spill.Rows, types []*value.Type, keys []eval) (lists [partitionCount]*spill.Rows, same bool, err error) {
	same = true
	if list == nil {
		return lists, same, nil
	}
	parts := &partitions{types: withTag(types)}
	var first []value.Value
	n := len(types)
	row := make([]value.Value, n+1)
	for reader := list.Read(); ; {
		ok, err := reader.Next(row)
		if err != nil {
			return lists, same, err
		}
		if !ok {
			break
		}
		if _, err := s.op.keyOf(r, keys, row[:n]); err != nil {
			return lists, same, err
		}
		if first == nil {
			first = append([]value.Value{}, s.op.key...)
		}
		same = same && hash.equal(first, s.op.key)
		if err := parts.add(r, hash.hashOf(s.op.key), row[:n], row[n]); err != nil {
			return lists, same, err
		}
	}
	lists, err = parts.finish(r)
	return lists, same, err
}

// lookUp joins a partition: it looks up the join key of each row of probe in the table t, and adds the result rows
// to out.
func (s *spilledJoin) lookUp(r *run, t *joinTable, probe *spill.Rows) error {
	if err := s.out.begin(r); err != nil {
		return err
	}
	if probe != nil {
		n := len(s.op.leftTypes)
		row := make([]value.Value, n+1)
		err := readLast(probe, row, func() error { return s.lookUpRow(r, t, row[:n], row[n].AsInt64()) })
		if err != nil {
			return err
		}
	}
	if s.op.node.Kind == plan.FullJoin {
		for i, matched := range t.matched {
			if matched {
				continue
			}
			if err := s.out.add(unmatchedTag+t.numbers[i], s.op.join(s.op.leftNulls, t.row(i))); err != nil {
				return err
			}
		}
	}
	return s.out.end()
}

func (s *spilledJoin) lookUpRow(r *run, t *joinTable, row []value.Value, tag int64) error {
	o := s.op
	if _, err := o.keyOf(r, o.leftKeys, row); err != nil {
		return err
	}
	hit := false
	for entry := t.table.first(o.key); entry >= 0; entry = t.table.after(entry, t.table.key(entry)) {
		joined := o.join(row, t.row(entry))
		ok, err := isTrue(o.cond, r, joined)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		hit = true
		if o.node.Kind == plan.SemiJoin || o.node.Kind == plan.AntiJoin {
			break
		}
		t.matched[entry] = true
		if err := s.out.add(tag, joined); err != nil {
			return err
		}
	}
	if made := o.alone(row, hit); made != nil {
		return s.out.add(tag, made)
	}
	return nil
}

// joinTable is a hash table of the rows of build of one partition.
type joinTable struct {
	*hashJoinOp
	table   *hashTable
	rows    []value.Value // the rows, one after the other
	numbers []int64       // for each row, its position in build
	matched []bool
	held    held
}

func (t *joinTable) row(i int) []value.Value {
	w := len(t.rightTypes)
	return t.rows[i*w : (i+1)*w]
}

// load puts the rows of a list in the table. fits is false if the rows do not fit into memory.
func (t *joinTable) load(r *run, list *spill.Rows) (fits bool, err error) {
	t.table = newHashTable(t.keyTypes)
	if list == nil {
		return true, nil
	}
	n := len(t.rightTypes)
	row := make([]value.Value, n+1)
	for reader := list.Read(); ; {
		ok, err := reader.Next(row)
		if !ok || err != nil {
			t.matched = make([]bool, t.table.len())
			return true, err
		}
		if _, err := t.keyOf(r, t.rightKeys, row[:n]); err != nil {
			return false, err
		}
		t.table.add(t.key)
		t.rows, t.numbers = append(t.rows, row[:n]...), append(t.numbers, row[n].AsInt64())
		if err := r.memory.keepBytes(&t.held, t.entryBytes(row)); err != nil {
			return false, err
		}
		if r.memory.full(t.held) && t.table.len() > 1 {
			return false, nil
		}
	}
}

func (t *joinTable) release(r *run) {
	r.memory.release(&t.held)
	t.table, t.rows, t.numbers, t.matched = nil, nil, nil, nil
}

// nestedJoin joins a partition whose rows of build all have the same key and do not fit into memory. For each row of
// probe that has this key, it reads the rows of build from disk again. It computes a result row only when its caller
// asks for the row, because all result rows together might not fit on the disk.
type nestedJoin struct {
	op   *hashJoinOp
	run  *run
	part joinPart

	probe   *spill.Reader
	left    []value.Value // the current row of probe, followed by its tag
	key     []value.Value // the join key of the current row of probe
	build   *spill.Reader // nil if there is no current row of probe
	right   []value.Value // the current row of build, followed by its position in the whole build side
	entry   int           // how many rows the current reader of the build side (build or rest) has returned
	hit     bool          // the current row of probe has matched a row of build
	matched []bool        // for a full join, whether each row of build has matched; otherwise nil
	rest    *spill.Reader // after the last row of probe: reads build again, to find the rows without a match
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

// advance moves to the next row of probe. It returns false at the end.
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

// match returns the next result row for the current row of probe, nil if there are no more.
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
		if j.entry++; j.entry == 1 { // all rows of build have the same key, so only the first is compared
			if _, err := o.keyOf(j.run, o.rightKeys, right); err != nil {
				return nil, err
			}
			if !o.table.equal(j.key, o.key) {
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

// unmatched sets row to the next row of build that matched no row of probe, with NULLs for probe. Only a full join
// returns such rows. unmatched returns false if there are no more.
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

package plan

import (
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// access is one way to read a scan's rows: from the table or one of its indexes, all of it or the key ranges of seeks.
type access struct {
	index *schema.Index // nil: the table
	key   []schema.KeyPart
	seeks []seek // nil: everything
	// used are the conditions that seeks imply, so that rows need not be tested for them.
	used map[int]bool
	// fixed are the key parts that have one value in all rows.
	fixed map[int]bool
	// merge is how many leading key parts tell the ordered streams apart that are read as one; 0: the rows come in key order.
	// mergeKey is by which parts, if that is not those after them.
	merge    int
	mergeKey []MergePart
	covering bool
	rows     float64 // estimate of the rows that seeks find
	ranges   float64 // and of the ranges that they make
	unique   bool    // at most one row for each tuple of seeks
	reverse  bool
	ordered  bool // an operator above wants the rows in this order
	forced   bool // a hint names the index
	columnar bool // it can read a columnar copy
	cost     float64
	skips    bool    // it is a skip scan
	among    float64 // estimate of the rows among which that looks for values
	whole    float64 // what it costs if it must read them all, without the back join
}

// seek is a Seek whose expressions are not yet compiled.
type seek struct {
	parts    []sarg     // of the leading key parts; sargEqual, sargIn, sargArray, sargNull or sargEach
	bounds   rangeSargs // of the key part after them
	each     rangeSargs // of the part with sargEach
	tuple    *tupleSarg
	tupleLen int
}

// rangeSargs bound a key part; each may be nil.
type rangeSargs struct{ low, high, prefix, notNull *sarg }

// hasRange says whether some of the seeks are ranges of a key part.
func (a *access) hasRange() bool {
	return slices.ContainsFunc(a.seeks, func(s seek) bool { return s.bounds.any() })
}

// maxSeekTuples bounds the keys of a seek: IN lists over several key parts multiply.
const maxSeekTuples = 10_000

// accesses are the ways to read a scan under the conditions that it has, the table itself first. A FORCE_INDEX hint leaves one.
func (p *planner) accesses(s *scanRel, need colSet) ([]*access, error) {
	pred := s.analyze(s.conds)
	if s.table.Rows != nil {
		a := &access{covering: true, rows: guessSystemRows}
		a.rows *= residualSelectivity(pred, a)
		a.cost = guessSystemRows
		return []*access{a}, nil
	}
	name, forced, err := p.forcedIndex(s)
	if err != nil {
		return nil, err
	}
	if s.changed && !s.staysIn(name) {
		name, forced = "", true
	}
	var list []*access
	if !forced || name == "" {
		list = append(list, p.through(s, nil, pred, need))
	}
	for _, x := range s.table.Indexes {
		named := forced && strings.EqualFold(x.FullName(), name)
		if forced && !named || x.State != schema.IndexReadWrite {
			continue
		}
		if !admits(x, pred) {
			if named {
				return nil, usererror.NullFilteredIndex(x.FullName())
			}
			continue
		}
		a := p.through(s, x, pred, need)
		a.forced = forced
		list = append(list, a)
	}
	if p.options.Batch && !forced {
		list = seekable(list)
	}
	if len(list) == 0 {
		return nil, usererror.HintIndexNotFound(s.table.FullName(), name)
	}
	return list, nil
}

// staysIn says whether partitioned DML may scan the index called name. It may not if the statement sets columns of the index: an entry that
// moved forward would be found again by a later transaction. Without a hint, partitioned DML scans the table, since a row's primary
// key never changes.
func (s *scanRel) staysIn(name string) bool {
	for _, x := range s.table.Indexes {
		if strings.EqualFold(x.FullName(), name) {
			return !dependOn(partColumns(x), s.sets)
		}
	}
	return name != "" // a missing index is an error
}

// dependOn says whether some of columns are among sets, or generated from them.
func dependOn(columns, sets []*schema.Column) bool {
	seen := make(map[*schema.Column]bool) // a column may be read on many paths
	var depends func(c *schema.Column) bool
	depends = func(c *schema.Column) bool {
		if seen[c] {
			return false
		}
		seen[c] = true
		return slices.Contains(sets, c) || c.Generated != nil && slices.ContainsFunc(c.Generated.Uses, depends)
	}
	return slices.ContainsFunc(columns, depends)
}

// partColumns are the columns that decide whether a row is in an index, and at which key.
func partColumns(x *schema.Index) []*schema.Column {
	list := slices.Clone(x.NotNullColumns)
	for _, k := range x.Key {
		list = append(list, k.Column)
	}
	return list
}

// seekable leaves out indexes that would be read whole, since partitions are cut from tables, with the rows interleaved in them.
func seekable(list []*access) []*access {
	var keep []*access
	for _, a := range list {
		if a.index == nil || a.seeks != nil {
			keep = append(keep, a)
		}
	}
	return keep
}

// forcedIndex reads the hint FORCE_INDEX of a scan. If it is forced and the name is "", the hint says _BASE_TABLE.
func (p *planner) forcedIndex(s *scanRel) (name string, forced bool, err error) {
	e, ok := s.hints["FORCE_INDEX"]
	if !ok {
		if e, ok = p.hints["FORCE_INDEX"]; !ok {
			return "", false, nil
		}
	}
	text, ok := hintText(e)
	if !ok {
		return "", false, usererror.HintValue("FORCE_INDEX", "")
	}
	if strings.EqualFold(text, tree.BaseTable) {
		return "", true, nil
	}
	return text, true, nil
}

// hintText is the value of a hint that is a word.
func hintText(e tree.Expr) (string, bool) {
	l, ok := e.(*tree.Literal)
	if !ok || l.Value.IsNull() {
		return "", false
	}
	return hintLiteral(l)
}

// admits says whether every row that pred lets through is in the index.
func admits(x *schema.Index, pred predicate) bool {
	for _, c := range x.NotNullColumns {
		if !pred.notNull[c] {
			return false
		}
	}
	return true
}

// through plans a read through an index, or of the table itself if index is nil.
func (p *planner) through(s *scanRel, x *schema.Index, pred predicate, need colSet) *access {
	a := &access{index: x, key: s.table.Key, covering: true, used: map[int]bool{}, columnar: p.hasCopy(s, x)}
	if x != nil {
		a.key = concat(x.Key, x.Suffix)
		a.covering = s.covered(x, need)
	}
	a.bind(s, pred)
	a.useNotNull(pred)
	a.estimate(pred)
	return a
}

// useNotNull marks conditions that a column is not NULL as used, where the column has no NULLs in the table or index.
func (a *access) useNotNull(pred predicate) {
	for _, c := range pred.sargs {
		if c.op == sargNotNull && (c.column.NotNull || a.index != nil && leavesOut(a.index, c.column)) {
			a.used[c.cond] = true
		}
	}
}

// leavesOut says whether rows with NULL in a column are not in the index.
func leavesOut(x *schema.Index, c *schema.Column) bool {
	for _, have := range x.NotNullColumns {
		if have == c {
			return true
		}
	}
	return false
}

// covered says whether the index holds all columns that are needed or tested.
func (s *scanRel) covered(x *schema.Index, need colSet) bool {
	wanted := refsOf(s.conds...)
	for i, c := range s.out {
		if (need[c.ID] || wanted[c.ID]) && !indexHolds(x, s.columns[i]) {
			return false
		}
	}
	return true
}

func indexHolds(x *schema.Index, c *schema.Column) bool {
	for _, k := range x.Key {
		if k.Column == c {
			return true
		}
	}
	for _, k := range x.Suffix {
		if k.Column == c {
			return true
		}
	}
	for _, st := range x.Storing {
		if st == c {
			return true
		}
	}
	return false
}

// bind finds the seeks on this key that the conditions allow.
func (a *access) bind(s *scanRel, pred predicate) {
	depth := 0
	if sk, used, ok := a.match(pred, nil); ok {
		a.seeks, a.used = []seek{sk}, used
		depth = sk.depth()
	}
	for _, d := range pred.either {
		if depth > 0 && len(d.cases) > maxDeeper {
			continue
		}
		if seeks, exact := a.matchCases(d, pred, depth); seeks != nil {
			a.seeks, a.used = seeks, map[int]bool{d.cond: exact}
			return
		}
	}
}

// maxDeeper is how many alternatives of an OR at most take the place of a seek that binds less of the key: each of them goes through the lists of
// values that this seek has.
const maxDeeper = 10

// matchCases finds a seek for each alternative of an OR, if none binds less of the key than depth says and one binds more; nil otherwise. exact says that
// the seeks together imply the OR.
func (a *access) matchCases(d disjunction, pred predicate, depth int) (seeks []seek, exact bool) {
	exact = true
	deeper := false
	for _, c := range d.cases {
		sk, used, ok := a.match(c, pred.sargs)
		if !ok || sk.depth() < depth {
			return nil, false
		}
		deeper = deeper || sk.depth() > depth
		exact = exact && len(used) == len(c.conds)
		seeks = append(seeks, sk)
	}
	if !deeper {
		return nil, false
	}
	return seeks, exact
}

// depth tells how much of the key the seek binds: a part with values counts twice what one with bounds does.
func (sk *seek) depth() int {
	n := 2 * max(len(sk.parts), sk.tupleLen)
	if sk.bounds.any() {
		n++
	}
	return n
}

// match binds the leading parts of the key by sargs of pred and by more, which are sargs of further conditions that hold too.
func (a *access) match(pred predicate, more []sarg) (seek, map[int]bool, bool) {
	if t := a.matchTuple(pred); t != nil {
		return seek{tuple: t, tupleLen: len(t.columns)}, map[int]bool{t.cond: true}, true
	}
	b := newBinder(a, concat(pred.sargs, besides(more)))
	b.equals()
	if n := len(b.seek.parts); n < len(a.key) {
		b.seek.bounds = b.between(n)
	}
	return b.seek, b.used, len(b.seek.parts) > 0 || b.seek.bounds.any()
}

// binder binds the parts of a key, the first one first.
type binder struct {
	key    []schema.KeyPart
	sargs  []sarg
	seek   seek
	used   map[int]bool // conditions that the seek implies
	tuples int          // how many the parts make
	lists  int          // parts with more than one value
}

func newBinder(a *access, sargs []sarg) *binder {
	return &binder{key: a.key, sargs: sargs, used: map[int]bool{}, tuples: 1}
}

// equals binds the next parts, up to the first that has no single values.
func (b *binder) equals() {
	for _, part := range b.key[len(b.seek.parts):] {
		s := pickEqual(b.sargs, part.Column)
		if s == nil || s.op != sargEqual && s.op != sargNull && b.lists > 0 && b.tuples*len(s.values) > maxSeekTuples {
			return
		}
		switch s.op {
		case sargIn:
			b.tuples *= len(s.values)
			b.lists++
		case sargArray:
			b.tuples *= maxSeekTuples
			b.lists++
		}
		b.take(s)
		b.seek.parts = append(b.seek.parts, *s)
	}
}

// between finds the bounds of part n.
func (b *binder) between(n int) rangeSargs {
	var r rangeSargs
	column := b.key[n].Column
	if r.prefix = pick(b.sargs, column, sargPrefix, sargLike); r.prefix == nil {
		r.low = pick(b.sargs, column, sargGreater, sargAtLeast)
		r.high = pick(b.sargs, column, sargLess, sargAtMost)
	}
	r.notNull = pick(b.sargs, column, sargNotNull, sargNotNull)
	for _, s := range []*sarg{r.low, r.high, r.prefix, r.notNull} {
		b.take(s)
	}
	return r
}

func (b *binder) take(s *sarg) {
	if s != nil && s.exact && s.cond >= 0 {
		b.used[s.cond] = true
	}
}

// any says whether there are bounds.
func (r *rangeSargs) any() bool {
	return r.low != nil || r.high != nil || r.prefix != nil || r.notNull != nil
}

// besides marks sargs as inexact: their conditions are still tested for each row.
func besides(list []sarg) []sarg {
	var out []sarg
	for _, s := range list {
		subquery := false
		for _, v := range s.values {
			subquery = subquery || hasSubquery(v)
		}
		if !subquery {
			s.cond, s.exact = -1, false
			out = append(out, s)
		}
	}
	return out
}

// pickEqual is the most selective sarg that gives column single values.
func pickEqual(list []sarg, column *schema.Column) *sarg {
	for _, op := range []sargOp{sargEqual, sargNull, sargIn, sargArray} {
		if s := pick(list, column, op, op); s != nil {
			return s
		}
	}
	return nil
}

func pick(list []sarg, column *schema.Column, a, b sargOp) *sarg {
	for i := range list {
		if s := &list[i]; s.column == column && (s.op == a || s.op == b) {
			return s
		}
	}
	return nil
}

// matchTuple finds a list of structs whose fields are the first parts of the key, in any order.
func (a *access) matchTuple(pred predicate) *tupleSarg {
	for i := range pred.tuples {
		t := &pred.tuples[i]
		if len(t.columns) > len(a.key) {
			continue
		}
		fits := true
		for _, part := range a.key[:len(t.columns)] {
			fits = fits && t.place(part.Column) >= 0
		}
		if fits {
			return t
		}
	}
	return nil
}

func (t *tupleSarg) place(c *schema.Column) int {
	for i, have := range t.columns {
		if have == c {
			return i
		}
	}
	return -1
}

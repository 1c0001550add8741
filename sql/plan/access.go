package plan

import (
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// access is one way to read the rows of a scan: from the table or from one of its indexes. An access reads either all
// keys or only the key ranges of its seeks.
type access struct {
	index *schema.Index // the index to read; nil for the table
	key   []schema.KeyPart
	seeks []seek // nil if the access reads everything
	// used holds the conditions that the seeks imply, by their index in predicate.conds. They need not be tested
	// for each row.
	used map[int]bool
	// fixed holds the key parts that have the same value in all rows, by their index in key.
	fixed map[int]bool
	// If merge is not 0, the rows are read as several sorted streams and then merged. merge is a number of leading
	// key parts; there is one stream for each combination of their values. mergeKey holds the key parts by which the
	// streams are merged; nil means all parts after the leading ones. If merge is 0, the rows come in key order.
	merge    int
	mergeKey []MergePart
	covering bool
	rows     float64 // estimated number of rows that the access returns
	ranges   float64 // estimated number of key ranges that the seeks read
	unique   bool    // each key range that the seeks read has at most one row
	reverse  bool
	ordered  bool // an operator above needs the rows in the order in which the access returns them
	forced   bool // a hint names the index
	columnar bool // the access can read a columnar copy
	cost     float64
	skips    bool    // the access is a skip scan
	among    float64 // for a skip scan: estimated number of rows in the key range in which it looks for values
	whole    float64 // for a skip scan: its cost, without the back join, if it reads one range of keys with all values
}

// seek is a Seek whose expressions are not yet compiled.
type seek struct {
	parts    []sarg     // one for each leading key part; its op is sargEqual, sargIn, sargArray, sargNull or sargEach
	bounds   rangeSargs // the bounds of the key part that follows those in the field parts
	each     rangeSargs // the bounds of the key part whose sarg has op sargEach
	tuple    *tupleSarg
	tupleLen int
}

// rangeSargs holds the conditions (see sarg) that bound a key part. Each of them may be nil.
type rangeSargs struct{ low, high, prefix, notNull *sarg }

// maxSeekTuples is the greatest number of keys of one seek. It limits seeks with IN lists over several key parts,
// because the lengths of the lists multiply.
const maxSeekTuples = 10_000

// accesses returns the ways to read a scan with its conditions, the table itself first. With the hint FORCE_INDEX,
// it returns only the way that the hint names. The parameter need has the columns that operators above use.
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
		// With Options.Batch, a query is divided into partitions: each reads a range of keys of the table, and also the
		// rows that are interleaved with the rows of these keys. An index that is read from end to end would instead
		// divide the query by the keys of the index, with which no rows are interleaved. So such accesses are dropped.
		list = slices.DeleteFunc(list, func(a *access) bool { return a.index != nil && a.seeks == nil })
	}
	if len(list) == 0 {
		return nil, usererror.HintIndexNotFound(s.table.FullName(), name)
	}
	return list, nil
}

// staysIn reports whether partitioned DML may scan the index called name. It must not if the statement sets columns
// of the index, because an entry could then move forward in the index, where a later transaction would find it
// again. Without a hint, partitioned DML scans the table, because a row's primary key never changes.
func (s *scanRel) staysIn(name string) bool {
	at := slices.IndexFunc(s.table.Indexes, func(x *schema.Index) bool { return strings.EqualFold(x.FullName(), name) })
	if at < 0 {
		// Without a hint the statement scans the table. A name that no index has is refused later, by accesses().
		return name != ""
	}
	visited := make(map[*schema.Column]bool) // many generated columns may use the same column
	var changes func(c *schema.Column) bool
	changes = func(c *schema.Column) bool {
		if visited[c] {
			return false
		}
		visited[c] = true
		return slices.Contains(s.sets, c) || c.Generated != nil && slices.ContainsFunc(c.Generated.Uses, changes)
	}
	x := s.table.Indexes[at] // its NotNullColumns decide whether a row has an entry, and its Key decides where
	return !slices.ContainsFunc(x.NotNullColumns, changes) && !slices.ContainsFunc(x.Key, func(k schema.KeyPart) bool { return changes(k.Column) })
}

// forcedIndex returns the name of the index in the hint FORCE_INDEX of a scan, or else of the statement. The result
// forced is true if there is such a hint. The name is then "" if the hint says _BASE_TABLE, which means the table
// itself.
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

// hintText returns the value of a hint that is an identifier or a string. The second result is false for other values.
func hintText(e tree.Expr) (string, bool) {
	l, ok := e.(*tree.Literal) // the analyzer gives identifiers as strings
	if !ok || l.Value.IsNull() || l.T.Kind != value.String {
		return "", false
	}
	return l.Value.AsString(), true
}

// admits reports whether the index has an entry for every row that satisfies pred. A NULL_FILTERED index has none
// for rows with NULL in certain columns, so admits is false if pred may be TRUE for such rows.
func admits(x *schema.Index, pred predicate) bool {
	for _, c := range x.NotNullColumns {
		if !pred.notNull[c] {
			return false
		}
	}
	return true
}

// through plans a read of the index x, or of the table itself if x is nil.
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

// useNotNull marks a condition "column IS NOT NULL" as used if no row of the table, or no entry of the index, has NULL
// in the column. The condition is then TRUE for every row, so rows are not tested for it.
func (a *access) useNotNull(pred predicate) {
	for _, c := range pred.sargs {
		if c.op == sargNotNull && (c.column.NotNull || a.index != nil && slices.Contains(a.index.NotNullColumns, c.column)) {
			a.used[c.cond] = true
		}
	}
}

// covered reports whether the index holds all columns of the scan that operators above need or that a condition
// tests.
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
	isPart := func(k schema.KeyPart) bool { return k.Column == c }
	return slices.ContainsFunc(x.Key, isPart) || slices.ContainsFunc(x.Suffix, isPart) || slices.Contains(x.Storing, c)
}

// bind finds the seeks on the access's key that follow from the conditions.
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

// maxDeeper is the greatest number of alternatives that an OR may have if its seeks replace the seek that the other
// conditions give. The seeks of such an OR bind more key parts. But the seek of each alternative repeats the lists of
// values of the replaced seek, so an OR with many alternatives could make too many keys.
const maxDeeper = 10

// matchCases finds one seek for each alternative of an OR. These seeks are to replace a seek that has the given depth
// (see seek.depth; 0 if there is no such seek). So matchCases returns nil if one of them has a smaller depth, or if none
// has a greater depth. It also returns nil if it finds no seek for an alternative. The result exact says that the seeks
// together imply the OR.
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

// depth measures how much of the key the seek binds: it adds 2 for each key part with values, and 1 for a part with
// bounds.
func (sk *seek) depth() int {
	n := 2 * max(len(sk.parts), sk.tupleLen)
	if sk.bounds.any() {
		n++
	}
	return n
}

// match makes a seek: it binds the leading key parts by conditions that can bound them (see sarg). It uses the sargs of
// pred, and further sargs (the parameter more) of other conditions that are TRUE for the same rows. match also returns
// the conditions that the seek implies, and whether it found a seek.
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

// binder makes a seek by binding the parts of a key, beginning with the first part.
type binder struct {
	key    []schema.KeyPart
	sargs  []sarg
	seek   seek
	used   map[int]bool // the indexes in predicate.conds of the conditions that the seek implies
	tuples int          // the number of combinations of the parts' values; an array counts as maxSeekTuples values
	lists  int          // the number of parts with a list of values
}

func newBinder(a *access, sargs []sarg) *binder {
	return &binder{key: a.key, sargs: sargs, used: map[int]bool{}, tuples: 1}
}

// equals binds the next key parts to single values or lists of them (=, IN, IS NULL). It stops at the first part
// without such a condition. It also stops at a second list that would give the seek more than maxSeekTuples keys.
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
		b.markUsed(s)
		b.seek.parts = append(b.seek.parts, *s)
	}
}

// between returns the bounds that the conditions set for key part n.
func (b *binder) between(n int) rangeSargs {
	var r rangeSargs
	column := b.key[n].Column
	if r.prefix = pick(b.sargs, column, sargPrefix, sargLike); r.prefix == nil {
		r.low = pick(b.sargs, column, sargGreater, sargAtLeast)
		r.high = pick(b.sargs, column, sargLess, sargAtMost)
	}
	r.notNull = pick(b.sargs, column, sargNotNull, sargNotNull)
	for _, s := range []*sarg{r.low, r.high, r.prefix, r.notNull} {
		b.markUsed(s)
	}
	return r
}

func (b *binder) markUsed(s *sarg) {
	if s != nil && s.exact && s.cond >= 0 {
		b.used[s.cond] = true
	}
}

// any reports whether there are bounds.
func (r *rangeSargs) any() bool {
	return r.low != nil || r.high != nil || r.prefix != nil || r.notNull != nil
}

// besides returns copies of the given sargs. The method match adds the copies to the sargs of an alternative of an OR.
// besides leaves out sargs that have a subquery, because each alternative would get its own copy of the subquery. It
// marks the copies as inexact, so that match does not count their conditions as implied by the seek: these conditions
// are still tested for each row.
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

// pickEqual returns the most selective sarg that compares column with one value or with a list of values, nil if
// there is none.
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

// matchTuple returns a condition (a, b, ...) IN UNNEST(array of structs) whose columns are the first parts of the
// key, in any order. It returns nil if there is none.
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

// A skip scan finds the values of a key part: it seeks past each value to find the next one. It then reads the keys
// that begin with each value. It serves statements that give no values for this key part, but have a condition on key
// parts that follow it, or need the first rows in the order of these parts. The planner does not know how many values
// the part has. If a run finds too many, it reads all keys in one range instead, so a wrong guess costs only a limited
// number of seeks. The planner assumes that both outcomes are equally likely.

// guessPrefixes is the guessed number of different values of a key part that a skip scan skips. Such a part is
// typically a column that divides the keys into tens of shards.
const guessPrefixes = 100.0

// guessValues guesses how many different values a column has.
func guessValues(c *schema.Column) float64 {
	if c.Type.Kind == value.Bool {
		return 3
	}
	return guessPrefixes
}

// skips returns skip scans of the table and the indexes that the accesses in list read. It returns none for a plan
// that is divided into partitions. It also returns none for a scan that runs once for each row of another relation,
// because such a scan would look for the same values again each time.
func (p *planner) skips(s *scanRel, list []*access, req request) []*access {
	if p.options.Batch || s.table.Rows != nil || !refsOf(s.conds...).within(setOf(s.out)) {
		return nil
	}
	pred := s.analyze(s.conds)
	var out []*access
	for _, a := range list {
		if k := s.skipping(a, pred, req); k != nil {
			out = append(out, k)
		}
	}
	return out
}

// skipping returns a skip scan of the table or index that the given access reads. It returns nil if a skip scan would
// be useless. That is so in three cases: no key part follows the skipped part; the parts that follow have no condition,
// and the request is not for the first rows in the order of these parts; or the skipped part belongs to the key of the
// table's parent, so that it can have as many values as the parent has rows.
func (s *scanRel) skipping(from *access, pred predicate, req request) *access {
	a := &access{index: from.index, key: from.key, covering: from.covering, forced: from.forced, skips: true}
	b := newBinder(a, pred.sargs)
	b.equals()
	n := len(b.seek.parts)
	if n+1 >= len(a.key) || a.index == nil && s.table.Parent != nil && n < len(s.table.Parent.Key) {
		return nil // no key part follows part n, or part n can have as many values as the parent table has rows
	}
	b.seek.each = b.between(n)
	b.seek.parts = append(b.seek.parts, sarg{op: sargEach, column: a.key[n].Column, cond: -1})
	b.tuples *= guessPrefixes
	b.lists++
	b.equals()
	if k := len(b.seek.parts); k < len(a.key) {
		b.seek.bounds = b.between(k)
	}
	if len(b.seek.parts) == n+1 && !b.seek.bounds.any() && !s.wantsFirst(req, a.key[n+1]) {
		return nil
	}
	a.seeks, a.used = []seek{b.seek}, b.used
	a.useNotNull(pred)
	a.estimate(pred)
	return a
}

// wantsFirst reports whether the request is for the first rows (a LIMIT) in the order of a key part.
func (s *scanRel) wantsFirst(req request, part schema.KeyPart) bool {
	place := s.place(part.Column)
	return req.limit > 0 && len(req.order) > 0 && place >= 0 && s.out[place].ID == req.order[0].col
}

// Skips reports whether the scan is a skip scan, which looks for the values that a key part has.
func (n *Scan) Skips() bool { return n.skipped() >= 0 }

// skipped returns the index of the key part whose values a skip scan looks for. It returns -1 for any other scan.
func (n *Scan) skipped() int {
	for _, s := range n.Seeks {
		for i, p := range s.Parts {
			if p.Each {
				return i
			}
		}
	}
	return -1
}

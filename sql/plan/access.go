package plan

import (
	"math"
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
	// parts is how many leading key parts have one value each.
	fixed    int
	covering bool
	rows     float64 // estimate of the rows that seeks find
	unique   bool    // at most one row for each tuple of seeks
	reverse  bool
	ordered  bool // an operator above wants the rows in this order
	cost     float64
}

// seek is a Seek whose expressions are not yet compiled.
type seek struct {
	parts    []sarg // of the leading key parts; sargEqual, sargIn, sargArray or sargNull
	low      *sarg
	high     *sarg
	prefix   *sarg
	notNull  *sarg
	tuple    *tupleSarg
	tupleLen int
}

// Costs are in rows of a sequential scan. The planner has no statistics; it guesses how many rows pass from the form of the conditions.
const (
	guessTableRows  = 100_000.0
	guessSystemRows = 200.0
	guessArray      = 10.0   // elements of an array
	costSeek        = 10.0   // to find a key, compared with moving to the next one
	costIndexRow    = 0.8    // indexes are narrower than tables
	selectKey       = 0.0001 // for a key part that equals a value
	selectEqual     = 0.05   // for any other column that equals a value
	selectNull      = 0.05
	selectNotNull   = 0.9
	selectRange     = 0.3 // for one bound of a range
	selectBetween   = 0.05
	selectPrefix    = 0.03
	selectOther     = 0.5 // for any other condition
)

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
		list = append(list, s.through(nil, pred, need))
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
		list = append(list, s.through(x, pred, need))
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
	return slices.ContainsFunc(columns, func(c *schema.Column) bool {
		return slices.Contains(sets, c) || c.Generated != nil && dependOn(c.Generated.Uses, sets)
	})
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
func (s *scanRel) through(x *schema.Index, pred predicate, need colSet) *access {
	a := &access{index: x, key: s.table.Key, covering: true, used: map[int]bool{}}
	if x != nil {
		a.key = concat(x.Key, x.Suffix)
		a.covering = s.covered(x, need)
	}
	a.bind(s, pred)
	for _, c := range pred.sargs {
		if c.op == sargNotNull && (c.column.NotNull || x != nil && leavesOut(x, c.column)) {
			a.used[c.cond] = true
		}
	}
	a.estimate(pred)
	return a
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
	if sk, used, ok := a.match(pred, nil); ok {
		a.seeks = []seek{sk}
		a.used = used
		return
	}
	for _, d := range pred.either {
		var seeks []seek
		exact := true
		for _, c := range d.cases {
			sk, used, ok := a.match(c, pred.sargs)
			if !ok {
				seeks = nil
				break
			}
			exact = exact && len(used) == len(c.conds)
			seeks = append(seeks, sk)
		}
		if seeks != nil {
			a.seeks = seeks
			if exact {
				a.used[d.cond] = true
			}
			return
		}
	}
}

// match binds the leading parts of the key by sargs of pred and by more, which are sargs of further conditions that hold too.
func (a *access) match(pred predicate, more []sarg) (seek, map[int]bool, bool) {
	var sk seek
	used := map[int]bool{}
	if t := a.matchTuple(pred); t != nil {
		sk.tuple, sk.tupleLen = t, len(t.columns)
		used[t.cond] = true
		return sk, used, true
	}
	take := func(s *sarg) {
		if s.exact && s.cond >= 0 {
			used[s.cond] = true
		}
	}
	all := concat(pred.sargs, besides(more))
	tuples := 1
	lists := 0
	for _, part := range a.key {
		s := pickEqual(all, part.Column)
		if s == nil || s.op != sargEqual && s.op != sargNull && lists > 0 && tuples*len(s.values) > maxSeekTuples {
			break
		}
		switch s.op {
		case sargIn:
			tuples *= len(s.values)
			lists++
		case sargArray:
			tuples *= maxSeekTuples
			lists++
		}
		take(s)
		sk.parts = append(sk.parts, *s)
	}
	if n := len(sk.parts); n < len(a.key) {
		column := a.key[n].Column
		if sk.prefix = pick(all, column, sargPrefix, sargLike); sk.prefix != nil {
			take(sk.prefix)
		} else {
			if sk.low = pick(all, column, sargGreater, sargAtLeast); sk.low != nil {
				take(sk.low)
			}
			if sk.high = pick(all, column, sargLess, sargAtMost); sk.high != nil {
				take(sk.high)
			}
		}
		if sk.notNull = pick(all, column, sargNotNull, sargNotNull); sk.notNull != nil {
			take(sk.notNull)
		}
	}
	return sk, used, len(sk.parts) > 0 || sk.ranged()
}

// ranged says whether the key part after those that have single values is bounded by a range.
func (sk *seek) ranged() bool {
	return sk.low != nil || sk.high != nil || sk.prefix != nil || sk.notNull != nil
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

// estimate guesses how many rows pass and what reading them costs.
func (a *access) estimate(pred predicate) {
	a.rows = guessTableRows
	ranges := 1.0
	if a.seeks != nil {
		a.rows, ranges = 0, 0
		a.unique = true
		for i := range a.seeks {
			rows, n, unique := a.guess(&a.seeks[i])
			a.rows += rows
			ranges += n
			a.unique = a.unique && unique
		}
		a.rows = math.Min(a.rows, guessTableRows)
	}
	if len(a.seeks) == 1 {
		for _, s := range a.seeks[0].parts {
			if s.op != sargEqual && s.op != sargNull {
				break
			}
			a.fixed++
		}
	}
	perRow := 1.0
	if a.index != nil {
		perRow = costIndexRow
		if len(a.index.Storing) > 0 {
			perRow = (1 + costIndexRow) / 2
		}
	}
	a.cost = ranges*costSeek + a.rows*perRow
	if !a.covering {
		a.cost += a.rows * (costSeek + 1)
	}
	a.rows *= residualSelectivity(pred, a)
}

// guess estimates how many rows a seek finds, and in how many ranges.
func (a *access) guess(sk *seek) (rows, ranges float64, unique bool) {
	if sk.tuple != nil {
		unique = a.wholeKey(sk.tupleLen)
		if unique {
			return guessArray, guessArray, true
		}
		return guessArray * math.Max(guessTableRows*math.Pow(selectKey, float64(sk.tupleLen)), 2), guessArray, false
	}
	rows, ranges = guessTableRows, 1.0
	for _, s := range sk.parts {
		switch s.op {
		case sargNull:
			rows *= selectNull
			continue
		case sargIn:
			ranges *= float64(len(s.values))
		case sargArray:
			ranges *= guessArray
		}
		rows *= selectKey
	}
	unique = a.wholeKey(len(sk.parts))
	if unique {
		return ranges, ranges, true
	}
	rows = math.Max(rows, 2) * ranges
	switch {
	case sk.prefix != nil:
		rows *= selectPrefix
	case sk.low != nil && sk.high != nil:
		rows *= selectBetween
	case sk.low != nil || sk.high != nil:
		rows *= selectRange
	case sk.notNull != nil:
		rows *= selectNotNull
	}
	return math.Max(rows, 1), ranges, false
}

// wholeKey says whether values of n leading parts name at most one row.
func (a *access) wholeKey(n int) bool {
	if a.index != nil && a.index.Unique {
		return n >= len(a.index.Key)
	}
	return n >= len(a.key)
}

// residualSelectivity guesses how many of the rows that an access reads pass the conditions left.
func residualSelectivity(pred predicate, a *access) float64 {
	f := 1.0
	for i := range pred.conds {
		if a.used[i] {
			continue
		}
		f *= condSelectivity(pred, i)
	}
	return f
}

func condSelectivity(pred predicate, cond int) float64 {
	for _, s := range pred.sargs {
		if s.cond != cond {
			continue
		}
		switch s.op {
		case sargEqual:
			return selectEqual
		case sargIn:
			return math.Min(1, selectEqual*float64(len(s.values)))
		case sargNull:
			return selectNull
		case sargNotNull:
			return selectNotNull
		case sargPrefix, sargLike:
			return selectPrefix * 2
		case sargLess, sargAtMost, sargGreater, sargAtLeast:
			return selectRange
		}
	}
	return selectOther
}

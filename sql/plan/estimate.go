package plan

import (
	"math"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// estimate holds the guessed number of rows of a relation, and the guessed cost of computing them. Reading one row in a
// sequential scan costs 1.
type estimate struct{ rows, cost float64 }

// The planner has no statistics. It guesses from the form of the conditions how many rows satisfy them. The name of a
// constant tells its unit: guess... is a number of rows or elements, cost... is a cost (reading one row in a sequential
// scan costs 1), and select... is the fraction of rows that satisfy a condition.
const (
	guessTableRows  = 100_000.0
	guessSystemRows = 200.0
	guessArray      = 10.0   // guessed number of elements of an array
	costSeek        = 10.0   // finding a key; moving to the next key costs 1
	costIndexRow    = 0.8    // moving to the next index entry, which is narrower than a row of the table
	costColumnarRow = 0.3    // reading the needed columns of a row from a columnar copy
	selectKey       = 0.0001 // the fraction of rows in which a key part equals a value
	selectListed    = 0.0003 // the fraction of rows for each value of a list, which is less selective than one value
	selectEqual     = 0.05   // the fraction of rows in which any other column equals a value
	selectNull      = 0.05
	selectNotNull   = 0.9
	selectRange     = 0.3  // the fraction of rows that satisfy one bound of a range
	selectNewer     = 0.02 // the fraction for a lower bound of a commit timestamp, which asks for recent rows
	selectBetween   = 0.05
	selectPrefix    = 0.03
	selectOther     = 0.5 // the fraction of rows that satisfy any other condition
)

// estimate sets the guessed number of rows that the access returns, and the cost of reading them.
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
	a.ranges = ranges
	a.fixed = map[int]bool{}
	if len(a.seeks) == 1 {
		for i, s := range a.seeks[0].parts {
			a.fixed[i] = s.op == sargEqual || s.op == sargNull
		}
	}
	perRow := a.costRow()
	a.cost = ranges*costSeek + a.rows*perRow
	if a.skips {
		a.whole = ranges*costSeek + a.among*perRow
	}
	if !a.covering {
		a.cost += a.rows * (costSeek + 1)
	}
	a.rows *= residualSelectivity(pred, a)
}

// costRow returns the cost of moving to the next row or index entry.
func (a *access) costRow() float64 {
	switch {
	case a.columnar:
		return costColumnarRow
	case a.index == nil:
		return 1
	case len(a.index.Storing) > 0:
		return (1 + costIndexRow) / 2
	}
	return costIndexRow
}

// guess estimates how many rows a seek finds, and in how many key ranges. The result unique says that the seek finds at
// most one row in each range.
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
		case sargEach:
			rows *= sk.each.selectivity()
			a.among = rows * ranges
			rows /= guessValues(s.column)
			ranges *= guessValues(s.column)
			continue
		case sargIn:
			ranges *= float64(len(s.values))
			rows *= selectListed
			continue
		case sargArray:
			ranges *= guessArray
			rows *= selectListed
			continue
		}
		rows *= selectKey
	}
	unique = !a.skips && a.wholeKey(len(sk.parts))
	if unique {
		return ranges, ranges, true
	}
	rows = math.Max(rows, 2) * ranges * sk.bounds.selectivity()
	if a.skips {
		ranges *= 2 // each value is found first, then its rows are read
	}
	return math.Max(rows, 1), ranges, false
}

// selectivity guesses which fraction of the rows lies within the bounds.
func (r *rangeSargs) selectivity() float64 {
	switch {
	case r.prefix != nil:
		return selectPrefix
	case r.low != nil && r.high != nil:
		return selectBetween
	case r.low != nil && r.low.column.AllowCommitTimestamp:
		return selectNewer
	case r.low != nil || r.high != nil:
		return selectRange
	case r.notNull != nil:
		return selectNotNull
	}
	return 1
}

// wholeKey reports whether at most one row has given values in the first n parts of the key.
func (a *access) wholeKey(n int) bool {
	if a.index != nil && a.index.Unique {
		return n >= len(a.index.Key)
	}
	return n >= len(a.key)
}

// residualSelectivity guesses which fraction of the rows that an access reads satisfies the conditions that its
// seeks do not imply.
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
		case sargGreater, sargAtLeast:
			return (&rangeSargs{low: &s}).selectivity()
		case sargLess, sargAtMost:
			return selectRange
		}
	}
	return selectOther
}

// These constants are the costs of operators for each row. Reading one row in a sequential scan costs 1.
const (
	costFilter  = 0.05
	costHash    = 0.5 // to put a row in a hash table
	costProbe   = 0.2
	costElement = 0.2 // to make a row from an element of an array
	costSort    = 0.1 // to sort a row; to be multiplied by the binary logarithm of the number of rows
)

// guess estimates the rows and the cost of a relation. It treats columns of enclosing rows as known values.
func (p *planner) guess(r relation) estimate {
	switch r := r.(type) {
	case *unitRel:
		return estimate{1, 0}
	case *emptyRel:
		return estimate{0, 0}
	case *scanRel:
		a, err := p.choose(r, request{need: setOf(r.out)})
		if err != nil {
			return estimate{guessTableRows, guessTableRows}
		}
		return estimate{a.rows, a.cost}
	case *filterRel:
		e := p.guess(r.in)
		return estimate{math.Max(e.rows*math.Pow(selectOther, float64(len(r.conds))), 1), e.cost + e.rows*costFilter}
	case *computeRel:
		return p.guess(r.in)
	case *barrierRel:
		_, in, rest := p.once(r)
		return p.guess(filterBy(in, rest))
	case *joinRel:
		return p.guessJoin(r)
	case *unnestRel:
		e := p.guess(r.in)
		n := elements(r.arrays)
		return estimate{e.rows * n, e.cost + e.rows*n*costElement}
	case *aggregateRel:
		e := p.guess(r.in)
		if len(r.groupBy) == 0 {
			return estimate{1, e.cost + e.rows*costProbe}
		}
		return estimate{math.Max(e.rows/10, 1), e.cost + e.rows*costHash}
	case *sortRel:
		e := p.guess(r.in)
		return estimate{e.rows, e.cost + sortCost(e.rows)}
	case *limitRel:
		return p.guessLimit(r)
	case *withRel:
		return p.guess(r.body)
	case *spoolScanRel:
		return estimate{guessTableRows / 100, guessTableRows / 100 * costFilter}
	}
	var sum estimate
	for _, in := range r.relations() {
		e := p.guess(in)
		sum.rows += e.rows
		sum.cost += e.cost
	}
	return sum
}

// elements guesses how many rows an UNNEST of arrays makes from one row.
func elements(arrays []tree.Expr) float64 {
	n := 0.0
	for _, a := range arrays {
		if l, ok := a.(*tree.Literal); !ok {
			n = math.Max(n, guessArray)
		} else if !l.Value.IsNull() {
			n = math.Max(n, float64(len(l.Value.AsList())))
		}
	}
	return n
}

// maxGuessing is the greatest depth of nested joins at which guessJoin compares both join methods. There is a limit
// because the comparison doubles the work at each level.
const maxGuessing = 5

func sortCost(rows float64) float64 { return rows * math.Log2(rows+2) * costSort }

func (p *planner) guessLimit(r *limitRel) estimate {
	e := p.guess(r.in)
	n := limitRows(r.count)
	if n == 0 || n >= e.rows {
		return e
	}
	if _, sorted := r.in.(*sortRel); !sorted {
		e.cost *= n / e.rows
	}
	return estimate{n, e.cost}
}

// limitRows returns the number of rows of a LIMIT. It guesses if the LIMIT is not a constant, and returns 0 if
// there is no LIMIT.
func limitRows(count tree.Expr) float64 {
	if count == nil {
		return 0
	}
	l, ok := count.(*tree.Literal)
	if !ok {
		return 100
	}
	if l.Value.IsNull() || l.T.Kind != value.Int64 {
		return 1
	}
	return math.Max(1, float64(l.Value.AsInt64()))
}

func (p *planner) guessJoin(r *joinRel) estimate {
	p.guessing++
	defer func() { p.guessing-- }()
	left := p.guess(r.left)
	inner := p.guess(push(r.right, r.conds))
	cost := left.rows * inner.cost
	if r.method != applyMethod && !r.lateral && p.guessing <= maxGuessing {
		right := p.guess(r.right)
		cost = math.Min(cost, right.cost+right.rows*costHash+left.rows*costProbe)
	}
	e := estimate{left.rows * inner.rows, left.cost + cost}
	switch r.kind {
	case SemiJoin, AntiJoin:
		e.rows = math.Max(left.rows*selectOther, 1)
	case LeftJoin, FullJoin:
		e.rows = math.Max(e.rows, left.rows)
	}
	return e
}

package plan

import "math"

// One unit of cost is reading one row in a sequential scan. The planner has no statistics: it guesses from the form of the conditions how
// many rows satisfy them.
const (
	guessTableRows  = 100_000.0
	guessSystemRows = 200.0
	guessArray      = 10.0   // guessed number of elements of an array
	costSeek        = 10.0   // finding a key; moving to the next one costs 1
	costIndexRow    = 0.8    // indexes are narrower than tables
	costColumnarRow = 0.3    // reading the wanted columns of a row from a columnar copy
	selectKey       = 0.0001 // for a key part that equals a value
	selectListed    = 0.0003 // for a key part that equals a list element; a list is a bit less selective than one value
	selectEqual     = 0.05   // for any other column that equals a value
	selectNull      = 0.05
	selectNotNull   = 0.9
	selectRange     = 0.3  // for one bound of a range
	selectNewer     = 0.02 // for a lower bound of a commit timestamp, which asks for recent rows
	selectBetween   = 0.05
	selectPrefix    = 0.03
	selectOther     = 0.5 // for any other condition
)

// estimate guesses how many rows satisfy the conditions, and the cost of reading them.
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

// guess estimates how many rows a seek finds in how many key ranges. unique says that it finds at most one row in each.
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

// selectivity guesses the fraction of rows that lie within the bounds.
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

// wholeKey reports whether values for the first n key parts identify at most one row.
func (a *access) wholeKey(n int) bool {
	if a.index != nil && a.index.Unique {
		return n >= len(a.index.Key)
	}
	return n >= len(a.key)
}

// residualSelectivity guesses which fraction of the rows that an access reads satisfy the conditions that its seeks do not imply.
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

package plan

import (
	"math"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// estimate is the guessed number of rows of a relation and the cost of making them. The unit of cost is one row of a sequential scan.
type estimate struct{ rows, cost float64 }

// Costs of operators, for each row.
const (
	costFilter  = 0.05
	costHash    = 0.5 // to put a row in a hash table
	costProbe   = 0.2
	costElement = 0.2 // to make a row of an array's element
	costSort    = 0.1 // for each row and doubling of their number
)

// guess estimates a relation. It treats columns of enclosing rows as known values.
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
		return p.guessBarrier(r)
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

// elements returns how many rows an UNNEST of arrays makes of one row.
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

// maxGuessing bounds the depth of joins at which both join methods are compared, since each level doubles the work.
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

// limitRows returns the number of rows that a LIMIT lets through. It is a guess if the LIMIT is not a constant, and 0 if there is no LIMIT.
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

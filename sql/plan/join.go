package plan

import (
	"math"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
)

func (p *planner) buildJoin(r *joinRel, req request) (built, error) {
	j := r
	if r.method == anyMethod {
		var err error
		if j, err = p.chooseJoin(r); err != nil {
			return built{}, err
		}
	}
	if j.method == applyMethod {
		return p.buildApply(j, req)
	}
	return p.buildHashJoin(j, req)
}

// chooseJoin chooses how to execute a join: the order of inner joins, and the method of every other join.
func (p *planner) chooseJoin(r *joinRel) (*joinRel, error) {
	h, err := joinHints(r.hints, p.hints)
	if err != nil {
		return nil, err
	}
	if r.kind == InnerJoin && !h.given() {
		return p.orderJoins(r), nil
	}
	j := *r
	if r.kind == InnerJoin && h.buildLeft && !r.lateral {
		j.left, j.right = r.right, r.left
	}
	if h.method != anyMethod {
		j.method = h.method
		if j.lateral {
			j.method = applyMethod
		}
		if j.kind == FullJoin {
			j.method = hashMethod
		}
	} else {
		if d := p.distinctFirst(r); d != nil && !p.options.Batch {
			return d, nil
		}
		j.method = p.method(&j)
	}
	if j.method == applyMethod {
		j.right, j.conds = push(j.right, j.conds), nil
	}
	return &j, nil
}

// hinted holds the choices that hints make for a join.
type hinted struct {
	method     joinMethod
	forceOrder bool
	buildLeft  bool
}

func (h hinted) given() bool { return h.method != anyMethod || h.forceOrder || h.buildLeft }

// joinHints returns the choices that hints make for a join. The parameter at holds the hints at the join. The parameter
// statement holds the hints of the statement, which apply to all joins.
func joinHints(at, statement tree.Hints) (hinted, error) {
	var h hinted
	for _, name := range []string{"JOIN_METHOD", "JOIN_TYPE"} {
		e, ok := at[name]
		if !ok {
			if e, ok = statement[name]; !ok {
				continue
			}
		}
		text, _ := hintText(e)
		switch strings.ToUpper(text) {
		case "HASH_JOIN", "MERGE_JOIN", "PUSH_BROADCAST_HASH_JOIN":
			h.method = hashMethod
		case "APPLY_JOIN", "LOOP_JOIN":
			h.method = applyMethod
		default:
			return h, usererror.HintValue(name, text)
		}
	}
	for _, hints := range []tree.Hints{at, statement} {
		if l, ok := hints["FORCE_JOIN_ORDER"].(*tree.Literal); ok && isTrue(l) {
			h.forceOrder = true
		}
	}
	if e, ok := at["HASH_JOIN_BUILD_SIDE"]; ok {
		text, _ := hintText(e)
		switch strings.ToUpper(text) {
		case "BUILD_LEFT":
			h.buildLeft = true
		case "BUILD_RIGHT":
		default:
			return h, usererror.HintValue("HASH_JOIN_BUILD_SIDE", text)
		}
	}
	return h, nil
}

// method chooses the cheaper method for a join: an apply join, which runs the right side for each row of the left side,
// or a hash join.
func (p *planner) method(j *joinRel) joinMethod {
	if j.kind == FullJoin {
		return hashMethod
	}
	if j.lateral {
		return applyMethod
	}
	left, right := p.guess(j.left), p.guess(j.right)
	pushed := push(j.right, j.conds)
	inner := p.guess(pushed)
	if p.options.Batch && p.seeks(pushed) {
		return applyMethod
	}
	if left.rows*inner.cost <= hashCost(left, right, j.hashable()) && !(j.hashable() && remakes(pushed)) {
		return applyMethod
	}
	return hashMethod
}

// seeks reports whether a relation is a scan of key ranges. With Options.Batch the planner joins such a scan by an
// apply join, so that the query can be partitioned.
func (p *planner) seeks(r relation) bool {
	s, ok := r.(*scanRel)
	if !ok {
		return false
	}
	a, err := p.choose(s, request{need: setOf(s.out)})
	return err == nil && a.seeks != nil
}

// remakes reports whether a relation is a system table that would compute all of its rows again for each row of the
// left side of an apply join. The planner avoids that, because it only guesses how many rows the left side has, and
// the guess can be far too low.
func remakes(r relation) bool {
	s, ok := r.(*scanRel)
	if !ok || s.table.Rows == nil {
		return false
	}
	return !slices.ContainsFunc(s.analyze(s.conds).sargs, func(c sarg) bool {
		return (c.op == sargEqual || c.op == sargIn || c.op == sargArray) && slices.Contains(s.table.FoundBy, c.column)
	})
}

// hashCost returns the cost of putting the rows of right in a hash table and looking up the rows of left in it. If
// the join is not hashable, each row of left is compared with all rows of right.
func hashCost(left, right estimate, hashable bool) float64 {
	if !hashable {
		return right.cost + left.rows*right.rows*costFilter
	}
	return right.cost + right.rows*costHash + left.rows*costProbe
}

// hashable reports whether the join has a condition for which a hash table can find the matching rows.
func (r *joinRel) hashable() bool {
	left, right := setOf(r.left.cols()), setOf(r.right.cols())
	for _, c := range r.conds {
		if _, _, ok := equiSides(c, left, right); ok {
			return true
		}
	}
	return false
}

// equiSides splits a condition "l = r" into l, which uses only columns of left, and r, which uses only columns of
// right. ok is false for any other condition, and for a volatile one, because a join computes l and r once for each row.
func equiSides(c tree.Expr, left, right colSet) (l, r tree.Expr, ok bool) {
	eq, is := isCall(c, "$equal")
	if !is || hasSubquery(c) || volatile(c) || eq.Args[0].Type().Kind != eq.Args[1].Type().Kind {
		return nil, nil, false
	}
	a, b := refsOf(eq.Args[0]), refsOf(eq.Args[1])
	switch {
	case len(a) == 0 || len(b) == 0:
		return nil, nil, false
	case !a.intersects(right) && !b.intersects(left) && a.intersects(left) && b.intersects(right):
		return eq.Args[0], eq.Args[1], true
	case !a.intersects(left) && !b.intersects(right) && a.intersects(right) && b.intersects(left):
		return eq.Args[1], eq.Args[0], true
	}
	return nil, nil, false
}

// distinctFirst turns a semi join into an inner join that looks up the rows of left for each distinct row of right.
// It returns nil if that is impossible or not cheaper.
func (p *planner) distinctFirst(r *joinRel) *joinRel {
	if r.kind != SemiJoin || r.lateral || len(r.conds) == 0 {
		return nil
	}
	left, right := setOf(r.left.cols()), setOf(r.right.cols())
	agg := &aggregateRel{in: r.right}
	var conds []tree.Expr
	for _, c := range r.conds {
		l, rr, ok := equiSides(c, left, right)
		if !ok {
			return nil
		}
		col := p.newCol("", rr.Type())
		agg.groupBy = append(agg.groupBy, tree.Computed{Col: col, Expr: rr})
		conds = append(conds, call("$equal", l, &tree.Ref{Col: col}))
	}
	looked := push(r.left, conds)
	from := p.guess(agg)
	turned := from.cost + from.rows*p.guess(looked).cost
	outer, inner := p.guess(r.left), p.guess(push(r.right, r.conds))
	asIs := outer.cost + math.Min(outer.rows*inner.cost, hashCost(outer, p.guess(r.right), true))
	if turned >= asIs {
		return nil
	}
	return &joinRel{kind: InnerJoin, left: agg, right: looked, method: applyMethod}
}

// buildApply plans an apply join, which runs the right side for each row of the left side. The join's conditions are
// already part of the right side.
func (p *planner) buildApply(j *joinRel, req request) (built, error) {
	in := req.with(freeOf(j.right))
	in.group = nil
	left, err := p.build(j.left, in)
	if err != nil {
		return built{}, err
	}
	inner := request{need: req.need}
	if j.kind == SemiJoin || j.kind == AntiJoin {
		inner = request{need: colSet{}, limit: 1}
	}
	right, err := p.build(j.right, inner)
	if err != nil {
		return built{}, err
	}
	return p.apply(j.kind, left, right, false), nil
}

func (p *planner) buildHashJoin(j *joinRel, req request) (built, error) {
	in := req.with(refsOf(j.conds...))
	in.group, in.limit = nil, 0
	if j.kind == FullJoin {
		in.order = nil
	}
	left, err := p.build(j.left, in)
	if err != nil {
		return built{}, err
	}
	right, err := p.build(j.right, request{need: in.need})
	if err != nil {
		return built{}, err
	}
	n := &HashJoin{Kind: j.kind, Left: left.node, Right: right.node}
	out := built{node: n, at: joinSlots(j.kind, left, right), order: left.order, fixed: left.fixed}
	if j.kind == FullJoin {
		out.order, out.fixed = nil, nil
	}
	return out, p.hashKeys(n, j, left, right)
}

// hashKeys divides the conditions of a hash join. An equality between left and right becomes a key of the hash table:
// its two sides go to n.LeftKeys and n.RightKeys. n.Cond holds all other conditions.
func (p *planner) hashKeys(n *HashJoin, j *joinRel, left, right built) error {
	var rest []tree.Expr
	leftCols, rightCols := setOf(j.left.cols()), setOf(j.right.cols())
	for _, c := range j.conds {
		l, r, ok := equiSides(c, leftCols, rightCols)
		if !ok {
			rest = append(rest, c)
			continue
		}
		lk, err := p.scalar(l, left.at)
		if err != nil {
			return err
		}
		rk, err := p.scalar(r, right.at)
		if err != nil {
			return err
		}
		n.LeftKeys, n.RightKeys = append(n.LeftKeys, lk), append(n.RightKeys, rk)
	}
	var err error
	n.Cond, err = p.all(rest, joinSlots(InnerJoin, left, right))
	return err
}

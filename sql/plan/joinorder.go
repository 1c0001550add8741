package plan

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// Inner joins may be executed in any order, and the order decides about the cost. The planner chooses it in three steps:
//
//  1. gather makes one group of all inner joins that are nested in each other: the relations that they join (leaves), and all their conditions.
//     It stops at whatever may not change its place: outer joins, joins with a hint, and views that hide rows (barrier.go).
//  2. transfer derives conditions from equalities. From a.x = b.y and a.x = 5 follows b.y = 5. It adds that where b can find rows by y.
//  3. A greedy search begins with each leaf in turn, at most with maxStarts of them. It adds the leaf whose step costs least, until all are
//     joined. A step is a nested loop, which opens the leaf for each row that was joined before, with the conditions as seeks; or a hash join,
//     which reads the leaf once. The cheapest of the orders found wins.
//
// The search looks at no more than leaves * leaves steps for each start, where a search of all orders would look at factorially many. It may
// miss the best order of many relations. A leaf that refers to columns of other leaves (UNNEST of an array, a correlated subquery) comes behind
// these in every order.
//
// estimate.go guesses rows and costs, from keys and from the forms of conditions. There are no statistics yet.

// joinGroup is a set of relations under one inner join of them all.
type joinGroup struct {
	leaves []relation
	// needs[i] are the columns of other leaves that leaves[i] refers to, so that it must come after those leaves.
	needs []colSet
	conds []tree.Expr
}

// maxStarts bounds how many relations are tried as the first of a join order.
const maxStarts = 8

// orderJoins orders the relations of an inner join. It tries several first relations and always adds the relation that is cheapest next. Of
// equally cheap orders it takes the one whose first relation comes earlier in the text.
func (p *planner) orderJoins(r *joinRel) *joinRel {
	g := &joinGroup{}
	g.gather(r)
	g.transfer()
	all := colSet{}
	for _, l := range g.leaves {
		all.addAll(setOf(l.cols()))
	}
	for _, l := range g.leaves {
		needs := colSet{}
		for id := range freeOf(l) {
			if all[id] {
				needs[id] = true
			}
		}
		g.needs = append(g.needs, needs)
	}
	var best *joinRel
	var bestCost float64
	for first := range g.leaves {
		if len(g.needs[first]) > 0 || first >= maxStarts && best != nil {
			continue
		}
		if j, cost := p.orderFrom(g, first); best == nil || cost < bestCost {
			best, bestCost = j, cost
		}
	}
	return best
}

// gather collects the relations and conditions of nested inner joins.
func (g *joinGroup) gather(r relation) {
	j, ok := r.(*joinRel)
	if !ok || j.kind != InnerJoin || j.method != anyMethod {
		g.leaves = append(g.leaves, r)
		return
	}
	if h, err := joinHints(j.hints, nil); err != nil || h.given() {
		g.leaves = append(g.leaves, r)
		return
	}
	g.gather(j.left)
	g.gather(j.right)
	g.conds = append(g.conds, j.conds...)
}

// orderFrom joins all leaves by a greedy search that begins with leaf first. It returns the join and its cost.
func (p *planner) orderFrom(g *joinGroup, first int) (*joinRel, float64) {
	s := joinState{
		joined: map[int]bool{first: true},
		tree:   g.leaves[first],
		cols:   setOf(g.leaves[first].cols()),
		used:   make([]bool, len(g.conds)),
	}
	est := p.guess(g.leaves[first])
	s.rows, s.cost = est.rows, est.cost
	for len(s.joined) < len(g.leaves) {
		var best *joinStep
		for i := range g.leaves {
			if s.joined[i] || !g.needs[i].within(s.cols) {
				continue
			}
			if step := p.step(g, &s, i); best == nil || step.cost < best.cost {
				best = step
			}
		}
		s.addStep(g, best)
	}
	return s.tree.(*joinRel), s.cost
}

// joinState is a join order that is not yet complete.
type joinState struct {
	joined     map[int]bool
	tree       relation
	cols       colSet
	used       []bool // which of the group's conditions are used
	rows, cost float64
}

// joinStep is one step of a join order: it joins one more relation.
type joinStep struct {
	leaf       int
	conds      []tree.Expr
	from       []int // places of conds in the group
	method     joinMethod
	rows, cost float64
}

// step joins leaf i to the leaves that are joined already, by the cheaper method.
func (p *planner) step(g *joinGroup, s *joinState, i int) *joinStep {
	leaf := g.leaves[i]
	own := setOf(leaf.cols())
	all := colSet{}
	all.addAll(s.cols).addAll(own)
	step := &joinStep{leaf: i}
	foreign := colSet{} // columns of leaves not yet joined
	for j, l := range g.leaves {
		if j != i && !s.joined[j] {
			foreign.addAll(setOf(l.cols()))
		}
	}
	for j, c := range g.conds {
		if !s.used[j] && !refsOf(c).intersects(foreign) {
			step.conds = append(step.conds, c)
			step.from = append(step.from, j)
		}
	}
	pushed := push(leaf, step.conds)
	inner := p.guess(pushed)
	step.method = applyMethod
	step.cost = s.rows * inner.cost
	step.rows = s.rows * inner.rows
	if len(g.needs[i]) > 0 || p.options.Batch && p.seeks(pushed) {
		return step
	}
	j := &joinRel{kind: InnerJoin, left: s.tree, right: leaf, conds: step.conds}
	if cost := hashCost(estimate{s.rows, 0}, p.guess(leaf), j.hashable()); cost < step.cost || j.hashable() && remakes(pushed) {
		step.method, step.cost = hashMethod, cost
	}
	return step
}

func (s *joinState) addStep(g *joinGroup, step *joinStep) {
	leaf := g.leaves[step.leaf]
	j := &joinRel{kind: InnerJoin, left: s.tree, right: leaf, conds: step.conds, method: step.method}
	if step.method == applyMethod {
		j.right, j.conds = push(leaf, step.conds), nil
		j.lateral = true
	}
	for _, i := range step.from {
		s.used[i] = true
	}
	s.tree = j
	s.joined[step.leaf] = true
	s.cols.addAll(setOf(leaf.cols()))
	s.rows = max(step.rows, 1)
	s.cost += step.cost
}

// transfer copies conditions from one relation of an inner join to others: if a.x = b.y, a condition on a.x also holds for b.y. It copies a
// condition only if b can seek by y.
func (g *joinGroup) transfer() {
	equals := g.equalColumns()
	if len(equals) == 0 {
		return
	}
	extra := make([][]tree.Expr, len(g.leaves))
	for _, from := range g.leaves {
		s, ok := from.(*scanRel)
		if !ok {
			continue
		}
		for _, sg := range s.analyze(s.conds).sargs {
			col := s.out[s.place(sg.column)]
			if !transferable(s.conds[sg.cond], col) {
				continue
			}
			for _, other := range equals[col.ID] {
				if i := g.seekableLeaf(other); i >= 0 {
					extra[i] = append(extra[i], replace(s.conds[sg.cond], map[int]tree.Expr{col.ID: &tree.Ref{Col: other}}))
				}
			}
		}
	}
	for i, conds := range extra {
		if len(conds) > 0 {
			g.leaves[i] = push(g.leaves[i], conds)
		}
	}
}

// equalColumns returns, for each column, the columns that the join's conditions make equal to it.
func (g *joinGroup) equalColumns() map[int][]tree.Col {
	equals := map[int][]tree.Col{}
	for _, c := range g.conds {
		eq, ok := isCall(c, "$equal")
		if !ok {
			continue
		}
		a, ok := eq.Args[0].(*tree.Ref)
		b, also := eq.Args[1].(*tree.Ref)
		if ok && also && a.Col.Type.Kind == b.Col.Type.Kind {
			equals[a.Col.ID] = append(equals[a.Col.ID], b.Col)
			equals[b.Col.ID] = append(equals[b.Col.ID], a.Col)
		}
	}
	return equals
}

// transferable reports whether a condition compares only this column with values that are known without any row. It is false for equality:
// an equality leaves so few rows that the join looks up the other relations by them.
func transferable(cond tree.Expr, col tree.Col) bool {
	c, ok := cond.(*tree.Call)
	if !ok || hasSubquery(cond) {
		return false
	}
	if compares, ok := comparisons[c.Func.Name]; (!ok || compares.op == sargEqual) && c.Func.Name != "$in" && c.Func.Name != "$in_array" {
		return false
	}
	refs := refsOf(cond)
	return len(refs) == 1 && refs[col.ID]
}

// seekableLeaf returns the place of the relation in which col is the first part of the key or of an index, if no condition bounds col yet.
// It returns -1 if there is none.
func (g *joinGroup) seekableLeaf(col tree.Col) int {
	for i, leaf := range g.leaves {
		s, ok := leaf.(*scanRel)
		if !ok || s.table.Rows != nil {
			continue
		}
		isFirst := func(c *schema.Column) bool {
			return len(s.table.Key) > 0 && s.table.Key[0].Column == c ||
				slices.ContainsFunc(s.table.Indexes, func(x *schema.Index) bool { return x.Key[0].Column == c })
		}
		for j, out := range s.out {
			if out.ID == col.ID && isFirst(s.columns[j]) {
				if rejected(s.conds, col.ID) {
					return -1
				}
				return i
			}
		}
	}
	return -1
}

package plan

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// Inner joins can be executed in any order, and the order decides how much the join costs. The planner chooses the
// order in three steps:
//
//  1. gather makes one group of inner joins that are nested in each other: the relations that they join (leaves),
//     and all their conditions. It does not look into relations that must stay where they are: outer joins, joins
//     with a hint, and views that hide rows (barrier.go).
//  2. transfer derives conditions from equalities. For example, a.x = b.y and a.x > 5 imply b.y > 5. transfer adds
//     such a condition if y begins the primary key or an index of b, so that a read of b can seek by y.
//  3. A greedy search begins with each leaf in turn, at most with maxStarts of them. It adds the leaf whose step
//     costs least, until all are joined. A step is either a nested loop, which opens the leaf for each row that was
//     joined before, with the conditions as seeks; or a hash join, which reads the leaf once. The planner takes the
//     cheapest order that it has found.
//
// With n leaves, the search looks at no more than n * n steps for each start, while there are n! orders. So it can miss
// the best order of many relations. A leaf that refers to columns of other leaves (UNNEST of an array, a correlated
// subquery) comes after these leaves in every order.
//
// estimate.go guesses the numbers of rows and the costs from keys and from the forms of conditions, because there
// are no statistics.

// joinGroup is a set of relations that are all joined by inner joins.
type joinGroup struct {
	leaves []relation
	// needs[i] are the columns of other leaves to which leaves[i] refers, so leaves[i] must come after those
	// leaves.
	needs []colSet
	conds []tree.Expr
}

// maxStarts is the greatest number of relations that are tried as the first of a join order.
const maxStarts = 8

// orderJoins chooses the order of the relations of an inner join. It builds one order for each of several first
// relations, and takes the cheapest order. Of equally cheap orders it takes the one whose first relation comes
// first in the statement.
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

// gather adds the relations and conditions of nested inner joins to the group.
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

// orderFrom joins all leaves by a greedy search. The search begins with the leaf whose index is first. orderFrom
// returns the join and its cost.
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
	used       []bool // which of the group's conditions the order has used
	rows, cost float64
}

// joinStep is one step of a join order: it joins one more relation.
type joinStep struct {
	leaf       int
	conds      []tree.Expr
	from       []int // for each of conds, its index in joinGroup.conds
	method     joinMethod
	rows, cost float64
}

// step plans how to join leaf i to the leaves that are joined already. It chooses the cheaper method.
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

// transfer copies conditions between relations of an inner join. If the join has the condition a.x = b.y, a condition
// on a.x also holds for b.y. transfer copies it to the relation b only if b can seek by y.
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

// equalColumns returns, for each column, the columns that must equal it because of the join's conditions. The keys
// are Col.IDs.
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

// transferable reports whether a condition compares only column col, and only with values that are known before any
// row is read. It is false for an equality, which need not be copied: an equality leaves so few rows that the join
// looks up the other relations by the values in these rows.
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

// seekableLeaf returns the index of the leaf in which col is the first part of the primary key or of an index. It
// returns -1 if there is no such leaf. It also returns -1 if the leaf has a condition that is never TRUE if col is
// NULL. Such a condition is mostly a comparison with col. It already bounds col, so the method transfer need not add
// another condition.
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

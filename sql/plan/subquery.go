package plan

import (
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// filter drops the rows of a relation (in) for which not all of conds are TRUE, and returns the new relation. EXISTS
// and IN subqueries among conds become semi and anti joins. All other conditions move down as far as they can.
func (p *planner) filter(in relation, conds []tree.Expr) (relation, error) {
	var plain []tree.Expr
	for _, c := range conds {
		if isTrue(c) {
			continue
		}
		if isNever(c) {
			return &emptyRel{out: in.cols()}, nil
		}
		joined, ok, err := p.semiJoin(in, c)
		if err != nil {
			return nil, err
		}
		if ok {
			in = joined
			continue
		}
		plain = append(plain, c)
	}
	return push(in, plain), nil
}

// semiJoin turns a condition on the rows of a relation (in) into a semi or anti join. The condition can be EXISTS, IN,
// or the negation of one of these. ok is false if it cannot be turned into a join.
func (p *planner) semiJoin(in relation, cond tree.Expr) (joined relation, ok bool, err error) {
	kind := SemiJoin
	if not, is := isCall(cond, "$not"); is {
		kind, cond = AntiJoin, not.Args[0]
	}
	q, is := cond.(*tree.Subquery)
	if !is || q.Kind != tree.ExistsSubquery && q.Kind != tree.InSubquery {
		return nil, false, nil
	}
	if q.Kind == tree.InSubquery && (hasSubquery(q.In) || volatile(q.In)) {
		return nil, false, nil
	}
	right, err := p.lower(q.Scan)
	if err != nil {
		return nil, false, err
	}
	if q.Kind == tree.InSubquery && kind == AntiJoin && (hasParts(q.Out.Type) || !(notNull(in, q.In) && notNull(right, &tree.Ref{Col: q.Out}))) {
		p.lowered[q] = right
		return nil, false, nil // NOT IN gives NULL if it compares a NULL; no join can express that
	}
	if q.Kind == tree.ExistsSubquery {
		right = unlimited(right)
	}
	outer := setOf(in.cols())
	right, conds := decorrelate(right, outer, q.Kind == tree.ExistsSubquery)
	if q.Kind == tree.InSubquery {
		conds = append(conds, split(call("$equal", q.In, &tree.Ref{Col: q.Out}), nil)...)
	}
	j := &joinRel{kind: kind, left: in, right: right, conds: conds, hints: q.Hints}
	j.lateral = freeOf(right).intersects(outer)
	return pushIntoJoin(j, nil), true, nil
}

// decorrelate makes a subquery independent of the enclosing row where it can: it removes the conditions that use
// columns of the enclosing row, which are in the set outer. It returns the subquery without these conditions, and a
// list of them. The parameter exists is true for a subquery in EXISTS, where the order of the rows does not matter.
func decorrelate(r relation, outer colSet, exists bool) (relation, []tree.Expr) {
	switch r := r.(type) {
	case *filterRel:
		in, conds := decorrelate(r.in, outer, exists)
		correlated, keep := correlatedOf(r.conds, outer)
		return filterBy(in, keep), append(conds, correlated...)
	case *barrierRel:
		in, conds := decorrelate(r.in, outer, exists)
		correlated, keep := correlatedOf(r.conds, outer)
		return &barrierRel{in: in, conds: keep}, append(conds, correlated...)
	case *scanRel:
		s := *r
		var conds []tree.Expr
		conds, s.conds = correlatedOf(r.conds, outer)
		return &s, conds
	case *unnestRel:
		if r.outer {
			break
		}
		u := *r
		in, conds := decorrelate(r.in, outer, exists)
		correlated, keep := correlatedOf(r.conds, outer)
		u.in, u.conds = in, keep
		return &u, append(conds, correlated...)
	case *computeRel:
		in, conds := decorrelate(r.in, outer, exists)
		return &computeRel{in: in, exprs: r.exprs}, conds
	case *joinRel:
		if r.kind != InnerJoin || r.method != anyMethod {
			break
		}
		left, conds := decorrelate(r.left, outer, exists)
		right, more := decorrelate(r.right, outer, exists)
		j := *r
		j.left, j.right = left, right
		return &j, append(conds, more...)
	case *sortRel:
		if exists {
			return decorrelate(r.in, outer, exists)
		}
	}
	return r, nil
}

// unlimited removes sorts and a LIMIT from the end of a subquery in EXISTS, because EXISTS needs only one row. It
// keeps a LIMIT below a condition or a join, because that LIMIT decides which rows the condition or join sees.
func unlimited(r relation) relation {
	switch r := r.(type) {
	case *computeRel:
		return &computeRel{in: unlimited(r.in), exprs: r.exprs}
	case *sortRel:
		return unlimited(r.in)
	case *limitRel:
		if n, ok := r.count.(*tree.Literal); ok && r.offset == nil && !n.Value.IsNull() && n.Value.AsInt64() > 0 {
			return unlimited(r.in)
		}
	}
	return r
}

// correlatedOf divides the conditions of a subquery into two lists. The first list has the conditions that use columns
// of the enclosing row (the set outer) and can move out of the subquery. The second list has all other conditions.
func correlatedOf(conds []tree.Expr, outer colSet) (correlated, keep []tree.Expr) {
	for _, c := range conds {
		if refsOf(c).intersects(outer) && !hasSubquery(c) {
			correlated = append(correlated, c)
		} else {
			keep = append(keep, c)
		}
	}
	return correlated, keep
}

func filterBy(in relation, conds []tree.Expr) relation {
	if len(conds) == 0 {
		return in
	}
	return &filterRel{in: in, conds: conds}
}

func hasParts(t *value.Type) bool { return t.Kind == value.Array || t.Kind == value.Struct }

// notNull reports whether e is certainly not NULL in any row of r.
func notNull(r relation, e tree.Expr) bool {
	switch e := e.(type) {
	case *tree.Literal:
		return !e.Value.IsNull()
	case *tree.Ref:
		return notNullCol(r, e.Col.ID)
	}
	return false
}

func notNullCol(r relation, id int) bool {
	switch r := r.(type) {
	case *scanRel:
		for i, c := range r.out {
			if c.ID == id {
				return r.columns[i].NotNull || rejected(r.conds, id)
			}
		}
	case *filterRel:
		return notNullCol(r.in, id) || rejected(r.conds, id)
	case *barrierRel:
		return notNullCol(r.in, id) || rejected(r.conds, id)
	case *computeRel:
		for _, x := range r.exprs {
			if x.Col.ID == id {
				return notNull(r.in, x.Expr)
			}
		}
		return notNullCol(r.in, id)
	case *joinRel:
		if r.kind == FullJoin {
			return false
		}
		return notNullCol(r.left, id) || r.kind == InnerJoin && notNullCol(r.right, id)
	case *sortRel:
		return notNullCol(r.in, id)
	case *limitRel:
		return notNullCol(r.in, id)
	}
	return false
}

// rejected reports whether one of the conditions is never TRUE if the column with this ID is NULL.
func rejected(conds []tree.Expr, id int) bool {
	for _, c := range conds {
		if rejectsNull(c)[id] {
			return true
		}
	}
	return false
}

package plan

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// push filters the rows of r by conds. It moves each condition down as far as possible. The conditions may refer to
// columns of enclosing queries. A volatile condition stays above the relation, unless that is a scan: HAVING
// GENERATE_UUID() < '8' keeps half of the groups, and below the grouping it would keep half of the rows.
func push(r relation, conds []tree.Expr) relation {
	if len(conds) == 0 {
		return r
	}
	switch r := r.(type) {
	case *scanRel:
		s := *r
		s.conds = concat(r.conds, conds)
		return &s
	case *filterRel:
		return push(r.in, concat(r.conds, conds))
	case *emptyRel:
		return r
	}
	if slices.ContainsFunc(conds, volatile) {
		down := slices.DeleteFunc(slices.Clone(conds), volatile)
		stay := slices.DeleteFunc(slices.Clone(conds), func(c tree.Expr) bool { return !volatile(c) })
		return filterBy(push(r, down), stay)
	}
	switch r := r.(type) {
	case *computeRel:
		return pushIntoCompute(r, conds)
	case *joinRel:
		return pushIntoJoin(r, conds)
	case *unnestRel:
		down, stay := divide(conds, setOf(r.elems), r.offset)
		u := *r
		u.in = push(r.in, down)
		if u.outer {
			return filterBy(&u, stay)
		}
		u.conds = concat(u.conds, stay)
		return &u
	case *aggregateRel:
		return pushIntoAggregate(r, conds)
	case *sortRel:
		return &sortRel{in: push(r.in, conds), keys: r.keys}
	case *unionRel:
		return pushIntoUnion(r, conds)
	case *withRel:
		return &withRel{defs: r.defs, body: push(r.body, conds)}
	case *barrierRel:
		return pushIntoBarrier(r, conds)
	}
	return &filterRel{in: r, conds: conds}
}

// divide divides conditions into two lists. The second list has the conditions that use the column offset or a column
// of the set made. The first list has all others, which can move down. offset can be nil. divide adds offset to made.
func divide(conds []tree.Expr, made colSet, offset *tree.Col) (down, stay []tree.Expr) {
	if offset != nil {
		made[offset.ID] = true
	}
	for _, c := range conds {
		if refsOf(c).intersects(made) {
			stay = append(stay, c)
		} else {
			down = append(down, c)
		}
	}
	return down, stay
}

// pushIntoCompute moves conditions below computed columns. For that it replaces a computed column in a condition by
// the column's expression. If a condition uses a column whose expression is costly, the condition stays above.
func pushIntoCompute(r *computeRel, conds []tree.Expr) relation {
	made := map[int]tree.Expr{}
	costly := colSet{}
	for _, x := range r.exprs {
		made[x.Col.ID] = x.Expr
		if !movable(x.Expr) {
			costly[x.Col.ID] = true
		}
	}
	var down, stay []tree.Expr
	for _, c := range conds {
		refs := refsOf(c)
		switch {
		case refs.intersects(costly):
			stay = append(stay, c)
		case !touches(refs, made):
			down = append(down, c)
		case hasSubquery(c):
			stay = append(stay, c)
		default:
			down = split(replace(c, made), down)
		}
	}
	return filterBy(&computeRel{in: push(r.in, down), exprs: r.exprs}, stay)
}

func touches(refs colSet, made map[int]tree.Expr) bool {
	for id := range refs {
		if _, ok := made[id]; ok {
			return true
		}
	}
	return false
}

// movable reports whether an expression may be computed elsewhere and more than once, because that costs almost
// nothing. That is so for a column, a constant, a parameter, and a field of one of these.
func movable(e tree.Expr) bool {
	switch e := e.(type) {
	case *tree.Ref, *tree.Literal, *tree.Param:
		return true
	case *tree.GetField:
		return movable(e.Arg)
	}
	return false
}

// pushIntoJoin moves conditions into the sides of a join where possible. These are the join's own conditions, and
// conds, which filter the rows that the join returns.
func pushIntoJoin(r *joinRel, conds []tree.Expr) relation {
	if r.method != anyMethod {
		return filterBy(r, conds)
	}
	j := *r
	simplifyOuter(&j, conds)
	left, right := setOf(j.left.cols()), setOf(j.right.cols())
	var toLeft, toRight, above []tree.Expr
	for _, c := range conds {
		refs := refsOf(c)
		switch {
		case !refs.intersects(right) && j.kind != FullJoin:
			toLeft = append(toLeft, c)
		case !refs.intersects(left) && j.kind == InnerJoin:
			toRight = append(toRight, c)
		case j.kind == InnerJoin:
			j.conds = append(j.conds[:len(j.conds):len(j.conds)], c)
		default:
			above = append(above, c)
		}
	}
	var own []tree.Expr
	for _, c := range j.conds {
		refs := refsOf(c)
		switch {
		case volatile(c) && j.kind == InnerJoin: // the join may become one of many, whose order is not known yet
			above = append(above, c)
		case volatile(c):
			own = append(own, c)
		case !refs.intersects(left) && j.kind != FullJoin:
			toRight = append(toRight, c)
		case !refs.intersects(right) && (j.kind == InnerJoin || j.kind == SemiJoin):
			toLeft = append(toLeft, c)
		default:
			own = append(own, c)
		}
	}
	j.conds = own
	j.left, j.right = push(j.left, toLeft), push(j.right, toRight)
	return filterBy(&j, above)
}

// simplifyOuter turns an outer join into an inner join, or a full join into a left join, if conds drop all rows
// that the simpler join does not return.
func simplifyOuter(j *joinRel, conds []tree.Expr) {
	if j.kind != LeftJoin && j.kind != FullJoin {
		return
	}
	left, right := setOf(j.left.cols()), setOf(j.right.cols())
	var noNullLeft, noNullRight bool
	for _, c := range conds {
		for id := range rejectsNull(c) {
			noNullLeft = noNullLeft || left[id]
			noNullRight = noNullRight || right[id]
		}
	}
	switch {
	case j.kind == LeftJoin && noNullRight, noNullLeft && noNullRight:
		j.kind = InnerJoin
	case j.kind == FullJoin && noNullLeft:
		j.kind = LeftJoin
	case j.kind == FullJoin && noNullRight:
		j.kind, j.left, j.right = LeftJoin, j.right, j.left
	}
}

// nullRejecting lists functions whose result is never TRUE if an argument is NULL.
var nullRejecting = map[string]bool{
	"$equal": true, "$not_equal": true, "$less": true, "$less_or_equal": true, "$greater": true, "$greater_or_equal": true,
	"$between": true, "$like": true, "starts_with": true, "ends_with": true,
}

// rejectsNull returns columns that are not NULL in any row for which cond is TRUE.
func rejectsNull(cond tree.Expr) colSet {
	s := colSet{}
	c, ok := cond.(*tree.Call)
	if !ok {
		if r, ok := cond.(*tree.Ref); ok {
			s[r.Col.ID] = true
		}
		return s
	}
	switch name := c.Func.Name; {
	case c.Func.Safe:
	case nullRejecting[name]:
		for _, a := range c.Args {
			if r, ok := a.(*tree.Ref); ok {
				s[r.Col.ID] = true
			}
		}
	case name == "$in" || name == "$in_array":
		if r, ok := c.Args[0].(*tree.Ref); ok {
			s[r.Col.ID] = true
		}
	case name == "$and":
		for _, a := range c.Args {
			s.addAll(rejectsNull(a))
		}
	case name == "$or":
		for i, a := range c.Args {
			if i == 0 {
				s.addAll(rejectsNull(a))
				continue
			}
			also := rejectsNull(a)
			for id := range s {
				if !also[id] {
					delete(s, id)
				}
			}
		}
	case name == "$not":
		if r := isNullOf(c.Args[0]); r != nil {
			s[r.Col.ID] = true
		}
	}
	return s
}

// isNullOf returns the column of a condition "column IS NULL". It returns nil if e is any other expression.
func isNullOf(e tree.Expr) *tree.Ref {
	if c, ok := isCall(e, "$is_null"); ok {
		if r, ok := c.Args[0].(*tree.Ref); ok {
			return r
		}
	}
	return nil
}

// pushIntoAggregate moves conditions on group keys below the grouping. All other conditions stay above it.
func pushIntoAggregate(r *aggregateRel, conds []tree.Expr) relation {
	if len(r.groupBy) == 0 || r.sets != nil {
		return filterBy(r, conds)
	}
	keys := map[int]tree.Expr{}
	own := colSet{}
	for _, c := range r.cols() {
		own[c.ID] = true
	}
	for _, g := range r.groupBy {
		if movable(g.Expr) {
			keys[g.Col.ID] = g.Expr
			delete(own, g.Col.ID)
		}
	}
	var down, stay []tree.Expr
	for _, c := range conds {
		refs := refsOf(c)
		switch {
		case refs.intersects(own), hasSubquery(c) && touches(refs, keys), tellsEqualApart(c, keys):
			stay = append(stay, c)
		case hasSubquery(c):
			down = split(c, down)
		default:
			down = split(replace(c, keys), down)
		}
	}
	a := *r
	a.in = push(r.in, down)
	return filterBy(&a, stay)
}

// tellsEqualApart reports whether a condition can have different results for keys that are equal: 1 / f > 0 has
// different results for 0 and -0. Such a condition must stay above the grouping, because a group shows only one of
// the equal keys but counts the rows of all of them. Comparisons and IS NULL have the same result for equal keys.
func tellsEqualApart(cond tree.Expr, keys map[int]tree.Expr) bool {
	refs, compared := 0, 0
	isKey := func(e tree.Expr) bool {
		r, ok := e.(*tree.Ref)
		return ok && keys[r.Col.ID] != nil && blurs(r.Col.Type)
	}
	tree.Walk(cond, func(e tree.Expr) {
		if isKey(e) {
			refs++
		}
		if c, ok := e.(*tree.Call); ok && comparing[c.Func.Name] {
			for _, a := range c.Args {
				if isKey(a) {
					compared++
				}
			}
		}
	})
	return refs > compared
}

// comparing lists functions whose results do not tell equal arguments apart, not even such as 0 and -0.
var comparing = map[string]bool{
	"$equal": true, "$not_equal": true, "$less": true, "$less_or_equal": true, "$greater": true, "$greater_or_equal": true,
	"$between": true, "$in": true, "$in_array": true, "$is_null": true,
}

// blurs reports whether values of a type can be equal and yet different, such as 0 and -0, two NaNs, or the
// intervals of one month and of 30 days.
func blurs(t *value.Type) bool {
	switch t.Kind {
	case value.Float64, value.Float32, value.Interval:
		return true
	case value.Array:
		return blurs(t.Elem)
	case value.Struct:
		return slices.ContainsFunc(t.Fields, func(f value.Field) bool { return blurs(f.Type) })
	}
	return false
}

// pushIntoUnion filters each input of the union by conds. If one of conds has a subquery, pushIntoUnion filters the
// result of the union instead.
func pushIntoUnion(r *unionRel, conds []tree.Expr) relation {
	for _, c := range conds {
		if hasSubquery(c) {
			return &filterRel{in: r, conds: conds}
		}
	}
	u := &unionRel{columns: r.columns, out: r.out}
	for i, in := range r.inputs {
		names := map[int]tree.Expr{}
		for j, c := range r.out {
			names[c.ID] = &tree.Ref{Col: r.columns[i][j]}
		}
		var down []tree.Expr
		for _, c := range conds {
			down = append(down, replace(c, names))
		}
		u.inputs = append(u.inputs, push(in, down))
	}
	return u
}

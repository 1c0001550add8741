package plan

import (
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/fn/conversion"
	"github.com/crowfoot-db/crowfoot/sql/fn/library"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// A view with SQL SECURITY DEFINER can show a role some rows of a table that the role itself may not read. The
// expressions of the role's query must not be computed for rows that the view hides: CAST(B AS INT64) > 0 could
// fail for such a row, and the error would tell the value of B, or at least that the row exists. So such a view is
// a barrier in the relations of a statement. The rule for every rewrite is that of PostgreSQL's security barriers:
//
//	An expression crosses a barrier downward only if it is leakproof. Every other expression above a barrier stays above
//	all filters, joins and groupings below the barrier.
//
// A leakproof expression cannot fail and changes nothing, so nobody can observe that it was computed for a row.
// Whether it is leakproof depends only on its functions (fn.Scalar.Leakproof). An unknown function is not
// leakproof, and neither is a subquery. Expressions in the view's own SQL need no rule to stay below the barrier,
// because the statement outside cannot refer to the view's tables. Below the barrier they move freely, as in any
// query. A view that reads this view counts as a caller, whoever defined it, so barriers nest.
//
// The comparisons that bound keys are leakproof. But the value with which a column is compared can be an expression
// that is not leakproof, as in K = CAST(@k AS INT64). If the value is the same for all rows, the plan computes it
// before it reads the view, and the comparison with the computed value crosses the barrier (see the method once).
//
// A plan is made for the text of a statement, whoever runs it: a statement without a role gets the same plan. There
// is no barrier for SQL SECURITY INVOKER, because the reader of such a view may read its tables. A view that hides no
// rows has no barrier either.
//
// The view's own conditions have no order among themselves, since AND promises none: a condition on columns of an
// index is tested before the other columns of the row are read. So a condition of the view may fail for a row that
// another of its conditions hides. It then fails for everyone who reads the view. The author of the view can
// prevent this with IF(Who = 'me', CAST(B AS INT64) > 0, FALSE), because IF promises an order.
//
// A barrier hides neither how long a statement takes, nor how many rows its operators have read, which profiles and
// statistics show.

// barrierRel is a view with a barrier. The field in is the relation of the view. The rows of a barrierRel are those
// rows of the view for which all of conds are TRUE. These conditions are not leakproof, so the plan tests them only for
// rows that the view returns.
type barrierRel struct {
	in    relation
	conds []tree.Expr
}

func (r *barrierRel) cols() []tree.Col      { return r.in.cols() }
func (r *barrierRel) relations() []relation { return []relation{r.in} }
func (r *barrierRel) scalars() []tree.Expr  { return r.conds }

// lowerView returns the relation of a view, with a barrier if the view needs one.
func (p *planner) lowerView(s *tree.ViewScan) (relation, error) {
	in, err := p.lower(s.Input)
	if err != nil || !s.View.Definer || givesAllRows(in) {
		return in, err
	}
	return &barrierRel{in: in}, nil
}

// givesAllRows reports whether a relation has every row of the tables that it reads.
func givesAllRows(r relation) bool {
	switch r := r.(type) {
	case *scanRel:
		return len(r.conds) == 0
	case *computeRel:
		return givesAllRows(r.in)
	case *unionRel:
		return !slices.ContainsFunc(r.inputs, func(in relation) bool { return !givesAllRows(in) })
	}
	return false
}

// pushIntoBarrier moves the leakproof conditions of conds below the barrier. The other conditions stay above it.
func pushIntoBarrier(r *barrierRel, conds []tree.Expr) relation {
	b := &barrierRel{conds: r.conds}
	var down []tree.Expr
	for _, c := range conds {
		if leakproof(c) {
			down = append(down, c)
		} else {
			b.conds = append(b.conds[:len(b.conds):len(b.conds)], c)
		}
	}
	b.in = push(r.in, down)
	return b
}

// leakproof reports whether an expression may be computed for rows that a view hides from its reader.
func leakproof(e tree.Expr) bool {
	if !leakproofAlone(e) {
		return false
	}
	return !slices.ContainsFunc(e.Operands(), func(sub tree.Expr) bool { return !leakproof(sub) })
}

// leakproofAlone reports whether an expression is leakproof if all its operands are leakproof.
func leakproofAlone(e tree.Expr) bool {
	switch e := e.(type) {
	case *tree.Literal, *tree.Param, *tree.Ref, *tree.Lambda, *tree.MakeStruct, *tree.GetField, *tree.GetJSONField, *tree.Let:
		return true
	case *tree.Cast:
		f, err := conversion.Cast(e.Arg.Type(), e.T, e.Safe)
		return err == nil && f.Leakproof && e.Format == nil && e.Zone == nil
	case *tree.Call:
		if like, ok := isCall(e, "$like"); ok {
			return isPattern(like.Args[1])
		}
		f, err := library.Lookup(e.Func)
		return err == nil && f.Leakproof
	}
	return false
}

// isPattern reports whether e is a constant that LIKE accepts as a pattern. LIKE rejects a pattern that ends in a
// backslash that escapes nothing.
func isPattern(e tree.Expr) bool {
	l, ok := e.(*tree.Literal)
	if !ok || l.Value.IsNull() {
		return ok
	}
	text := l.Value.AsString()
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 0
}

// once moves conditions that are not leakproof below a barrier where it can. If an operand of a condition is not
// leakproof but does not depend on the barrier's rows, once replaces the operand by a column, so that the condition can
// cross. The result first lists these columns. The plan computes them before it reads the view, so an error in them
// tells nothing about the view's rows. The result in is the barrier's relation with the conditions that crossed. The
// result rest lists the conditions that stay above that relation.
func (p *planner) once(r *barrierRel) (first []tree.Computed, in relation, rest []tree.Expr) {
	if p.options.Batch { // a partitioned plan must begin with a scan, not with the row of computed columns
		return nil, r.in, r.conds
	}
	own := setOf(r.in.cols())
	var down []tree.Expr
	for _, c := range r.conds {
		made, crosses := p.takeOut(c, own)
		if crosses == nil {
			rest = append(rest, c)
			continue
		}
		first, down = append(first, made...), append(down, crosses)
	}
	return first, push(r.in, down), rest
}

// takeOut replaces the operands of a comparison that are not leakproof by columns. The result made lists these columns
// and the expressions that compute them. The result crosses is the comparison with the columns as operands; it is nil
// if the comparison would still not be leakproof. The parameter own has the columns of the barrier: an operand that
// uses one of them is not replaced.
func (p *planner) takeOut(cond tree.Expr, own colSet) (made []tree.Computed, crosses tree.Expr) {
	c, ok := cond.(*tree.Call)
	if !ok || c.Func.Safe || !nullRejecting[c.Func.Name] && c.Func.Name != "$in" && c.Func.Name != "$in_array" {
		return nil, nil
	}
	args := slices.Clone(c.Args)
	for i, a := range args {
		if !leakproof(a) && !refsOf(a).intersects(own) && !volatile(a) {
			col := p.newCol("", a.Type())
			made = append(made, tree.Computed{Col: col, Expr: a})
			args[i] = &tree.Ref{Col: col}
		}
	}
	if _, ok := isCall(cond, "$like"); ok && leakproof(args[0]) && leakproof(args[1]) && !refsOf(args[1]).intersects(own) {
		empty := &tree.Literal{T: args[0].Type(), Value: value.OfString("")}
		if empty.T.Kind == value.Bytes {
			empty.Value = value.OfBytes(nil)
		}
		// This call fails if the pattern is invalid. It is computed before the view is read, so the condition
		// itself cannot fail for a row.
		made = append(made, tree.Computed{Col: p.newCol("", c.Type()), Expr: &tree.Call{Func: c.Func, Args: []tree.Expr{empty, args[1]}}})
		return made, &tree.Call{Func: c.Func, Args: args}
	}
	crosses = &tree.Call{Func: c.Func, Args: args}
	if !leakproof(crosses) {
		return nil, nil
	}
	return made, crosses
}

// buildBarrier plans a filter over the rows of the view. If there are operands that are computed only once, they
// form one row, which is the left side of an apply join with the view.
func (p *planner) buildBarrier(r *barrierRel, req request) (built, error) {
	first, in, rest := p.once(r)
	view, err := p.build(filterBy(in, rest), req)
	if err != nil || len(first) == 0 {
		return view, err
	}
	values, err := p.build(&computeRel{in: &unitRel{}, exprs: first}, request{need: setOf(appendComputed(nil, first))})
	if err != nil {
		return built{}, err
	}
	b := p.apply(InnerJoin, values, view, false)
	b.distinct = view.distinct
	moved := map[int]int{}
	for slot := range view.node.Width() {
		moved[slot] = values.node.Width() + slot
	}
	b.order, b.fixed = moveOrder(view, moved)
	b.from, b.same = moveOrigins(view, moved)
	return b, nil
}

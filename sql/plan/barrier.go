package plan

import (
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// A view with SQL SECURITY DEFINER may show a role some rows of tables of which it may read nothing else. What the role asks of the view must not be
// computed for the rows that the view leaves out: CAST(B AS INT64) > 0 would fail for one of them, and the error would tell its B, or at least that it is
// there. So such a view is a barrier in the relations of a statement, and the rule for every rewrite is that of PostgreSQL's security barriers:
//
//	An expression crosses a barrier downward only if it is leakproof. Whatever else stands above a barrier stays above all filters, joins and
//	groupings that stand below it.
//
// A leakproof expression is one that cannot fail and changes nothing, so that nothing but its value shows that it was computed. Whether it is follows from
// its functions (fn.Scalar.Leakproof) and from nothing else: one of which that is not known is not leakproof, and neither is a subquery. Nothing
// within a view's text is moved out, but that is so without a rule: nobody refers to its tables. The expressions of the view itself may stand anywhere
// below its barrier, as those of any query. A view above it is in the place of the caller, whoever defined it, so that barriers nest.
//
// The comparisons that bound keys are leakproof. If what a column is compared with is not, as in K = CAST(@k AS INT64), and has one value for all rows, it
// is computed before the view is read, and the comparison with its value crosses (see once).
//
// A plan is made for a text, whoever runs it: one without a role gets the same. SQL SECURITY INVOKER makes no barrier, since who reads such a view may read
// what it reads. Nor does a view that leaves out no rows.
//
// The view's own conditions keep no order among themselves, as AND promises none: one on columns of an index is tested before the rest of the row is read. So a
// condition of the view that fails for a row that another of its conditions hides may fail for everyone who reads the view. Whoever defines it says
// IF(Who = 'me', CAST(B AS INT64) > 0, FALSE), whose order is promised.
//
// What a barrier does not hide is how long a statement takes, and how many rows its operators have seen in a profile and in statistics.

// barrierRel is the rows of in, the relation of a view. conds are conditions on them, not leakproof, which are tested above.
type barrierRel struct {
	in    relation
	conds []tree.Expr
}

func (r *barrierRel) cols() []tree.Col      { return r.in.cols() }
func (r *barrierRel) relations() []relation { return []relation{r.in} }
func (r *barrierRel) scalars() []tree.Expr  { return r.conds }

// lowerView makes a relation of a view.
func (p *planner) lowerView(s *tree.ViewScan) (relation, error) {
	in, err := p.lower(s.Input)
	if err != nil || !s.View.Definer || givesAllRows(in) {
		return in, err
	}
	return &barrierRel{in: in}, nil
}

// givesAllRows says whether a relation is all rows of tables, or what views give of them.
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

// pushIntoBarrier moves the conditions below that are leakproof.
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

// leakproof says whether an expression may be computed for rows that the reader of a view must not see.
func leakproof(e tree.Expr) bool {
	if !leakproofAlone(e) {
		return false
	}
	return !slices.ContainsFunc(subExprs(e), func(sub tree.Expr) bool { return !leakproof(sub) })
}

// leakproofAlone says it of an expression over operands that are.
func leakproofAlone(e tree.Expr) bool {
	switch e := e.(type) {
	case *tree.Literal, *tree.Param, *tree.Ref, *tree.MakeStruct, *tree.GetField, *tree.GetJSONField, *tree.Let:
		return true
	case *tree.Cast:
		f, err := fn.Cast(e.Arg.Type(), e.T, e.Safe)
		return err == nil && f.Leakproof && e.Format == nil && e.Zone == nil
	case *tree.Call:
		if like, ok := isCall(e, "$like"); ok {
			return isPattern(like.Args[1])
		}
		f, err := fn.Lookup(e.Func)
		return err == nil && f.Leakproof
	}
	return false
}

// isPattern says whether an expression is a constant that LIKE takes: one that does not end in a backslash that escapes nothing.
func isPattern(e tree.Expr) bool {
	l, ok := e.(*tree.Literal)
	if !ok || l.Value.IsNull() {
		return ok
	}
	text := l.Value.AsString()
	return (len(text)-len(strings.TrimRight(text, `\`)))%2 == 0
}

// once takes out of the conditions on a barrier's rows what is not leakproof and does not depend on these rows, if they can cross without it. It
// is to be computed, into the columns of first, before in, the relation that those conditions have reached, is read: then nothing shows whether it
// was computed for a row. rest are the conditions that stay above.
func (p *planner) once(r *barrierRel) (first []tree.Computed, in relation, rest []tree.Expr) {
	if p.options.Batch { // a plan for partitions needs a table at its root
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

// takeOut puts columns in the place of the operands of a comparison that are not leakproof, if the comparison is leakproof then; nil if it is not.
func (p *planner) takeOut(cond tree.Expr, own colSet) (made []tree.Computed, crosses tree.Expr) {
	c, ok := cond.(*tree.Call)
	if !ok || c.Func.Safe || len(c.Lambdas) > 0 || !nullRejecting[c.Func.Name] && c.Func.Name != "$in" && c.Func.Name != "$in_array" {
		return nil, nil
	}
	args := slices.Clone(c.Args)
	for i, a := range args {
		if !leakproof(a) && !refsOf(a).meets(own) && !volatile(a) {
			col := p.newCol("", a.Type())
			made = append(made, tree.Computed{Col: col, Expr: a})
			args[i] = &tree.Ref{Col: col}
		}
	}
	if _, ok := isCall(cond, "$like"); ok && leakproof(args[0]) && leakproof(args[1]) && !refsOf(args[1]).meets(own) {
		empty := &tree.Literal{T: args[0].Type(), Value: value.OfString("")}
		if empty.T.Kind == value.Bytes {
			empty.Value = value.OfBytes(nil)
		}
		// It fails if the pattern does, so that the condition does not.
		made = append(made, tree.Computed{Col: p.newCol("", c.Type()), Expr: &tree.Call{Func: c.Func, Args: []tree.Expr{empty, args[1]}}})
		return made, &tree.Call{Func: c.Func, Args: args}
	}
	crosses = &tree.Call{Func: c.Func, Args: args}
	if !leakproof(crosses) {
		return nil, nil
	}
	return made, crosses
}

func (p *planner) guessBarrier(r *barrierRel) estimate {
	_, in, rest := p.once(r)
	return p.guess(filterBy(in, rest))
}

// buildBarrier filters the rows of the view. What is computed once is the one row on the left of an apply join.
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

package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// relation is an operator of the logical plan. Its columns are identified by their tree.Col.ID, not by an index in
// the row. An operator may pass on columns that no operator above uses; the physical plan drops them. A relation
// must not be changed: a rewrite makes a new one.
type relation interface {
	// cols returns the columns of the relation's rows.
	cols() []tree.Col
	// relations returns the inputs of this relation.
	relations() []relation
	// scalars returns the relation's own expressions, without those of its inputs. An expression that the relation
	// does not have is nil in the list.
	scalars() []tree.Expr
}

type (
	unitRel  struct{}
	emptyRel struct{ out []tree.Col }
	// scanRel reads the rows of a table for which all of conds are TRUE.
	scanRel struct {
		table     *schema.Table
		columns   []*schema.Column
		out       []tree.Col
		alias     string
		hints     tree.Hints
		exclusive bool
		conds     []tree.Expr
		// changed says that the statement is partitioned DML that changes the table. For an UPDATE, the field sets
		// holds the columns that the statement sets.
		changed bool
		sets    []*schema.Column
	}
	filterRel struct {
		in    relation
		conds []tree.Expr
	}
	// computeRel adds computed columns to the rows of another relation (in).
	computeRel struct {
		in    relation
		exprs []tree.Computed
	}
	// joinRel joins those rows of left and right for which all of conds are TRUE. The field lateral says that the
	// right side refers to columns of the left side.
	joinRel struct {
		kind        JoinKind
		left, right relation
		conds       []tree.Expr
		lateral     bool
		hints       tree.Hints
		method      joinMethod
	}
	unnestRel struct {
		in     relation
		arrays []tree.Expr
		elems  []tree.Col
		offset *tree.Col
		outer  bool
		zip    tree.ZipMode
		conds  []tree.Expr
	}
	aggregateRel struct {
		in       relation
		groupBy  []tree.Computed
		aggs     []tree.AggCall
		hints    tree.Hints
		sets     [][]int
		grouping []tree.GroupingCall
	}
	sortRel struct {
		in   relation
		keys []tree.SortKey
	}
	limitRel struct {
		in            relation
		count, offset tree.Expr
	}
	unionRel struct {
		inputs  []relation
		columns [][]tree.Col
		out     []tree.Col
	}
	setOpRel struct {
		kind                   tree.SetOpKind
		all                    bool
		left, right            relation
		leftColumns, rightCols []tree.Col
		out                    []tree.Col
	}
	withRel struct {
		defs []spoolRel
		body relation
	}
	spoolRel struct {
		number int
		name   string
		in     relation
		out    []tree.Col
	}
	spoolScanRel struct {
		number int
		name   string
		out    []tree.Col
	}
	sampleRel struct {
		in      relation
		percent bool
		size    tree.Expr
		seed    tree.Expr
	}
)

// joinMethod is the method by which a join is computed.
type joinMethod uint8

const (
	anyMethod   joinMethod = iota // not chosen yet
	applyMethod                   // nested loop; the join's conditions are already pushed into its right side
	hashMethod
)

func (r *unitRel) cols() []tree.Col    { return nil }
func (r *emptyRel) cols() []tree.Col   { return r.out }
func (s *scanRel) cols() []tree.Col    { return s.out }
func (r *filterRel) cols() []tree.Col  { return r.in.cols() }
func (r *computeRel) cols() []tree.Col { return appendComputed(r.in.cols(), r.exprs) }
func (r *joinRel) cols() []tree.Col {
	if r.kind == SemiJoin || r.kind == AntiJoin {
		return r.left.cols()
	}
	return concat(r.left.cols(), r.right.cols())
}
func (r *unnestRel) cols() []tree.Col {
	out := concat(r.in.cols(), r.elems)
	if r.offset != nil {
		out = append(out, *r.offset)
	}
	return out
}
func (r *aggregateRel) cols() []tree.Col {
	out := appendComputed(nil, r.groupBy)
	for _, a := range r.aggs {
		out = append(out, a.Col)
		if a.Failure != nil {
			out = append(out, *a.Failure)
		}
	}
	for _, g := range r.grouping {
		out = append(out, g.Col)
	}
	return out
}
func (r *sortRel) cols() []tree.Col      { return r.in.cols() }
func (r *limitRel) cols() []tree.Col     { return r.in.cols() }
func (r *unionRel) cols() []tree.Col     { return r.out }
func (r *setOpRel) cols() []tree.Col     { return r.out }
func (r *withRel) cols() []tree.Col      { return r.body.cols() }
func (r *spoolScanRel) cols() []tree.Col { return r.out }
func (r *sampleRel) cols() []tree.Col    { return r.in.cols() }

func (r *unitRel) relations() []relation      { return nil }
func (r *emptyRel) relations() []relation     { return nil }
func (s *scanRel) relations() []relation      { return nil }
func (r *filterRel) relations() []relation    { return []relation{r.in} }
func (r *computeRel) relations() []relation   { return []relation{r.in} }
func (r *joinRel) relations() []relation      { return []relation{r.left, r.right} }
func (r *unnestRel) relations() []relation    { return []relation{r.in} }
func (r *aggregateRel) relations() []relation { return []relation{r.in} }
func (r *sortRel) relations() []relation      { return []relation{r.in} }
func (r *limitRel) relations() []relation     { return []relation{r.in} }
func (r *unionRel) relations() []relation     { return r.inputs }
func (r *setOpRel) relations() []relation     { return []relation{r.left, r.right} }
func (r *withRel) relations() []relation {
	var list []relation
	for _, d := range r.defs {
		list = append(list, d.in)
	}
	return append(list, r.body)
}
func (r *spoolScanRel) relations() []relation { return nil }
func (r *sampleRel) relations() []relation    { return []relation{r.in} }

func (r *unitRel) scalars() []tree.Expr    { return nil }
func (r *emptyRel) scalars() []tree.Expr   { return nil }
func (s *scanRel) scalars() []tree.Expr    { return s.conds }
func (r *filterRel) scalars() []tree.Expr  { return r.conds }
func (r *computeRel) scalars() []tree.Expr { return tree.ComputedExprs(r.exprs) }
func (r *joinRel) scalars() []tree.Expr    { return r.conds }
func (r *unnestRel) scalars() []tree.Expr  { return concat(r.arrays, r.conds) }
func (r *aggregateRel) scalars() []tree.Expr {
	list := tree.ComputedExprs(r.groupBy)
	for i := range r.aggs {
		list = append(list, r.aggs[i].Exprs()...)
	}
	return list
}
func (r *sortRel) scalars() []tree.Expr      { return tree.SortExprs(r.keys) }
func (r *limitRel) scalars() []tree.Expr     { return []tree.Expr{r.count, r.offset} }
func (r *unionRel) scalars() []tree.Expr     { return colRefs(r.columns...) }
func (r *setOpRel) scalars() []tree.Expr     { return colRefs(r.leftColumns, r.rightCols) }
func (r *withRel) scalars() []tree.Expr      { return nil }
func (r *spoolScanRel) scalars() []tree.Expr { return nil }
func (r *sampleRel) scalars() []tree.Expr    { return []tree.Expr{r.size, r.seed} }

// concat returns a new slice with the elements of a, followed by those of b.
func concat[T any](a, b []T) []T {
	out := make([]T, 0, len(a)+len(b))
	return append(append(out, a...), b...)
}

func appendComputed(cols []tree.Col, list []tree.Computed) []tree.Col {
	out := append(make([]tree.Col, 0, len(cols)+len(list)), cols...)
	for _, c := range list {
		out = append(out, c.Col)
	}
	return out
}

func colRefs(lists ...[]tree.Col) []tree.Expr {
	var out []tree.Expr
	for _, cols := range lists {
		for _, c := range cols {
			out = append(out, &tree.Ref{Col: c})
		}
	}
	return out
}

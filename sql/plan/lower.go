package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// planner plans one statement.
type planner struct {
	catalog *schema.Catalog
	options Options
	params  map[string]int // the index in plan.Params of each parameter, by name
	plan    *Plan
	// registers maps the Col.ID of a column to the number of its register. It has the columns that expressions read
	// from registers and not from slots of the current row (see Outer).
	registers map[int]int
	// withs holds the named subqueries of the statement, by name.
	withs map[string]*withUse
	// nextCol is the ID of the next column that the planner makes. The planner's IDs are negative and count down.
	// Those of the analyzer count up from 0.
	nextCol int
	// rows is the row number that newRow returned last (see origin).
	rows int
	// guessing is the number of joins, nested in each other, whose cost the planner is estimating at the moment; see
	// maxGuessing.
	guessing int
	// lowered holds the relations of subqueries that could not become joins, so that they need not be lowered
	// again.
	lowered map[*tree.Subquery]relation
	// exclusive says that every scan of the statement takes exclusive locks (LOCK_SCANNED_RANGES=exclusive).
	exclusive bool
	hints     tree.Hints // the hints of the statement
}

// withUse holds a named subquery and how the statement uses it.
type withUse struct {
	def tree.WithDef
	// uses is the number of references to the subquery. nested says that one of them is in a subquery expression or
	// on the right side of a lateral join, where it can run many times.
	uses   int
	nested bool
	number int // the number of its spool; -1 if it has none
}

func newPlanner(options Options) *planner {
	return &planner{
		options:   options,
		params:    map[string]int{},
		plan:      &Plan{},
		registers: map[int]int{},
		withs:     map[string]*withUse{},
		lowered:   map[*tree.Subquery]relation{},
		nextCol:   -1,
	}
}

// newCol returns a new column that does not occur in the statement.
func (p *planner) newCol(name string, t *value.Type) tree.Col {
	c := tree.Col{ID: p.nextCol, Name: name, Type: t}
	p.nextCol--
	return c
}

// findWiths records the named subqueries of a scan in p.withs, and counts the references to them. The parameter nested
// says that the scan can run many times.
func (p *planner) findWiths(s tree.Scan, nested bool) {
	switch s := s.(type) {
	case *tree.With:
		for _, d := range s.Defs {
			p.withs[d.Name] = &withUse{def: d, number: -1}
		}
	case *tree.WithRef:
		if w := p.withs[s.Name]; w != nil {
			w.uses++
			w.nested = w.nested || nested
		}
	}
	for _, e := range tree.Exprs(s) {
		p.findWithsIn(e)
	}
	if j, ok := s.(*tree.Join); ok && j.Lateral {
		p.findWiths(j.Left, nested)
		p.findWiths(j.Right, true)
		return
	}
	for _, in := range tree.Inputs(s) {
		p.findWiths(in, nested)
	}
}

func (p *planner) findWithsIn(e tree.Expr) {
	tree.Walk(e, func(e tree.Expr) {
		if q, ok := e.(*tree.Subquery); ok {
			p.findWiths(q.Scan, true)
		}
	})
}

// lower turns a scan of the resolved statement into a relation of the logical plan.
func (p *planner) lower(s tree.Scan) (relation, error) {
	switch s := s.(type) {
	case *tree.TableScan:
		return p.lowerTable(s), nil
	case *tree.ViewScan:
		return p.lowerView(s)
	case *tree.SingleRow:
		return &unitRel{}, nil
	case *tree.Filter:
		in, err := p.lower(s.Input)
		if err != nil {
			return nil, err
		}
		return p.filter(in, p.conjuncts(s.Cond))
	case *tree.Project:
		in, err := p.lower(s.Input)
		if err != nil || len(s.Exprs) == 0 {
			return in, err
		}
		return p.compute(in, p.foldComputed(s.Exprs)), nil
	case *tree.Join:
		return p.lowerJoin(s)
	case *tree.ArrayScan:
		return p.lowerUnnest(s)
	case *tree.Aggregate:
		return p.lowerAggregate(s)
	case *tree.OrderBy:
		in, err := p.lower(s.Input)
		if err != nil {
			return nil, err
		}
		return &sortRel{in: in, keys: p.foldKeys(s.Keys)}, nil
	case *tree.Limit:
		in, err := p.lower(s.Input)
		if err != nil {
			return nil, err
		}
		return &limitRel{in: in, count: p.fold(s.Count), offset: p.fold(s.Offset)}, nil
	case *tree.SetOp:
		return p.lowerSetOp(s)
	case *tree.With:
		return p.lowerWith(s)
	case *tree.WithRef:
		return p.lowerWithRef(s)
	case *tree.Sample:
		in, err := p.lower(s.Input)
		if err != nil {
			return nil, err
		}
		return &sampleRel{in: in, percent: s.Percent, size: p.fold(s.Size), seed: p.fold(s.Seed)}, nil
	}
	return nil, usererror.UnsupportedQueryShape()
}

func (p *planner) lowerTable(s *tree.TableScan) *scanRel {
	p.plan.ForUpdate = p.plan.ForUpdate || s.ForUpdate
	return &scanRel{
		table:     s.Table,
		columns:   s.Columns,
		out:       s.Out,
		alias:     s.Alias,
		hints:     s.Hints,
		exclusive: s.ForUpdate || p.exclusive,
	}
}

func (p *planner) lowerJoin(s *tree.Join) (relation, error) {
	left, err := p.lower(s.Left)
	if err != nil {
		return nil, err
	}
	right, err := p.lower(s.Right)
	if err != nil {
		return nil, err
	}
	j := &joinRel{left: left, right: right, lateral: s.Lateral, hints: s.Hints}
	switch s.Kind {
	case tree.InnerJoin:
		j.kind = InnerJoin
		return p.filter(j, p.conjuncts(s.Cond))
	case tree.LeftJoin:
		j.kind = LeftJoin
	case tree.RightJoin:
		j.kind, j.left, j.right = LeftJoin, right, left
	case tree.FullJoin:
		j.kind = FullJoin
	}
	j.conds = p.conjuncts(s.Cond)
	return pushIntoJoin(j, nil), nil
}

// lowerUnnest plans an UNNEST. If its arrays do not depend on the rows with which it is joined, the UNNEST becomes one
// side of an ordinary join. It can then come first in the join order or be put in a hash table.
func (p *planner) lowerUnnest(s *tree.ArrayScan) (relation, error) {
	u := &unnestRel{
		in:     &unitRel{},
		arrays: p.foldAll(s.Arrays),
		elems:  s.Elems,
		offset: s.Offset,
		outer:  s.Outer,
		zip:    s.Zip,
		conds:  p.conjuncts(s.Cond),
	}
	if s.Input == nil {
		return u, nil
	}
	in, err := p.lower(s.Input)
	if err != nil {
		return nil, err
	}
	// With Options.Batch, the UNNEST must not come first in the join order: the operator that comes first must be a
	// scan, whose keys divide the query into partitions.
	if refsOf(u.arrays...).intersects(setOf(in.cols())) || p.options.Batch {
		u.in = in
		return u, nil
	}
	j := &joinRel{kind: InnerJoin, left: in, right: u, hints: s.Hints}
	conds := u.conds
	u.conds, u.outer = nil, false
	if !s.Outer {
		return p.filter(j, conds)
	}
	j.kind, j.conds = LeftJoin, conds
	return pushIntoJoin(j, nil), nil
}

func (p *planner) lowerAggregate(s *tree.Aggregate) (relation, error) {
	in, err := p.lower(s.Input)
	if err != nil {
		return nil, err
	}
	aggs := make([]tree.AggCall, len(s.Aggs))
	for i, a := range s.Aggs {
		a.Args = p.foldAll(a.Args)
		a.OrderBy = p.foldKeys(a.OrderBy)
		a.Limit, a.Having, a.Where = p.fold(a.Limit), p.fold(a.Having), p.fold(a.Where)
		aggs[i] = a
	}
	return &aggregateRel{
		in:       in,
		groupBy:  p.foldComputed(s.GroupBy),
		aggs:     aggs,
		hints:    s.Hints,
		sets:     s.GroupingSets,
		grouping: s.Grouping,
	}, nil
}

// lowerSetOp plans UNION, INTERSECT and EXCEPT. UNION DISTINCT becomes a UNION ALL whose rows are grouped.
// INTERSECT and EXCEPT of several inputs are chained from left to right.
func (p *planner) lowerSetOp(s *tree.SetOp) (relation, error) {
	inputs := make([]relation, len(s.Inputs))
	for i, in := range s.Inputs {
		var err error
		if inputs[i], err = p.lower(in); err != nil {
			return nil, err
		}
	}
	if s.Kind == tree.Union && s.All {
		return &unionRel{inputs: inputs, columns: s.Columns, out: s.Out}, nil
	}
	if s.Kind == tree.Union {
		all := p.copyCols(s.Out)
		group := make([]tree.Computed, len(all))
		for i, c := range all {
			group[i] = tree.Computed{Col: s.Out[i], Expr: &tree.Ref{Col: c}}
		}
		return &aggregateRel{in: &unionRel{inputs: inputs, columns: s.Columns, out: all}, groupBy: group}, nil
	}
	left, columns := inputs[0], s.Columns[0]
	for i := 1; i < len(inputs); i++ {
		out := s.Out
		if i < len(inputs)-1 {
			out = p.copyCols(s.Out)
		}
		left = &setOpRel{kind: s.Kind, all: s.All, left: left, right: inputs[i], leftColumns: columns, rightCols: s.Columns[i], out: out}
		columns = out
	}
	return left, nil
}

func (p *planner) copyCols(cols []tree.Col) []tree.Col {
	out := make([]tree.Col, len(cols))
	for i, c := range cols {
		out[i] = p.newCol(c.Name, c.Type)
	}
	return out
}

// lowerWith plans a WITH clause. A named subquery gets a spool if the statement refers to it more than once, or at
// a point where it could run many times. Every other named subquery is planned where the statement refers to it.
func (p *planner) lowerWith(s *tree.With) (relation, error) {
	var defs []spoolRel
	for _, d := range s.Defs {
		w := p.withs[d.Name]
		if w == nil || w.uses == 0 || w.uses == 1 && !w.nested {
			continue
		}
		in, err := p.lower(d.Scan)
		if err != nil {
			return nil, err
		}
		w.number = p.plan.Spools
		p.plan.Spools++
		defs = append(defs, spoolRel{number: w.number, name: d.Name, in: in, out: d.Out})
	}
	body, err := p.lower(s.Body)
	if err != nil || len(defs) == 0 {
		return body, err
	}
	return &withRel{defs: defs, body: body}, nil
}

func (p *planner) lowerWithRef(s *tree.WithRef) (relation, error) {
	w := p.withs[s.Name]
	if w == nil {
		return nil, usererror.UnsupportedQueryShape()
	}
	if w.number >= 0 {
		return &spoolScanRel{number: w.number, name: s.Name, out: s.Out}, nil
	}
	in, err := p.lower(w.def.Scan)
	if err != nil {
		return nil, err
	}
	exprs := make([]tree.Computed, len(s.Out))
	for i, c := range s.Out {
		exprs[i] = tree.Computed{Col: c, Expr: &tree.Ref{Col: w.def.Out[i]}}
	}
	return p.compute(in, exprs), nil
}

// compute adds computed columns to a relation (in). If that relation itself adds computed columns, compute merges both
// steps into one: it puts the expressions of the relation's columns in place of these columns. It does not merge the
// steps in three cases:
//
//   - A new expression has a subquery. compute cannot replace columns in a subquery.
//   - The new expressions use a costly column of the relation more than once. The column would be computed each time.
//   - The new expressions use a costly column that is volatile or has a subquery. Within a CASE or a lambda, the column
//     might not be computed exactly once for each row.
func (p *planner) compute(in relation, exprs []tree.Computed) relation {
	below, ok := in.(*computeRel)
	if !ok {
		return &computeRel{in: in, exprs: exprs}
	}
	uses := map[int]int{}
	for _, x := range exprs {
		if hasSubquery(x.Expr) {
			return &computeRel{in: in, exprs: exprs}
		}
		tree.Walk(x.Expr, func(e tree.Expr) {
			if r, ok := e.(*tree.Ref); ok {
				uses[r.Col.ID]++
			}
		})
	}
	made := map[int]tree.Expr{}
	for _, x := range below.exprs {
		if !movable(x.Expr) && (uses[x.Col.ID] > 1 || uses[x.Col.ID] == 1 && (volatile(x.Expr) || hasSubquery(x.Expr))) {
			return &computeRel{in: in, exprs: exprs}
		}
		made[x.Col.ID] = x.Expr
	}
	all := append([]tree.Computed(nil), below.exprs...)
	for _, x := range exprs {
		all = append(all, tree.Computed{Col: x.Col, Expr: p.fold(replace(x.Expr, made))})
	}
	return &computeRel{in: below.in, exprs: all}
}

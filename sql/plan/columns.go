package plan

import (
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// colSet is a set of columns, each given by its tree.Col.ID.
type colSet map[int]bool

func setOf(cols []tree.Col) colSet {
	s := make(colSet, len(cols))
	for _, c := range cols {
		s[c.ID] = true
	}
	return s
}

func (s colSet) addAll(t colSet) colSet {
	for id := range t {
		s[id] = true
	}
	return s
}

// within reports whether all columns of s are in t.
func (s colSet) within(t colSet) bool {
	for id := range s {
		if !t[id] {
			return false
		}
	}
	return true
}

func (s colSet) intersects(t colSet) bool {
	for id := range s {
		if t[id] {
			return true
		}
	}
	return false
}

// refsOf returns the columns that the expressions use but do not define themselves. Subqueries in the expressions
// are included.
func refsOf(exprs ...tree.Expr) colSet {
	c := collector{used: colSet{}, made: colSet{}}
	for _, e := range exprs {
		c.expr(e)
	}
	return c.free()
}

// freeOf returns those columns of enclosing queries to which a relation refers.
func freeOf(r relation) colSet {
	c := collector{used: colSet{}, made: colSet{}}
	c.relation(r)
	return c.free()
}

// collector gathers the columns that expressions, scans and relations use and define. Each column is defined only
// once.
type collector struct{ used, made colSet }

func (c *collector) free() colSet {
	for id := range c.made {
		delete(c.used, id)
	}
	return c.used
}

func (c *collector) relation(r relation) {
	for _, col := range r.cols() {
		c.made[col.ID] = true
	}
	for _, e := range r.scalars() {
		c.expr(e)
	}
	for _, in := range r.relations() {
		c.relation(in)
	}
}

// expr collects the columns of an expression. The expression can be nil.
func (c *collector) expr(e tree.Expr) {
	if e == nil {
		return
	}
	switch e := e.(type) {
	case *tree.Ref:
		c.used[e.Col.ID] = true
	case *tree.Subquery:
		c.scan(e.Scan)
	case *tree.Let:
		for _, d := range e.Defs {
			c.made[d.Col.ID] = true
		}
	case *tree.Lambda:
		for _, p := range e.Params {
			c.made[p.ID] = true
		}
	}
	for _, o := range e.Operands() {
		c.expr(o)
	}
}

func (c *collector) scan(s tree.Scan) {
	for _, col := range s.Cols() {
		c.made[col.ID] = true
	}
	switch s := s.(type) {
	case *tree.ViewScan:
		c.use(s.Out)
	case *tree.Project:
		for _, x := range s.Exprs {
			c.made[x.Col.ID] = true
		}
		c.use(s.Out)
	case *tree.SetOp:
		c.use(s.Columns...)
	}
	for _, e := range tree.Exprs(s) {
		c.expr(e)
	}
	for _, in := range tree.Inputs(s) {
		c.scan(in)
	}
}

func (c *collector) use(lists ...[]tree.Col) {
	for _, cols := range lists {
		for _, col := range cols {
			c.used[col.ID] = true
		}
	}
}

// hasSubquery reports whether e contains a subquery.
func hasSubquery(e tree.Expr) bool {
	found := false
	tree.Walk(e, func(e tree.Expr) {
		if _, ok := e.(*tree.Subquery); ok {
			found = true
		}
	})
	return found
}

// replace returns a copy of e in which some columns are replaced. The second parameter maps the ID of each of these
// columns to the expression that takes the column's place. e must not contain a subquery.
func replace(e tree.Expr, with map[int]tree.Expr) tree.Expr {
	return rebuild(e, func(e tree.Expr) tree.Expr {
		if r, ok := e.(*tree.Ref); ok {
			if by, ok := with[r.Col.ID]; ok {
				return by
			}
		}
		return nil
	})
}

// rebuild returns a copy of e in which some subexpressions are replaced: each one for which swap returns an
// expression is replaced by that expression.
func rebuild(e tree.Expr, swap func(tree.Expr) tree.Expr) tree.Expr {
	if e == nil {
		return nil
	}
	if by := swap(e); by != nil {
		return by
	}
	each := func(list []tree.Expr) []tree.Expr {
		out := make([]tree.Expr, len(list))
		for i, x := range list {
			out[i] = rebuild(x, swap)
		}
		return out
	}
	switch e := e.(type) {
	case *tree.Call:
		return &tree.Call{Func: e.Func, Args: each(e.Args)}
	case *tree.Lambda:
		return &tree.Lambda{Params: e.Params, Body: rebuild(e.Body, swap)}
	case *tree.Cast:
		return &tree.Cast{Arg: rebuild(e.Arg, swap), T: e.T, Safe: e.Safe, Format: rebuild(e.Format, swap), Zone: rebuild(e.Zone, swap)}
	case *tree.Subquery:
		if e.In == nil {
			return e
		}
		c := *e
		c.In = rebuild(e.In, swap)
		return &c
	case *tree.MakeStruct:
		return &tree.MakeStruct{T: e.T, Fields: each(e.Fields)}
	case *tree.GetField:
		return &tree.GetField{T: e.T, Arg: rebuild(e.Arg, swap), Index: e.Index}
	case *tree.GetJSONField:
		return &tree.GetJSONField{Arg: rebuild(e.Arg, swap), Name: e.Name}
	case *tree.Let:
		c := &tree.Let{Body: rebuild(e.Body, swap)}
		for _, d := range e.Defs {
			c.Defs = append(c.Defs, tree.Computed{Col: d.Col, Expr: rebuild(d.Expr, swap)})
		}
		return c
	}
	return e
}

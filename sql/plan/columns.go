package plan

import (
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// colSet is a set of columns by tree.Col.ID.
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

// within reports whether t contains all of s.
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

// refsOf returns the columns that expressions refer to and do not define themselves, including those in subqueries.
func refsOf(exprs ...tree.Expr) colSet {
	c := collector{used: colSet{}, made: colSet{}}
	for _, e := range exprs {
		c.expr(e)
	}
	return c.free()
}

// freeOf returns the columns of enclosing queries that a relation refers to.
func freeOf(r relation) colSet {
	c := collector{used: colSet{}, made: colSet{}}
	c.relation(r)
	return c.free()
}

// collector gathers the columns that expressions, scans and relations use and define. Each column is defined in one place only.
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

func (c *collector) expr(e tree.Expr) {
	switch e := e.(type) {
	case *tree.Ref:
		c.used[e.Col.ID] = true
	case *tree.Subquery:
		c.scan(e.Scan)
	case *tree.Let:
		for _, d := range e.Defs {
			c.made[d.Col.ID] = true
		}
	case *tree.Call:
		for _, l := range e.Lambdas {
			if l != nil {
				for _, p := range l.Params {
					c.made[p.ID] = true
				}
			}
		}
	}
	for _, sub := range subExprs(e) {
		c.expr(sub)
	}
}

func (c *collector) scan(s tree.Scan) {
	for _, col := range s.Cols() {
		c.made[col.ID] = true
	}
	if p, ok := s.(*tree.Project); ok {
		for _, x := range p.Exprs {
			c.made[x.Col.ID] = true
		}
	}
	for _, e := range scanExprs(s) {
		c.expr(e)
	}
	for _, in := range subScans(s) {
		c.scan(in)
	}
}

// subExprs returns the operands of e, without the expressions in a subquery's scan.
func subExprs(e tree.Expr) []tree.Expr {
	switch e := e.(type) {
	case *tree.Call:
		list := given(e.Args...)
		for _, l := range e.Lambdas {
			if l != nil {
				list = append(list, l.Body)
			}
		}
		return list
	case *tree.Cast:
		return given(e.Arg, e.Format, e.Zone)
	case *tree.Subquery:
		return given(e.In)
	case *tree.MakeStruct:
		return e.Fields
	case *tree.GetField:
		return []tree.Expr{e.Arg}
	case *tree.GetJSONField:
		return []tree.Expr{e.Arg}
	case *tree.Let:
		return append(computedExprs(e.Defs), e.Body)
	}
	return nil
}

// walkTree calls f for e and every expression in it. It does not enter the scans of subqueries.
func walkTree(e tree.Expr, f func(tree.Expr)) {
	if e == nil {
		return
	}
	f(e)
	for _, sub := range subExprs(e) {
		walkTree(sub, f)
	}
}

// subScans returns the inputs of s, without the scans of subqueries in its expressions.
func subScans(s tree.Scan) []tree.Scan {
	switch s := s.(type) {
	case *tree.ViewScan:
		return []tree.Scan{s.Input}
	case *tree.Filter:
		return []tree.Scan{s.Input}
	case *tree.Project:
		return []tree.Scan{s.Input}
	case *tree.Join:
		return []tree.Scan{s.Left, s.Right}
	case *tree.ArrayScan:
		if s.Input != nil {
			return []tree.Scan{s.Input}
		}
	case *tree.Aggregate:
		return []tree.Scan{s.Input}
	case *tree.OrderBy:
		return []tree.Scan{s.Input}
	case *tree.Limit:
		return []tree.Scan{s.Input}
	case *tree.SetOp:
		return s.Inputs
	case *tree.With:
		var list []tree.Scan
		for _, d := range s.Defs {
			list = append(list, d.Scan)
		}
		return append(list, s.Body)
	case *tree.Sample:
		return []tree.Scan{s.Input}
	}
	return nil
}

// scanExprs returns the expressions of s itself, without those of its inputs.
func scanExprs(s tree.Scan) []tree.Expr {
	switch s := s.(type) {
	case *tree.Filter:
		return []tree.Expr{s.Cond}
	case *tree.ViewScan:
		return colRefs(s.Out)
	case *tree.Project:
		return append(computedExprs(s.Exprs), colRefs(s.Out)...)
	case *tree.Join:
		return given(s.Cond)
	case *tree.ArrayScan:
		return concat(s.Arrays, given(s.Cond))
	case *tree.Aggregate:
		list := computedExprs(s.GroupBy)
		for i := range s.Aggs {
			list = append(list, aggExprs(&s.Aggs[i])...)
		}
		return list
	case *tree.OrderBy:
		return sortKeyExprs(s.Keys)
	case *tree.Limit:
		return given(s.Count, s.Offset)
	case *tree.SetOp:
		return colRefs(s.Columns...)
	case *tree.Sample:
		return given(s.Size, s.Seed)
	}
	return nil
}

// hasSubquery reports whether e contains a subquery.
func hasSubquery(e tree.Expr) bool {
	found := false
	walkTree(e, func(e tree.Expr) {
		if _, ok := e.(*tree.Subquery); ok {
			found = true
		}
	})
	return found
}

// replace returns e with expressions in place of the columns that are keys of with. e holds no subquery.
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

// rebuild returns a copy of e. Where swap returns an expression for a part of e, that expression takes the place of the part.
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
		c := &tree.Call{Func: e.Func, Args: each(e.Args)}
		for _, l := range e.Lambdas {
			if l != nil {
				l = &tree.Lambda{Params: l.Params, Body: rebuild(l.Body, swap)}
			}
			c.Lambdas = append(c.Lambdas, l)
		}
		return c
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

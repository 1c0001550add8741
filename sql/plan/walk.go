package plan

func (n *Unit) inputs() []Node      { return nil }
func (n *Empty) inputs() []Node     { return nil }
func (n *Scan) inputs() []Node      { return nil }
func (n *Filter) inputs() []Node    { return []Node{n.Input} }
func (n *Compute) inputs() []Node   { return []Node{n.Input} }
func (n *Apply) inputs() []Node     { return []Node{n.Left, n.Right} }
func (n *HashJoin) inputs() []Node  { return []Node{n.Left, n.Right} }
func (n *Unnest) inputs() []Node    { return []Node{n.Input} }
func (n *Aggregate) inputs() []Node { return []Node{n.Input} }
func (n *Sort) inputs() []Node      { return []Node{n.Input} }
func (n *Limit) inputs() []Node     { return []Node{n.Input} }
func (n *UnionAll) inputs() []Node  { return n.Inputs }
func (n *SetOp) inputs() []Node     { return []Node{n.Left, n.Right} }
func (n *With) inputs() []Node {
	var list []Node
	for _, d := range n.Defs {
		list = append(list, d.Plan)
	}
	return append(list, n.Body)
}
func (n *SpoolScan) inputs() []Node { return nil }
func (n *Sample) inputs() []Node    { return []Node{n.Input} }
func (n *DML) inputs() []Node {
	if n.Input == nil {
		return nil
	}
	return []Node{n.Input}
}

func (n *Unit) exprs() []Expr  { return nil }
func (n *Empty) exprs() []Expr { return nil }
func (n *Scan) exprs() []Expr {
	var list []Expr
	for i := range n.Seeks {
		list = append(list, n.Seeks[i].exprs()...)
	}
	for _, w := range n.Wanted {
		list = append(list, w.Values...)
	}
	return append(list, present(n.Residual, n.Limit)...)
}
func (n *Filter) exprs() []Expr  { return []Expr{n.Cond} }
func (n *Compute) exprs() []Expr { return n.Exprs }
func (n *Apply) exprs() []Expr   { return nil }
func (n *HashJoin) exprs() []Expr {
	list := append(append([]Expr(nil), n.LeftKeys...), n.RightKeys...)
	return append(list, present(n.Cond)...)
}
func (n *Unnest) exprs() []Expr {
	return append(append([]Expr(nil), n.Arrays...), present(n.Cond)...)
}
func (n *Aggregate) exprs() []Expr {
	list := append([]Expr(nil), n.Keys...)
	for _, a := range n.Aggs {
		list = append(list, a.Args...)
		list = append(list, sortExprs(a.OrderBy)...)
		list = append(list, present(a.Limit, a.Having, a.Where)...)
	}
	return list
}
func (n *Sort) exprs() []Expr      { return append(sortExprs(n.Keys), present(n.Limit)...) }
func (n *Limit) exprs() []Expr     { return present(n.Count, n.Offset) }
func (n *UnionAll) exprs() []Expr  { return append(sortExprs(n.Order), present(n.Limit)...) }
func (n *SetOp) exprs() []Expr     { return nil }
func (n *With) exprs() []Expr      { return nil }
func (n *SpoolScan) exprs() []Expr { return nil }
func (n *Sample) exprs() []Expr    { return present(n.Size, n.Seed) }
func (n *DML) exprs() []Expr {
	var list []Expr
	for _, r := range n.Rows {
		list = append(list, present(r...)...)
	}
	list = append(list, present(n.Assert)...)
	if c := n.Conflict; c != nil {
		list = append(append(list, present(c.Set...)...), present(c.Where)...)
	}
	if n.Return != nil {
		list = append(list, present(n.Return.Exprs...)...)
	}
	return list
}

func sortExprs(keys []SortKey) []Expr {
	var list []Expr
	for _, k := range keys {
		list = append(list, k.Expr)
	}
	return list
}

func (s *Seek) exprs() []Expr {
	var list []Expr
	for _, p := range s.Parts {
		list = append(list, p.Values...)
		list = append(list, present(p.Array)...)
		list = append(list, p.Among.exprs()...)
	}
	list = append(list, s.Range.exprs()...)
	if s.Tuples != nil {
		list = append(list, s.Tuples.Array)
	}
	return list
}

func (r *SeekRange) exprs() []Expr {
	if r == nil {
		return nil
	}
	return present(r.Low, r.High, r.Prefix)
}

// Walk calls f for n and every operator under it, including those in the plans of subqueries.
func Walk(n Node, f func(Node)) {
	if n == nil {
		return
	}
	f(n)
	for _, e := range n.exprs() {
		WalkExpr(e, func(e Expr) {
			if q, ok := e.(*Subquery); ok {
				Walk(q.Plan, f)
			}
		})
	}
	for _, in := range n.inputs() {
		Walk(in, f)
	}
}

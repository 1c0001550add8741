package tree

import "fmt"

// visitor walks through scans and expressions, including those of subqueries. It visits parents first. If scan
// returns false, the visitor does not visit what is below that scan.
type visitor struct {
	scan func(Scan) (enter bool)
	expr func(Expr)
}

func (v *visitor) scans(list ...Scan) {
	for _, s := range list {
		if s == nil || !v.scan(s) {
			continue
		}
		v.scans(inputsOf(s)...)
		v.exprs(exprsOf(s)...)
	}
}

func (v *visitor) exprs(list ...Expr) {
	for _, e := range list {
		Walk(e, func(e Expr) {
			v.expr(e)
			if sub, ok := e.(*Subquery); ok {
				v.scans(sub.Scan)
			}
		})
	}
}

// inputsOf returns the scans that a scan reads.
func inputsOf(s Scan) []Scan {
	switch s := s.(type) {
	case *TableScan, *SingleRow, *WithRef:
		return nil
	case *Filter:
		return []Scan{s.Input}
	case *Project:
		return []Scan{s.Input}
	case *Join:
		return []Scan{s.Left, s.Right}
	case *ArrayScan:
		return []Scan{s.Input}
	case *Aggregate:
		return []Scan{s.Input}
	case *OrderBy:
		return []Scan{s.Input}
	case *Limit:
		return []Scan{s.Input}
	case *SetOp:
		return s.Inputs
	case *With:
		list := []Scan{s.Body}
		for _, d := range s.Defs {
			list = append(list, d.Scan)
		}
		return list
	case *Sample:
		return []Scan{s.Input}
	case *ViewScan:
		return []Scan{s.Input}
	}
	panic(fmt.Sprintf("tree: no inputs known of %T", s))
}

// exprsOf returns the expressions of a scan, but not those of the scan's inputs.
func exprsOf(s Scan) []Expr {
	switch s := s.(type) {
	case *Filter:
		return []Expr{s.Cond}
	case *Project:
		return computedExprs(s.Exprs)
	case *Join:
		return []Expr{s.Cond}
	case *ArrayScan:
		return append(s.Arrays[:len(s.Arrays):len(s.Arrays)], s.Cond)
	case *Aggregate:
		list := computedExprs(s.GroupBy)
		for i := range s.Aggs {
			list = append(list, s.Aggs[i].exprs()...)
		}
		return list
	case *OrderBy:
		return sortExprs(s.Keys)
	case *Limit:
		return []Expr{s.Count, s.Offset}
	case *Sample:
		return []Expr{s.Size, s.Seed}
	}
	return nil
}

func (a *AggCall) exprs() []Expr {
	list := append(a.Args[:len(a.Args):len(a.Args)], a.Limit, a.Having, a.Where)
	return append(list, sortExprs(a.OrderBy)...)
}

func computedExprs(computed []Computed) []Expr {
	list := make([]Expr, len(computed))
	for i, c := range computed {
		list[i] = c.Expr
	}
	return list
}

func sortExprs(keys []SortKey) []Expr {
	list := make([]Expr, len(keys))
	for i, k := range keys {
		list[i] = k.Expr
	}
	return list
}

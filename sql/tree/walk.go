package tree

import "fmt"

// Walk calls f for an expression and all expressions in it, parents first. It does not call f for expressions in the
// scans of subqueries.
func Walk(e Expr, f func(Expr)) {
	if e == nil {
		return
	}
	f(e)
	for _, o := range e.Operands() {
		Walk(o, f)
	}
}

// nondeterministic holds the functions whose results depend on the time or on chance.
var nondeterministic = map[string]bool{
	"current_timestamp": true, "current_date": true, "pending_commit_timestamp": true,
	"generate_uuid": true, "new_uuid": true,
}

// Nondeterministic reports whether an expression calls a nondeterministic function. name is the function's name.
func Nondeterministic(e Expr) (name string, found bool) {
	Walk(e, func(e Expr) {
		if c, ok := e.(*Call); ok && nondeterministic[c.Func.Name] {
			name, found = c.Func.Name, true
		}
	})
	return name, found
}

// visitor walks through scans and expressions, including those of subqueries. It visits parents first. If the
// function scan returns false for a scan, the visitor does not visit what is below that scan.
type visitor struct {
	scan func(Scan) (enter bool)
	expr func(Expr)
}

func (v *visitor) scans(list ...Scan) {
	for _, s := range list {
		if s == nil || !v.scan(s) {
			continue
		}
		v.scans(Inputs(s)...)
		v.exprs(Exprs(s)...)
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

// WalkNested calls f for e and for each expression within it, also for those in the scans of its subqueries.
func WalkNested(e Expr, f func(Expr)) {
	v := visitor{scan: func(Scan) bool { return true }, expr: f}
	v.exprs(e)
}

// Inputs returns the scans that a scan reads, without those of subqueries in its expressions.
func Inputs(s Scan) []Scan {
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
		if s.Input == nil {
			return nil
		}
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

// Exprs returns the expressions of a scan, without those of its inputs. The list has nil for each optional expression
// that the scan does not have.
func Exprs(s Scan) []Expr {
	switch s := s.(type) {
	case *Filter:
		return []Expr{s.Cond}
	case *Project:
		return ComputedExprs(s.Exprs)
	case *Join:
		return []Expr{s.Cond}
	case *ArrayScan:
		return append(s.Arrays[:len(s.Arrays):len(s.Arrays)], s.Cond)
	case *Aggregate:
		list := ComputedExprs(s.GroupBy)
		for i := range s.Aggs {
			list = append(list, s.Aggs[i].Exprs()...)
		}
		return list
	case *OrderBy:
		return SortExprs(s.Keys)
	case *Limit:
		return []Expr{s.Count, s.Offset}
	case *Sample:
		return []Expr{s.Size, s.Seed}
	}
	return nil
}

// Exprs returns the expressions of an aggregate function. The list has nil for each optional expression that the call
// does not have.
func (a *AggCall) Exprs() []Expr {
	list := append(a.Args[:len(a.Args):len(a.Args)], a.Limit, a.Having, a.Where)
	return append(list, SortExprs(a.OrderBy)...)
}

// ComputedExprs returns the expressions of computed columns.
func ComputedExprs(computed []Computed) []Expr {
	list := make([]Expr, len(computed))
	for i, c := range computed {
		list[i] = c.Expr
	}
	return list
}

// SortExprs returns the expressions of the keys of an ORDER BY.
func SortExprs(keys []SortKey) []Expr {
	list := make([]Expr, len(keys))
	for i, k := range keys {
		list[i] = k.Expr
	}
	return list
}

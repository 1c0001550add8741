package tree

import (
	"fmt"
	"strings"
)

var (
	joinKinds  = [...]string{InnerJoin: "Join", LeftJoin: "LeftJoin", RightJoin: "RightJoin", FullJoin: "FullJoin"}
	setOpKinds = [...]string{Union: "Union", Intersect: "Intersect", Except: "Except"}
	zipModes   = [...]string{ZipPad: "", ZipTruncate: "TRUNCATE", ZipStrict: "STRICT"}
)

func (p *printer) scan(s Scan) {
	switch s := s.(type) {
	case *TableScan:
		p.line("Table", s.Table.FullName(), prefixed("AS ", s.Alias), p.hints(s.Hints), p.columns(s), when(s.ForUpdate, "FOR UPDATE"))
	case *ViewScan:
		p.node([]string{"View", s.View.FullName(), columns(s.Out)}, s.Input)
	case *SingleRow:
		p.line("SingleRow")
	case *Filter:
		p.node([]string{"Filter", p.expr(s.Cond)}, s.Input)
	case *Project:
		p.node([]string{"Project", p.hints(s.Hints), columns(s.Out), p.computed(s.Exprs)}, s.Input)
	case *Join:
		p.node([]string{joinKinds[s.Kind], when(s.Lateral, "LATERAL"), p.hints(s.Hints), p.expr(s.Cond)}, s.Left, s.Right)
	case *ArrayScan:
		p.node([]string{"Unnest", when(s.Outer, "OUTER"), zipModes[s.Zip], p.hints(s.Hints), p.arrays(s), prefixed("ON ", p.expr(s.Cond))}, s.Input)
	case *Aggregate:
		p.node([]string{"Aggregate", p.hints(s.Hints), prefixed("BY ", p.computed(s.GroupBy)), p.aggregates(s.Aggs), p.groupingSets(s)}, s.Input)
	case *OrderBy:
		p.node([]string{"OrderBy", p.sortKeys(s.Keys)}, s.Input)
	case *Limit:
		p.node([]string{"Limit", p.expr(s.Count), prefixed("OFFSET ", p.expr(s.Offset))}, s.Input)
	case *SetOp:
		p.setOp(s)
	case *With:
		p.with(s)
	case *WithRef:
		p.line("WithRef", s.Name, columns(s.Out))
	case *Sample:
		p.node([]string{"Sample", s.Method, p.expr(s.Size), when(s.Percent, "PERCENT"), prefixed("REPEATABLE ", p.expr(s.Seed))}, s.Input)
	}
}

// node writes a node with its inputs.
func (p *printer) node(words []string, inputs ...Scan) {
	p.line(words...)
	p.flush()
	for _, in := range inputs {
		p.under("", in)
	}
}

func (p *printer) setOp(s *SetOp) {
	p.line(setOpKinds[s.Kind], when(s.All, "ALL"), p.hints(s.Hints), columns(s.Out))
	for i, in := range s.Inputs {
		p.under(columns(s.Columns[i])+":", in)
	}
}

func (p *printer) with(s *With) {
	p.line("With")
	for _, d := range s.Defs {
		p.under(d.Name+" "+columns(d.Out)+":", d.Scan)
	}
	p.under("", s.Body)
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

func when(yes bool, text string) string {
	if yes {
		return text
	}
	return ""
}

func (p *printer) computed(list []Computed) string {
	words := make([]string, len(list))
	for i, c := range list {
		words[i] = column(c.Col) + " := " + p.expr(c.Expr)
	}
	return strings.Join(words, ", ")
}

func (p *printer) arrays(s *ArrayScan) string {
	words := make([]string, len(s.Arrays))
	for i, a := range s.Arrays {
		words[i] = column(s.Elems[i]) + " := " + p.expr(a)
	}
	if s.Offset != nil {
		words = append(words, column(*s.Offset)+" := OFFSET")
	}
	return strings.Join(words, ", ")
}

func (p *printer) sortKeys(keys []SortKey) string {
	words := make([]string, len(keys))
	for i, k := range keys {
		words[i] = p.expr(k.Expr) + prefixed(" COLLATE ", k.Collation) + when(k.Desc, " DESC")
		if k.NullsFirst == k.Desc {
			words[i] += when(k.NullsFirst, " NULLS FIRST") + when(!k.NullsFirst, " NULLS LAST")
		}
	}
	return strings.Join(words, ", ")
}

func (p *printer) aggregates(list []AggCall) string {
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = column(a.Col) + " := " + p.aggregate(a)
		if a.Failure != nil {
			words[i] += " OR " + column(*a.Failure)
		}
	}
	return strings.Join(words, ", ")
}

func (p *printer) aggregate(a AggCall) string {
	text := when(a.Distinct, "DISTINCT ") + p.exprs(a.Args) + when(a.IgnoreNulls, " IGNORE NULLS") + when(a.RespectNulls, " RESPECT NULLS")
	if a.Having != nil {
		text += when(a.HavingMax, " HAVING MAX ") + when(!a.HavingMax, " HAVING MIN ") + p.expr(a.Having)
	}
	text += prefixed(" ORDER BY ", p.sortKeys(a.OrderBy)) + prefixed(" LIMIT ", p.expr(a.Limit)) + prefixed(" WHERE ", p.expr(a.Where))
	return name(a.Func) + "(" + text + ")"
}

func (p *printer) groupingSets(s *Aggregate) string {
	var words []string
	for _, set := range s.GroupingSets {
		words = append(words, fmt.Sprint(set))
	}
	for _, g := range s.Grouping {
		words = append(words, fmt.Sprintf("%s := GROUPING(%d)", column(g.Col), g.Key))
	}
	return strings.Join(words, " ")
}

package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// transfer copies conditions of one relation in an inner join to others: with a.x = b.y, what holds for a.x holds for b.y. It
// does so only where b can seek by y.
func (g *joinGroup) transfer() {
	equals := g.equalColumns()
	if len(equals) == 0 {
		return
	}
	extra := make([][]tree.Expr, len(g.leaves))
	for _, from := range g.leaves {
		s, ok := from.(*scanRel)
		if !ok {
			continue
		}
		for _, sg := range s.analyze(s.conds).sargs {
			col := s.out[s.place(sg.column)]
			if !transferable(s.conds[sg.cond], col) {
				continue
			}
			for _, other := range equals[col.ID] {
				if i := g.seekableLeaf(other); i >= 0 {
					extra[i] = append(extra[i], replace(s.conds[sg.cond], map[int]tree.Expr{col.ID: &tree.Ref{Col: other}}))
				}
			}
		}
	}
	for i, conds := range extra {
		if len(conds) > 0 {
			g.leaves[i] = push(g.leaves[i], conds)
		}
	}
}

// equalColumns are, for each column, those that the join's conditions make equal to it.
func (g *joinGroup) equalColumns() map[int][]tree.Col {
	equals := map[int][]tree.Col{}
	for _, c := range g.conds {
		eq, ok := isCall(c, "$equal")
		if !ok {
			continue
		}
		a, ok := eq.Args[0].(*tree.Ref)
		b, also := eq.Args[1].(*tree.Ref)
		if ok && also && a.Col.Type.Kind == b.Col.Type.Kind {
			equals[a.Col.ID] = append(equals[a.Col.ID], b.Col)
			equals[b.Col.ID] = append(equals[b.Col.ID], a.Col)
		}
	}
	return equals
}

// transferable says whether a condition is a comparison of just this column with what is known without any row. An equality
// is of no use: it leaves so few rows that the others are looked up by them.
func transferable(cond tree.Expr, col tree.Col) bool {
	c, ok := cond.(*tree.Call)
	if !ok || hasSubquery(cond) {
		return false
	}
	if compares, ok := comparisons[c.Func.Name]; (!ok || compares.op == sargEqual) && c.Func.Name != "$in" && c.Func.Name != "$in_array" {
		return false
	}
	refs := refsOf(cond)
	return len(refs) == 1 && refs[col.ID]
}

// seekableLeaf is the place of the relation that has a column as the first part of its key or of an index, and no condition on it yet;
// -1 if there is none.
func (g *joinGroup) seekableLeaf(col tree.Col) int {
	for i, leaf := range g.leaves {
		s, ok := leaf.(*scanRel)
		if !ok || s.table.Rows != nil {
			continue
		}
		for j, out := range s.out {
			if out.ID == col.ID && s.seeksFirstBy(s.columns[j]) {
				if rejected(s.conds, col.ID) {
					return -1
				}
				return i
			}
		}
	}
	return -1
}

func (s *scanRel) seeksFirstBy(c *schema.Column) bool {
	if len(s.table.Key) > 0 && s.table.Key[0].Column == c {
		return true
	}
	for _, x := range s.table.Indexes {
		if x.Key[0].Column == c {
			return true
		}
	}
	return false
}

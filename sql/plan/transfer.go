package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// transfer copies conditions from one relation of an inner join to others: if a.x = b.y, a condition on a.x also holds for b.y. It copies a
// condition only if b can seek by y.
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

// equalColumns returns, for each column, the columns that the join's conditions make equal to it.
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

// transferable reports whether a condition compares only this column with values that are known without any row. It is false for equality:
// an equality leaves so few rows that the join looks up the other relations by them.
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

// seekableLeaf returns the place of the relation in which col is the first part of the key or of an index, if no condition bounds col yet.
// It returns -1 if there is none.
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

package plan

import "github.com/crowfoot-db/crowfoot/sql/tree"

// buildUnion makes a UNION ALL. If all its inputs come in the wanted order, it merges them.
func (p *planner) buildUnion(r *unionRel, req request) (built, error) {
	var keep []int
	out := built{at: slots{}}
	for j, c := range r.out {
		if req.need[c.ID] {
			out.at[c.ID] = len(keep)
			keep = append(keep, j)
		}
	}
	order, merges := inSlots(req.order, out.at)
	merges = merges && len(order) > 0 && p.merges()
	n := &UnionAll{}
	var from []map[int]origin
	for i, in := range r.inputs {
		want := make([]tree.Col, len(keep))
		for k, j := range keep {
			want[k] = r.columns[i][j]
		}
		below := request{need: setOf(want), limit: req.limit, prefer: ids(want)}
		if merges {
			below.order = r.orderOf(i, req.order)
		}
		b, err := p.build(in, below)
		if err != nil {
			return built{}, err
		}
		have, fixed := b.orderIn(want)
		from = append(from, b.originsOf(want))
		merges = merges && satisfies(have, fixed, b.distinct, order)
		n.Inputs = append(n.Inputs, b.exactly(want))
	}
	out.node, out.from = n, p.unionOrigins(from, len(keep))
	if merges {
		n.Order, out.order = r.slotKeys(order, keep), order
	}
	return out, nil
}

// orderOf translates an order of the union's rows to the columns of input i.
func (r *unionRel) orderOf(i int, order []orderKey) []orderKey {
	var list []orderKey
	for _, k := range order {
		for j, c := range r.out {
			if c.ID == k.col {
				k.col = r.columns[i][j].ID
				break
			}
		}
		list = append(list, k)
	}
	return list
}

// slotKeys returns the sort keys of an order. Slot i of the row is column keep[i] of the union.
func (r *unionRel) slotKeys(order []slotOrder, keep []int) []SortKey {
	var list []SortKey
	for _, o := range order {
		c := r.out[keep[o.slot]]
		list = append(list, SortKey{Expr: &Slot{T: c.Type, Index: o.slot, Name: c.Name}, Desc: o.desc, NullsFirst: o.nullsFirst})
	}
	return list
}

// orderIn returns the order of b's rows, and the columns that have one value in all of them, by the places of these columns in cols.
func (b built) orderIn(cols []tree.Col) ([]slotOrder, map[int]bool) {
	places := map[int]int{}
	for i, c := range cols {
		places[b.at[c.ID]] = i
	}
	return moveOrder(b, places)
}

// originsOf returns the origins of b's slots by the places of their columns in cols.
func (b built) originsOf(cols []tree.Col) map[int]origin {
	from := map[int]origin{}
	for i, c := range cols {
		if o, ok := b.from[b.at[c.ID]]; ok {
			from[i] = o
		}
	}
	return from
}

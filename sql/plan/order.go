package plan

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// satisfies reports whether rows that come in one order (the parameter have) always come in a second order (the
// parameter want), too. It ignores slots that have the same value in every row (fixed). The parameter distinct says
// that no two rows agree in all keys of the first order, so that further keys of the second order do not matter.
func satisfies(have []slotOrder, fixed map[int]bool, distinct bool, want []slotOrder) bool {
	i := 0
	for _, w := range want {
		if fixed[w.slot] {
			continue
		}
		for i < len(have) && have[i].slot >= 0 && fixed[have[i].slot] {
			i++
		}
		if i == len(have) {
			return distinct && len(have) > 0
		}
		h := have[i]
		if h.slot != w.slot || h.desc != w.desc || !h.notNull && h.nullsFirst != w.nullsFirst {
			return false
		}
		i++
	}
	return true
}

// major returns the number of leading keys of want by which the rows are already sorted, so that only rows that are
// equal by these keys must be sorted by the others. It returns 0 if these leading keys have the same value in every
// row, because all rows would then be equal by them.
func (b *built) major(want []slotOrder) int {
	for n := len(want) - 1; n > 0; n-- {
		if varies(want[:n], b.fixed) && satisfies(b.order, b.fixed, b.distinct, want[:n]) {
			return n
		}
	}
	return 0
}

// varies reports whether some slot of an order can have different values in different rows. The slots in fixed have one
// value in all rows.
func varies(order []slotOrder, fixed map[int]bool) bool {
	return slices.ContainsFunc(order, func(o slotOrder) bool { return !fixed[o.slot] })
}

// reversed returns the order in which the same rows come when they are read from the end.
func reversed(order []slotOrder) []slotOrder {
	out := slices.Clone(order)
	for i := range out {
		out[i].desc = !out[i].desc
		out[i].nullsFirst = !out[i].nullsFirst
	}
	return out
}

// groups reports whether rows that come in a given order (the parameter have) come group by group: rows with equal
// values in all slots of the list keys then follow each other.
func groups(have []slotOrder, fixed map[int]bool, keys []int) bool {
	left := map[int]bool{}
	for _, k := range keys {
		if !fixed[k] {
			left[k] = true
		}
	}
	for _, h := range have {
		if len(left) == 0 {
			return true
		}
		if h.slot >= 0 && fixed[h.slot] {
			continue
		}
		if !left[h.slot] {
			return false
		}
		delete(left, h.slot)
	}
	return len(left) == 0
}

// wanted translates the keys of an ORDER BY to an order of columns. It returns nil if a key is not a column or has
// a collation.
func wanted(keys []tree.SortKey) []orderKey {
	var list []orderKey
	for _, k := range keys {
		ref, ok := k.Expr.(*tree.Ref)
		if !ok || k.Collation != "" {
			return nil
		}
		list = append(list, orderKey{col: ref.Col.ID, desc: k.Desc, nullsFirst: k.NullsFirst})
	}
	return list
}

// inSlots translates an order of columns to slots. ok is false if the row lacks one of the columns.
func inSlots(keys []orderKey, at slots) (list []slotOrder, ok bool) {
	for _, k := range keys {
		slot, ok := at[k.col]
		if !ok {
			return nil, false
		}
		list = append(list, slotOrder{slot: slot, desc: k.desc, nullsFirst: k.nullsFirst})
	}
	return list, true
}

// buildSort plans an ORDER BY. It adds a sort, unless the input's rows are already in the right order. limit is the
// greatest number of rows to return, nil for all.
func (p *planner) buildSort(r *sortRel, req request, limit Expr) (built, error) {
	want := wanted(r.keys)
	in := req.with(refsOf(tree.SortExprs(r.keys)...))
	in.order, in.group = want, nil
	b, err := p.build(r.in, in)
	if err != nil {
		return built{}, err
	}
	if order, ok := inSlots(want, b.at); ok && len(order) > 0 && satisfies(b.order, b.fixed, b.distinct, b.firsts(order)) {
		if s := driving(b.node); s != nil {
			s.Ordered = true
		}
		if limit != nil {
			pushLimit(b.node, limit)
		}
		return b, nil
	}
	n := &Sort{Input: b.node, Limit: limit}
	if order, ok := inSlots(want, b.at); ok {
		n.Major = b.major(b.firsts(order))
	}
	if s := driving(b.node); s != nil && n.Major > 0 {
		s.Ordered = true
	}
	if n.Keys, err = p.sortKeys(r.keys, b.at); err != nil {
		return built{}, err
	}
	b.node, b.distinct = n, false
	b.order, _ = inSlots(want, b.at)
	return b, nil
}

func (p *planner) sortKeys(keys []tree.SortKey, at slots) ([]tree.SortKey, error) {
	var list []tree.SortKey
	for _, k := range keys {
		e, err := p.scalar(k.Expr, at)
		if err != nil {
			return nil, err
		}
		k.Expr = e
		list = append(list, k)
	}
	return list, nil
}

// buildLimit plans a LIMIT. It passes the limit to the sort or the scan below. It adds a Limit operator if rows
// must be skipped, or if the operator below does not stop at the limit.
func (p *planner) buildLimit(r *limitRel, req request) (built, error) {
	count, err := p.optional(r.count, slots{})
	if err != nil {
		return built{}, err
	}
	offset, err := p.optional(r.offset, slots{})
	if err != nil {
		return built{}, err
	}
	through := count // the number of rows that the operator below must return
	if count != nil && offset != nil {
		through = sumOf(count, offset)
	}
	if n := limitRows(r.count); n > 0 {
		req.limit = n + limitRows(r.offset)
	}
	var b built
	if s, ok := r.in.(*sortRel); ok {
		b, err = p.buildSort(s, req, through)
	} else {
		b, err = p.build(r.in, req)
		if err == nil && through != nil {
			pushLimit(b.node, through)
		}
	}
	if err != nil {
		return built{}, err
	}
	if offset != nil || !counts(b.node, count) {
		b.node = &Limit{Input: b.node, Count: count, Offset: offset}
	}
	return b, nil
}

// pushLimit sets the limit of the scan or the merging union below n. It does so only if each row of that scan or union
// becomes exactly one row of n.
func pushLimit(n Node, limit Expr) {
	switch n := n.(type) {
	case *Scan:
		if n.Limit == nil {
			n.Limit = limit
		}
	case *UnionAll:
		if n.Order != nil && n.Limit == nil {
			n.Limit = limit
		}
	case *Compute:
		pushLimit(n.Input, limit)
	case *Apply:
		if back, ok := n.Right.(*Scan); n.BackJoin && ok && back.Residual == nil {
			pushLimit(n.Left, limit)
		}
	}
}

// counts reports whether the operator n itself stops after limit rows, so that no Limit operator is needed above n.
func counts(n Node, limit Expr) bool {
	switch n := n.(type) {
	case *Scan:
		return n.Limit == limit
	case *Sort:
		return n.Limit == limit
	case *UnionAll:
		return n.Limit == limit
	case *Compute:
		return counts(n.Input, limit)
	case *Apply:
		return n.BackJoin && counts(n.Left, limit)
	}
	return false
}

package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// A key whose leading parts have lists of values is a number of streams, one for each combination of these values. In each, rows come in the
// order of the parts that follow; merged, all do.

// merges says whether scans and unions may merge streams that come in order. A partition of a query is a range of keys, whose rows come in key order.
func (p *planner) merges() bool {
	if l, ok := p.hints["ALLOW_DISTRIBUTED_MERGE"].(*tree.Literal); ok && isNever(l) {
		return false
	}
	return !p.options.Batch
}

// arrangeMost has an access give its rows in an order, or sorted by as many of its first keys as it can, and returns by how many.
func (p *planner) arrangeMost(s *scanRel, a *access, want []slotOrder) int {
	_, fixed := s.orderOf(a)
	for n := len(want); n > 0; n-- {
		if (n == len(want) || varies(want[:n], fixed)) && p.arrange(s, a, want[:n]) {
			return n
		}
	}
	return 0
}

// arrange has an access give its rows in an order, if it can: by reading in reverse, or by merging the streams that the lists of leading key parts
// make.
func (p *planner) arrange(s *scanRel, a *access, want []slotOrder) bool {
	for a.merge = 0; a.merge == 0 || p.merges() && a.merge <= a.listed(); a.merge++ {
		for _, a.reverse = range []bool{false, true} {
			a.mergeKey = s.mergeKey(a, want)
			order, fixed := s.orderOf(a)
			if a.reverse {
				order = reversed(order)
			}
			if satisfies(order, fixed, s.distinct(a), want) {
				return true
			}
		}
	}
	a.merge, a.mergeKey, a.reverse = 0, nil, false
	return false
}

// mergeKey is by which parts of the key streams are to be merged for an order that has columns of the first parts in it; nil for any other
// order. The other parts are taken as they come.
func (s *scanRel) mergeKey(a *access, want []slotOrder) []MergePart {
	first := map[int]int{} // the parts that tell streams apart, by their columns
	for i, part := range a.key[:a.merge] {
		if slot := s.place(part.Column); slot >= 0 && !a.fixed[i] {
			first[slot] = i
		}
	}
	rest := (&access{key: a.key, fixed: a.fixed, merge: a.merge}).orderedBy()
	var list []MergePart
	found := false
	for _, w := range want {
		if i, ok := first[w.slot]; ok {
			list = append(list, MergePart{Part: i, Inverted: a.key[i].Desc != w.desc != a.reverse})
			delete(first, w.slot)
			found = true
		} else if len(rest) > 0 && s.place(a.key[rest[0].Part].Column) == w.slot {
			list, rest = append(list, rest[0]), rest[1:]
		}
	}
	if !found {
		return nil
	}
	return list
}

// listed is how many leading key parts every seek gives single values.
func (a *access) listed() int {
	if len(a.seeks) == 0 {
		return 0
	}
	n := len(a.key)
	for i := range a.seeks {
		n = min(n, max(len(a.seeks[i].parts), a.seeks[i].tupleLen))
	}
	return n
}

// distinct says whether the key parts that an access gives rows in the order of differ, together, in every row. If streams are merged they must
// hold the table's whole key.
func (s *scanRel) distinct(a *access) bool {
	if a.merge == 0 {
		return true
	}
	held := map[*schema.Column]bool{}
	for i, part := range a.key {
		held[part.Column] = a.fixed[i]
	}
	for _, m := range a.orderedBy() {
		held[a.key[m.Part].Column] = true
	}
	for _, k := range s.table.Key {
		if !held[k.Column] {
			return false
		}
	}
	return true
}

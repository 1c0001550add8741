package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// If seeks have lists of values for the leading key parts, they read several streams of rows: one for each combination of these values.
// Each stream is sorted by the key parts that follow. A scan that merges the streams gives all rows in that order.

// merges reports whether scans and unions may merge sorted streams. The hint ALLOW_DISTRIBUTED_MERGE=FALSE forbids it. A query that is cut
// into partitions does not merge either: a partition is a range of keys, and its rows come in key order.
func (p *planner) merges() bool {
	if l, ok := p.hints["ALLOW_DISTRIBUTED_MERGE"].(*tree.Literal); ok && isNever(l) {
		return false
	}
	return !p.options.Batch
}

// arrangeMost makes an access give its rows in the wanted order, or sorted by as many of the first wanted keys as it can. It returns their
// number.
func (p *planner) arrangeMost(s *scanRel, a *access, want []slotOrder) int {
	_, fixed := s.orderOf(a)
	for n := len(want); n > 0; n-- {
		if (n == len(want) || varies(want[:n], fixed)) && p.arrange(s, a, want[:n]) {
			return n
		}
	}
	return 0
}

// arrange makes an access give its rows in the wanted order and reports whether that is possible. The access may read in reverse, or merge
// the streams that the lists of leading key parts make.
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

// mergeKey returns the key parts by which streams must be merged for an order that includes columns of the first a.merge parts. It returns
// nil for any other order. The parts after the first a.merge keep their sequence.
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

// listed returns how many leading key parts have single values in every seek.
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

// distinct reports whether no two rows agree in all key parts that the access sorts by. If streams are merged, these parts, with those that
// have one value, must include the table's whole key.
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

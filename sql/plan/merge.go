package plan

import "github.com/crowfoot-db/crowfoot/sql/tree"

// A key whose leading parts have lists of values is a number of streams, one for each combination of these values. In each, rows come in the
// order of the parts that follow; merged, all do.

// merges says whether scans and unions may merge streams that come in order. A partition of a query is a range of keys, whose rows come in key order.
func (p *planner) merges() bool {
	if l, ok := p.hints["ALLOW_DISTRIBUTED_MERGE"].(*tree.Literal); ok && isNever(l) {
		return false
	}
	return !p.options.Batch
}

// arrange has an access give its rows in an order, if it can: by reading in reverse, or by merging the streams that the lists of leading key parts
// make.
func (p *planner) arrange(s *scanRel, a *access, want []slotOrder) bool {
	for a.merge = 0; a.merge == 0 || p.merges() && a.merge <= a.listed(); a.merge++ {
		order, fixed := s.orderOf(a)
		a.reverse = false
		if satisfies(order, fixed, s.distinct(a), want) {
			return true
		}
		a.reverse = true
		if satisfies(reversed(order), fixed, s.distinct(a), want) {
			return true
		}
	}
	a.merge, a.reverse = 0, false
	return false
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
	for _, k := range s.table.Key {
		found := false
		for i, part := range a.key {
			found = found || part.Column == k.Column && (i >= a.merge || a.fixed[i])
		}
		if !found {
			return false
		}
	}
	return true
}

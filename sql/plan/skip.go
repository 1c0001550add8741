package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// A skip scan finds the values of a key part by seeking past each of them, and reads the keys that begin with each value. It serves
// conditions on, or an order by, the key parts after that one, if the statement names no values for the part itself. The planner does not
// know how many values there are. If a run finds too many, it reads all keys in one range instead, so that a wrong guess costs a bounded
// number of seeks. The planner takes both outcomes to be equally likely.

// guessPrefixes is the guessed number of values of a key part. A column that shards keys has some tens of values.
const guessPrefixes = 100.0

// guessValues guesses how many values a column has.
func guessValues(c *schema.Column) float64 {
	if c.Type.Kind == value.Bool {
		return 3
	}
	return guessPrefixes
}

// skips returns skip scans of the table and of the indexes that list reads. A plan that is cut into partitions gets none. Neither does a
// scan that runs once for each row of another, since it would look for the same values again and again.
func (p *planner) skips(s *scanRel, list []*access, req request) []*access {
	if p.options.Batch || s.table.Rows != nil || !refsOf(s.conds...).within(setOf(s.out)) {
		return nil
	}
	pred := s.analyze(s.conds)
	var out []*access
	for _, a := range list {
		if k := s.skipping(a, pred, req); k != nil {
			out = append(out, k)
		}
	}
	return out
}

// skipping returns the skip scan of the table or index that from reads, or nil if it would be of no use.
func (s *scanRel) skipping(from *access, pred predicate, req request) *access {
	a := &access{index: from.index, key: from.key, covering: from.covering, forced: from.forced, skips: true}
	b := newBinder(a, pred.sargs)
	b.equals()
	n := len(b.seek.parts)
	if n+1 >= len(a.key) || a.index == nil && s.table.Parent != nil && n < len(s.table.Parent.Key) {
		return nil // no part follows, or the part has as many values as the parent has rows
	}
	b.seek.each = b.between(n)
	b.seek.parts = append(b.seek.parts, sarg{op: sargEach, column: a.key[n].Column, cond: -1})
	b.tuples *= guessPrefixes
	b.lists++
	b.equals()
	if k := len(b.seek.parts); k < len(a.key) {
		b.seek.bounds = b.between(k)
	}
	if len(b.seek.parts) == n+1 && !b.seek.bounds.any() && !s.wantsFirst(req, a.key[n+1]) {
		return nil
	}
	a.seeks, a.used = []seek{b.seek}, b.used
	a.useNotNull(pred)
	a.estimate(pred)
	return a
}

// wantsFirst reports whether the request asks for the first rows in the order of a key part.
func (s *scanRel) wantsFirst(req request, part schema.KeyPart) bool {
	place := s.place(part.Column)
	return req.limit > 0 && len(req.order) > 0 && place >= 0 && s.out[place].ID == req.order[0].col
}

// Skips reports whether the scan is a skip scan: it looks for the values that a key part has.
func (n *Scan) Skips() bool { return n.skipped() >= 0 }

// skipped returns the key part whose values a skip scan looks for; -1 for any other scan.
func (n *Scan) skipped() int {
	for _, s := range n.Seeks {
		for i, p := range s.Parts {
			if p.Each {
				return i
			}
		}
	}
	return -1
}

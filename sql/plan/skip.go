package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// A skip scan finds the values that a key part has by seeking past each of them, and reads the keys that begin with each. It serves conditions
// on, or an order by, the key parts after that one, where the statement names no values for the part itself. The planner does not know how many
// values there are. If they prove to be too many the run reads them all in one range instead, so that a wrong guess costs a bounded number
// of seeks. Either is held to be as likely as the other.

// guessPrefixes is how many values a key part is guessed to have. Keys are sharded by some tens of values.
const guessPrefixes = 100.0

// guessValues guesses how many values a column has.
func guessValues(c *schema.Column) float64 {
	if c.Type.Kind == value.Bool {
		return 3
	}
	return guessPrefixes
}

// skips are skip scans of the table and the indexes that list reads. There are none in a plan that is cut into partitions, and none for a scan that
// runs once for each row of another: it would look for the same values again and again.
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

// skipping is the skip scan of the table or index that from reads, or nil if there is no use for one.
func (s *scanRel) skipping(from *access, pred predicate, req request) *access {
	a := &access{index: from.index, key: from.key, covering: from.covering, forced: from.forced, skips: true}
	b := newBinder(a, pred.sargs)
	b.equals()
	n := len(b.seek.parts)
	if n+1 >= len(a.key) || a.index == nil && s.table.Parent != nil && n < len(s.table.Parent.Key) {
		return nil // nothing follows, or it has as many values as the parent has rows
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

// wantsFirst says whether the request is for the first rows by order of a key part.
func (s *scanRel) wantsFirst(req request, part schema.KeyPart) bool {
	place := s.place(part.Column)
	return req.limit > 0 && len(req.order) > 0 && place >= 0 && s.out[place].ID == req.order[0].col
}

// Skips says whether the scan looks for the values that a key part has.
func (n *Scan) Skips() bool { return n.skipped() >= 0 }

// skipped is the key part whose values a skip scan looks for; -1 if the scan is none.
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

package txn

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// TestRunOverlaps checks overlaps and covers for random requests: points, ranges and runs (table.Run). Two requests
// overlap if and only if they have a key in common. A request covers another one only if it has all keys of the other
// one.
func TestRunOverlaps(t *testing.T) {
	const keys = 12
	name := func(i int) string { return fmt.Sprintf("%02d\x00", i) }
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(tx *Tx) (*request, map[int]bool) {
		r, has := &request{tx: tx, mode: table.LockExclusive, granted: true}, map[int]bool{}
		from, to := rng.IntN(keys), 0
		switch rng.IntN(3) {
		case 0:
			r.start, has[from] = name(from), true
		case 1:
			to = from + 1 + rng.IntN(keys-from)
			r.start, r.end = name(from), name(to)
			for i := from; i < to; i++ {
				has[i] = true
			}
		default:
			r.run = table.NewRun(0, 0)
			for range 1 + rng.IntN(4) {
				i := rng.IntN(keys)
				has[i] = true
				r.run.Add([]byte(name(i)), nil)
			}
			r.run.Sort()
			r.start, r.end = string(r.run.Key(0)), string(mvcc.After(nil, r.run.Key(r.run.Len()-1)))
		}
		return r, has
	}
	tx, common, covered := new(Tx), 0, 0
	for range 20_000 {
		a, inA := random(tx)
		b, inB := random(tx)
		overlap, all := false, true
		for i := range inB {
			overlap, all = overlap || inA[i], all && inA[i]
		}
		if a.overlaps(b) != overlap || b.overlaps(a) != overlap {
			t.Fatalf("%v and %v overlap: %v", inA, inB, a.overlaps(b))
		}
		if a.covers(b) && !all {
			t.Fatalf("%v covers %v", inA, inB)
		}
		if overlap {
			common++
		}
		if a.covers(b) {
			covered++
		}
	}
	if common == 0 || covered == 0 {
		t.Errorf("%d overlap, %d are covered", common, covered)
	}
}

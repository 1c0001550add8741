package immutable

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMap checks that all methods of a Map give the same results as a Go map after the same random changes. It also
// checks that Maps of earlier steps have not changed.
func TestMap(t *testing.T) {
	const keys = 200
	r := rand.New(rand.NewPCG(1, 2))
	type version struct {
		made *Map[int, int]
		want map[int]int
	}
	now := version{nil, map[int]int{}}
	var kept []version
	for step := range 4000 {
		before := now
		now.want = maps.Clone(now.want)
		for range 1 + r.IntN(3) {
			if k := r.IntN(keys); r.IntN(2) == 0 {
				now.made, now.want[k] = now.made.With(k, step+1), step+1
			} else {
				now.made = now.made.Without(k)
				delete(now.want, k)
			}
		}
		compareMaps(t, now.made, now.want, r.IntN(keys))
		compareDifferences(t, before.made, now.made, before.want, now.want)
		if r.IntN(100) == 0 {
			kept = append(kept, now)
		}
	}
	for _, old := range kept {
		compareMaps(t, old.made, old.want, r.IntN(keys))
		compareDifferences(t, old.made, now.made, old.want, now.want)
	}
}

func compareMaps(t *testing.T, got *Map[int, int], want map[int]int, from int) {
	t.Helper()
	if got.Len() != len(want) || !maps.Equal(maps.Collect(got.All()), want) {
		t.Fatalf("%d keys, want %d", got.Len(), len(want))
	}
	sorted := slices.Sorted(maps.Keys(want))
	var forward, backward, rest []int
	for k, v := range got.All() {
		if found, ok := got.Get(k); !ok || found != v {
			t.Fatalf("key %d has %d and %d", k, v, found)
		}
		forward = append(forward, k)
	}
	for k := range got.Backward() {
		backward = append(backward, k)
	}
	for k := range got.From(from) {
		rest = append(rest, k)
	}
	slices.Reverse(backward)
	at, found := slices.BinarySearch(sorted, from)
	if _, ok := got.Get(from); ok != found {
		t.Fatalf("key %d: found %v, want %v", from, ok, found)
	}
	if !slices.Equal(forward, sorted) || !slices.Equal(backward, sorted) || !slices.Equal(rest, sorted[at:]) {
		t.Fatalf("in order %v, backward %v, from %d %v, want %v", forward, backward, from, rest, sorted)
	}
	checkBalance(t, got)
}

func checkBalance(t *testing.T, n *Map[int, int]) {
	if n == nil {
		return
	}
	if tilt := n.left.tall() - n.right.tall(); tilt < -1 || tilt > 1 || n.tall() != 1+max(n.left.tall(), n.right.tall()) {
		t.Fatalf("key %d: heights %d and %d", n.key, n.left.tall(), n.right.tall())
	}
	checkBalance(t, n.left)
	checkBalance(t, n.right)
}

func compareDifferences(t *testing.T, before, after *Map[int, int], was, is map[int]int) {
	t.Helper()
	got, want := map[int][2]int{}, map[int][2]int{}
	Differences(before, after, func(k, b, a int) { got[k] = [2]int{b, a} })
	for k := range 200 {
		if was[k] != is[k] {
			want[k] = [2]int{was[k], is[k]}
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("differences %v, want %v", got, want)
	}
}

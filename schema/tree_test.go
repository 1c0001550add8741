package schema

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTree makes the same random changes to a tree and to a map, and compares all methods of the tree with the map.
// Earlier trees must stay as they were.
func TestTree(t *testing.T) {
	const keys = 200
	r := rand.New(rand.NewPCG(1, 2))
	type version struct {
		tree *tree[int, int]
		want map[int]int
	}
	now := version{nil, map[int]int{}}
	var kept []version
	for step := range 4000 {
		before := now
		now.want = maps.Clone(now.want)
		for range 1 + r.IntN(3) {
			if k := r.IntN(keys); r.IntN(2) == 0 {
				now.tree, now.want[k] = now.tree.with(k, step+1), step+1
			} else {
				now.tree = now.tree.without(k)
				delete(now.want, k)
			}
		}
		compareTree(t, now.tree, now.want, r.IntN(keys))
		compareDifferences(t, before.tree, now.tree, before.want, now.want)
		if r.IntN(100) == 0 {
			kept = append(kept, now)
		}
	}
	for _, old := range kept {
		compareTree(t, old.tree, old.want, r.IntN(keys))
		compareDifferences(t, old.tree, now.tree, old.want, now.want)
	}
}

func compareTree(t *testing.T, got *tree[int, int], want map[int]int, from int) {
	t.Helper()
	if got.len() != len(want) || !maps.Equal(maps.Collect(got.all()), want) {
		t.Fatalf("%d keys, want %d", got.len(), len(want))
	}
	sorted := slices.Sorted(maps.Keys(want))
	var forward, backward, rest []int
	for k, v := range got.all() {
		if found, ok := got.get(k); !ok || found != v {
			t.Fatalf("key %d has %d and %d", k, v, found)
		}
		forward = append(forward, k)
	}
	for k := range got.backward() {
		backward = append(backward, k)
	}
	for k := range got.from(from) {
		rest = append(rest, k)
	}
	slices.Reverse(backward)
	at, found := slices.BinarySearch(sorted, from)
	if _, ok := got.get(from); ok != found {
		t.Fatalf("key %d: found %v, want %v", from, ok, found)
	}
	if !slices.Equal(forward, sorted) || !slices.Equal(backward, sorted) || !slices.Equal(rest, sorted[at:]) {
		t.Fatalf("in order %v, backward %v, from %d %v, want %v", forward, backward, from, rest, sorted)
	}
	checkBalance(t, got)
}

func checkBalance(t *testing.T, n *tree[int, int]) {
	if n == nil {
		return
	}
	if tilt := n.left.tall() - n.right.tall(); tilt < -1 || tilt > 1 || n.tall() != 1+max(n.left.tall(), n.right.tall()) {
		t.Fatalf("key %d: heights %d and %d", n.key, n.left.tall(), n.right.tall())
	}
	checkBalance(t, n.left)
	checkBalance(t, n.right)
}

func compareDifferences(t *testing.T, before, after *tree[int, int], was, is map[int]int) {
	t.Helper()
	got, want := map[int][2]int{}, map[int][2]int{}
	differences(before, after, func(k, b, a int) { got[k] = [2]int{b, a} })
	for k := range 200 {
		if was[k] != is[k] {
			want[k] = [2]int{was[k], is[k]}
		}
	}
	if !maps.Equal(got, want) {
		t.Fatalf("differences %v, want %v", got, want)
	}
}

// TestSharing checks that a statement about one of many tables takes memory only for its changes, even if all tables
// refer to one hub table. A new child of the hub must copy no table. A new column of the hub must copy the other tables
// without their columns.
func TestSharing(t *testing.T) {
	c := mustApply(t, NewCatalog(), "CREATE TABLE Hub (K INT64, V INT64) PRIMARY KEY (K)")
	for i := range 300 {
		c = mustApply(t, c, "CREATE TABLE T%d (K INT64, L INT64, FOREIGN KEY (L) REFERENCES Hub (K)) PRIMARY KEY (K)", i)
	}
	count := func(before, after *Catalog) (copied, redefined int) {
		for old := range before.Tables() {
			now := after.TableByID(old.ID)
			if now != old {
				copied++
			}
			if !now.sharesColumns(old) {
				redefined++
			}
		}
		return copied, redefined
	}
	for _, test := range []struct {
		statement         string
		copied, redefined int
	}{
		{"CREATE TABLE N (K INT64) PRIMARY KEY (K)", 0, 0},
		{"CREATE TABLE N (K INT64, FOREIGN KEY (K) REFERENCES Hub (K)) PRIMARY KEY (K)", 0, 0},
		{"CREATE TABLE N (K INT64, L INT64) PRIMARY KEY (K, L), INTERLEAVE IN PARENT Hub ON DELETE CASCADE", 0, 0},
		{"CREATE INDEX ByL ON T7(L)", 1, 1},
		{"ALTER TABLE Hub ADD COLUMN W INT64", 301, 1},
	} {
		next := mustApply(t, c, "%s", test.statement)
		if copied, redefined := count(c, next); copied != test.copied || redefined != test.redefined {
			t.Errorf("%s: %d tables copied and %d redefined, want %d and %d", test.statement, copied, redefined, test.copied, test.redefined)
		}
		if e := encoded(t, c, next); len(e.Objects) != max(test.redefined, 1) {
			t.Errorf("%s: %d tables stored", test.statement, len(e.Objects))
		}
		checkFollows(t, c, next)
	}
}

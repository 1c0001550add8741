package sequence

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
)

func open(t *testing.T, fs vfs.FS) (kv.Store, *Counters) {
	t.Helper()
	store, err := pebble.Open("data", fs)
	if err != nil {
		t.Fatal(err)
	}
	c := New(store)
	c.Open(1, nil)
	return store, c
}

func closeAll(t *testing.T, store kv.Store, c *Counters) {
	t.Helper()
	if err := errors.Join(c.Close(), store.Close()); err != nil {
		t.Fatal(err)
	}
}

func number(n int64) *int64 { return &n }

// TestValues checks that a value is the counter with its low 63 bits reversed, and that State returns the next counter,
// or NULL before the first value.
func TestValues(t *testing.T) {
	store, c := open(t, vfs.NewMem())
	defer closeAll(t, store, c)
	g := &schema.Generator{Counter: 7}
	if _, ok, err := c.State(g); ok || err != nil {
		t.Errorf("state before the first value: %t, %v", ok, err)
	}
	for _, want := range []int64{1 << 62, 1 << 61, 1<<62 + 1<<61, 1 << 60} {
		if v, err := c.Next("s", g); v != want || err != nil {
			t.Errorf("%d, %v; want %d", v, err, want)
		}
	}
	if next, ok, err := c.State(g); next != 5 || !ok || err != nil {
		t.Errorf("state %d, %t, %v", next, ok, err)
	}
	started := &schema.Generator{Counter: 8, Start: number(1000)}
	if v, err := c.Next("s", started); reverse(v) != 1000 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
}

// TestRestart checks that after Close a new process continues with the next number. Without Close, as after a crash, it
// must continue after the reserved numbers.
func TestRestart(t *testing.T) {
	fs := vfs.NewCrashableMem()
	store, c := open(t, fs)
	g := &schema.Generator{Counter: 7}
	wantNext := func(want int64) {
		t.Helper()
		if v, err := c.Next("s", g); err != nil || reverse(v) != want {
			t.Fatalf("counter %d, %v; want %d", reverse(v), err, want)
		}
	}
	wantNext(1)
	wantNext(2)
	closeAll(t, store, c)
	if _, err := c.Next("s", g); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
	store, c = open(t, fs)
	wantNext(3)
	crashed := fs.CrashClone(vfs.CrashCloneCfg{})
	closeAll(t, store, c)
	store, c = open(t, crashed)
	if next, ok, _ := c.State(g); !ok || next != 3+block {
		t.Errorf("after a crash the state is %d, %t", next, ok)
	}
	wantNext(3 + block)
	closeAll(t, store, c)
}

// TestCrashes takes values in several goroutines, and crashes the machine at random moments, so that unsynced data is
// lost. No value may be given out twice, neither by one process nor by the next one.
func TestCrashes(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 0))
		fs := vfs.NewCrashableMem()
		given := map[int64]bool{}
		for range 4 {
			store, c := open(t, fs)
			g := &schema.Generator{Counter: 7, SkipMin: number(1), SkipMax: number(rng.Int64())}
			cut := rng.IntN(4 * block)
			var mu sync.Mutex
			var crashed *vfs.MemFS
			var before []int64 // the values given out before the crash
			var values []int64
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range block {
						v, err := c.Next("s", g)
						mu.Lock()
						if err != nil || g.Skips(v) || v < 0 {
							t.Errorf("%d, %v", v, err)
						}
						values = append(values, v)
						if len(values) == cut {
							before = slices.Clone(values)
							crashed = fs.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
						}
						mu.Unlock()
					}
				})
			}
			all.Wait()
			closeAll(t, store, c)
			slices.Sort(values)
			if len(slices.Compact(values)) != 4*block {
				t.Fatalf("seed %d: a value was given out twice", seed)
			}
			for _, v := range before {
				if given[v] {
					t.Fatalf("seed %d: value %d was given out again after a crash", seed, v)
				}
				given[v] = true
			}
			if crashed != nil {
				fs = crashed
			}
		}
	}
}

// TestFollowing compares the result of following with that of a loop that tries one counter after the other.
func TestFollowing(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2_000 {
		low, high := rng.Int64()>>rng.IntN(63), rng.Int64()>>rng.IntN(63)
		if low > high {
			low, high = high, low
		}
		g := &schema.Generator{SkipMin: &low, SkipMax: &high}
		from := rng.Int64() >> rng.IntN(63)
		got, ok := following(g, from)
		want, found := from, false
		for ; want < lastCounter && want-from < 3_000; want++ {
			if found = !g.Skips(reverse(want)); found {
				break
			}
		}
		if found && (got != want || !ok) {
			t.Fatalf("after %d without [%d, %d]: %d, %t; want %d", from, low, high, got, ok, want)
		}
		if !found && ok && (got < want || g.Skips(reverse(got))) {
			t.Fatalf("after %d without [%d, %d]: %d has the value %d, none before %d", from, low, high, got, reverse(got), want)
		}
	}
}

// TestExhausted checks that a sequence is exhausted when its counter has reached the end, or when its skip range covers
// all remaining values. When the skip range is removed, it must give out values again.
func TestExhausted(t *testing.T) {
	store, c := open(t, vfs.NewMem())
	defer closeAll(t, store, c)
	exhausted := func(g *schema.Generator) {
		t.Helper()
		if _, err := c.Next("s", g); usererror.CodeOf(err) != codes.FailedPrecondition || err.Error() != "Sequence s is exhausted" {
			t.Errorf("%v", err)
		}
	}
	ending := &schema.Generator{Counter: 1, Start: number(math.MaxInt64 - 2)}
	for range 2 {
		if _, err := c.Next("s", ending); err != nil {
			t.Fatal(err)
		}
	}
	exhausted(ending)
	exhausted(ending)
	if next, ok, err := c.State(ending); next != math.MaxInt64 || !ok || err != nil {
		t.Errorf("state %d, %t, %v", next, ok, err)
	}
	skipping := &schema.Generator{Counter: 2, SkipMin: number(0), SkipMax: number(math.MaxInt64)}
	exhausted(skipping)
	exhausted(skipping)
	if v, err := c.Next("s", &schema.Generator{Counter: 2}); reverse(v) != 3 || err != nil {
		t.Errorf("without its skip range: %d, %v", reverse(v), err)
	}
	// The skip range leaves the values 0 and 1. The value 0 is never taken: its counter is 0, and counters begin at 1.
	two := &schema.Generator{Counter: 3, SkipMin: number(2), SkipMax: number(math.MaxInt64)}
	if v, err := c.Next("s", two); v != 1 || err != nil {
		t.Errorf("%d, %v", v, err)
	}
	exhausted(two)
}

// TestRestarted restarts a used sequence and an unused one. The state of the used one must be the start number of the
// restart. Nothing may be stored for the unused one. Forget must delete all counters but those that it is told to keep.
func TestRestarted(t *testing.T) {
	store, c := open(t, vfs.NewMem())
	defer closeAll(t, store, c)
	used, unused := &schema.Generator{Counter: 1}, &schema.Generator{Counter: 2, Start: number(50)}
	if _, err := c.Next("s", used); err != nil {
		t.Fatal(err)
	}
	after, afterUnused := &schema.Generator{Counter: 3, Start: number(100)}, &schema.Generator{Counter: 4, Start: number(100)}
	b := meta.NewBatch(store)
	if err := errors.Join(c.Restarted(b, []schema.Restart{{Generator: after, Before: used}, {Generator: afterUnused, Before: unused}}), b.Commit(), b.Close()); err != nil {
		t.Fatal(err)
	}
	for g, want := range map[*schema.Generator]int64{used: 2, unused: 0, after: 100, afterUnused: 0} {
		if next, ok, err := c.State(g); ok != (want > 0) || ok && next != want || err != nil {
			t.Errorf("counter %d: %d, %t, %v", g.Counter, next, ok, err)
		}
	}
	if v, err := c.Next("s", after); reverse(v) != 100 || err != nil {
		t.Errorf("%d, %v", reverse(v), err)
	}
	if v, err := c.Next("s", unused); reverse(v) != 50 || err != nil { // an undone restart uses the old counter again
		t.Errorf("%d, %v", reverse(v), err)
	}
	b = meta.NewBatch(store)
	if err := errors.Join(c.Forget(b, map[schema.TableID]bool{3: true}), b.Commit(), b.Close()); err != nil {
		t.Fatal(err)
	}
	var left []string
	if err := meta.Each(store, meta.Counter, func(name string, _ []byte) error { left = append(left, name); return nil }); err != nil || len(left) != 1 {
		t.Errorf("%q, %v", left, err)
	}
}

// TestRestartFails makes a restart whose batch is not committed. A second restart, whose counter has the same ID, must
// begin with its own start number.
func TestRestartFails(t *testing.T) {
	store, c := open(t, vfs.NewMem())
	defer closeAll(t, store, c)
	used := &schema.Generator{Counter: 1}
	if _, err := c.Next("s", used); err != nil {
		t.Fatal(err)
	}
	for _, start := range []int64{100, 500} {
		b := meta.NewBatch(store)
		g := &schema.Generator{Counter: 2, Start: &start}
		if err := c.Restarted(b, []schema.Restart{{Generator: g, Before: used}}); err != nil {
			t.Fatal(err)
		}
		if start == 100 {
			if err := b.Close(); err != nil { // drops the batch, like a Commit that fails
				t.Fatal(err)
			}
			continue
		}
		if err := errors.Join(b.Commit(), b.Close()); err != nil {
			t.Fatal(err)
		}
		if v, err := c.Next("s", g); reverse(v) != start || err != nil {
			t.Errorf("the first counter is %d, %v", reverse(v), err)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	store, err := pebble.Open("data", vfs.NewMem())
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	c := New(store)
	c.Open(1, nil)
	next := c.Taker("s", &schema.Generator{Counter: 1})
	for b.Loop() {
		if _, err := next(); err != nil {
			b.Fatal(err)
		}
	}
}

package columnar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestCrash checks that after a crash a copy shows the same rows as its table, and that only the blobs of its chunks
// exist. The test writes chunks anew and drops copies on a file system that loses unsynced data in a crash. It stops
// the machine at many of the file system's operations, and opens the store from the remaining files.
func TestCrash(t *testing.T) {
	points := 0
	for seed := range uint64(4) {
		points += crashes(t, seed)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	t.Logf("%d crash points", points)
	if points < 40 {
		t.Errorf("only %d crash points", points)
	}
}

// crashes runs the test with one seed, and returns at how many points it has crashed.
func crashes(t *testing.T, seed uint64) (points int) {
	rng := rand.New(rand.NewPCG(seed, 4))
	mem := vfs.NewCrashableMem()
	var (
		mu       sync.Mutex // guards the variables below, since the store also writes in the background
		watching bool
		clones   []*vfs.MemFS
		crashing = rand.New(rand.NewPCG(seed, 5))
	)
	watch := func(on bool) {
		mu.Lock()
		defer mu.Unlock()
		watching = on
	}
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if watching && op.Kind.ReadOrWrite() == errorfs.OpIsWrite && crashing.IntN(2) == 0 {
			clones = append(clones, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: crashing.IntN(101), RNG: crashing}))
		}
		return nil
	}))
	h, c, read := someRows(t, fs, 30)
	m := &model{t: t, rng: rng, harness: h, targets: []target{{h.catalog.Table("Top"), nil}}}
	if err := h.store.Flush(t.Context(), 0); err != nil { // makes the rows durable, as commits do
		t.Fatal(err)
	}
	r := c.Open(t.Context(), h.view(read.At), read) // keeps the blobs of the first chunks from being deleted
	watch(true)
	for range 20 {
		switch rng.IntN(6) {
		case 0:
			if err := h.copies.Drop(c.id); err != nil {
				t.Fatal(err)
			}
		case 1:
			if err := h.store.Flush(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		default:
			m.writeChunk()
		}
	}
	watch(false)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	h.check(t) // closing the Reader has deleted the blobs that only the Reader used
	h.close()
	for _, clone := range clones {
		again := &harness{tb: t, fs: clone, catalog: h.catalog, tables: h.tables, now: h.now}
		again.open()
		again.check(t)
		again.close()
	}
	return len(clones)
}

// check compares all copies with the rows of their tables, and the stored blobs with the copies' chunks.
func (h *harness) check(t *testing.T) {
	var want []string
	for _, c := range h.copies.All() {
		for _, ch := range c.Chunks() {
			for _, col := range ch.Columns {
				want = append(want, string(columnKey(testSpace, c.id, ch.Number, col)))
			}
		}
		src := h.source(h.catalog.TableByID(c.id), nil, h.now)
		read := Read{Projection: src.Projection, At: h.now}
		read.Spans, _ = src.Projection.Spans(table.KeySet{All: true})
		rows, err := h.fromRows(read)
		got, gotErr := h.fromCopy(c, read, nil)
		if err != nil || gotErr != nil || !slices.Equal(got, rows) {
			t.Errorf("copy has %d rows, %v; table has %d, %v", len(got), gotErr, len(rows), err)
		}
	}
	slices.Sort(want)
	if got := blobKeys(t, h); !slices.Equal(got, want) {
		t.Errorf("blobs %x are stored, chunks have %x", got, want)
	}
}

// TestNoRoom checks that if the store refuses batches, Write returns an error and the copy does not change.
func TestNoRoom(t *testing.T) {
	h, c, read := someRows(t, vfs.NewMem(), 30)
	defer h.close()
	before := fmt.Sprint(c.Chunks())
	full := &disktest.Refusing{Store: h.store}
	full.When(func() bool { return true })
	copies, err := Open(mvcc.New(full).In(testSpace))
	if err != nil {
		t.Fatal(err)
	}
	c = copies.Of(c.id)
	if _, err := c.Write(t.Context(), h.source(read.Table, nil, h.now), c.Chunks()[0].Span); !errors.Is(err, kv.ErrRefused) {
		t.Errorf("write: %v", err)
	}
	if after := fmt.Sprint(c.Chunks()); after != before {
		t.Errorf("%s, before it was %s", after, before)
	}
}

// TestCollectedWhileRead checks that a Reader which was released in the middle of a read continues with the rows of the
// table if old versions are collected meanwhile. The collection deletes the changes since the timestamps of the chunks,
// so the Reader can no longer use the chunks.
func TestCollectedWhileRead(t *testing.T) {
	h, c, read := someRows(t, vfs.NewMem(), 60)
	defer h.close()
	top := h.catalog.Table("Top")
	c.limits.maxBatch = 4
	var keys [][]value.Value
	for i := range 20 {
		keys = append(keys, []value.Value{value.OfInt64(int64(3 * i))})
	}
	ranges := table.KeySet{}
	for _, k := range keys {
		ranges.Ranges = append(ranges.Ranges, table.KeyRange{Start: k, End: k})
	}
	if !h.commit(table.Mutation{Op: table.Delete, Table: top, Keys: ranges}) {
		t.Fatal("refused")
	}
	read.At = h.now
	want, err := h.fromRows(read)
	if err != nil {
		t.Fatal(err)
	}
	for stop := range 12 {
		runs := 0
		got, err := h.fromCopy(c, read, func(r *Reader) {
			if runs++; runs == stop {
				r.Release()
				if _, err := h.rows.Collect(t.Context(), h.now, nil); err != nil {
					t.Error(err)
				}
			}
		})
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("collected after %d runs: %q, %v, want %q", stop, got, err, want)
		}
		if runs >= stop && stop > 0 {
			// For the next round, the test writes the chunks anew and then deletes rows. So there are changes since the
			// chunks' timestamps. The row 1 is written first, because each round deletes it.
			h.commit(table.Mutation{Op: table.InsertOrUpdate, Table: top, Columns: top.Columns[:2], Rows: [][]value.Value{{value.OfInt64(1), value.OfString("new")}}})
			for _, ch := range c.Chunks() {
				if _, err := c.Write(t.Context(), h.source(top, nil, h.now), ch.Span); err != nil {
					t.Fatal(err)
				}
			}
			c.limits.maxBatch = 4
			h.commit(table.Mutation{Op: table.Delete, Table: top, Keys: table.KeySet{Ranges: []table.KeyRange{
				{Start: []value.Value{value.OfInt64(int64(50 - stop))}, End: []value.Value{value.OfInt64(int64(50 - stop))}},
				{Start: []value.Value{value.OfInt64(1)}, End: []value.Value{value.OfInt64(1)}}}}})
			read.At = h.now
			if want, err = h.fromRows(read); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestSpaces checks that a database finds no copy of another database. This must hold even if the number of its space
// ends in the byte that marks a version in the store (9).
func TestSpaces(t *testing.T) {
	h, c, _ := someRows(t, vfs.NewMem(), 30)
	h.close()
	h.open() // flushes the records into a table file
	defer h.close()
	for space := range mvcc.Space(20) {
		copies, err := Open(mvcc.New(h.store).In(space))
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		if space == testSpace {
			want = 1
		}
		if got := copies.All(); len(got) != want {
			t.Errorf("space %d has %d copies, %d were made", space, len(got), want)
		}
		if orphans, err := copies.Orphans(t.Context()); err != nil || len(orphans) > 0 {
			t.Errorf("space %d has the blobs %q that belong to no chunk, %v", space, orphans, err)
		}
	}
	if n := len(h.copies.Of(c.id).Chunks()); n == 0 {
		t.Error("the copy has no chunks")
	}
}

// TestRefusedDeletion checks that Sweep deletes the blobs of a dropped copy if the store has refused to delete them
// when the copy's last Reader was closed. Another Sweep runs during the refused deletion. It must not make Swept
// report that the blobs are deleted.
func TestRefusedDeletion(t *testing.T) {
	h, c, read := someRows(t, vfs.NewMem(), 30)
	defer h.close()
	store := &disktest.Refusing{Store: h.store}
	h.rows = mvcc.New(store).In(testSpace)
	var err error
	if h.copies, err = Open(h.rows); err != nil {
		t.Fatal(err)
	}
	c = h.copies.Of(c.id)
	r := c.Open(t.Context(), h.view(read.At), read)
	if err := h.copies.Drop(c.id); err != nil {
		t.Fatal(err)
	}
	refused := false
	store.When(func() bool {
		if refused {
			return true
		}
		refused = true
		if err := h.copies.Sweep(); err != nil {
			t.Error(err)
		}
		return true
	})
	if err := r.Close(); err != nil || !refused {
		t.Fatal(refused, err)
	}
	if h.copies.Swept() {
		t.Error("nothing is left to delete")
	}
	store.When(nil)
	if err := h.copies.Sweep(); err != nil {
		t.Error(err)
	}
	h.check(t)
	if !h.copies.Swept() {
		t.Error("something is left to delete")
	}
}

package database

import (
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
)

// counting is a store that counts expensive operations: synced batches, and range deletions. Range deletions are
// expensive because each iterator sorts those that are in memory.
type counting struct {
	kv.Store
	synced, ranges atomic.Int64
}

func (c *counting) NewBatch() kv.Batch { return countedBatch{c.Store.NewBatch(), c} }

type countedBatch struct {
	kv.Batch
	in *counting
}

func (b countedBatch) Commit() error {
	b.in.synced.Add(1)
	return b.Batch.Commit()
}

func (b countedBatch) DeleteRange(lower, upper []byte) error {
	b.in.ranges.Add(1)
	return b.Batch.DeleteRange(lower, upper)
}

// TestCreationIsCheap checks that creating a database commits one synced batch, apart from the batches that reserve
// timestamps. Neither the creation, nor its operation, nor the statistics of the idle database may delete ranges.
func TestCreationIsCheap(t *testing.T) {
	disk, err := pebble.Open("data", vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	store := &counting{Store: disk}
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC) // stands still, so that only the first creation reserves timestamps
	r, err := Open(store, Config{Clock: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	b := &bed{t: t, Registry: r}
	t.Cleanup(func() { b.shut(disk) })
	create := func(name string) *Database {
		d, err := r.CreateDatabase(t.Context(), testName+name, []string{"CREATE TABLE T (K INT64) PRIMARY KEY (K)"})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	create("1")
	synced, ranges := store.synced.Load(), store.ranges.Load()
	d := create("2")
	if n := store.synced.Load() - synced; n != 1 {
		t.Errorf("%d synced batches", n)
	}
	if err := r.PutOperation(Operation{Name: d.Name() + "/operations/made", Started: now, Ended: now}); err != nil {
		t.Fatal(err)
	}
	if err := d.Stats().Advance(); err != nil {
		t.Fatal(err)
	}
	if n := store.ranges.Load() - ranges; n != 0 {
		t.Errorf("%d range deletions", n)
	}
}

package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crowfoot-db/crowfoot/database/copies"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/value"
)

// onDisk opens a database on a test disk. It stops the background upkeep, so that the test itself runs the upkeep.
func onDisk(t *testing.T, disk *disktest.Disk) (copied, *pebble.Store) {
	t.Helper()
	store, err := pebble.Open("data", disk)
	if err != nil {
		t.Fatal(err)
	}
	c := copied{&aged{t: t, store: store}}
	c.now.Store(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	c.open()
	if c.db, err = c.CreateDatabase(t.Context(), testName, modelDDL); err != nil {
		t.Fatal(err)
	}
	c.hold()
	return c, store
}

// TestColumnarFullDisk checks that on a full disk the upkeep returns kv.ErrRefused and the copies keep the right rows.
// When space has been freed, the upkeep must continue.
func TestColumnarFullDisk(t *testing.T) {
	disk := disktest.New("data", 64<<20)
	c, store := onDisk(t, disk)
	c.fill("T", 2000, func(i int) []value.Value {
		return []value.Value{value.OfInt64(int64(i)), value.OfString(fmt.Sprint(i)), value.OfInt64(0)}
	})
	disk.Fill()
	for store.Writable() == nil {
		time.Sleep(time.Millisecond)
	}
	if err := c.upkeep(); !errors.Is(err, kv.ErrRefused) {
		t.Errorf("on a full disk: %v", err)
	}
	c.letGo()
	if pause := c.db.upkeep.Once(t.Context()); pause != copies.AfterRefusal {
		t.Errorf("comes again after %v", pause)
	}
	c.hold()
	compareCopies(t, c.db)
	disk.Empty()
	for store.Writable() != nil {
		time.Sleep(time.Millisecond)
	}
	if err := c.upkeep(); err != nil {
		t.Fatal(err)
	}
	compareCopies(t, c.db)
	if p := c.db.ColumnarPolicies()[0]; p.Rows != 2000 || p.Missing > 0 {
		t.Errorf("with room again: %+v", p)
	}
	c.letGo()
	c.close()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// TestColumnarFaults checks that stored data and copies are right after one disk call has failed while copies were made
// and kept up to date, and the process or the machine has then died. The stored data must be undamaged, and the copies
// must have the same rows as the tables. The test does this for a few calls of each kind.
func TestColumnarFaults(t *testing.T) {
	for name, kinds := range map[string][]errorfs.OpKind{
		"write": {errorfs.OpFileWrite, errorfs.OpFileWriteAt},
		"sync":  {errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo},
		"other": {errorfs.OpCreate, errorfs.OpRename, errorfs.OpFileRead, errorfs.OpFileReadAt, errorfs.OpOpen},
	} {
		t.Run(name, func(t *testing.T) {
			calls := runFaulty(t, kinds, -1)
			points := rand.New(rand.NewPCG(uint64(len(name)), 0)).Perm(int(calls))
			for _, at := range points[:min(6, len(points))] {
				runFaulty(t, kinds, int64(at))
			}
		})
	}
}

// runFaulty makes one disk call fail: of the calls of the given kinds, counted from 0, the one whose number is in the
// parameter at. If that number is negative, no call fails. runFaulty returns how many calls of these kinds there were.
func runFaulty(t *testing.T, kinds []errorfs.OpKind, at int64) int64 {
	t.Helper()
	disk := disktest.New("data", 256<<20)
	c, store := onDisk(t, disk)
	var calls atomic.Int64
	disk.Fail(func(op errorfs.Op) error {
		if !slices.Contains(kinds, op.Kind) || calls.Add(1)-1 != at {
			return nil
		}
		return &fs.PathError{Op: "test", Path: op.Path, Err: syscall.EIO}
	})
	m := copyModel{c, rand.New(rand.NewPCG(3, 0))}
	for range 25 {
		m.tryStep()
		_, _ = m.db.upkeep.Step(context.Background())
	}
	_ = store.Flush(context.Background(), 0)
	disk.Fail(nil)
	for _, kept := range []int{100, 0} {
		m.openCrashed(disk.Files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: kept, RNG: m.rng}))
	}
	c.letGo()
	_ = c.Registry.Close() // may fail, because the failed disk call may have stopped the store
	_ = store.Close()
	return calls.Load()
}

// TestDroppedCopyIsDeletedLater checks that the upkeep tries again to delete the chunks of a dropped copy, until the
// store no longer refuses to delete them. The database has no other copy. Without copies the upkeep pauses forever, but
// it must not do so before the chunks are deleted.
func TestDroppedCopyIsDeletedLater(t *testing.T) {
	a := newAged(t, "CREATE TABLE T (K INT64) PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled')")
	store := &disktest.Refusing{Store: a.store}
	a.reopenOn(store)
	c := copied{a}
	c.hold()
	defer c.letGo()
	a.fill("T", 10, func(i int) []value.Value { return []value.Value{value.OfInt64(int64(i))} })
	if err := c.upkeep(); err != nil {
		t.Fatal(err)
	}
	if err := a.db.UpdateSchema(t.Context(), []string{"ALTER TABLE T SET OPTIONS (columnar_policy = 'disabled')"}, nil); err != nil {
		t.Fatal(err)
	}
	batches := 0
	store.When(func() bool { batches++; return batches > 1 }) // the drop succeeds, and deletions fail
	step := func(want time.Duration) {
		t.Helper()
		if pause, err := a.db.upkeep.Step(t.Context()); pause != want || err != nil {
			t.Errorf("comes again after %v: %v", pause, err)
		}
	}
	step(copies.AfterRefusal)
	b := &bed{t: t, Registry: a.Registry, db: a.db}
	if b.keysWith("columnar/") == 0 {
		t.Error("chunks are deleted")
	}
	step(copies.AfterRefusal)
	store.When(nil)
	step(copies.Forever)
	if n := b.keysWith("columnar/"); n > 0 {
		t.Errorf("%d records of chunks are left", n)
	}
}

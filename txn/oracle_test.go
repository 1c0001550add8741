package txn

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
)

func strongAt(t *testing.T, m *Manager) mvcc.Timestamp {
	t.Helper()
	s, err := m.Snapshot(context.Background(), Bound{})
	if err != nil {
		t.Fatal(err)
	}
	return s.Timestamp()
}

// bounds returns how many bounds of the oracle a store holds.
func bounds(t *testing.T, store kv.Store) (n int) {
	t.Helper()
	it, err := store.NewIter(boundKey(0), boundKey(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		n++
	}
	if it.Error() != nil {
		t.Fatal(it.Error())
	}
	return n
}

// syncedStore counts synced commits, and refuses commits while full is true.
type syncedStore struct {
	kv.Store
	syncs atomic.Int64
	full  atomic.Bool
}

func (s *syncedStore) NewBatch() kv.Batch { return &syncedBatch{s.Store.NewBatch(), s} }

type syncedBatch struct {
	kv.Batch
	s *syncedStore
}

func (b *syncedBatch) Commit() error {
	if b.s.full.Load() {
		return kv.ErrRefused
	}
	b.s.syncs.Add(1)
	return b.Batch.Commit()
}

func newSynced(t *testing.T) (*Manager, *syncedStore, *fakeClock) {
	t.Helper()
	s, clock := &syncedStore{Store: openStore(t, vfs.NewMem(), "data")}, new(fakeClock)
	clock.micros.Store(10_000_000_000)
	return newManager(t, s, clock.now), s, clock
}

// TestStrongReadsFollowClock: without commits, each strong read has the clock's time, and no two reads have the same
// timestamp. The store is synced once a second while reads come, and not at all while there are none.
func TestStrongReadsFollowClock(t *testing.T) { synctest.Test(t, testStrongReadsFollowClock) }

func testStrongReadsFollowClock(t *testing.T) {
	m, s, clock := newSynced(t)
	for range 2 {
		before, seconds := s.syncs.Load(), int64(20)
		for range seconds * 1000 {
			clock.advance(time.Millisecond)
			if at, now := strongAt(t, m), mvcc.TimestampOf(clock.now()); at != now {
				t.Fatalf("strong read at %d, the clock is at %d", at, now)
			}
			synctest.Wait() // until the background goroutine has moved the bound
		}
		if n := s.syncs.Load() - before; n > seconds+1 {
			t.Errorf("%d reservations in %d seconds of reads", n, seconds)
		}
		before = s.syncs.Load()
		time.Sleep(time.Hour)
		clock.advance(time.Hour)
		synctest.Wait()
		if n := s.syncs.Load() - before; n != 0 {
			t.Errorf("%d reservations while nothing was read", n)
		}
	}
	if n := bounds(t, s); n != 1 {
		t.Errorf("the store has %d bounds", n)
	}
}

// TestStrongReadsDoNotWait checks that a strong read waits neither for a sync of the oracle's bound on disk nor for
// commits in flight, if the timestamp that it can get at once is fresh. No commit gets a timestamp below one at which a
// read has read.
func TestStrongReadsDoNotWait(t *testing.T) { synctest.Test(t, testStrongReadsDoNotWait) }

func testStrongReadsDoNotWait(t *testing.T) {
	m, s, clock := gated(t)
	bound := mvcc.Timestamp(m.oracle.durable.Load())
	clock.advance(500 * time.Millisecond)
	flying := beside(func() (mvcc.Timestamp, error) { return commitKey(m, "a", "1") })
	release := <-s.arrived
	first := m.oracle.newest()
	clock.advance(100 * time.Millisecond)
	if at := strongAt(t, m); at != first-1 {
		t.Errorf("strong read at %d, beside a commit at %d that is in flight", at, first)
	}
	release <- nil
	if o := await(t, flying); o.err != nil {
		t.Fatal(o.err)
	}
	if at, now := strongAt(t, m), mvcc.TimestampOf(clock.now()); at != now {
		t.Errorf("strong read at %d, the clock is at %d", at, now)
	}

	clock.advance(bound.Time().Sub(clock.now()) - time.Millisecond)
	before := strongAt(t, m)
	renewal := <-s.arrived // the sync of the new bound has begun
	clock.advance(100 * time.Millisecond)
	read := strongAt(t, m)
	if read <= before || read > bound {
		t.Errorf("strong read at %d after one at %d, with timestamps reserved up to %d", read, before, bound)
	}
	clock.advance(time.Second) // timestamps below the old bound are too old now, so the next read waits
	waiting := beside(func() (mvcc.Timestamp, error) {
		s, err := m.Snapshot(context.Background(), Bound{})
		return s.Timestamp(), err
	})
	s.open = true
	renewal <- nil
	if o := await(t, waiting); o.err != nil || o.ts != mvcc.TimestampOf(clock.now()) {
		t.Errorf("strong read at %d, the clock is at %d: %v", o.ts, mvcc.TimestampOf(clock.now()), o.err)
	}

	latest := strongAt(t, m)
	clock.advance(-time.Hour)
	if at := strongAt(t, m); at != latest {
		t.Errorf("strong read at %d after one at %d and a clock that went back", at, latest)
	}
	if ts := commitOne(t, m, "a", "2"); ts <= latest {
		t.Errorf("commit at %d after a strong read at %d", ts, latest)
	} else if at := strongAt(t, m); at < ts {
		t.Errorf("strong read at %d after a commit at %d", at, ts)
	}
}

// TestReserveBesideCommit checks that the store has one bound afterwards when a commit and a read raise the oracle's
// bound on disk at the same time.
func TestReserveBesideCommit(t *testing.T) { synctest.Test(t, testReserveBesideCommit) }

func testReserveBesideCommit(t *testing.T) {
	m, s, clock := gated(t)
	for range 3 {
		clock.advance(mvcc.Timestamp(m.oracle.durable.Load()).Time().Sub(clock.now()) - 100*time.Millisecond)
		flying := beside(func() (mvcc.Timestamp, error) { return commitKey(m, "a", "1") })
		commit := <-s.arrived
		clock.advance(time.Millisecond)
		strongAt(t, m)
		renewal := <-s.arrived
		commit <- nil
		renewal <- nil
		if o := await(t, flying); o.err != nil {
			t.Fatal(o.err)
		}
		synctest.Wait()
		if n := bounds(t, s); n != 1 {
			t.Errorf("the store has %d bounds", n)
		}
	}
}

// TestStrongReadsOnFullDisk checks strong reads while the disk is full, so that the oracle's bound on disk cannot be
// raised. The reads see all acknowledged commits, at timestamps up to the bound. Their timestamps follow the clock
// again once the disk has room.
func TestStrongReadsOnFullDisk(t *testing.T) { synctest.Test(t, testStrongReadsOnFullDisk) }

func testStrongReadsOnFullDisk(t *testing.T) {
	m, s, clock := newSynced(t)
	ts := commitOne(t, m, "a", "1")
	bound := mvcc.Timestamp(m.oracle.durable.Load())
	s.full.Store(true)
	for range 100 {
		clock.advance(50 * time.Millisecond)
		if at, want := strongAt(t, m), min(mvcc.TimestampOf(clock.now()), bound); at != want || at < ts {
			t.Fatalf("strong read at %d, and not at %d, with timestamps reserved up to %d", at, want, bound)
		}
		synctest.Wait()
	}
	s.full.Store(false)
	for range 100 {
		clock.advance(50 * time.Millisecond)
		if at, now := strongAt(t, m), mvcc.TimestampOf(clock.now()); at != now {
			t.Fatalf("strong read at %d, the clock is at %d", at, now)
		}
		synctest.Wait()
	}
}

// TestCloseDuringRenewal calls Oracle.Close while the oracle is syncing a higher bound to disk. Close must wait for
// that sync, and then lower the bound. Afterwards no goroutine of the oracle may use the store.
func TestCloseDuringRenewal(t *testing.T) { synctest.Test(t, testCloseDuringRenewal) }

func testCloseDuringRenewal(t *testing.T) {
	m, s, clock := gated(t)
	clock.advance(mvcc.Timestamp(m.oracle.durable.Load()).Time().Sub(clock.now()) - time.Millisecond)
	read := strongAt(t, m)
	renewal := <-s.arrived
	s.open = true
	var synced atomic.Bool
	closed := beside(func() (mvcc.Timestamp, error) {
		err := m.oracle.Close()
		if !synced.Load() {
			t.Error("Close has returned while a reservation was being synced")
		}
		return 0, err
	})
	for range 10_000 { // if Close does not wait for the sync, it returns during this loop
		runtime.Gosched()
	}
	synced.Store(true)
	renewal <- nil
	if o := await(t, closed); o.err != nil {
		t.Fatal(o.err)
	}
	s.open = false // if the oracle still commits a batch, the commit waits for ever, and synctest reports a deadlock
	clock.advance(500 * time.Millisecond)
	if at := strongAt(t, m); at != read {
		t.Errorf("strong read at %d after Close, %d before", at, read)
	}
	synctest.Wait()
	next, err := NewOracle(s.Store, clock.now)
	if err != nil {
		t.Fatal(err)
	}
	if at := next.Visible(); at != read {
		t.Errorf("the next start is at %d, the last read was at %d", at, read)
	}
}

// TestStrongReadsBeforeCrash checks the timestamps of strong reads before and after a crash. After the restart,
// commits must get timestamps above those of all strong reads before the crash, and strong reads must get timestamps
// at or above them, even if the clock has gone back. The test reads a database without commits, and crashes the
// machine many times, before writes to the file system and after reads. Each crash loses a random part of the
// unsynced data.
func TestStrongReadsBeforeCrash(t *testing.T) {
	var points atomic.Int64
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 0))
		mem, clock := vfs.NewCrashableMem(), new(fakeClock)
		clock.micros.Store(10_000_000_000)
		var read atomic.Int64 // the newest timestamp of a strong read
		crash := func(rng *rand.Rand) {
			floor := mvcc.Timestamp(read.Load())
			rest := mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: rng.IntN(101), RNG: rng})
			back := time.Duration(rng.IntN(2)) * time.Hour
			if err := startAbove(rest, func() time.Time { return clock.now().Add(-back) }, floor); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			points.Add(1)
		}
		var writes atomic.Uint64
		store := openStore(t, errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
				// crash takes a copy of the disk as a crash before this write would leave it, and checks the copy. Some
				// of the writes store the bound on the oracle's timestamps, so there are copies with the old bound and
				// with the new one.
				crash(rand.New(rand.NewPCG(seed, writes.Add(1))))
			}
			return nil
		})), "data")
		m := newManager(t, store, clock.now)
		for range 100 {
			clock.advance(time.Duration(rng.IntN(500)) * time.Millisecond)
			read.Store(int64(strongAt(t, m)))
			if rng.IntN(4) == 0 {
				crash(rng)
			}
		}
		m.oracle.stop()
	}
	t.Logf("%d crash points", points.Load())
}

// startAbove opens a store after a crash. It returns an error if a strong read gets a timestamp below floor, or if a
// commit gets one that is not above both floor and the strong read.
func startAbove(fs vfs.FS, clock func() time.Time, floor mvcc.Timestamp) error {
	store, err := pebble.Open("data", fs)
	if err != nil {
		return err
	}
	defer store.Close()
	oracle, err := NewOracle(store, clock)
	if err != nil {
		return err
	}
	m := NewManager(mvcc.New(store).In(1), oracle, Config{})
	defer oracle.stop()
	s, err := m.Snapshot(context.Background(), Bound{})
	if err != nil {
		return err
	}
	if s.Timestamp() < floor {
		return fmt.Errorf("strong read at %d after the crash, %d before", s.Timestamp(), floor)
	}
	ts, err := commitKey(m, "a", "1")
	if err != nil {
		return err
	}
	if ts <= max(floor, s.Timestamp()) {
		return fmt.Errorf("commit at %d after the crash, strong reads at %d before and %d after", ts, floor, s.Timestamp())
	}
	return nil
}

package txn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// TestFaults checks that errors of the disk lose no acknowledged commit and that every request returns. It runs clients
// that commit, read and change the schema on a faulty disk: one call of the file system, or that call and all later
// ones, returns an error or finds the disk full. Then these statements must hold:
//
//   - every request returns (if one hangs, the test exceeds the time limit of go test);
//   - the store either continues, and accepts commits again when the disk has room, or it has reported its failure and
//     returns errors;
//   - every acknowledged commit or schema change is found when the store is opened again, after a crash of the process
//     and after a crash of the machine, and none is incomplete.
//
// For each kind of fault, the test tries a few calls that a seed chooses. With CROWFOOT_TEST_FAULTS=all it tries every
// call.
func TestFaults(t *testing.T) {
	for _, kind := range faultKinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			healthy := newFaultRun(t, 0, fault{kind: kind, at: -1})
			healthy.calls = &calls
			healthy.run()
			points := rand.New(rand.NewPCG(uint64(len(kind.name)), 0)).Perm(int(calls.Load()))
			if tries := 8; os.Getenv("CROWFOOT_TEST_FAULTS") != "all" {
				points = points[:min(tries, len(points))]
			}
			var runs sync.WaitGroup
			slots := make(chan struct{}, 32)
			for _, at := range points {
				for _, lasting := range []bool{false, true} {
					slots <- struct{}{}
					runs.Go(func() {
						newFaultRun(t, uint64(at), fault{kind, int64(at), lasting}).run()
						<-slots
					})
				}
			}
			runs.Wait()
			t.Logf("%d calls, tried %d of them twice", calls.Load(), len(points))
		})
	}
}

// faultKind is a kind of fault: the calls that can fail, and their error.
type faultKind struct {
	name  string
	calls []errorfs.OpKind
	err   error // the error of the calls; nil: the call succeeds, but the disk is full from then on
}

var faultKinds = []faultKind{
	{"full", []errorfs.OpKind{errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData}, nil},
	{"quota", []errorfs.OpKind{errorfs.OpCreate, errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpFileSyncData}, syscall.EDQUOT},
	{"write", []errorfs.OpKind{errorfs.OpFileWrite, errorfs.OpFileWriteAt}, syscall.EIO},
	{"create", []errorfs.OpKind{errorfs.OpCreate, errorfs.OpRemove}, syscall.EMFILE},
	{"sync", []errorfs.OpKind{errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo}, syscall.EIO},
	{"rename", []errorfs.OpKind{errorfs.OpRename, errorfs.OpReuseForWrite}, syscall.EIO},
	{"read", []errorfs.OpKind{errorfs.OpFileRead, errorfs.OpFileReadAt, errorfs.OpOpen, errorfs.OpOpenDir, errorfs.OpList, errorfs.OpStat, errorfs.OpFileStat}, syscall.EIO},
}

// fault makes calls of one kind fail. The field at is the number of the first call that fails, counted from 0. If
// lasting is true, all later calls fail, too.
type fault struct {
	kind    faultKind
	at      int64
	lasting bool
}

const (
	faultClients = 3
	faultCommits = 14 // commits of each client
	// faultDisk is the size of the disk in bytes. It is so small that memtables are small, too, so many are flushed
	// and compacted.
	faultDisk = 8 << 20
)

type faultRun struct {
	crashRun // records the issued and the acknowledged commits, and checks that the store holds them
	fault    fault
	disk     *disktest.Disk
	calls    *atomic.Int64
	failed   atomic.Bool
}

func newFaultRun(t *testing.T, seed uint64, f fault) *faultRun {
	r := &faultRun{crashRun: *newCrashRun(t, seed, faultClients), fault: f, disk: disktest.New("data", faultDisk), calls: new(atomic.Int64)}
	r.disk.Fail(r.fail)
	return r
}

// fail is called before each operation of the file system. It returns the error that the operation returns instead,
// or nil.
func (r *faultRun) fail(op errorfs.Op) error {
	if !slices.Contains(r.fault.kind.calls, op.Kind) {
		return nil
	}
	n := r.calls.Add(1) - 1
	if r.fault.at < 0 || n < r.fault.at || n > r.fault.at && !r.fault.lasting {
		return nil
	}
	if r.fault.kind.err == nil {
		r.disk.Fill()
		return nil
	}
	return &os.PathError{Op: fmt.Sprint(op.Kind), Path: op.Path, Err: r.fault.kind.err}
}

func (r *faultRun) run() {
	store, err := pebble.Open("data", r.disk)
	if err == nil {
		store.OnFailure(func(error) { r.failed.Store(true) })
		r.runClients(store)
		if err := store.Close(); (err != nil) != r.failed.Load() {
			r.t.Errorf("%v: failed is %v, and close says %v", r.fault, r.failed.Load(), err)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.disk.Fail(nil)
	for what, fs := range map[string]*vfs.MemFS{"process": r.disk.Files.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: 100, RNG: r.rng}), "machine": r.disk.Files.CrashClone(vfs.CrashCloneCfg{})} {
		if err := r.recover(fs, map[mvcc.Timestamp]bool{}, r.read); err != nil {
			r.t.Errorf("%v, after the death of the %s: %v", r.fault, what, err)
		}
	}
}

func (f fault) String() string {
	if f.lasting {
		return fmt.Sprintf("%s from call %d on", f.kind.name, f.at)
	}
	return fmt.Sprintf("%s at call %d", f.kind.name, f.at)
}

// runClients runs the clients. Afterwards it checks that the store accepts a commit once the disk has room, unless
// the store has reported its failure.
func (r *faultRun) runClients(store kv.Store) {
	oracle, err := NewOracle(store, r.clock.now)
	if err != nil {
		return
	}
	m := NewManager(mvcc.New(store).In(1), oracle, Config{})
	if err := r.watched.record(m, store); err != nil {
		return
	}
	var clients sync.WaitGroup
	for c := range faultClients {
		rng := rand.New(rand.NewPCG(r.seed, uint64(c+1)))
		clients.Go(func() {
			for range faultCommits {
				_ = r.commit(m, rng)
				r.look(m, rng)
				if c == 0 && rng.IntN(3) == 0 {
					_ = r.changeSchema(m)
				}
			}
		})
	}
	clients.Wait()
	r.disk.Empty()
	if r.fault.lasting {
		r.disk.Fail(nil)
	}
	rng := rand.New(rand.NewPCG(r.seed, 99))
	for {
		err := r.commit(m, rng)
		if failed := r.failed.Load(); failed || err == nil {
			if failed && (err == nil || store.Writable() == nil) {
				r.t.Errorf("%v: the store failed, and takes commits", r.fault)
			}
			break
		}
		if !errors.Is(err, kv.ErrRefused) {
			r.t.Errorf("%v: a commit failed with %v, and the store goes on", r.fault, err)
			break
		}
		time.Sleep(time.Millisecond) // until the store has checked again whether the disk has room
	}
	_ = oracle.Close()
}

// commit writes a few keys in one transaction. Their values are large random bytes, so that memtables are soon full.
func (r *faultRun) commit(m *Manager, rng *rand.Rand) error {
	r.clock.advance(1000)
	n, keys := r.issue(rng)
	val := binary.BigEndian.AppendUint32(nil, uint32(n))
	noise := rand.NewChaCha8([32]byte{byte(n)})
	rest := make([]byte, rng.IntN(40_000))
	_, _ = noise.Read(rest)
	val = append(val, rest...)
	ctx := context.Background()
	for options := (Options{ID: clientID(n)}); ; {
		tx := m.Begin(options)
		ts, err := tx.Commit(ctx, func(w table.Writer) error {
			for _, k := range keys {
				if err := errors.Join(w.Put(ctx, key(k), val, nil, nil), r.watched.capture(ctx, w, k, "")); err != nil {
					return err
				}
			}
			return nil
		}, CommitOptions{})
		if err != nil && tx.state.Load() == aborted {
			options.Previous = tx.Age()
			continue
		}
		if err == nil {
			r.mu.Lock()
			r.acked[n] = ts
			r.mu.Unlock()
			return nil
		}
		_ = tx.Rollback() // a refused commit leaves its transaction open, with its locks
		return err
	}
}

// issue gives a commit its number and chooses its keys.
func (r *faultRun) issue(rng *rand.Rand) (n int, keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n = len(r.issued)
	for _, k := range rng.Perm(crashKeys)[:1+rng.IntN(3)] {
		keys = append(keys, fmt.Sprint(k))
	}
	r.issued = append(r.issued, keys)
	return n, keys
}

// look makes a strong read of one key, which may fail, and notes its timestamp.
func (r *faultRun) look(m *Manager, rng *rand.Rand) {
	s, err := m.Snapshot(context.Background(), Bound{Kind: Strong})
	if err != nil {
		return
	}
	r.mu.Lock()
	r.read = max(r.read, s.Timestamp())
	r.mu.Unlock()
	_, _, _ = s.Get(context.Background(), key(fmt.Sprint(rng.IntN(crashKeys))), table.LockShared)
}

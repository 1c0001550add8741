package txn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
)

// TestCrash checks that a crash of the machine breaks no promise that was made before it. The test runs commits,
// schema changes, strong reads, reads at chosen timestamps and restarts on a file system that forgets what was not
// synced. It crashes the machine at many points: at each, a random part of what had not been synced is lost, and the
// store is opened from the files that remain. Then these statements must hold:
//
//   - no acknowledged commit or schema change is missing, and none is incomplete;
//   - the outcome and the change stream records of a commit are stored if and only if its writes are, and all have
//     the same timestamp;
//   - every commit that was visible is stored;
//   - no commit ever appears at or below a timestamp that was visible or at which a read has read: the next one is
//     above all of these, and above all timestamps in the store, even if the clock has gone back.
//
// A seed fixes the actions of the clients, and the operations of the file system at which the machine crashes. With
// one client, the operations of the file system come in the same order each time, except for those by which the
// oracle raises its bound of timestamps on disk in the background.
func TestCrash(t *testing.T) {
	seeds, points := uint64(32), atomic.Int64{}
	if testing.Short() {
		seeds = 6
	}
	t.Cleanup(func() { t.Logf("%d crash points", points.Load()) })
	t.Run("seeds", func(t *testing.T) {
		for seed := range seeds {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				r := newCrashRun(t, seed, 1+int(seed%4)*2)
				r.run()
				points.Add(int64(len(r.crashes)))
			})
		}
	})
}

const (
	crashKeys     = 10
	crashCommits  = 60 // number of commits of all clients together
	crashRestarts = 3
)

// crashRun is one run of TestCrash: the clients and crashes of one seed.
type crashRun struct {
	t       *testing.T
	seed    uint64
	clients int
	clock   *fakeClock
	mem     *vfs.MemFS
	fs      vfs.FS // a wrapper of mem that simulates a crash before some writes
	watched *watched

	mu      sync.Mutex // guards the fields below
	rng     *rand.Rand
	oracle  *Oracle // the oracle of the running store; nil before it is open
	issued  [][]string
	acked   map[int]mvcc.Timestamp
	changed []mvcc.Timestamp // timestamps of acknowledged schema changes
	read    mvcc.Timestamp   // the highest timestamp at which a read has read
	crashes []crash
}

// crash is one crash of the machine: the oracle's watermark just before it (visible), and what the store holds after
// it.
type crash struct {
	visible mvcc.Timestamp
	has     map[mvcc.Timestamp]bool // timestamps of the commits in the store after the crash
}

func newCrashRun(t *testing.T, seed uint64, clients int) *crashRun {
	r := &crashRun{t: t, seed: seed, clients: clients, clock: new(fakeClock), rng: rand.New(rand.NewPCG(seed, 0)), acked: map[int]mvcc.Timestamp{}, watched: newWatched(t)}
	r.clock.micros.Store(1_000_000_000)
	r.mem = vfs.NewCrashableMem()
	r.fs = errorfs.Wrap(r.mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			r.maybeCrash(op)
		}
		return nil
	}))
	return r
}

func (r *crashRun) run() {
	for start := range crashRestarts {
		store, err := pebble.Open("data", r.fs)
		if err != nil {
			r.t.Fatal(err)
		}
		m := newManager(r.t, store, r.clock.now)
		if err := r.watched.record(m, store); err != nil {
			r.t.Fatal(err)
		}
		r.mu.Lock()
		r.oracle = m.oracle
		r.mu.Unlock()
		var clients sync.WaitGroup
		for c := range r.clients {
			rng := rand.New(rand.NewPCG(r.seed, uint64(100*start+c+1)))
			clients.Go(func() {
				for range crashCommits / crashRestarts / r.clients {
					r.step(m, rng)
				}
			})
		}
		clients.Wait()
		m.oracle.stop()
		if err := store.Close(); err != nil {
			r.t.Fatal(err)
		}
	}
	for i, c := range r.crashes {
		for n, ts := range r.acked {
			if ts <= c.visible && !c.has[ts] {
				r.t.Errorf("crash %d: commit %d at %d was visible (watermark %d) and is lost", i, n, ts, c.visible)
			}
		}
	}
}

// step moves the clock forward or back, or leaves it. Then it commits a few keys in one transaction, or reads at a
// chosen timestamp, or changes the schema.
func (r *crashRun) step(m *Manager, rng *rand.Rand) {
	r.clock.advance(time.Duration(rng.IntN(3)-1) * time.Duration(rng.IntN(2_000)) * time.Millisecond)
	switch {
	case rng.IntN(4) == 0:
		r.readAt(m, rng)
		return
	case rng.IntN(16) == 0:
		if err := r.changeSchema(m); err != nil {
			r.t.Error(err)
		}
		return
	}
	keys := make([]string, 0, 5)
	for _, k := range rng.Perm(crashKeys)[:1+rng.IntN(4)] {
		keys = append(keys, fmt.Sprint(k))
	}
	r.mu.Lock()
	n := len(r.issued)
	r.issued = append(r.issued, keys)
	r.mu.Unlock()
	ctx := context.Background()
	val := binary.BigEndian.AppendUint32(nil, uint32(n))
	// Some values are longer than a block of the write-ahead log, so their commits take several blocks.
	val = append(val, make([]byte, rng.IntN(3)*rng.IntN(30_000))...)
	var ts mvcc.Timestamp
	var err error
	for options := (Options{ID: clientID(n)}); ; {
		tx := m.Begin(options)
		ts, err = tx.Commit(ctx, func(w table.Writer) error {
			for _, k := range keys {
				if err := errors.Join(w.Put(ctx, key(k), val, nil, nil), r.watched.capture(ctx, w, k, "")); err != nil {
					return err
				}
			}
			return nil
		}, CommitOptions{})
		if err == nil || tx.state.Load() != aborted {
			break
		}
		options.Previous = tx.Age()
	}
	if err != nil {
		r.t.Error(err)
		return
	}
	if o, ok, err := m.Outcome(clientID(n)); !ok || o.Timestamp != ts {
		r.t.Errorf("outcome of commit %d at %d: %v %v %v", n, ts, o, ok, err)
	}
	r.mu.Lock()
	r.acked[n] = ts
	r.mu.Unlock()
}

// clientID returns the ClientID of the transaction that makes commit n.
func clientID(n int) ClientID { return ClientID{Start: 1, Number: uint64(n + 1)} }

// changeSchema makes a schema change that writes one version of the key "catalog", in a space of its own.
func (r *crashRun) changeSchema(m *Manager) error {
	var at mvcc.Timestamp
	err := m.ChangeSchema(context.Background(), nil, func(ts mvcc.Timestamp, commit func(kv.Batch) error) error {
		at = ts
		b := mvcc.New(m.versions.KV()).In(catalogSpace).NewBatch()
		return errors.Join(b.Put(key("catalog"), nil, ts), commit(b.KV()), b.Close())
	})
	if err == nil {
		r.mu.Lock()
		r.changed = append(r.changed, at)
		r.mu.Unlock()
	}
	return err
}

const catalogSpace mvcc.Space = 2

// checkCatalogs returns the timestamp of the newest schema change in a store. It returns an error if an acknowledged
// schema change is missing.
func (r *crashRun) checkCatalogs(store kv.Store) (newest mvcc.Timestamp, err error) {
	v := mvcc.New(store).In(catalogSpace)
	_, newest, _, err = v.Get(key("catalog"), mvcc.Latest, nil)
	for _, ts := range r.changed {
		_, version, _, failed := v.Get(key("catalog"), ts, nil)
		if err = errors.Join(err, failed); version != ts && err == nil {
			err = fmt.Errorf("the schema change at %d was acknowledged and is lost: found %d", ts, version)
		}
	}
	return newest, err
}

func (r *crashRun) readAt(m *Manager, rng *rand.Rand) {
	b := Bound{Kind: ExactStaleness, Duration: time.Duration(rng.IntN(100)) * time.Millisecond}
	if rng.IntN(2) == 0 { // a strong read, so that the oracle raises its bound on disk in the background
		b = Bound{}
	}
	for range 1 + rng.IntN(4) {
		s, err := m.Snapshot(context.Background(), b)
		if err != nil {
			r.t.Error(err)
			return
		}
		r.mu.Lock()
		r.read = max(r.read, s.Timestamp())
		r.mu.Unlock()
		r.clock.advance(time.Duration(rng.IntN(300)) * time.Millisecond)
	}
}

// maybeCrash crashes the machine before an operation of the file system, with a probability of one third.
func (r *crashRun) maybeCrash(op errorfs.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rng.IntN(3) != 0 {
		return
	}
	promised := crash{has: map[mvcc.Timestamp]bool{}}
	if r.oracle != nil {
		promised.visible = r.oracle.Visible()
	}
	floor := max(promised.visible, r.read)
	cfg := vfs.CrashCloneCfg{UnsyncedDataPercent: []int{0, 20, 50, 80, 100}[r.rng.IntN(5)], RNG: r.rng}
	fs := r.mem.CrashClone(cfg)
	if err := r.recover(fs, promised.has, floor); err != nil {
		r.t.Errorf("crash %d, before %v %s: %v", len(r.crashes), op.Kind, op.Path, err)
	}
	r.crashes = append(r.crashes, promised)
}

// recover opens the store that a crash has left, and compares it with the commits that were issued and acknowledged. It
// adds the timestamps of the stored commits to the parameter has. New timestamps must be above the parameter floor. The
// caller holds r.mu.
func (r *crashRun) recover(fs *vfs.MemFS, has map[mvcc.Timestamp]bool, floor mvcc.Timestamp) error {
	store, err := pebble.Open("data", fs)
	if err != nil {
		return err
	}
	defer store.Close()
	commits, err := commitsIn(store)
	if err != nil {
		return err
	}
	for ts, c := range commits {
		has[ts] = true
		floor = max(floor, ts)
		if c.n >= len(r.issued) || len(c.keys) != len(r.issued[c.n]) {
			return fmt.Errorf("commit %d at %d is there by half: %v", c.n, ts, c.keys)
		}
		for _, k := range r.issued[c.n] {
			if !c.keys[k] {
				return fmt.Errorf("commit %d at %d wrote %v, not %v", c.n, ts, c.keys, r.issued[c.n])
			}
		}
	}
	for n, ts := range r.acked {
		if c, ok := commits[ts]; !ok || c.n != n {
			return fmt.Errorf("commit %d at %d was acknowledged and is lost", n, ts)
		}
		floor = max(floor, ts)
	}
	newest, err := r.checkCatalogs(store)
	if err != nil {
		return err
	}
	floor = max(floor, newest)
	if err := checkOutcomes(store, commits); err != nil {
		return err
	}
	if err := checkRecords(store, commits); err != nil {
		return err
	}
	return r.goOn(store, fs, floor)
}

// checkRecords checks that a store holds the change stream records of each of its commits once, and no others.
func checkRecords(store kv.Store, commits map[mvcc.Timestamp]commitFound) error {
	records, err := recordsIn(store)
	if err != nil {
		return err
	}
	for ts, c := range commits {
		for k := range c.keys {
			if n := strings.Count(records[ts], fmt.Sprintf(`{"K":%q}`, k)); n != 1 {
				return fmt.Errorf("the writes of commit %d are there at %d, a record of key %s %d times", c.n, ts, k, n)
			}
		}
	}
	if len(records) != len(commits) {
		return fmt.Errorf("records of %d commits are there, and %d commits", len(records), len(commits))
	}
	return nil
}

// checkOutcomes checks that a store holds the outcome of each of its commits, and no others.
func checkOutcomes(store kv.Store, commits map[mvcc.Timestamp]commitFound) error {
	outcomes, err := outcomesIn(store)
	if err != nil {
		return err
	}
	for ts, c := range commits {
		if o, ok := outcomes[clientID(c.n)]; !ok || o != ts {
			return fmt.Errorf("the writes of commit %d are there at %d, its outcome: %v, %d", c.n, ts, ok, o)
		}
	}
	if len(outcomes) != len(commits) {
		return fmt.Errorf("%d outcomes of %d commits are there", len(outcomes), len(commits))
	}
	return nil
}

// goOn makes one commit after a crash, with a clock that may have gone back. The commit's timestamp must be above
// floor. Sometimes goOn also checks that the commit survives a second crash.
func (r *crashRun) goOn(store kv.Store, fs *vfs.MemFS, floor mvcc.Timestamp) error {
	clock := new(fakeClock)
	clock.micros.Store(r.clock.micros.Load() - int64(r.rng.IntN(2))*3_600_000_000)
	oracle, err := NewOracle(store, clock.now)
	if err != nil {
		return err
	}
	m := NewManager(mvcc.New(store).In(1), oracle, Config{})
	ctx := context.Background()
	ts, err := m.Begin(Options{}).Commit(ctx, func(w table.Writer) error { return w.Put(ctx, key("after"), nil, nil, nil) }, CommitOptions{})
	if err != nil {
		return err
	}
	if ts <= floor {
		return fmt.Errorf("timestamp %d was given out after the crash, %d was in use before", ts, floor)
	}
	if r.rng.IntN(8) != 0 {
		return nil
	}
	again, err := pebble.Open("data", fs.CrashClone(vfs.CrashCloneCfg{}))
	if err != nil {
		return err
	}
	defer again.Close()
	if _, version, ok, err := mvcc.New(again).In(1).Get(key("after"), ts, nil); !ok || version != ts {
		return fmt.Errorf("commit after the crash, at %d, did not survive the next: %v", ts, err)
	}
	return nil
}

// commitFound is a commit found in the store: the number that its values hold, and its keys.
type commitFound struct {
	n    int
	keys map[string]bool
}

// commitsIn reads every version in a store and returns the commits by timestamp.
func commitsIn(store kv.Store) (map[mvcc.Timestamp]commitFound, error) {
	it, err := store.NewIter([]byte{0, 0, 0, 1}, []byte{0, 0, 0, 2})
	if err != nil {
		return nil, err
	}
	defer it.Close()
	found := map[mvcc.Timestamp]commitFound{}
	for ok := it.First(); ok; ok = it.Next() {
		k := it.Key()
		v, err := it.Value()
		if err != nil {
			return nil, err
		}
		if len(k) != 4+2+9 || len(v) < 5 {
			return nil, fmt.Errorf("found %q = %q", k, v)
		}
		ts := mvcc.Timestamp(^binary.BigEndian.Uint64(k[6:]))
		n := int(binary.BigEndian.Uint32(v[1:]))
		c, known := found[ts]
		if !known {
			c = commitFound{n, map[string]bool{}}
			found[ts] = c
		}
		if c.n != n {
			return nil, fmt.Errorf("commits %d and %d share timestamp %d", c.n, n, ts)
		}
		c.keys[string(k[4:5])] = true
	}
	return found, it.Error()
}

package txn

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

func manual(t *testing.T) (*Manager, *fakeClock) {
	t.Helper()
	clock := new(fakeClock)
	clock.micros.Store(10_000_000_000)
	return newManager(t, openStore(t, vfs.NewMem(), "data"), clock.now), clock
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := usererror.CodeOf(err); got != want {
		t.Errorf("error is %v (%v), want %v", got, err, want)
	}
}

// TestBounds checks which version of a row a read sees with each kind of timestamp bound, at timestamps before and
// after the newest commit.
func TestBounds(t *testing.T) {
	m, clock := manual(t)
	ctx := context.Background()
	at := func(b Bound) string {
		t.Helper()
		s, err := m.Snapshot(ctx, b)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if again := getAll(s.At(s.Timestamp()), nil, []string{"a"}, table.LockShared); again != getAll(s, nil, []string{"a"}, table.LockShared) {
			t.Errorf("a snapshot and its copy differ: %s", again)
		}
		return getAll(s, nil, []string{"a"}, table.LockShared)
	}
	one := commitOne(t, m, "a", "1").Time()
	clock.advance(10 * time.Second)
	two := commitOne(t, m, "a", "2").Time()
	clock.advance(5 * time.Second)
	for _, c := range []struct {
		b    Bound
		want string
	}{
		{Bound{}, "a=2"},
		{Bound{Kind: ReadTimestamp, Time: one.Add(-time.Microsecond)}, "a absent"},
		{Bound{Kind: ReadTimestamp, Time: one}, "a=1"},
		{Bound{Kind: ReadTimestamp, Time: two.Add(-time.Nanosecond)}, "a=1"},
		{Bound{Kind: ReadTimestamp, Time: two.Add(999)}, "a=2"},
		{Bound{Kind: ExactStaleness, Duration: 15 * time.Second}, "a=1"},
		{Bound{Kind: ExactStaleness, Duration: 5*time.Second + time.Microsecond}, "a=1"},
		{Bound{Kind: ExactStaleness}, "a=2"},
		{Bound{Kind: MinReadTimestamp, Time: one}, "a=2"},
		{Bound{Kind: MinReadTimestamp, Time: clock.now()}, "a=2"},
		{Bound{Kind: MaxStaleness, Duration: time.Hour}, "a=2"},
		{Bound{Kind: MaxStaleness}, "a=2"},
	} {
		if got := at(c.b); got != c.want {
			t.Errorf("%+v: %s, want %s", c.b, got, c.want)
		}
	}
	for _, kind := range []BoundKind{ExactStaleness, MaxStaleness} {
		_, err := m.Snapshot(ctx, Bound{Kind: kind, Duration: -1})
		wantCode(t, err, codes.InvalidArgument)
	}
	s, err := m.Snapshot(ctx, Bound{Kind: MinReadTimestamp, Time: two.Add(time.Second + 1)})
	if err != nil || s.Timestamp().Time().Before(two.Add(time.Second+1)) {
		t.Errorf("min_read_timestamp gave %v, %v", s.Timestamp().Time(), err)
	}
}

// TestStrongStaysFresh: the timestamp of a strong read is at most a second old, even if nothing is written.
func TestStrongStaysFresh(t *testing.T) {
	m, clock := manual(t)
	for range 5 {
		clock.advance(40 * time.Minute)
		s, err := m.Snapshot(context.Background(), Bound{})
		if err != nil || clock.now().Sub(s.Timestamp().Time()) > time.Second {
			t.Fatalf("strong read at %v, now is %v: %v", s.Timestamp().Time(), clock.now(), err)
		}
	}
}

// TestClockGoesBackDuringRead checks a read that takes its timestamp from the clock before the clock goes back by an
// hour. The read does not wait until the clock reaches the timestamp again.
func TestClockGoesBackDuringRead(t *testing.T) { synctest.Test(t, testClockGoesBackDuringRead) }

func testClockGoesBackDuringRead(t *testing.T) {
	for _, kind := range []BoundKind{Strong, ExactStaleness, MaxStaleness} {
		started := time.UnixMicro(10_000_000_000)
		var ahead atomic.Bool
		m := newManager(t, openStore(t, vfs.NewMem(), "data"), func() time.Time {
			if ahead.CompareAndSwap(true, false) {
				return started.Add(time.Hour)
			}
			return started
		})
		ahead.Store(true)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		s, err := m.Snapshot(ctx, Bound{Kind: kind})
		cancel()
		if err != nil || !s.Timestamp().Time().Equal(started.Add(time.Hour)) {
			t.Errorf("bound %d: read at %v, %v", kind, s, err)
		}
	}
}

// TestFutureRead: a read at a timestamp in the future waits for the clock, but returns when its context ends.
func TestFutureRead(t *testing.T) { synctest.Test(t, testFutureRead) }

func testFutureRead(t *testing.T) {
	m, clock := manual(t)
	future := clock.now().Add(time.Minute)
	read := func(ctx context.Context) chan outcome {
		return beside(func() (mvcc.Timestamp, error) {
			s, err := m.Snapshot(ctx, Bound{Kind: ReadTimestamp, Time: future})
			if err != nil {
				return 0, err
			}
			return s.Timestamp(), nil
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	given := read(ctx)
	kept := read(context.Background())
	stillRuns(t, given, "a read in the future")
	cancel()
	if o := await(t, given); !errors.Is(o.err, context.Canceled) {
		t.Errorf("cancelled read: %v", o)
	}
	commitOne(t, m, "a", "1")
	clock.advance(time.Minute)
	if o := await(t, kept); o.ts.Time() != future.UTC() || o.err != nil {
		t.Errorf("read in the future: %v", o)
	}
	if ts := commitOne(t, m, "a", "2"); !ts.Time().After(future) {
		t.Errorf("commit at %v, not after the read at %v", ts.Time(), future)
	}
}

// TestRetention: reads older than the retention period are refused, before and after versions are deleted. After the
// deletion they are refused in open snapshots and transactions, too.
func TestRetention(t *testing.T) {
	m, clock := manual(t)
	ctx := context.Background()
	one := commitOne(t, m, "a", "1")
	open, err := m.Snapshot(ctx, Bound{})
	if err != nil {
		t.Fatal(err)
	}
	running := m.Begin(Options{Isolation: RepeatableRead})
	if got := getAll(running, nil, []string{"a"}, table.LockShared); got != "a=1" {
		t.Fatal(got)
	}
	clock.advance(30 * time.Minute)
	commitOne(t, m, "a", "2")
	clock.advance(31 * time.Minute)
	_, err = m.Snapshot(ctx, Bound{Kind: ReadTimestamp, Time: one.Time()})
	wantCode(t, err, codes.FailedPrecondition)
	_, err = m.Snapshot(ctx, Bound{Kind: ExactStaleness, Duration: time.Hour + time.Second})
	wantCode(t, err, codes.FailedPrecondition)
	if got := getAll(open, nil, []string{"a"}, table.LockShared); got != "a=1" {
		t.Errorf("an open snapshot reads %s before anything was collected", got)
	}
	done, err := m.Collect(ctx, m.Earliest(), nil)
	if err != nil || done.Deleted != 0 {
		t.Errorf("collected %+v, %v: the first version is what a read at the horizon sees", done, err)
	}
	_, _, err = open.Get(ctx, key("a"), table.LockShared)
	wantCode(t, err, codes.FailedPrecondition)
	_, err = open.Scan(ctx, table.Span{Start: key("a"), End: key("b")}, table.ScanOptions{})
	wantCode(t, err, codes.FailedPrecondition)
	_, _, err = running.Get(ctx, key("a"), table.LockShared)
	wantCode(t, err, codes.Aborted)

	// A longer retention does not bring back versions that may have been deleted.
	m.SetRetention(24 * time.Hour)
	_, err = m.Snapshot(ctx, Bound{Kind: ReadTimestamp, Time: one.Time()})
	wantCode(t, err, codes.FailedPrecondition)
	clock.advance(30 * time.Minute)
	m.SetRetention(time.Hour)
	if done, err = m.Collect(ctx, m.Earliest(), nil); err != nil || done.Deleted != 1 {
		t.Errorf("collected %+v, %v", done, err)
	}
	if got := strong(t, m, "a"); got != "a=2" {
		t.Errorf("a strong read sees %s", got)
	}
}

// TestCommittingIsWaitedFor: an older transaction waits for a commit that is past its point of no return, and does
// not abort it.
func TestCommittingIsWaitedFor(t *testing.T) { synctest.Test(t, testCommittingIsWaitedFor) }

func testCommittingIsWaitedFor(t *testing.T) {
	m, s, clock := gated(t)
	ctx := context.Background()
	older := m.Begin(Options{})
	flying := beside(func() (mvcc.Timestamp, error) { return commitKey(m, "a", "1") })
	release := <-s.arrived
	waiting := beside(func() (mvcc.Timestamp, error) { return 0, older.Put(ctx, key("a"), []byte("2"), nil, nil) })
	synctest.Wait()
	clock.advance(time.Minute) // longer than IdleLimit: a transaction that commits must not count as idle
	stillRuns(t, waiting, "a transaction that needs what is being committed")
	release <- nil
	if o := await(t, flying); o.err != nil {
		t.Errorf("the commit ended with %v", o.err)
	}
	if o := await(t, waiting); o.err != nil {
		t.Errorf("the older one ended with %v", o.err)
	}
	if older.Stats().LockWait < time.Minute {
		t.Errorf("lock wait is %v", older.Stats().LockWait)
	}
	s.open = true
	if _, err := older.Commit(ctx, nil, CommitOptions{}); err != nil {
		t.Error(err)
	}
	if got := strong(t, m, "a"); got != "a=2" {
		t.Error(got)
	}
}

// TestCancelledWait: if the context of a commit ends while the commit waits for a lock, the transaction stays open,
// without the commit's mutations. The same commit can be made again.
func TestCancelledWait(t *testing.T) { synctest.Test(t, testCancelledWait) }

func testCancelledWait(t *testing.T) {
	m, _ := manual(t)
	ctx := context.Background()
	holder := m.Begin(Options{})
	if err := holder.Put(ctx, key("a"), nil, nil, nil); err != nil {
		t.Fatal(err)
	}
	tx := m.Begin(Options{})
	limited, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
	defer cancel()
	mutations := func(ctx context.Context) func(table.Writer) error {
		return func(w table.Writer) error {
			return errors.Join(w.Put(ctx, key("b"), []byte("1"), nil, nil), w.Put(ctx, key("a"), []byte("1"), nil, nil))
		}
	}
	if _, err := tx.Commit(limited, mutations(limited), CommitOptions{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("commit: %v", err)
	}
	if _, ok, err := tx.Get(ctx, key("b"), table.LockShared); ok || err != nil {
		t.Errorf("the cancelled commit has left its mutations behind: %v, %v", ok, err)
	}
	if err := holder.Rollback(); err != nil {
		t.Error(err)
	}
	if _, err := tx.Commit(ctx, mutations(ctx), CommitOptions{}); err != nil {
		t.Error(err)
	}
	if got := strong(t, m, "a") + strong(t, m, "b"); got != "a=1b=1" {
		t.Error(got)
	}
}

// TestFailedCommit checks that an error of the function that is passed to Commit ends the transaction, and that later
// commits and reads return the same error.
func TestFailedCommit(t *testing.T) {
	m, _ := manual(t)
	ctx := context.Background()
	tx := m.Begin(Options{})
	refused := usererror.NegativeStaleness(-1) // stands for any error that the function may return
	for range 2 {
		_, err := tx.Commit(ctx, func(w table.Writer) error {
			return errors.Join(w.Put(ctx, key("a"), nil, nil, nil), refused)
		}, CommitOptions{})
		wantCode(t, err, codes.InvalidArgument)
	}
	_, _, err := tx.Get(ctx, key("a"), table.LockShared)
	wantCode(t, err, codes.InvalidArgument)
	if err := tx.Rollback(); err != nil {
		t.Errorf("rollback: %v", err)
	}
	if got := strong(t, m, "a"); got != "a absent" {
		t.Error(got)
	}
	commitOne(t, m, "a", "1") // does not wait, because the failed transaction holds no lock
}

// TestTooLarge checks that a transaction may write 100 MiB and no more. If it writes a key several times, only the last
// value counts.
func TestTooLarge(t *testing.T) {
	m, _ := manual(t)
	ctx := context.Background()
	tx := m.Begin(Options{})
	val := make([]byte, 10<<20)
	for range 20 {
		if err := tx.Put(ctx, key("a"), val, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	for k := byte('b'); k < 'j'; k++ {
		if err := tx.Put(ctx, []byte{k, 0}, val, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if s := tx.Stats(); s.Keys != 9 || s.Bytes != 9*(len(val)+2) {
		t.Errorf("stats %+v", s)
	}
	before := tx.Savepoint()
	wantCode(t, tx.Put(ctx, key("z"), val, nil, nil), codes.InvalidArgument)
	tx.RollbackTo(before)
	if _, err := tx.Commit(ctx, nil, CommitOptions{}); err != nil {
		t.Error(err)
	}
}

// TestWoundedCursor: a scan returns no more rows after its transaction was aborted and lost its locks.
func TestWoundedCursor(t *testing.T) {
	m, _ := manual(t)
	ctx := context.Background()
	commitOne(t, m, "a", "1")
	commitOne(t, m, "b", "1")
	older, younger := m.Begin(Options{}), m.Begin(Options{})
	c, err := younger.Scan(ctx, table.Span{Start: key("a"), End: key("z")}, table.ScanOptions{})
	if err != nil || !c.Next() {
		t.Fatal(err)
	}
	if err := older.Put(ctx, key("b"), []byte("2"), nil, nil); err != nil {
		t.Fatal(err)
	}
	if c.Next() {
		t.Errorf("shows %s=%s", c.Key(), c.Value())
	}
	wantCode(t, c.Err(), codes.Aborted)
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestOpenCursorIsNotIdle: a transaction keeps its locks while one of its requests runs, however long that takes.
func TestOpenCursorIsNotIdle(t *testing.T) { synctest.Test(t, testOpenCursorIsNotIdle) }

func testOpenCursorIsNotIdle(t *testing.T) {
	m, clock := manual(t)
	ctx := context.Background()
	tx := m.Begin(Options{})
	c, err := tx.Scan(ctx, table.Span{Start: key("a"), End: key("z")}, table.ScanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	clock.advance(time.Minute)
	waiting := beside(func() (mvcc.Timestamp, error) { return commitKey(m, "b", "1") })
	stillRuns(t, waiting, "a writer under an open scan")
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	clock.advance(IdleLimit)
	if o := await(t, waiting); o.err != nil {
		t.Error(o.err)
	}
	wantCode(t, tx.Err(), codes.Aborted)
}

// TestMaxCommitDelay: delayed commits go on together, when the shortest delay is over or when a commit without a
// delay comes.
func TestMaxCommitDelay(t *testing.T) { synctest.Test(t, testMaxCommitDelay) }

func testMaxCommitDelay(t *testing.T) {
	m, _ := manual(t)
	ctx := context.Background()
	commit := func(k string, delay time.Duration) chan outcome {
		return beside(func() (mvcc.Timestamp, error) {
			return m.Begin(Options{}).Commit(ctx, func(w table.Writer) error { return w.Put(ctx, key(k), nil, nil, nil) }, CommitOptions{MaxDelay: delay})
		})
	}
	patient := commit("a", time.Hour)
	stillRuns(t, patient, "a commit that may wait")
	hurried := commit("b", 50*time.Millisecond)
	for _, c := range []chan outcome{patient, hurried} {
		if o := await(t, c); o.err != nil {
			t.Error(o.err)
		}
	}
	patient = commit("a", time.Hour)
	stillRuns(t, patient, "a commit that may wait")
	commitOne(t, m, "b", "1")
	if o := await(t, patient); o.err != nil {
		t.Error(o.err)
	}
}

// countedStore counts the commits that run at once: now is their present number, and most is the highest number so far.
type countedStore struct {
	kv.Store
	mu        sync.Mutex
	now, most int
}

func (s *countedStore) NewBatch() kv.Batch { return &countedBatch{s.Store.NewBatch(), s} }

type countedBatch struct {
	kv.Batch
	s *countedStore
}

func (b *countedBatch) Commit() error {
	b.s.mu.Lock()
	b.s.now++
	b.s.most = max(b.s.most, b.s.now)
	b.s.mu.Unlock()
	time.Sleep(time.Millisecond)
	err := b.Batch.Commit()
	b.s.mu.Lock()
	b.s.now--
	b.s.mu.Unlock()
	return err
}

// TestCommitsShareSyncs: 64 clients commit, and the 64 commits reach the store at the same time, so that it can sync
// them together.
func TestCommitsShareSyncs(t *testing.T) { synctest.Test(t, testCommitsShareSyncs) }

func testCommitsShareSyncs(t *testing.T) {
	s := &countedStore{Store: openStore(t, vfs.NewMem(), "data")}
	m := newManager(t, s, time.Now)
	var clients sync.WaitGroup
	for c := range 64 {
		clients.Go(func() {
			for range 10 {
				commitOne(t, m, string(rune('a'+c)), "1")
			}
		})
	}
	clients.Wait()
	if s.most != 64 {
		t.Errorf("at most %d of 64 commits ran at once", s.most)
	}
}

// TestSharedTransaction checks that requests of one transaction can run at once: in each mode, each of eight requests
// must read the value that it has just written.
func TestSharedTransaction(t *testing.T) {
	m, _ := manual(t)
	ctx := context.Background()
	for _, mode := range modes {
		tx := m.Begin(mode.options)
		var requests sync.WaitGroup
		for c := range 8 {
			requests.Go(func() {
				r := tx.Request()
				for i := range 100 {
					k := string(rune('a' + (c+i)%8))
					if err := r.Put(ctx, key(k), []byte(k), nil, nil); err != nil {
						t.Error(err)
					}
					if val, ok, err := r.Get(ctx, key(k), table.LockShared); !ok || err != nil || string(val) != k {
						t.Errorf("%s: %q, %v, %v", k, val, ok, err)
					}
					if i%10 == 0 {
						_ = scanAll(r, []string{"a", "z"}, table.LockShared)
					}
				}
			})
		}
		requests.Wait()
		if _, err := tx.Commit(ctx, nil, CommitOptions{}); err != nil {
			t.Error(err)
		}
	}
}

// TestConcurrentEnds checks what happens if two Commits and a Rollback of one transaction run at once. Either both
// Commits succeed, with the same timestamp, and the Rollback fails, or both Commits fail and the Rollback succeeds.
func TestConcurrentEnds(t *testing.T) {
	m := newManager(t, slowStore{openStore(t, vfs.NewMem(), "data")}, time.Now)
	ctx := context.Background()
	for range 100 {
		tx := m.Begin(Options{})
		if err := tx.Put(ctx, key("a"), nil, nil, nil); err != nil {
			t.Fatal(err)
		}
		one := beside(func() (mvcc.Timestamp, error) { return tx.Commit(ctx, nil, CommitOptions{}) })
		two := beside(func() (mvcc.Timestamp, error) { return tx.Commit(ctx, nil, CommitOptions{}) })
		rolledBack := beside(func() (mvcc.Timestamp, error) { return 0, tx.Rollback() })
		a, b, r := await(t, one), await(t, two), await(t, rolledBack)
		if a.ts != b.ts || (a.err == nil) != (b.err == nil) || (a.err == nil) == (r.err == nil) {
			t.Fatalf("commits %v and %v, rollback %v", a, b, r)
		}
	}
}

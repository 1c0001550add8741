package txn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// gatedStore stops each Commit of a batch after it was applied and before it is durable. The Commit sends a channel
// on arrived, and returns the error that it then receives from the sent channel.
type gatedStore struct {
	kv.Store
	arrived chan chan error
	open    bool // if true, commits are not stopped
}

func (s *gatedStore) NewBatch() kv.Batch { return &gatedBatch{s.Store.NewBatch(), s} }

type gatedBatch struct {
	kv.Batch
	s *gatedStore
}

func (b *gatedBatch) Commit() error {
	if b.s.open {
		return b.Batch.Commit()
	}
	if err := b.Batch.CommitNoSync(); err != nil {
		return err
	}
	release := make(chan error)
	b.s.arrived <- release
	return <-release
}

// gated makes a database on a gatedStore, with a clock that stands still. It makes one commit. The store stops every
// later commit.
func gated(t *testing.T) (*Manager, *gatedStore, *fakeClock) {
	t.Helper()
	s := &gatedStore{Store: openStore(t, vfs.NewMem(), "data"), arrived: make(chan chan error), open: true}
	clock := new(fakeClock)
	clock.micros.Store(1_000_000_000)
	m := newManager(t, s, clock.now)
	commitOne(t, m, "a", "0")
	s.open = false
	return m, s, clock
}

func commitOne(t *testing.T, m *Manager, k, v string) mvcc.Timestamp {
	t.Helper()
	ts, err := commitKey(m, k, v)
	if err != nil {
		t.Fatal(err)
	}
	return ts
}

func commitKey(m *Manager, k, v string) (mvcc.Timestamp, error) {
	ctx := context.Background()
	return m.Begin(Options{}).Commit(ctx, func(w table.Writer) error { return w.Put(ctx, key(k), []byte(v), nil, nil) }, CommitOptions{})
}

// outcome is the result of a function that runs in its own goroutine.
type outcome struct {
	ts  mvcc.Timestamp
	err error
}

func beside(f func() (mvcc.Timestamp, error)) chan outcome {
	c := make(chan outcome, 1)
	go func() {
		ts, err := f()
		c <- outcome{ts, err}
	}()
	return c
}

// stillRuns fails the test if the function that sends its outcome on c has returned. It first waits until every
// goroutine is blocked, so the test must run in a synctest bubble.
func stillRuns(t *testing.T, c chan outcome, what string) {
	t.Helper()
	synctest.Wait()
	select {
	case o := <-c:
		t.Fatalf("%s went on: %v", what, o)
	default:
	}
}

func await(t *testing.T, c chan outcome) outcome {
	t.Helper()
	return <-c
}

func strong(t *testing.T, m *Manager, k string) string {
	t.Helper()
	s, err := m.Snapshot(context.Background(), Bound{})
	return getAll(s, err, []string{k}, table.LockShared)
}

// TestVisibleMeansDurable: no read sees a commit before its batch is durable, nor before all earlier commits are
// durable. A commit holds its locks until reads see it.
func TestVisibleMeansDurable(t *testing.T) { synctest.Test(t, testVisibleMeansDurable) }

func testVisibleMeansDurable(t *testing.T) {
	m, s, _ := gated(t)
	first := beside(func() (mvcc.Timestamp, error) { return commitKey(m, "a", "1") })
	releaseFirst := <-s.arrived
	if got := strong(t, m, "a"); got != "a=0" {
		t.Errorf("before it is durable a strong read sees %s", got)
	}
	waiting := beside(func() (mvcc.Timestamp, error) {
		return 0, errors.New(getAll(m.Begin(Options{}), nil, []string{"a"}, table.LockShared))
	})
	stillRuns(t, waiting, "a locking read of what is being committed")

	second := beside(func() (mvcc.Timestamp, error) { return commitKey(m, "b", "2") })
	releaseSecond := <-s.arrived
	releaseSecond <- nil
	stillRuns(t, second, "a commit that is durable, behind one that is not")
	if got := strong(t, m, "b"); got != "b absent" {
		t.Errorf("a strong read sees %s, though an earlier commit is not durable", got)
	}

	releaseFirst <- nil
	one, two := await(t, first), await(t, second)
	if one.err != nil || two.err != nil || one.ts >= two.ts {
		t.Errorf("commits ended with %v and %v", one, two)
	}
	if got := strong(t, m, "a") + strong(t, m, "b"); got != "a=1b=2" {
		t.Errorf("a strong read sees %s", got)
	}
	if o := await(t, waiting); o.err.Error() != "a=1" {
		t.Errorf("the locking read got %v", o.err)
	}
}

// TestNoCommitInThePast checks that no commit gets a timestamp at or below one at which a read has read. A read at a
// timestamp waits for the commits in flight at or below that timestamp.
func TestNoCommitInThePast(t *testing.T) { synctest.Test(t, testNoCommitInThePast) }

func testNoCommitInThePast(t *testing.T) {
	m, s, clock := gated(t)
	ctx := context.Background()
	readAt := func(ts mvcc.Timestamp) chan outcome {
		return beside(func() (mvcc.Timestamp, error) {
			snap, err := m.Snapshot(ctx, Bound{Kind: ReadTimestamp, Time: ts.Time()})
			return 0, errors.New(getAll(snap, err, []string{"a"}, table.LockShared))
		})
	}
	flying := beside(func() (mvcc.Timestamp, error) { return commitKey(m, "a", "1") })
	release := <-s.arrived
	ts := m.oracle.newest()
	if o := await(t, readAt(ts-1)); o.err.Error() != "a=0" {
		t.Errorf("read below a commit in flight: %v", o.err)
	}
	at := readAt(ts)
	stillRuns(t, at, "a read at the timestamp of a commit in flight")
	release <- nil
	if o := await(t, flying); o.ts != ts {
		t.Errorf("committed at %d, not %d", o.ts, ts)
	}
	if o := await(t, at); o.err.Error() != "a=1" {
		t.Errorf("read at a commit: %v", o.err)
	}

	s.open = true
	clock.advance(time.Second / 2)
	closed := mvcc.TimestampOf(clock.now())
	if o := await(t, readAt(closed)); o.err.Error() != "a=1" {
		t.Errorf("read now: %v", o.err)
	}
	clock.advance(-time.Second / 4)
	if ts := commitOne(t, m, "a", "2"); ts <= closed {
		t.Errorf("commit at %d, though %d was read", ts, closed)
	}
	if o := await(t, readAt(closed)); o.err.Error() != "a=1" {
		t.Errorf("the read at %d is not repeatable: %v", closed, o.err)
	}
}

// TestEveryRowOfACommitHasItsTimestamp: the timestamp that Commit returns is the version of every row of the commit.
// It replaces the pending timestamps in values and keys.
func TestEveryRowOfACommitHasItsTimestamp(t *testing.T) {
	m := newManager(t, openStore(t, vfs.NewMem(), "data"), time.Now)
	ctx := context.Background()
	const pending = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
	tx := m.Begin(Options{})
	ts, err := tx.Commit(ctx, func(w table.Writer) error {
		return errors.Join(
			w.Put(ctx, key("plain"), []byte("x"), nil, nil),
			w.Put(ctx, key("row"), []byte("x"+pending+"y"+pending), nil, []table.Pending{{Offset: 1}, {Offset: 14}}),
			w.Put(ctx, []byte("up\x30"+pending+"\x00"), nil, []table.Pending{{Offset: 3}}, nil),
			w.Put(ctx, []byte("down\xcf"+strings.Repeat("\x00", 12)+"\x00"), nil, []table.Pending{{Offset: 5, Desc: true}}, nil),
		)
	}, CommitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	up, down := []byte(pending), []byte(pending)
	table.Pending{}.Fill(up, ts)
	table.Pending{Desc: true}.Fill(down, ts)
	want := map[string]string{
		"plain\x00":                        "x",
		"row\x00":                          "x" + string(up) + "y" + string(up),
		"up\x30" + string(up) + "\x00":     "",
		"down\xcf" + string(down) + "\x00": "",
	}
	c, err := m.versions.Scan(nil, nil, mvcc.Latest, false)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n := 0
	for ; c.Next(); n++ {
		if val, ok := want[string(c.Key())]; !ok || val != string(c.Value()) || c.Version() != ts {
			t.Errorf("found %q = %q at %d, commit was at %d", c.Key(), c.Value(), c.Version(), ts)
		}
	}
	if n != len(want) {
		t.Errorf("found %d rows", n)
	}
}

// TestPendingKeysAreLocked checks that a scanned range is also locked for keys with a pending commit timestamp. A
// transaction that inserts such a key must wait, so a second scan by the first transaction finds no phantom.
func TestPendingKeysAreLocked(t *testing.T) { synctest.Test(t, testPendingKeysAreLocked) }

func testPendingKeysAreLocked(t *testing.T) {
	for _, desc := range []bool{false, true} {
		m := newManager(t, openStore(t, vfs.NewMem(), "data"), time.Now)
		ctx := context.Background()
		fill := "\xff"
		if desc {
			fill = "\x00"
		}
		row := []byte("t" + strings.Repeat(fill, 12) + "\x00")
		insert := func() (mvcc.Timestamp, error) {
			return m.Begin(Options{}).Commit(ctx, func(w table.Writer) error {
				return w.Put(ctx, row, nil, []table.Pending{{Offset: 1, Desc: desc}}, nil)
			}, CommitOptions{})
		}
		old, err := insert()
		if err != nil {
			t.Fatal(err)
		}
		reader := m.Begin(Options{})
		scan := func() string { return scanAll(reader, []string{"t", "u"}, table.LockShared) }
		before := scan()
		inserted := beside(insert)
		stillRuns(t, inserted, "an insert into a range that was read")
		if after := scan(); after != before {
			t.Errorf("phantom: %q, then %q", before, after)
		}
		// The transaction in the variable waiter will write a key with a pending commit timestamp. It will lock only
		// keys with timestamps at or above the watermark. So the transaction in the variable other can still read the
		// row that was inserted before. If the two conflicted, the waiter would be aborted, because it is younger.
		existing := append([]byte(nil), row...)
		table.Pending{Offset: 1, Desc: desc}.Fill(existing, old)
		other := m.Begin(Options{})
		if err := reader.Rollback(); err != nil {
			t.Error(err)
		}
		if o := await(t, inserted); o.err != nil || o.ts <= old {
			t.Errorf("insert: %v", o)
		}
		waiter := m.Begin(Options{})
		if err := waiter.Put(ctx, row, nil, []table.Pending{{Offset: 1, Desc: desc}}, nil); err != nil {
			t.Error(err)
		}
		if _, ok, err := other.Get(ctx, existing, table.LockShared); !ok || err != nil {
			t.Errorf("desc=%v: row inserted before: %v, %v", desc, ok, err)
		}
		if waiter.Err() != nil {
			t.Error("a read of an old row is in the way of a new one")
		}
	}
}

// TestPendingKeysGoTogether: transactions that write keys with a pending commit timestamp neither wait for each other
// nor abort each other. Transactions that read in the range of such keys, or write there a key whose timestamp is
// known, wait for all of the writers.
func TestPendingKeysGoTogether(t *testing.T) {
	for _, mode := range modes {
		for _, desc := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, desc=%v", mode.name, desc), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { testPendingKeysGoTogether(t, mode.options, desc) })
			})
		}
	}
}

func testPendingKeysGoTogether(t *testing.T, options Options, desc bool) {
	m := newManager(t, openStore(t, vfs.NewMem(), "data"), time.Now)
	ctx := context.Background()
	pending := strings.Repeat("\xff", 12)
	if desc {
		pending = strings.Repeat("\x00", 12)
	}
	place := []table.Pending{{Offset: 1, Desc: desc}}
	var writers []*Tx
	for i := range 3 {
		w := m.Begin(options)
		key := fmt.Appendf(nil, "t%s%d\x00", pending, i)
		if _, ok, err := w.Get(ctx, key, table.LockWriterSharedTimestamp); ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := w.Put(ctx, key, nil, place, nil); err != nil {
			t.Fatal(err)
		}
		if _, ok, err := w.Get(ctx, key, table.LockWriterSharedTimestamp); !ok || err != nil {
			t.Fatalf("a transaction does not see the key that it has written: %v, %v", ok, err)
		}
		writers = append(writers, w)
	}
	if _, err := writers[0].Commit(ctx, nil, CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	if writers[1].locksNow { // in the optimistic modes nothing is locked before Commit, so nothing would wait
		reader, writer := m.Begin(Options{}), m.Begin(Options{})
		var scanned string
		read := beside(func() (mvcc.Timestamp, error) {
			scanned = scanAll(reader, []string{"t", "u"}, table.LockShared)
			return 0, reader.Rollback()
		})
		complete := fmt.Appendf(nil, "t%s3\x00", pending)
		place[0].Fill(complete, mvcc.TimestampOf(time.Now().Add(time.Hour)))
		written := beside(func() (mvcc.Timestamp, error) { return 0, writer.Put(ctx, complete, nil, nil, nil) })
		for _, w := range writers[1:] {
			stillRuns(t, read, "a scan of keys that are being written")
			stillRuns(t, written, "the write of a complete key where others are being written")
			if _, err := w.Commit(ctx, nil, CommitOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if o := await(t, read); o.err != nil || strings.Count(scanned, "t") != 3 {
			t.Errorf("the scan found %q, %v", scanned, o.err)
		}
		if o := await(t, written); o.err != nil {
			t.Error(o.err)
		}
		return
	}
	for _, w := range writers[1:] {
		if _, err := w.Commit(ctx, nil, CommitOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTimestampsRise: timestamps rise even if the clock is set back, and over restarts.
func TestTimestampsRise(t *testing.T) {
	fs, clock := vfs.NewMem(), new(fakeClock)
	clock.micros.Store(1_000_000_000)
	var last mvcc.Timestamp
	for range 4 {
		store, err := pebble.Open("data", fs)
		if err != nil {
			t.Fatal(err)
		}
		m := newManager(t, store, clock.now)
		for _, step := range []time.Duration{0, time.Second, -2 * time.Second, time.Hour, -3 * time.Hour} {
			clock.advance(step)
			ts := commitOne(t, m, "a", "1")
			if ts <= last {
				t.Fatalf("%d after %d", ts, last)
			}
			last = ts
			s, err := m.Snapshot(context.Background(), Bound{})
			if err != nil || s.Timestamp() < last {
				t.Fatalf("strong read at %d after %d, %v", s.Timestamp(), last, err)
			}
			last = s.Timestamp()
		}
		m.oracle.stop()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStoreFailure: if the store fails during a commit, no read sees that commit, and all commits with higher
// timestamps fail.
func TestStoreFailure(t *testing.T) { synctest.Test(t, testStoreFailure) }

func testStoreFailure(t *testing.T) {
	m, s, _ := gated(t)
	lost := beside(func() (mvcc.Timestamp, error) { return commitKey(m, "a", "1") })
	releaseLost := <-s.arrived
	behind := beside(func() (mvcc.Timestamp, error) { return commitKey(m, "b", "2") })
	releaseBehind := <-s.arrived
	releaseBehind <- nil
	stillRuns(t, behind, "a commit behind another")
	releaseLost <- errors.New("disk on fire")
	for _, c := range []chan outcome{lost, behind} {
		if o := await(t, c); o.err == nil || usererror.CodeOf(o.err) != codes.Internal {
			t.Errorf("commit ended with %v", o)
		}
	}
	if _, err := commitKey(m, "c", "3"); usererror.CodeOf(err) != codes.Internal {
		t.Errorf("a later commit ended with %v", err)
	}
	if got := strong(t, m, "a") + " " + strong(t, m, "b"); got != "a=0 b absent" {
		t.Errorf("a strong read sees %s", got)
	}
}

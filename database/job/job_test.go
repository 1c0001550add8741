package job

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// world is a database with one table, whose rows hold bytes that the test chooses.
type world struct {
	*testing.T
	fs      *vfs.MemFS
	now     time.Time
	catalog *schema.Catalog
	layout  *table.Layout
	jobs    Runner
	end     func()
}

func newWorld(t *testing.T, rows int, val []byte) *world {
	w := &world{T: t, fs: vfs.NewCrashableMem(), now: time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)}
	c, _, err := schema.NewCatalog().Apply("CREATE TABLE T (K INT64 NOT NULL) PRIMARY KEY (K)", nil)
	w.ok(err)
	w.catalog = c
	w.layout = table.TableLayout(c.Table("T"))
	w.open()
	t.Cleanup(func() { w.end() })
	w.ok(w.jobs.Transact(context.Background(), func(to table.Writer) error {
		for k := range rows {
			if err := to.Put(context.Background(), w.key(k), val, nil, nil); err != nil {
				return err
			}
		}
		return nil
	}))
	return w
}

func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w *world) open() {
	store, err := pebble.Open("data", w.fs)
	w.ok(err)
	clock := func() time.Time { return w.now }
	oracle, err := txn.NewOracle(store, clock)
	w.ok(err)
	w.jobs = Runner{Transactions: txn.NewManager(mvcc.New(store).In(1), oracle, txn.Config{Retention: time.Hour, Catalog: w.catalog}), Clock: clock, Catalog: func() *schema.Catalog { return w.catalog }}
	w.end = func() {
		w.ok(oracle.Close())
		w.ok(store.Close())
	}
}

// crash reopens the store with only the data that was synced, as after a crash of the machine.
func (w *world) crash() {
	after := w.fs.CrashClone(vfs.CrashCloneCfg{})
	w.end()
	w.fs = after
	w.open()
}

func (w *world) key(k int) []byte {
	return w.layout.AppendKey(nil, []value.Value{value.OfInt64(int64(k))})
}

// chunks counts what the job of a test has done. It is the job's State.
type chunks struct{ Chunks, Rows int }

// counting returns a job that appends a byte to every row, and counts chunks and rows in state. When the job has
// written the rows of a chunk, it calls the function in the parameter before, with the chunk. If that function returns
// nil, the transaction commits.
func (w *world) counting(name string, state *chunks, before func(c table.Chunk) error) Job {
	return Job{
		Name:  name,
		State: state,
		Find: func(ctx context.Context, view table.View, after []byte, limits table.Limits) (table.Chunk, error) {
			return table.FindChunk(ctx, view, w.layout, after, limits)
		},
		Do: func(ctx context.Context, to table.Writer, c table.Chunk) error {
			rows, err := read(ctx, to, c.Span(w.layout))
			if err != nil {
				return err
			}
			state.Chunks++
			state.Rows += len(rows)
			for _, r := range rows {
				if err := to.Put(ctx, r.Key, append(r.Value, '+'), nil, nil); err != nil {
					return err
				}
			}
			return before(c)
		},
	}
}

// read reads the rows of a span, with exclusive locks, and returns copies of them.
func read(ctx context.Context, view table.View, span table.Span) (rows []table.Stored, err error) {
	cur, err := view.Scan(ctx, span, table.ScanOptions{Lock: table.LockExclusive})
	if err != nil {
		return nil, err
	}
	for cur.Next() {
		rows = append(rows, table.Stored{Key: bytes.Clone(cur.Key()), Value: bytes.Clone(cur.Value())})
	}
	return rows, errors.Join(cur.Err(), cur.Close())
}

// wantRows checks that the table has n rows, each with the value want.
func (w *world) wantRows(n int, want string) {
	w.Helper()
	snapshot, err := w.jobs.Transactions.Snapshot(context.Background(), txn.Bound{})
	w.ok(err)
	space, _ := w.layout.Space()
	rows, err := read(context.Background(), snapshot, space)
	w.ok(err)
	if len(rows) != n {
		w.Errorf("%d rows", len(rows))
	}
	for i, r := range rows {
		if string(r.Value) != want {
			w.Fatalf("row %d has %q, want %q", i, r.Value, want)
		}
	}
}

var errStop = errors.New("stop")

func always(table.Chunk) error { return nil }

// TestResume interrupts a job in the second chunk of each run, by an error, a cancelled context or a crash, and runs it
// again under its name. The job must do and count every row once. A job without a name must begin again at the first
// row.
func TestResume(t *testing.T) {
	const rows = 3*table.ChunkRows + 7
	interruptions := map[string]func(w *world, cancel func()) error{
		"error":  func(*world, func()) error { return errStop },
		"cancel": func(_ *world, cancel func()) error { cancel(); return nil },
		"crash":  func(w *world, cancel func()) error { return errStop },
	}
	for name, interrupt := range interruptions {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rows, nil)
			var state chunks
			runs := 0
			for done := false; !done; runs++ {
				ctx, cancel := context.WithCancel(context.Background())
				state = chunks{} // a new process has no counts
				began := 0
				err := w.jobs.Run(ctx, w.counting("count", &state, func(table.Chunk) error {
					if began++; began == 2 {
						return interrupt(w, cancel)
					}
					return nil
				}))
				cancel()
				if name == "crash" {
					w.crash()
				}
				if done = err == nil; !done && !errors.Is(err, errStop) && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
			if runs < 3 || state != (chunks{4, rows}) {
				t.Errorf("%d runs, counted %+v", runs, state)
			}
			w.wantRows(rows, "+")
			// The job is done already, so that another run must change nothing.
			w.ok(w.jobs.Run(context.Background(), w.counting("count", &state, always)))
			w.wantRows(rows, "+")
			w.ok(w.jobs.Forget(context.Background(), "cou"))
			w.ok(w.jobs.Run(context.Background(), w.counting("count", &state, always)))
			w.wantRows(rows, "++")
			w.ok(w.jobs.Run(context.Background(), w.counting("", &state, always)))
			w.wantRows(rows, "+++")
		})
	}
}

// TestCheckpoints checks that Forget deletes all checkpoints with a prefix, and that ForgetOlder deletes only old ones.
func TestCheckpoints(t *testing.T) {
	w := newWorld(t, 1, nil)
	for _, name := range []string{"a/1", "a/2", "b/1"} {
		w.ok(w.jobs.Run(context.Background(), w.counting(name, new(chunks), always)))
		w.now = w.now.Add(time.Hour)
	}
	left := func() int {
		keys, err := w.jobs.checkpoints(context.Background(), "", func(checkpoint) bool { return true })
		w.ok(err)
		return len(keys)
	}
	if n := left(); n != 3 {
		t.Errorf("%d checkpoints", n)
	}
	w.ok(w.jobs.ForgetOlder(context.Background(), "", w.now.Add(-150*time.Minute)))
	if n := left(); n != 2 {
		t.Errorf("%d checkpoints are left after the old one was forgotten", n)
	}
	w.ok(w.jobs.Forget(context.Background(), "a/"))
	if n := left(); n != 1 {
		t.Errorf("%d checkpoints are left of one", n)
	}
}

// TestHalves checks that a job halves a chunk that is too large for a transaction until it is small enough, and that
// the next chunks grow again. If a single row is too large, the job must end.
func TestHalves(t *testing.T) {
	w := newWorld(t, 2000, nil)
	var state chunks
	var done []int64
	err := w.jobs.Run(context.Background(), w.counting("", &state, func(c table.Chunk) error {
		if c.Rows > 130 && len(done) < 3 {
			return usererror.CommitTooLarge(1)
		}
		done = append(done, c.Rows)
		return nil
	}))
	w.ok(err)
	if want := []int64{125, 125, 125, 250, 500, 875}; !slices.Equal(done, want) || state != (chunks{len(want), 2000}) {
		t.Errorf("counted %+v, chunks of %v", state, done)
	}
	w.wantRows(2000, "+")
	err = w.jobs.Run(context.Background(), w.counting("", &state, func(table.Chunk) error { return usererror.TooManyMutations(1) }))
	if !usererror.IsTooLarge(err) {
		t.Errorf("got %v", err)
	}
	w.wantRows(2000, "+")
}

// TestChunksOfLargeRows checks that a chunk is limited both by the bytes that it reads and by the bytes that it writes.
// A row above these limits must be a chunk by itself.
func TestChunksOfLargeRows(t *testing.T) {
	w := newWorld(t, 20, make([]byte, 3*table.ChunkBytes/8))
	err := w.jobs.Run(context.Background(), w.counting("", new(chunks), func(c table.Chunk) error {
		if c.Rows > 2 {
			t.Errorf("a chunk of %d rows", c.Rows)
		}
		return nil
	}))
	w.ok(err)
	w = newWorld(t, 3, make([]byte, 2*table.ChunkBytes))
	var state chunks
	w.ok(w.jobs.Run(context.Background(), w.counting("", &state, always)))
	if state != (chunks{3, 3}) {
		t.Errorf("counted %+v", state)
	}
	// The job writes more for one row than a commit may hold. It must fail unless AnySize is set.
	j := w.counting("", &state, always)
	j.Do = func(ctx context.Context, to table.Writer, c table.Chunk) error {
		for i := range 11 {
			if err := to.Put(ctx, append(w.key(1000), byte(i), 0), make([]byte, 10<<20), nil, nil); err != nil {
				return err
			}
		}
		return nil
	}
	if err := w.jobs.Run(context.Background(), j); !usererror.IsTooLarge(err) {
		t.Errorf("a user's row: %v", err)
	}
	j.AnySize = true
	w.ok(w.jobs.Run(context.Background(), j))
}

// TestAborted checks that an aborted chunk is run again with the same rows, and that the counts of its aborted attempts
// are not kept.
func TestAborted(t *testing.T) {
	w := newWorld(t, 10, nil)
	var state chunks
	aborts := 3
	w.ok(w.jobs.Run(context.Background(), w.counting("count", &state, func(c table.Chunk) error {
		if c.Rows != 10 {
			t.Errorf("a chunk of %d rows", c.Rows)
		}
		if aborts--; aborts >= 0 {
			return usererror.Wounded(0)
		}
		return nil
	})))
	if state != (chunks{1, 10}) {
		t.Errorf("counted %+v", state)
	}
	w.wantRows(10, "+")
}

// TestBackground runs a background job while a transaction has locked a row. The transaction must not be aborted. The
// job must do the work of all other rows, and call Skip for the locked row.
func TestBackground(t *testing.T) {
	w := newWorld(t, 100, nil)
	user := w.jobs.Transactions.Begin(txn.Options{})
	defer user.Rollback()
	_, _, err := user.Get(context.Background(), w.key(42), table.LockShared)
	w.ok(err)
	var state chunks
	var skipped [][]byte
	j := w.counting("count", &state, always)
	j.Background = true
	j.Skip = func(c table.Chunk, err error) error {
		skipped = append(skipped, c.Last)
		if usererror.CodeOf(err) != codes.Aborted {
			t.Errorf("skipped for %v", err)
		}
		return nil
	}
	w.ok(w.jobs.Run(context.Background(), j))
	if len(skipped) != 1 || !bytes.Equal(skipped[0], w.key(42)) || state.Rows != 99 {
		t.Errorf("skipped %x, counted %+v", skipped, state)
	}
	if err := user.Err(); err != nil {
		t.Errorf("the user's transaction: %v", err)
	}
}

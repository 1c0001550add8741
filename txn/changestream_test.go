package txn

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// watched is a table that one change stream watches.
type watched struct {
	table   *schema.Table
	streams []*schema.ChangeStream
	watches []*table.Watch
}

func newWatched(tb testing.TB) *watched {
	tb.Helper()
	c := schema.NewCatalog()
	for _, s := range []string{"CREATE TABLE T (K STRING(MAX), V STRING(MAX)) PRIMARY KEY (K)", "CREATE CHANGE STREAM S FOR ALL"} {
		var err error
		if c, _, err = c.Apply(s, nil); err != nil {
			tb.Fatal(err)
		}
	}
	w := &watched{table: c.Table("T"), streams: c.Streams}
	for _, by := range c.Watchers(w.table) {
		w.watches = append(w.watches, table.NewWatch(w.table, by))
	}
	return w
}

// record makes a change stream record the transactions of m. store may already hold records that an earlier Manager
// made.
func (w *watched) record(m *Manager, store kv.Store) error {
	log, err := changestream.Open(changestream.Config{Space: 1, Store: store, Oracle: m.oracle, Clock: m.oracle.clock})
	if err != nil {
		return err
	}
	b := store.NewBatch()
	defer b.Close()
	made, err := log.Change(b, w.streams, 1, func(*schema.ChangeStream) [][]byte { return nil })
	if err != nil {
		return err
	}
	if err := made.End(b.Commit()); err != nil {
		return err
	}
	m.streams = log
	return nil
}

// insert writes a row at key k, and passes the insert to the change stream. The record contains val.
func (w *watched) insert(ctx context.Context, to table.Writer, k, val string) error {
	if err := to.Put(ctx, key(k), []byte(val), nil, nil); err != nil {
		return err
	}
	return w.capture(ctx, to, k, val)
}

// capture passes the insert of a row to the change stream.
func (w *watched) capture(ctx context.Context, to table.Writer, k, val string) error {
	_, err := to.Capture(ctx, &table.Change{
		Table: w.table, Watches: w.watches, Op: table.Insert, Key: key(k), New: []value.Value{value.OfString(k), value.OfString(val)}, Written: []bool{true, true},
	})
	return err
}

// recordsIn returns the encoded change stream records in a store, by commit timestamp.
func recordsIn(store kv.Store) (map[mvcc.Timestamp]string, error) {
	prefix := append(make([]byte, 4), "changestream/record/"...)
	it, err := store.NewIter(prefix, append(prefix[:len(prefix):len(prefix)], 0xff))
	if err != nil {
		return nil, err
	}
	defer it.Close()
	found := map[mvcc.Timestamp]string{}
	for ok := it.First(); ok; ok = it.Next() {
		val, err := it.Value()
		if err != nil {
			return nil, err
		}
		k := it.Key() // a key ends in the timestamp (8 bytes), the sequence (4 bytes) and 00
		found[mvcc.Timestamp(binary.BigEndian.Uint64(k[len(k)-13:]))] += string(val)
	}
	return found, it.Error()
}

// mustRecords returns the records of the commit at a timestamp. It fails the test if the store holds records of any
// other commit.
func mustRecords(t *testing.T, store kv.Store, at mvcc.Timestamp) string {
	t.Helper()
	found, err := recordsIn(store)
	if err != nil {
		t.Fatal(err)
	}
	if len(found) != 1 || found[at] == "" {
		t.Fatalf("records of %d commits, not of the one at %d", len(found), at)
	}
	return found[at]
}

// TestRecordsOfRefusedCommit: a commit that the store refuses leaves no records. When the client repeats the Commit
// and it succeeds, each record is stored once. A further Commit adds no records.
func TestRecordsOfRefusedCommit(t *testing.T) {
	store := &disktest.Refusing{Store: openStore(t, vfs.NewMem(), "data")}
	clock := new(fakeClock)
	clock.micros.Store(10_000_000_000)
	m, w, ctx := newManager(t, store, clock.now), newWatched(t), context.Background()
	if err := w.record(m, store); err != nil {
		t.Fatal(err)
	}
	tx := m.Begin(Options{})
	if err := w.insert(ctx, tx, "a", "by statement"); err != nil {
		t.Fatal(err)
	}
	commit := func() (mvcc.Timestamp, error) {
		return tx.Commit(ctx, func(to table.Writer) error { return w.insert(ctx, to, "b", "by mutation") }, CommitOptions{})
	}
	store.When(func() bool { return true })
	if _, err := commit(); !errors.Is(err, kv.ErrRefused) {
		t.Fatalf("a full store answers %v", err)
	}
	store.When(nil)
	if found, err := recordsIn(store); len(found) != 0 || err != nil {
		t.Fatalf("after a refused commit: %v %v", found, err)
	}
	ts, err := commit()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := commit(); again != ts || err != nil {
		t.Errorf("the second commit: %d %v", again, err)
	}
	got := mustRecords(t, store, ts)
	for _, once := range []string{`{"V":"by statement"}`, `{"V":"by mutation"}`} {
		if strings.Count(got, once) != 1 {
			t.Errorf("%s stands %d times in the records", once, strings.Count(got, once))
		}
	}
}

// TestSavepointTakesRecords: changes of rows that RollbackTo undoes are neither recorded nor charged.
func TestSavepointTakesRecords(t *testing.T) {
	store := openStore(t, vfs.NewMem(), "data")
	clock := new(fakeClock)
	clock.micros.Store(10_000_000_000)
	m, w, ctx := newManager(t, store, clock.now), newWatched(t), context.Background()
	if err := w.record(m, store); err != nil {
		t.Fatal(err)
	}
	budget := memory.NewBudget(1 << 30)
	tx := m.Begin(Options{Memory: budget})
	insert := func(k, val string) {
		t.Helper()
		if err := w.insert(ctx, tx, k, val); err != nil {
			t.Fatal(err)
		}
	}
	insert("a", "before")
	savepoint, size := tx.Savepoint(), tx.Stats().Bytes
	for range 2 {
		insert("b", strings.Repeat("x", 1<<20))
		if used := budget.Usage().Reserved; used < 2*copies<<20 {
			t.Errorf("a row of 1 MiB and its record are charged %d bytes", used)
		}
		tx.RollbackTo(savepoint)
		if now, used := tx.Stats().Bytes, budget.Usage().Reserved; now != size || used > chargeBytes {
			t.Errorf("after the rollback: %d bytes, %d before; %d charged", now, size, used)
		}
	}
	insert("c", "after")
	ts, err := tx.Commit(ctx, nil, CommitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got := mustRecords(t, store, ts)
	if !strings.Contains(got, `{"V":"before"}`) || !strings.Contains(got, `{"V":"after"}`) || strings.Contains(got, "xxx") {
		t.Errorf("records of %d bytes: %.300q", len(got), got)
	}
}

// TestRecordsCountTowardsCommitSize: the limit on the bytes of a commit includes the bytes of its change stream
// records.
func TestRecordsCountTowardsCommitSize(t *testing.T) {
	store := openStore(t, vfs.NewMem(), "data")
	m, w, ctx := newManager(t, store, new(fakeClock).now), newWatched(t), context.Background()
	val := strings.Repeat("x", 10<<20)
	fits := func() (n int, err error) {
		tx := m.Begin(Options{})
		defer func() { _ = tx.Rollback() }()
		for ; n < 12; n++ {
			if err := w.insert(ctx, tx, fmt.Sprint(n), val); err != nil {
				return n, err
			}
		}
		return n, nil
	}
	if n, err := fits(); n != 9 || !usererror.IsTooLarge(err) {
		t.Errorf("without a stream %d rows of 10 MiB fit: %v", n, err)
	}
	if err := w.record(m, store); err != nil {
		t.Fatal(err)
	}
	if n, err := fits(); n != 4 || !usererror.IsTooLarge(err) {
		t.Errorf("with a stream %d rows of 10 MiB fit: %v", n, err)
	}
}

package stats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/stats/live"
	"github.com/crowfoot-db/crowfoot/value"
)

// column returns the values of one column in all rows of a table.
func (w *world) column(t testing.TB, table, column string) []value.Value {
	d := w.table(t, table)
	rows, err := d.Rows(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var list []value.Value
	for _, r := range rows {
		for i, c := range d.Columns {
			if c.Name == column {
				list = append(list, r[i])
			}
		}
	}
	return list
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestMillionTexts checks the statistics of a minute with a million different statements. The test records each of
// them once, and about a hundred heavier ones many times. The totals must be exact, all heavy statements must be in
// the table with exact counts, and memory must stay small.
func TestMillionTexts(t *testing.T) {
	w := newWorld(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	const texts, heavy = 1_000_000, 90
	before, most := heap(), uint64(0)
	heavyRuns := map[string]int64{}
	for i := range texts {
		w.c.Query(&Query{Text: TextOf(fmt.Sprintf("SELECT %d FROM Singers", i)), End: w.now, Latency: time.Microsecond, CPU: time.Duration(rnd.IntN(1000)), Rows: 1})
		if i%100 == 0 {
			text := fmt.Sprintf("SELECT heavy %d", rnd.IntN(heavy))
			heavyRuns[text]++
			w.c.Query(&Query{Text: TextOf(text), End: w.now, Latency: time.Microsecond, CPU: 100 * time.Microsecond, Rows: 1})
		}
		if i%200_000 == 0 {
			most = max(most, heap())
		}
	}
	if grown := int64(most) - int64(before); grown > 16<<20 {
		t.Errorf("memory grew by %d bytes", grown)
	}
	w.now = w.now.Add(time.Minute)
	if got := w.column(t, "QUERY_STATS_TOTAL_MINUTE", "EXECUTION_COUNT"); got[0].AsInt64() != texts+texts/100 {
		t.Errorf("total is %d", got[0].AsInt64())
	}
	counts := w.column(t, "QUERY_STATS_TOP_MINUTE", "EXECUTION_COUNT")
	for i, text := range w.column(t, "QUERY_STATS_TOP_MINUTE", "TEXT") {
		if want := heavyRuns[text.AsString()]; i < heavy && counts[i].AsInt64() != want {
			t.Errorf("row %d, %q, counts %d, want %d", i, text.AsString(), counts[i].AsInt64(), want)
		}
	}
	if len(counts) != keepTop {
		t.Errorf("there are %d rows", len(counts))
	}
}

// TestHugeTexts records different statements of a mebibyte each, and checks that memory and disk stay small.
func TestHugeTexts(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("é", 1<<19)
	before := heap()
	for minute := range 3 {
		for i := range 1000 {
			text := Text{SQL: fmt.Sprintf("SELECT %d -- %s", i, long), Fingerprint: int64(i)}
			w.c.Query(&Query{Text: text, End: w.now, CPU: time.Duration(1000 * (minute + 1)), Tag: ""})
		}
		w.now = w.now.Add(time.Minute)
		if err := w.c.Advance(); err != nil {
			t.Fatal(err)
		}
	}
	if grown := int64(heap()) - int64(before); grown > 16<<20 {
		t.Errorf("memory grew by %d bytes", grown)
	}
	if stored := w.stored(t, 7); stored > 3*(fullTexts+keepTop*(shortText+1<<10)) {
		t.Errorf("three minutes are stored in %d bytes", stored)
	}
	texts := w.column(t, "QUERY_STATS_TOP_MINUTE", "TEXT")
	truncated := w.column(t, "QUERY_STATS_TOP_MINUTE", "TEXT_TRUNCATED")
	size := 0
	for i, text := range texts {
		size += len(text.AsString())
		if len(text.AsString()) > maxText || !truncated[i].AsBool() || strings.ContainsRune(text.AsString(), '\uFFFD') {
			t.Fatalf("row %d has %d bytes, truncated: %t", i, len(text.AsString()), truncated[i].AsBool())
		}
	}
	if size > 3*(fullTexts+keepTop*shortText) {
		t.Errorf("texts of three minutes are %d bytes", size)
	}
	if len(texts[0].AsString()) != maxText {
		t.Errorf("the heaviest is cut to %d bytes", len(texts[0].AsString()))
	}
	if total := w.column(t, "QUERY_STATS_TOTAL_MINUTE", "EXECUTION_COUNT"); total[0].AsInt64() != 1000 {
		t.Errorf("total is %d", total[0].AsInt64())
	}
}

// stored returns how many bytes the statistics of the database with this key space take in the store.
func (w *world) stored(t *testing.T, space mvcc.Space) (size int) {
	lower, upper := Range(space)
	it, err := w.store.NewIter(lower, upper)
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		v, err := it.Value()
		if err != nil {
			t.Fatal(err)
		}
		size += len(it.Key()) + len(v)
	}
	return size
}

// TestRange: deleting the range of keys that Range returns for the key space of one database does not delete
// statistics of other databases.
func TestRange(t *testing.T) {
	w := newWorld(t)
	for _, space := range []mvcc.Space{7, 70, 77} {
		w.c.cfg.Space = space
		w.c.Query(&Query{Text: TextOf("SELECT 1"), End: w.now})
		w.now = w.now.Add(time.Minute)
		if err := w.c.Advance(); err != nil {
			t.Fatal(err)
		}
	}
	b := w.store.NewBatch()
	if err := errors.Join(b.DeleteRange(Range(7)), b.Commit()); err != nil {
		t.Fatal(err)
	}
	if w.stored(t, 7) != 0 || w.stored(t, 70) == 0 || w.stored(t, 77) == 0 {
		t.Error("the wrong range went")
	}
}

// TestWantProfile: the first execution of each minute is profiled, and few of the others.
func TestWantProfile(t *testing.T) {
	w := newWorld(t)
	for range 2 {
		if !w.c.WantProfile() {
			t.Error("the first of a minute is not profiled")
		}
		wanted := 1
		for range 100 * profileEvery {
			if w.c.WantProfile() {
				wanted++
			}
		}
		if wanted != keepProfiles {
			t.Errorf("%d are profiled", wanted)
		}
		w.now = w.now.Add(time.Minute)
		if err := w.c.Advance(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestDamagedRecord: the collector logs records that it cannot decode, and skips them.
func TestDamagedRecord(t *testing.T) {
	w := newWorld(t)
	var log strings.Builder
	w.c.cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
	b := w.store.NewBatch()
	if err := errors.Join(b.Put(w.c.key(byMinute, queries, w.now), []byte{recordVersion, 200}), b.Put(w.c.openKey(), []byte{recordVersion, 1, 9}), b.Commit()); err != nil {
		t.Fatal(err)
	}
	w.c.Query(&Query{Text: TextOf("SELECT 1"), End: w.now})
	w.now = w.now.Add(time.Hour)
	for _, suffix := range []string{"MINUTE", "10MINUTE", "HOUR"} {
		if n := len(w.column(t, "QUERY_STATS_TOP_"+suffix, "TEXT")); n != 1 {
			t.Errorf("%d rows by %s", n, suffix)
		}
	}
	for _, want := range []string{"an open minute are lost", "an interval cannot be read", "end=2026-01-01T00:00:00", "malformed"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("not logged: %s", want)
		}
	}
}

// TestManyShapes checks that totals are right even if there are more different accesses, footprints and locks than
// the collector counts separately.
func TestManyShapes(t *testing.T) {
	w := newWorld(t)
	const n = 5000
	for i := range n {
		a := NewAccess(OpWrite, "T", []string{fmt.Sprintf("C%d", i)})
		var f Footprint
		f.Add(a)
		w.c.Operations(w.now, []*Access{a})
		w.c.Transaction(&Transaction{Footprint: &f, End: w.now, Participants: 1})
		w.c.LockWait(&LockWait{Key: fmt.Sprintf("T(%d)", i), End: w.now, Wait: time.Second})
	}
	w.now = w.now.Add(time.Minute)
	if got := w.column(t, "TABLE_OPERATIONS_STATS_MINUTE", "WRITE_COUNT"); len(got) != 1 || got[0].AsInt64() != n {
		t.Errorf("writes: %v", got)
	}
	if got := w.column(t, "COLUMN_OPERATIONS_STATS_MINUTE", "WRITE_COUNT"); len(got) != n {
		t.Errorf("%d columns", len(got))
	}
	if got := w.column(t, "TXN_STATS_TOTAL_MINUTE", "COMMIT_ATTEMPT_COUNT"); got[0].AsInt64() != n {
		t.Errorf("transactions: %d", got[0].AsInt64())
	}
	if got := w.column(t, "LOCK_STATS_TOTAL_MINUTE", "TOTAL_LOCK_WAIT_SECONDS"); got[0].AsFloat64() != n {
		t.Errorf("lock waits: %g", got[0].AsFloat64())
	}
}

// TestConcurrent checks that no event is lost or counted twice while many goroutines record events over several
// minutes and others read the tables.
func TestConcurrent(t *testing.T) {
	w := newWorld(t)
	var mu sync.Mutex
	now := w.now
	clock := func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	w.c.cfg.Clock = clock
	const workers, each = 8, 3000
	a := NewAccess(OpQuery, "Singers", []string{"Id"})
	var group sync.WaitGroup
	for i := range workers {
		group.Go(func() {
			for j := range each {
				q := live.Query{SQL: "SELECT 1", Start: clock()}
				w.live.Start(&q)
				w.c.Query(&Query{Text: TextOf(q.SQL), End: clock(), Accesses: []*Access{a}, Rows: 1})
				w.c.Read(&Read{Access: a, End: clock(), Rows: 1})
				var f Footprint
				f.Add(a)
				w.c.Transaction(&Transaction{Footprint: &f, End: clock()})
				q.Finish()
				r := w.live.StartTimeline("tag", clock())
				r.Add(clock(), live.Event{Kind: live.EventQuery, What: "SELECT 1"})
				r.Finish(clock(), "committed")
				if i == 0 && j%20 == 0 {
					mu.Lock()
					now = now.Add(7 * time.Second)
					mu.Unlock()
				}
			}
		})
	}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for _, name := range []string{"QUERY_STATS_TOP_MINUTE", "OLDEST_ACTIVE_QUERIES", "TXN_STATS_TOTAL_10MINUTE"} {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					w.column(t, name, "TEXT")
					w.live.Timelines("tag")
				}
			}
		})
	}
	group.Wait()
	close(stop)
	readers.Wait()
	now = now.Add(2 * time.Hour)
	for _, c := range [][2]string{{"QUERY_STATS_TOTAL_", "EXECUTION_COUNT"}, {"READ_STATS_TOTAL_", "EXECUTION_COUNT"}, {"TXN_STATS_TOTAL_", "ATTEMPT_COUNT"}, {"TABLE_OPERATIONS_STATS_", "READ_QUERY_COUNT"}} {
		for _, suffix := range []string{"MINUTE", "10MINUTE", "HOUR"} {
			sum, want := int64(0), int64(workers*each)
			for _, v := range w.column(t, c[0]+suffix, c[1]) {
				sum += v.AsInt64()
			}
			if strings.HasPrefix(c[0], "TABLE_") {
				want *= 2
			}
			if sum != want {
				t.Errorf("%s%s counts %d, want %d", c[0], suffix, sum, want)
			}
		}
	}
}

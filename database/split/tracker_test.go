package split

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
)

// fourSplits returns a world whose table T has a hundred rows in four splits, with bounds at 25, 50 and 75. The index
// ByB lies in the last split.
func fourSplits(t *testing.T) *world {
	w := newWorld(t)
	w.fill(0, 100)
	w.ok(w.AddPoints([]Point{w.point(25, 24*time.Hour), w.point(50, 24*time.Hour), w.point(75, 24*time.Hour)}))
	return w
}

// track begins to track an execution that represents weight executions.
func (w *world) track(weight int64) *Tracker {
	t := new(Tracker)
	w.Track(t, w.now, weight)
	return t
}

// snapshot returns a strong snapshot whose reads t records.
func (w *world) snapshot(t *Tracker) table.View {
	s, err := w.txns.Snapshot(context.Background(), txn.Bound{})
	w.ok(err)
	return t.View(s)
}

func (w *world) keys(as ...int64) (ks table.KeySet) {
	for _, a := range as {
		ks.Keys = append(ks.Keys, []value.Value{value.OfInt64(a)})
	}
	return ks
}

func keysFrom(from, to int64) table.KeySet {
	return table.KeySet{Ranges: []table.KeyRange{{Start: []value.Value{value.OfInt64(from)}, End: []value.Value{value.OfInt64(to)}}}}
}

// read reads rows of T through a tracker and returns their number.
func (w *world) read(tr *Tracker, ks table.KeySet, limit int64, reverse bool) (n int) {
	w.Helper()
	t := w.catalog.Table("T")
	p, err := table.NewProjection(t, nil, t.Columns)
	w.ok(err)
	spans, err := p.Spans(ks)
	w.ok(err)
	rows := table.Read{Projection: p, Spans: spans, Limit: limit, Reverse: reverse}.Open(context.Background(), w.snapshot(tr))
	for {
		ok, err := rows.Next()
		w.ok(err)
		if !ok {
			break
		}
		n++
	}
	w.ok(rows.Close())
	return n
}

// text prints the calls of a tracker, each as split:rows. A + follows if scans have read some of the rows.
func (tr *Tracker) text() string {
	var list []string
	for _, c := range tr.calls {
		text := fmt.Sprintf("%d:%d", c.split, c.rows)
		if c.scanned > 0 {
			text += "+"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

// TestTracker checks which rows a tracker records for reads of different kinds, and the number of their remote calls.
func TestTracker(t *testing.T) {
	w := fourSplits(t)
	for _, c := range []struct {
		name    string
		keys    table.KeySet
		limit   int64
		reverse bool
		rows    int
		calls   string
		remote  int64
	}{
		{"one key", w.keys(30), 0, false, 1, "1:1", 0},
		{"no row", w.keys(1000), 0, false, 0, "3:1", 0},
		{"ten keys", w.keys(1, 7, 26, 30, 31, 50, 60, 74, 75, 99), 0, false, 10, "0:2 1:3 2:3 3:2", 4},
		{"keys with a gap", w.keys(99, 1), 0, false, 2, "0:1 3:1", 2},
		{"range in one", keysFrom(26, 49), 0, false, 24, "1:24+", 0},
		{"range up to the end of a split", table.KeySet{Ranges: []table.KeyRange{{Start: []value.Value{value.OfInt64(25)}, End: []value.Value{value.OfInt64(50)}, EndOpen: true}}}, 0, false, 25, "1:25+", 0},
		{"range over all", table.KeySet{All: true}, 0, false, 100, "0:25+ 1:25+ 2:25+ 3:25+", 4},
		{"backwards", table.KeySet{All: true}, 0, true, 100, "0:25+ 1:25+ 2:25+ 3:25+", 4},
		{"that stops", table.KeySet{All: true}, 25, false, 25, "0:25+", 0},
		{"that stops later", table.KeySet{All: true}, 26, false, 26, "0:25+ 1:1+", 2},
		{"backwards that stops", table.KeySet{All: true}, 30, true, 30, "2:5+ 3:25+", 2},
		{"empty range over splits", keysFrom(-10, -5), 0, false, 0, "0:0", 0},
	} {
		tr := w.track(0)
		if n := w.read(tr, c.keys, c.limit, c.reverse); n != c.rows {
			t.Errorf("%s: %d rows", c.name, n)
		}
		if tr.text() != c.calls || tr.RemoteCalls() != c.remote {
			t.Errorf("%s: calls %s, %d remote; want %s, %d", c.name, tr.text(), tr.RemoteCalls(), c.calls, c.remote)
		}
	}
	var none Tracker
	if view := w.snapshot(&none); view == table.View(&none) {
		t.Error("an inactive tracker stands in the way")
	}
	if none.RemoteCalls() != 0 || none.Sampled() {
		t.Error("an inactive tracker went somewhere")
	}
}

// TestTrackerOfKeysReadTogether checks that each key of a GetEach counts like a Get of this key. A key that the
// callback refuses must not count, since the caller will read it again.
func TestTrackerOfKeysReadTogether(t *testing.T) {
	w := fourSplits(t)
	tr := w.track(1)
	view, ok := w.snapshot(tr).(table.BatchView)
	if !ok {
		t.Fatal("a tracked snapshot reads keys one by one")
	}
	tab := w.catalog.Table("T")
	p, err := table.NewProjection(tab, nil, tab.Columns)
	w.ok(err)
	var keys [][]byte
	for _, a := range []int64{80, 60, 60, 55, 3} {
		keys = append(keys, p.AppendKey(nil, []value.Value{value.OfInt64(a)}))
	}
	w.ok(view.GetEach(context.Background(), keys, 0, func(i int, _ []byte, _ bool) bool { return i < 3 }))
	if got := tr.text(); got != "2:2 3:1" {
		t.Errorf("calls %s", got)
	}
	if _, ok := tr.Writer(nil).(table.BatchView); ok {
		t.Error("a read-write transaction reads keys together, though it must lock each")
	}
}

// TestTrackerOfWrites checks that writes are recorded in the splits of their keys, and make no remote calls.
func TestTrackerOfWrites(t *testing.T) {
	w := fourSplits(t)
	tr := w.track(1)
	tab := w.catalog.Table("T")
	tx := w.commit(table.Mutation{Op: table.Delete, Table: tab, Keys: w.keys(30)},
		table.Mutation{Op: table.InsertOrUpdate, Table: tab, Columns: tab.Columns, Rows: [][]value.Value{{value.OfInt64(200), value.OfString("b")}}})
	tx.EachWrite(tr.Wrote)
	// Split 1 gets one write, of the deleted row. Split 3 gets three: of the new row, and of the index entries of both
	// rows.
	if tr.text() != "1:1 3:3" || tr.RemoteCalls() != 0 {
		t.Errorf("calls %s, %d remote", tr.text(), tr.RemoteCalls())
	}
}

// loadTexts returns the rows that SPLIT_STATS_TOP_MINUTE shows for the minute before the clock's time, the highest
// score first.
func (w *world) loadTexts() (list []string) {
	loads := w.Loads(w.now)
	slices.SortStableFunc(loads, func(a, b stats.SplitLoad) int { return int(b.Score - a.Score) })
	for _, l := range loads {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s-%s %s %d %s", l.Start, l.Limit, strings.Join(l.Tables, ","), l.Score, strings.Join(l.Unsplittable, ","))))
	}
	return list
}

func (w *world) wantLoads(want ...string) {
	w.Helper()
	if got := w.loadTexts(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.Errorf("loads\ngot  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// TestSplitLoads charges executions with known times and compares all rows of the statistics.
func TestSplitLoads(t *testing.T) {
	w := fourSplits(t)
	// A sampled read of two keys represents eight reads of 3 s each: 24 s are 40 % of a minute. Each key's split gets
	// half of that: 20 % and 20 %.
	tr := w.track(8)
	w.read(tr, w.keys(30, 60), 0, false)
	w.Charge(tr, 3*time.Second, w.now)
	// One scan of all 100 rows takes 24 s. It reads 25 rows in each split, so each split gets 6 s.
	tr = w.track(1)
	w.read(tr, table.KeySet{All: true}, 0, false)
	w.Charge(tr, 24*time.Second, w.now)
	// Three executions of 12 s each read the same row, so its split gets 36 s.
	for range 3 {
		tr = w.track(1)
		w.read(tr, w.keys(99), 0, false)
		w.Charge(tr, 12*time.Second, w.now)
	}
	// An execution that read nothing has no calls, so no split gets its time.
	tr = w.track(1)
	w.Charge(tr, time.Hour, w.now) // tr has no calls
	w.now = w.now.Add(time.Minute)
	w.wantLoads(
		"T(75)-<end> ByB,T 70 HOT_ROW",
		"T(25)-T(50) T 30",
		"T(50)-T(75) T 30",
		"<begin>-T(25) T 10")

	// The next minute begins without loads. A load below half a percent of a minute is not shown.
	tr = w.track(1)
	w.read(tr, w.keys(1), 0, false)
	w.Charge(tr, 200*time.Millisecond, w.now)
	w.now = w.now.Add(time.Minute)
	w.wantLoads()

	// The score of a split that used more than one core is 100.
	tr = w.track(8)
	w.read(tr, w.keys(1), 0, false)
	w.Charge(tr, 20*time.Second, w.now)
	w.now = w.now.Add(time.Minute)
	w.wantLoads("<begin>-T(25) T 100 HOT_ROW")

	// A charge counts in the minute that it names, even if it is made after a charge of the next minute.
	tr = w.track(1)
	w.read(tr, w.keys(1), 0, false)
	w.Charge(tr, 30*time.Second, w.now)
	w.Charge(tr, 15*time.Second, w.now.Add(time.Minute))
	w.Charge(tr, 3*time.Second, w.now.Add(time.Minute-1))
	w.now = w.now.Add(time.Minute)
	w.wantLoads("<begin>-T(25) T 55 HOT_ROW")
	w.now = w.now.Add(time.Minute)
	w.wantLoads("<begin>-T(25) T 25")

	// If a split is divided during the minute, the rows show the bounds from before and those from after the division.
	tr = w.track(1)
	w.read(tr, w.keys(80), 0, false)
	w.Charge(tr, 12*time.Second, w.now)
	w.ok(w.AddPoints([]Point{w.point(90, time.Hour)}))
	tr = w.track(1)
	w.read(tr, w.keys(80), 0, false)
	w.Charge(tr, 6*time.Second, w.now)
	w.now = w.now.Add(time.Minute)
	w.wantLoads("T(75)-<end> ByB,T 20", "T(75)-T(90) T 10")
}

// TestUnsplittable checks the reasons that are given for warm splits whose division would not reduce the load.
func TestUnsplittable(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 2000)
	minute := func(name, want string, executions ...func(tr *Tracker)) {
		t.Helper()
		for _, run := range executions {
			tr := w.track(1)
			run(tr)
			w.Charge(tr, 40*time.Second/time.Duration(len(executions)), w.now)
		}
		w.now = w.now.Add(time.Minute)
		w.wantLoads(strings.TrimSpace("<begin>-<end> ByB,T 67 " + want))
	}
	get := func(as ...int64) func(*Tracker) {
		return func(tr *Tracker) { w.read(tr, w.keys(as...), 0, false) }
	}
	all := func(tr *Tracker) { w.read(tr, table.KeySet{All: true}, 0, false) }
	some := func(tr *Tracker) { w.read(tr, keysFrom(0, 500), 0, false) }
	same := []func(*Tracker){get(7), get(7), get(7), get(7), get(7), get(7), get(7), get(7), get(7)}
	minute("one row", "HOT_ROW", same...)
	minute("one row in nine of ten", "HOT_ROW", append(same, get(8))...)
	minute("one row, by range", "HOT_ROW", func(tr *Tracker) { w.read(tr, keysFrom(7, 7), 0, false) })
	minute("one row in two of three", "", get(7), get(7), get(8))
	minute("many rows", "", get(1, 2, 3, 4, 5))
	minute("scans", "LARGE_SCAN_HOT_SPOT", all, all)
	minute("short scans", "", some, some)
	minute("half of it scans", "", all, get(1))
}

// TestVote checks that a vote finds the row with the majority, and that the sum of several votes finds it, too. The
// order of the votes must not matter.
func TestVote(t *testing.T) {
	for share := range 11 {
		var all vote
		for part := range 5 {
			var v vote
			for i := range 10 {
				if (i*7+part)%10 < share {
					v.add(99, 1)
				} else {
					v.add(uint64(100+10*part+i), 1)
				}
			}
			all.add(v.row, v.lead)
		}
		if least := int64(2*share-10) * 5; all.lead < least || least > 0 && all.row != 99 || all.row == 99 && all.lead > int64(share)*5 {
			t.Errorf("%d of 10: %+v", share, all)
		}
	}
}

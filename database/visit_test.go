package database

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
)

// fourSplits has a hundred rows of T in four splits, at 25, 50 and 75. The index lies in the last of them.
func fourSplits(t *testing.T) *splitWorld {
	w := newSplitWorld(t)
	w.fill(0, 100)
	w.ok(w.db.AddSplitPoints([]SplitPoint{w.at(25, 24*time.Hour), w.at(50, 24*time.Hour), w.at(75, 24*time.Hour)}))
	return w
}

// visit begins one of weight executions.
func (w *splitWorld) visit(weight int64) *Visit {
	v := new(Visit)
	w.db.Visit(v, w.now, weight)
	return v
}

// snapshot is a strong view, through a visit.
func (w *splitWorld) snapshot(v *Visit) table.View {
	s, err := w.db.Transactions().Snapshot(context.Background(), txn.Bound{})
	w.ok(err)
	return v.View(s)
}

func (w *splitWorld) keys(as ...int64) (ks table.KeySet) {
	for _, a := range as {
		ks.Keys = append(ks.Keys, []value.Value{value.OfInt64(a)})
	}
	return ks
}

func keysFrom(from, to int64) table.KeySet {
	return table.KeySet{Ranges: []table.KeyRange{{Start: []value.Value{value.OfInt64(from)}, End: []value.Value{value.OfInt64(to)}}}}
}

// read reads rows of T through a visit and returns how many there were.
func (w *splitWorld) read(v *Visit, ks table.KeySet, limit int64, reverse bool) (n int) {
	w.Helper()
	t := w.db.Catalog().Table("T")
	p, err := table.NewProjection(t, nil, t.Columns)
	w.ok(err)
	spans, err := p.Spans(ks)
	w.ok(err)
	rows := table.Read{Projection: p, Spans: spans, Limit: limit, Reverse: reverse}.Open(context.Background(), w.snapshot(v))
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

// text prints the calls of a visit: split:rows, with a + for those that scanned.
func (v *Visit) text() string {
	var list []string
	for _, c := range v.calls {
		text := fmt.Sprintf("%d:%d", c.split, c.rows)
		if c.scanned > 0 {
			text += "+"
		}
		list = append(list, text)
	}
	return strings.Join(list, " ")
}

// TestVisits: what is noted of reads, and how many calls they would make.
func TestVisits(t *testing.T) {
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
		{"ten keys", w.keys(1, 7, 26, 30, 31, 50, 60, 74, 75, 99), 0, false, 10, "0:2 1:3 2:3 3:2", 3},
		{"keys with a gap", w.keys(99, 1), 0, false, 2, "0:1 3:1", 1},
		{"range in one", keysFrom(26, 49), 0, false, 24, "1:24+", 0},
		{"range up to the end of a split", table.KeySet{Ranges: []table.KeyRange{{Start: []value.Value{value.OfInt64(25)}, End: []value.Value{value.OfInt64(50)}, EndOpen: true}}}, 0, false, 25, "1:25+", 0},
		{"range over all", table.KeySet{All: true}, 0, false, 100, "0:25+ 1:25+ 2:25+ 3:25+", 3},
		{"backwards", table.KeySet{All: true}, 0, true, 100, "0:25+ 1:25+ 2:25+ 3:25+", 3},
		{"that stops", table.KeySet{All: true}, 25, false, 25, "0:25+", 0},
		{"that stops later", table.KeySet{All: true}, 26, false, 26, "0:25+ 1:1+", 1},
		{"backwards that stops", table.KeySet{All: true}, 30, true, 30, "2:5+ 3:25+", 1},
		{"empty range over splits", keysFrom(-10, -5), 0, false, 0, "0:0", 0},
	} {
		v := w.visit(0)
		if n := w.read(v, c.keys, c.limit, c.reverse); n != c.rows {
			t.Errorf("%s: %d rows", c.name, n)
		}
		if v.text() != c.calls || v.RemoteCalls() != c.remote {
			t.Errorf("%s: calls %s, %d remote; want %s, %d", c.name, v.text(), v.RemoteCalls(), c.calls, c.remote)
		}
	}
	var none Visit
	if view := w.snapshot(&none); view == table.View(&none) {
		t.Error("a visit that was not begun stands in the way")
	}
	if none.RemoteCalls() != 0 || none.Sampled() {
		t.Error("a visit that was not begun went somewhere")
	}
}

// TestVisitOfWrites: writes are noted where they go, and make no calls.
func TestVisitOfWrites(t *testing.T) {
	w := fourSplits(t)
	v := w.visit(1)
	tx := w.db.Transactions().Begin(txn.Options{})
	tab := w.db.Catalog().Table("T")
	_, err := tx.Commit(context.Background(), func(to table.Writer) error {
		m := []table.Mutation{{Op: table.Delete, Table: tab, Keys: w.keys(30)},
			{Op: table.InsertOrUpdate, Table: tab, Columns: tab.Columns, Rows: [][]value.Value{{value.OfInt64(200), value.OfString("b")}}}}
		_, err := table.Apply(context.Background(), to, m, w.now)
		return err
	}, txn.CommitOptions{})
	w.ok(err)
	tx.EachWrite(v.Wrote)
	// The row that goes; the row that comes; an entry of the index for each.
	if v.text() != "1:1 3:3" || v.RemoteCalls() != 0 {
		t.Errorf("calls %s, %d remote", v.text(), v.RemoteCalls())
	}
}

// loadRows are the rows of SPLIT_STATS_TOP_MINUTE of the newest interval.
func (w *splitWorld) loadRows() (list []string) {
	w.Helper()
	rows := systemRows(w.T, w.db, "SPANNER_SYS.SPLIT_STATS_TOP_MINUTE")
	texts := func(v value.Value) string {
		var all []string
		for _, e := range v.AsList() {
			all = append(all, e.AsString())
		}
		return strings.Join(all, ",")
	}
	for _, r := range rows {
		if seconds, _ := r[0].AsTimestamp(); seconds == w.now.Truncate(time.Minute).Unix() {
			list = append(list, strings.TrimSpace(fmt.Sprintf("%s-%s %s %d %s", r[1].AsString(), r[2].AsString(), texts(r[3]), r[4].AsInt64(), texts(r[5]))))
		}
	}
	return list
}

func (w *splitWorld) wantLoads(want ...string) {
	w.Helper()
	if got := w.loadRows(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.Errorf("loads\ngot  %s\nwant %s", strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// TestSplitLoads drives known traffic and wants exact rows.
func TestSplitLoads(t *testing.T) {
	w := fourSplits(t)
	// A sampled read of one key, for eight like it, with 3 s each: 24 s of a minute are 40 %. The other
	// half of it goes to the neighbour: 20 % and 20 %.
	v := w.visit(8)
	w.read(v, w.keys(30, 60), 0, false)
	w.db.Charge(v, 3*time.Second, w.now)
	// A range, alone: 25 rows in each split, 6 s in each.
	v = w.visit(1)
	w.read(v, table.KeySet{All: true}, 0, false)
	w.db.Charge(v, 24*time.Second, w.now)
	// A row that is read again and again: 36 s.
	for range 3 {
		v = w.visit(1)
		w.read(v, w.keys(99), 0, false)
		w.db.Charge(v, 12*time.Second, w.now)
	}
	// 0.2 s are no percent.
	v = w.visit(1)
	w.db.Charge(v, time.Hour, w.now) // went nowhere
	w.now = w.now.Add(time.Minute)
	w.wantLoads(
		"T(75)-<end> ByB,T 70 HOT_ROW",
		"T(25)-T(50) T 30",
		"T(50)-T(75) T 30",
		"<begin>-T(25) T 10")

	// The next minute begins with nothing, and ends so for what is less than half a percent.
	v = w.visit(1)
	w.read(v, w.keys(1), 0, false)
	w.db.Charge(v, 200*time.Millisecond, w.now)
	w.now = w.now.Add(time.Minute)
	w.wantLoads()

	// More than a core is 100.
	v = w.visit(8)
	w.read(v, w.keys(1), 0, false)
	w.db.Charge(v, 20*time.Second, w.now)
	w.now = w.now.Add(time.Minute)
	w.wantLoads("<begin>-T(25) T 100 HOT_ROW")

	// What happens after the minute, or is charged late, is not of the minute.
	v = w.visit(1)
	w.read(v, w.keys(1), 0, false)
	w.db.Charge(v, 30*time.Second, w.now)
	w.db.Charge(v, 15*time.Second, w.now.Add(time.Minute))
	w.db.Charge(v, 3*time.Second, w.now.Add(time.Minute-1))
	w.now = w.now.Add(time.Minute)
	w.wantLoads("<begin>-T(25) T 55 HOT_ROW")
	w.now = w.now.Add(time.Minute)
	w.wantLoads("<begin>-T(25) T 25")

	// Splits that changed during the minute show as they were.
	v = w.visit(1)
	w.read(v, w.keys(80), 0, false)
	w.db.Charge(v, 12*time.Second, w.now)
	w.ok(w.db.AddSplitPoints([]SplitPoint{w.at(90, time.Hour)}))
	v = w.visit(1)
	w.read(v, w.keys(80), 0, false)
	w.db.Charge(v, 6*time.Second, w.now)
	w.now = w.now.Add(time.Minute)
	w.wantLoads("T(75)-<end> ByB,T 20", "T(75)-T(90) T 10")
}

// TestUnsplittable: why a warm split cannot be helped by cutting it.
func TestUnsplittable(t *testing.T) {
	w := newSplitWorld(t)
	w.fill(0, 2000)
	minute := func(name, want string, executions ...func(v *Visit)) {
		t.Helper()
		for _, run := range executions {
			v := w.visit(1)
			run(v)
			w.db.Charge(v, 40*time.Second/time.Duration(len(executions)), w.now)
		}
		w.now = w.now.Add(time.Minute)
		w.wantLoads(strings.TrimSpace("<begin>-<end> ByB,T 67 " + want))
	}
	get := func(as ...int64) func(*Visit) {
		return func(v *Visit) { w.read(v, w.keys(as...), 0, false) }
	}
	all := func(v *Visit) { w.read(v, table.KeySet{All: true}, 0, false) }
	some := func(v *Visit) { w.read(v, keysFrom(0, 500), 0, false) }
	same := []func(*Visit){get(7), get(7), get(7), get(7), get(7), get(7), get(7), get(7), get(7)}
	minute("one row", "HOT_ROW", same...)
	minute("one row in nine of ten", "HOT_ROW", append(same, get(8))...)
	minute("one row, by range", "HOT_ROW", func(v *Visit) { w.read(v, keysFrom(7, 7), 0, false) })
	minute("one row in two of three", "", get(7), get(7), get(8))
	minute("many rows", "", get(1, 2, 3, 4, 5))
	minute("scans", "LARGE_SCAN_HOT_SPOT", all, all)
	minute("short scans", "", some, some)
	minute("half of it scans", "", all, get(1))
}

// TestVote finds any majority, in any order, however it is added up.
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

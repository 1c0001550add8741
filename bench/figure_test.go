package bench

import (
	"context"
	"io"
	"math"
	"reflect"
	"testing"
	"testing/synctest"
	"time"
)

// TestPublished checks that ratios are computed from the printed operands, and that these are the studies'.
func TestPublished(t *testing.T) {
	s := Defaults()
	figures := append(accessFigures(s), writesFigures(s)...)
	want := map[string]float64{
		"SQL / READ CPU, one key":                             0.155 / 0.149,
		"SQL / READ CPU, range of ten":                        0.305 / 0.169,
		"SQL / READ CPU, ten scattered keys over four splits": 1.532 / (4 * 0.139),
		"SQL CPU: ten scattered keys / one key":               1.532 / 0.155,
		"READ CPU: ten scattered keys / one key":              4 * 0.139 / 0.149,
		"DML / mutation, 1 row per commit":                    12.3 / 3.7,
		"DML / mutation, 4 rows by 4 statements":              50 / 4.6,
	}
	for _, f := range figures {
		got := f.Metric.compare(studied(f.StudyLeft), studied(f.StudyRight))
		ratio, ok := want[f.Name]
		if !ok && got == nil {
			continue
		}
		if got == nil || math.Abs(*got-ratio) > 1e-9 || f.Basis == "" {
			t.Errorf("%s: %v, want %.4f, basis %q", f.Name, got, ratio, f.Basis)
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("not there: %v", want)
	}
}

// TestFit fits a line to points that lie on one, and to points that do not.
func TestFit(t *testing.T) {
	f := Fit{Sizes: []int{1, 2, 4, 8}, Means: []float64{150, 200, 300, 500}}
	if !f.solve() || math.Abs(f.PerRow-50) > 1e-9 || math.Abs(f.AtNone-100) > 1e-9 || f.R2 == nil || math.Abs(*f.R2-1) > 1e-9 {
		t.Errorf("got %+v", f)
	}
	f = Fit{Sizes: []int{1, 2, 3}, Means: []float64{1, 3, 2}} // the correlation r is 0.5
	if !f.solve() || math.Abs(f.PerRow-0.5) > 1e-9 || math.Abs(*f.R2-0.25) > 1e-9 {
		t.Errorf("got %+v", f)
	}
	if f = (Fit{Sizes: []int{1, 4}, Means: []float64{1, 4}}); !f.solve() || f.R2 != nil {
		t.Errorf("two points: %+v", f)
	}
	if f = (Fit{Sizes: []int{1}, Means: []float64{1}}); f.solve() {
		t.Error("a line through one point")
	}
}

// TestTransactions checks that averages of intervals are weighted by their commits.
func TestTransactions(t *testing.T) {
	tx := new(Transactions)
	tx.add(1, 100, 10, []string{"T._exists"})
	tx.add(3, 500, 50, []string{"T._exists"})
	if tx.Commits != 4 || tx.Latency != 400 || tx.CommitLatency != 40 || tx.existence() != "yes" {
		t.Errorf("got %+v", *tx)
	}
	if none := (&Transactions{ReadColumns: []string{"T.Id"}}).existence(); none != "no" {
		t.Errorf("got %q", none)
	}
}

// TestReads checks that asked.reads recognizes the columns of a table and of an index, with the key's names or with
// _exists.
func TestReads(t *testing.T) {
	table, covering, keys := read{}.asked(), read{index: userIndex, columns: []string{"id", storedIn}}.asked(), read{index: userIndex, columns: []string{"id"}}.asked()
	var all []string
	for _, c := range userColumns[1:] {
		all = append(all, userTable+"."+c)
	}
	for _, c := range []struct {
		call    asked
		columns []string
		want    bool
	}{
		{table, append([]string{"usertable._exists"}, all...), true},
		{table, append([]string{"usertable.id"}, all...), true},
		{table, []string{"usertable._exists"}, false},
		{covering, []string{userIndex + "._exists", userIndex + "." + storedIn}, true},
		{covering, []string{userIndex + "._exists"}, false},
		{keys, []string{userIndex + "._exists"}, true},
		{keys, []string{userIndex + ".id"}, true},
		{keys, []string{"usertable._exists"}, false},
	} {
		if got := c.call.reads(c.columns); got != c.want {
			t.Errorf("%v with %v: %v", c.call, c.columns, got)
		}
	}
}

// TestStatisticGrid checks that text columns come first and numbers follow flush right, with times in milliseconds.
func TestStatisticGrid(t *testing.T) {
	g := Statistic{
		Columns: []string{"interval_end", "execution_count", "avg_cpu_seconds", "text", "avg_locking_delay_seconds"},
		Rows:    [][]string{{"2026-11-22T00:00:00Z", "12", "0.00015", "SELECT 1", "0"}, {"2026-11-22T00:01:00Z", "7", "1.5", "SELECT 2", nullText}},
	}.grid()
	want := [][]string{
		{"interval_end", "text", "execution_count", "avg_cpu, ms", "avg_locking_delay, ms"},
		{"2026-11-22T00:00:00Z", "SELECT 1", "12", "0.150", "0.000"},
		{"2026-11-22T00:01:00Z", "SELECT 2", "7", "1500.000", nullText},
	}
	if g.Left != 2 || !reflect.DeepEqual(g.Lines, want) {
		t.Errorf("%d left of %v, want 2 of %v", g.Left, g.Lines, want)
	}
}

// TestProgress checks that the progress does not exceed 1 if turns take longer than planned.
func TestProgress(t *testing.T) {
	s := newScreen(io.Discard)
	s.plan(2)
	m := begun()
	w := window{latency: newHistogram(), elapsed: 9 * tick, share: 1}
	for range 2 {
		s.window(m, 1, 1, 1, w)
		s.window(m, 1, 1, 1, w)
		s.turnEnds(m, 1, 1, 1)
	}
	if p := s.progress(); p != 1 {
		t.Errorf("the run ended at %v, want 1", p)
	}
}

// TestNoSlivers checks that the last milliseconds of a turn belong to the window before them.
func TestNoSlivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var windows []time.Duration
		l := &load{clients: 1, lasts: 2*tick + 7*time.Millisecond, op: func(context.Context, call) (int, error) {
			time.Sleep(time.Millisecond)
			return 1, nil
		}}
		if err := l.run(t.Context(), func(w window) { windows = append(windows, w.elapsed) }); err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{tick, tick + 7*time.Millisecond}; !reflect.DeepEqual(windows, want) {
			t.Errorf("windows of %v, want %v", windows, want)
		}
	})
}

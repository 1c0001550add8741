package report

import (
	"math"
	"reflect"
	"testing"
)

// TestFit checks that solve finds the line that fits the points best, and its R2, both for points on a straight line
// and for points that are not on one.
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

// TestTransactions checks that the averages of several intervals are combined with the numbers of commits as weights.
func TestTransactions(t *testing.T) {
	tx := new(Transactions)
	tx.Add(1, 100, 10, []string{"T._exists"})
	tx.Add(3, 500, 50, []string{"T._exists"})
	if tx.Commits != 4 || tx.Latency != 400 || tx.CommitLatency != 40 || tx.existence() != "yes" {
		t.Errorf("got %+v", *tx)
	}
	if none := (&Transactions{ReadColumns: []string{"T.Id"}}).existence(); none != "no" {
		t.Errorf("got %q", none)
	}
}

// TestStatisticGrid checks that text columns come first and columns of numbers follow, aligned right, with times in
// milliseconds.
func TestStatisticGrid(t *testing.T) {
	g := Statistic{
		Columns: []string{"interval_end", "execution_count", "avg_cpu_seconds", "text", "avg_locking_delay_seconds"},
		Rows:    [][]string{{"2026-11-22T00:00:00Z", "12", "0.00015", "SELECT 1", "0"}, {"2026-11-22T00:01:00Z", "7", "1.5", "SELECT 2", NullText}},
	}.grid()
	want := [][]string{
		{"interval_end", "text", "execution_count", "avg_cpu, ms", "avg_locking_delay, ms"},
		{"2026-11-22T00:00:00Z", "SELECT 1", "12", "0.150", "0.000"},
		{"2026-11-22T00:01:00Z", "SELECT 2", "7", "1500.000", NullText},
	}
	if g.Left != 2 || !reflect.DeepEqual(g.Lines, want) {
		t.Errorf("%d left of %v, want 2 of %v", g.Left, g.Lines, want)
	}
}

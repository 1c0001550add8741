package report

import (
	"math"
	"testing"
)

// TestConfidence checks that confidenceOf returns the probabilities that a table of the sign test has: for example, for
// the 6th smallest and 6th largest of 20 values.
func TestConfidence(t *testing.T) {
	for _, c := range []struct {
		n, rank int
		want    float64
	}{{20, 6, 0.9586}, {20, 7, 0.8847}, {6, 1, 0.96875}, {5, 1, 0.9375}, {1, 1, 0}} {
		if got := confidenceOf(c.n, c.rank); math.Abs(got-c.want) > 0.0001 {
			t.Errorf("%d values, rank %d: %.4f, want %.4f", c.n, c.rank, got, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	var values []float64
	for i := range 20 {
		values = append(values, float64((i*7)%20+1)) // 1 to 20 in some order
	}
	if s := SpreadOf(values); s.Median != 10.5 || s.Low != 6 || s.High != 15 || s.Turns != 20 || !s.sure() {
		t.Errorf("got %+v", *s)
	}
	if s := SpreadOf([]float64{3, 1, 2}); s.Median != 2 || s.Low != 1 || s.High != 3 || s.sure() {
		t.Errorf("got %+v", *s)
	}
	if SpreadOf(nil) != nil {
		t.Error("no values have a spread")
	}
}

// TestTurns checks that ratios are computed from turns with the same number.
func TestTurns(t *testing.T) {
	cpu := func(v float64) *float64 { return &v }
	left, right := new(Measure), new(Measure)
	for i := range 6 {
		left.Turns = append(left.Turns, Turn{Operations: 1, Seconds: 1, P50: int64(20 + 2*i), CPU: cpu(float64(30 + i))})
		right.Turns = append(right.Turns, Turn{Operations: 1, Seconds: 1, P50: int64(10 + i), CPU: cpu(10)})
	}
	right.Turns = append(right.Turns, Turn{}) // the run was interrupted in this turn, which must not count
	if s := MedianLatency.spreadOf(left, right); s.Low != 2 || s.High != 2 || s.Turns != 6 {
		t.Errorf("latency: %+v", *s)
	}
	if s := ServerCPU.spreadOf(left, right); s.Low != 3 || s.High != 3.5 || s.Median != 3.25 {
		t.Errorf("server CPU: %+v", *s)
	}
}

package report

import "testing"

// TestVerdict checks that the verdict is "met" only if the whole interval meets the target, and "missed" only if no
// part of the interval does. The figure's value, Ours, must not change the verdict: the verdict is "met" even if Ours
// misses the target, as long as the whole interval meets it.
func TestVerdict(t *testing.T) {
	interval := func(low, high float64) *Spread { return &Spread{Low: low, High: high, Turns: 20, Confidence: 0.96} }
	for _, c := range []struct {
		ours    float64
		spread  *Spread
		atLeast bool
		want    string
	}{
		{1.0, interval(0.9, 1.02), false, met}, {1.0, interval(0.9, 1.03), false, met}, {1.1, interval(0.9, 1.02), false, met},
		{1.0, interval(0.9, 1.2), false, inNoise}, {1.1, interval(0.9, 1.2), false, inNoise},
		{1.1, interval(1.05, 1.2), false, Missed}, {1.0, interval(1.05, 1.2), false, Missed},
		{1.1, interval(1.05, 1.2), true, met}, {1.1, interval(0.9, 1.2), true, inNoise}, {1.0, interval(0.9, 1.02), true, Missed},
		{1.1, nil, false, inNoise}, {1.0, nil, false, inNoise},
		{1.1, &Spread{Low: 1.05, High: 1.2, Turns: 5, Confidence: 0.9}, false, inNoise},
		{1.0, interval(0.4, 4), false, notMeasured}, {0.9, interval(0, 0.9), false, notMeasured},
	} {
		f := Figure{Target: 1.03, AtLeast: c.atLeast, Ours: &c.ours, Spread: c.spread, Right: RefTo("e", "p")}
		if got := f.Verdict(); got != c.want {
			t.Errorf("%v with %+v, at least %v: %q, want %q", c.ours, c.spread, c.atLeast, got, c.want)
		}
	}
	if v := (Figure{Target: 1}).Verdict(); v != "" {
		t.Errorf("verdict %q on nothing", v)
	}
	ours := 1.0
	if v := (Figure{Ours: &ours, Spread: interval(0.1, 10), Right: RefTo("e", "p")}).Verdict(); v != notMeasured {
		t.Errorf("without a target %q", v)
	}
	if v := (Figure{Ours: &ours, Spread: interval(0.9, 1.1), Right: RefTo("e", "p")}).Verdict(); v != "" {
		t.Errorf("without a target %q", v)
	}
	if v := Judge(Exactly(0), 0, false); v != met {
		t.Errorf("a count of 0 is %q", v)
	}
}

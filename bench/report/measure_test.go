package report

import (
	"testing"
	"time"
)

// TestCorrect checks that Correct adds the operations that a closed loop would have sent during a stall.
func TestCorrect(t *testing.T) {
	h := NewHistogram()
	h.RecordValues(100, 990)
	h.RecordValues(100_000, 1)
	m := new(Measure)
	m.BeginTurn()
	m.Add(Window{Latency: h, Elapsed: time.Second})
	m.Correct()
	if m.Latency.P99 > 101 {
		t.Errorf("p99 as measured is %d us, want 100", m.Latency.P99)
	}
	// The stall of 100 ms hid about 1,000 operations, whose delays are evenly distributed. So a fifth of these
	// operations, which is a tenth of all 2,000 operations, had delays above 80 ms.
	if p := m.Corrected.P90; p < 70_000 || p > 90_000 {
		t.Errorf("corrected p90 is %d us, want about 80,000", p)
	}
}

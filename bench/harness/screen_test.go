package harness

import (
	"io"
	"testing"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// TestProgress checks that progress returns at most 1 even if turns take longer than planned.
func TestProgress(t *testing.T) {
	s := NewScreen(io.Discard)
	s.plan(2)
	m := begun()
	w := report.Window{Latency: report.NewHistogram(), Elapsed: 9 * Tick, Share: 1}
	for range 2 {
		s.window(m, 1, 1, 1, w)
		s.window(m, 1, 1, 1, w)
		s.turnEnds(m, 1, 1, 1)
	}
	if p := s.progress(); p != 1 {
		t.Errorf("the run ended at %v, want 1", p)
	}
}

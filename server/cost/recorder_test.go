package cost

import (
	"context"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/stats"
)

// TestTimedOut: whether a cancelled request had reached its deadline is decided by the recorder's clock, not by the
// time of day.
func TestTimedOut(t *testing.T) {
	now := time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	for left, want := range map[time.Duration]stats.Outcome{
		-time.Second:              stats.TimedOut,
		time.Second:               stats.TimedOut,
		20 * time.Second:          stats.Cancelled,
		20 * 365 * 24 * time.Hour: stats.Cancelled,
	} {
		e := Ending{Err: context.Canceled, Deadline: now.Add(left)}
		if got := e.outcome(e.Err, now, 30*time.Second); got != want {
			t.Errorf("cancelled %v before its deadline, after 30 s: outcome %v, want %v", left, got, want)
		}
	}
}

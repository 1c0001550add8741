package rpc

import (
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/server/cost"
)

func TestTimingEntries(t *testing.T) {
	for took, want := range map[time.Duration]string{0: "1", time.Microsecond: "1", time.Millisecond: "1", 2500 * time.Microsecond: "3", time.Minute: "60000"} {
		if got := frontEnds(took); got != "gfet4t7; dur="+want+", afe; dur="+want {
			t.Errorf("%v is %q", took, got)
		}
	}
	if got := totals(cost.Cost{Latency: 1234567 * time.Nanosecond, CPU: time.Second, SharedCPU: 20 * time.Microsecond}); got != "total; dur=1.234, cpu; dur=1000.000, shared; dur=0.020, lock; dur=0.000" {
		t.Error(got)
	}
}

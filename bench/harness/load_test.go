package harness

import (
	"context"
	"errors"
	"reflect"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crowfoot-db/crowfoot/bench/report"
)

// TestOpenLoop checks how an open loop measures operations that become due while an earlier operation stalls: their
// latencies must count from the times when they were due. The test runs on a fake clock.
func TestOpenLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		l := &LoadGenerator{Clients: 1, Rate: 200, Duration: 300 * time.Millisecond, Operation: func(context.Context, Call) (int, error) {
			if n.Add(1) == 10 {
				time.Sleep(100 * time.Millisecond)
			}
			return 1, nil
		}}
		m := begun()
		if err := l.Run(t.Context(), m.Add); err != nil {
			t.Fatal(err)
		}
		if m.Operations != 60 || l.unsent() != 0 {
			t.Errorf("%d operations and %d unsent, want all 60", m.Operations, l.unsent())
		}
		// During the stall 19 operations were due, the last one 5 ms before the end of the stall. Thus a third of all
		// operations are slow, although only one was stalled.
		if p := m.Latency.P90; p < 70_000 || p > 80_000 {
			t.Errorf("p90 is %d us, want about 75,000", p)
		}
	})
}

// begun returns a measure whose first turn has begun.
func begun() *report.Measure {
	m := new(report.Measure)
	m.BeginTurn()
	return m
}

// TestOpenLoopTooFast checks that unsent counts all operations that the clients could not send, because the rate is too
// high for them. Of 200 operations that are due in 200 ms, two clients send only 20, because each operation takes 20
// ms. The test runs on a fake clock.
func TestOpenLoopTooFast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &LoadGenerator{Clients: 2, Rate: 1000, Duration: 200 * time.Millisecond, Operation: func(context.Context, Call) (int, error) {
			time.Sleep(20 * time.Millisecond)
			return 1, nil
		}}
		if err := l.Run(t.Context(), func(report.Window) {}); err != nil {
			t.Fatal(err)
		}
		if l.unsent() != 180 {
			t.Errorf("%d operations unsent, want 180 of 200", l.unsent())
		}
	})
}

func TestLoadFails(t *testing.T) { synctest.Test(t, testLoadFails) }

func testLoadFails(t *testing.T) {
	broken := errors.New("broken")
	var n atomic.Int64
	m := begun()
	l := &LoadGenerator{Clients: 4, Duration: time.Minute, Operation: func(context.Context, Call) (int, error) {
		if n.Add(1) > 100 {
			return 0, broken
		}
		return 1, nil
	}}
	if err := l.Run(t.Context(), m.Add); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if m.Operations != 100 {
		t.Errorf("%d operations are kept of 100", m.Operations)
	}
}

// TestNoSlivers checks that a LoadGenerator reports no window (report.Window) for only the last few milliseconds of a
// turn. These milliseconds must be a part of the last full window.
func TestNoSlivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var windows []time.Duration
		l := &LoadGenerator{Clients: 1, Duration: 2*Tick + 7*time.Millisecond, Operation: func(context.Context, Call) (int, error) {
			time.Sleep(time.Millisecond)
			return 1, nil
		}}
		if err := l.Run(t.Context(), func(w report.Window) { windows = append(windows, w.Elapsed) }); err != nil {
			t.Fatal(err)
		}
		if want := []time.Duration{Tick, Tick + 7*time.Millisecond}; !reflect.DeepEqual(windows, want) {
			t.Errorf("windows of %v, want %v", windows, want)
		}
	})
}

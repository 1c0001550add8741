package crossings

import (
	"math"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const (
	// seeds is the number of runs, unless the environment variable CROWFOOT_TEST_CROSSINGS asks for other runs. steps
	// is the number of steps of each run.
	seeds = 4
	steps = 60
)

// TestCrossings runs servers through random histories. A run is one goroutine whose choices depend only on its seed, so
// the same seed repeats a failure. The run is in a synctest bubble, whose clock advances when all goroutines wait, so
// hours of the test's time pass in no time. CROWFOOT_TEST_CROSSINGS=FROM-TO runs the seeds from FROM to TO-1;
// CROWFOOT_TEST_CROSSINGS=2m runs seeds from the first one on, for as long as two minutes. All runs are in the same
// bubble: libraries keep channels for the whole process, and a channel of one bubble cannot be used in another.
func TestCrossings(t *testing.T) {
	from, to, long := uint64(0), uint64(seeds), time.Duration(0)
	if text := os.Getenv("CROWFOOT_TEST_CROSSINGS"); text != "" {
		from, to, long = parseRun(t, text)
	}
	var over atomic.Bool
	if long > 0 {
		// This timer uses the real clock, because it is created outside the bubble.
		time.AfterFunc(long, func() { over.Store(true) })
	}
	met := pairs{}
	synctest.Test(t, func(t *testing.T) {
		for seed := from; seed < to && !over.Load(); seed++ {
			run(t, seed, met)
		}
	})
	t.Log(met.report())
}

// parseRun parses CROWFOOT_TEST_CROSSINGS.
func parseRun(t *testing.T, text string) (from, to uint64, long time.Duration) {
	t.Helper()
	if first, last, ok := strings.Cut(text, "-"); ok {
		from, err1 := strconv.ParseUint(first, 10, 64)
		to, err2 := strconv.ParseUint(last, 10, 64)
		if err1 == nil && err2 == nil {
			return from, to, 0
		}
	} else if long, err := time.ParseDuration(text); err == nil {
		return 0, math.MaxUint64, long
	}
	t.Fatalf("CROWFOOT_TEST_CROSSINGS is %q; want FROM-TO or a duration", text)
	return 0, 0, 0
}

func run(t *testing.T, seed uint64, met pairs) {
	w := newWorld(t, seed, met)
	for range steps {
		if w.failed {
			break
		}
		w.step()
	}
	if !w.failed {
		w.close()
	}
	if err := w.stop(); err != nil {
		w.fail("%v", err)
	}
	if w.failed {
		t.Logf("errors that the server has logged:\n%s", w.log.String())
		t.Logf("CROWFOOT_TEST_CROSSINGS=%d-%d runs it again. What it did:\n%s", seed, seed+1, strings.Join(w.steps[max(0, len(w.steps)-150):], "\n"))
	}
	t.Logf("seed %d: %v", seed, w.counts)
}

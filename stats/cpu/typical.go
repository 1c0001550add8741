package cpu

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Typical holds the typical CPU time of brief executions of one kind: of one prepared statement, of reads of one set of columns,
// or of one API method. It keeps moving averages of the measured ones, by the number of rows. So the sum of all charges stays
// right, and an execution that reads one row is not charged for one that reads fifty. Longer executions are always measured and
// count in no average.
//
// No execution is charged more than the time it took. If one was faster than the average, the next slower ones are charged the
// difference. Without this rule the sum would be too low: executions of two and of three rows share an average, which the faster
// ones never reach.
type Typical struct {
	known  atomic.Bool
	byWork [workClasses]work
}

// A work holds the average for one class of executions. Row numbers of a class have equally many bits.
type work struct {
	mean atomic.Int64 // nanoseconds; 0 before the first measurement
	left atomic.Int64 // nanoseconds that faster executions were not charged
}

const (
	// typicalWeight is the number of measurements that the moving average covers.
	typicalWeight = 32
	// workClasses is the number of classes, one for each number of bits; the last holds all larger row numbers.
	workClasses = 16
)

// isKnown reports whether brief executions of the kind were measured. A nil kind has none.
func (t *Typical) isKnown() bool { return t != nil && t.known.Load() }

// of returns the average for executions with that many rows, or 0 if there is none.
func (t *Typical) of(rows int64) time.Duration {
	if t == nil {
		return 0
	}
	return time.Duration(t.byWork[workClass(rows)].mean.Load())
}

// charge returns the CPU time to charge an execution that read rows in the time passed. It is the average of the class plus the
// time that faster executions were not charged, but at most passed. Without an average it is passed.
func (t *Typical) charge(passed time.Duration, rows int64) time.Duration {
	mean := t.of(rows)
	if mean == 0 {
		return passed
	}
	left := &t.byWork[workClass(rows)].left
	due := mean
	if left.Load() != 0 {
		due += time.Duration(left.Swap(0))
	}
	charged := min(due, passed)
	if due > charged {
		// When a kind gets faster, its average follows after about typicalWeight measurements, one in sampleEvery executions. The
		// bound drops uncharged time beyond that, so later executions do not pay for it.
		left.Add(int64(min(due-charged, mean*typicalWeight*sampleEvery)))
	}
	return charged
}

func (t *Typical) learn(used time.Duration, rows int64) {
	if t == nil {
		return
	}
	mean := &t.byWork[workClass(rows)].mean
	latest := max(int64(used), 1)
	if old := mean.Load(); old != 0 {
		latest = old + (latest-old)/typicalWeight
	}
	mean.Store(latest)
	if !t.known.Load() {
		t.known.Store(true)
	}
}

func workClass(rows int64) int { return min(bits.Len64(uint64(rows)), workClasses-1) }

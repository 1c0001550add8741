package cpu

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Typical is what brief executions of one kind take: of one prepared statement, of one table's columns that are read, of one API
// method. It keeps a moving average of those that were measured, by how much work they did, counted in rows:
// so what all of a kind are charged stays right, and an execution that reads one row is not charged for one that reads fifty. Executions that
// are not brief are always measured and count in no average.
//
// No execution is charged more than the time it took. What one that was faster than the average leaves uncharged, the next slower ones are
// charged: executions of two and of three rows share an average, and without this all those of two rows would lower the sum.
type Typical struct {
	known  atomic.Bool
	byWork [workClasses]work
}

// A work has the average of one class of executions: their numbers of rows have equally many bits.
type work struct {
	mean atomic.Int64 // nanoseconds; 0 before the first
	left atomic.Int64 // nanoseconds that faster executions have left uncharged
}

const (
	// typicalWeight is how many measurements the moving average is over.
	typicalWeight = 32
	// workClasses are of so many bits of rows each; the last is of all that have more.
	workClasses = 16
)

// isKnown says that brief executions of the kind were measured. There are none of a nil kind.
func (t *Typical) isKnown() bool { return t != nil && t.known.Load() }

// of is what an execution with so many rows takes; 0 if that is not known.
func (t *Typical) of(rows int64) time.Duration {
	if t == nil {
		return 0
	}
	return time.Duration(t.byWork[workClass(rows)].mean.Load())
}

// charge returns the CPU time to charge an execution that read so many rows in the time passed. It is the average of the class, with what
// faster executions have left, and at most passed. Without an average it is passed.
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
		// An average follows a faster kind after about typicalWeight measurements, one in sampleEvery executions. The bound drops what they would
		// leave beyond that, so later executions do not pay for it.
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

package cpu

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Typical holds the typical CPU time of brief executions of one kind: of one prepared statement, of reads of one set of
// columns, or of one API method. It holds moving averages of measured CPU times, one for each class of executions
// (see work). Because each charge is an average, the sum of all charges is right. Because each class has its own
// average, an execution that reads one row is not charged as much as one that reads fifty. Executions that are not
// brief are always measured, and are in no average.
//
// No execution is charged more than the time it took. If an execution took less than the average, the next ones that
// take more are charged the difference too. Without that the sum would be too low: executions of two and of three rows
// share an average, and those of two rows never take as long as the average.
type Typical struct {
	known  atomic.Bool
	byWork [workClasses]work
}

// A work holds the average for one class of executions: those whose numbers of rows have equally many bits.
type work struct {
	mean atomic.Int64 // average in nanoseconds; 0 before the first measurement
	left atomic.Int64 // nanoseconds missing from the charges so far, because some executions took less than the average
}

const (
	// typicalWeight is the number of measurements that the moving average covers.
	typicalWeight = 32
	// workClasses is the number of classes. Executions whose numbers of rows have equally many bits form one class.
	// The last class also has all larger numbers of rows.
	workClasses = 16
)

// isKnown reports whether a brief execution of the kind was measured. It returns false if t is nil.
func (t *Typical) isKnown() bool { return t != nil && t.known.Load() }

// of returns the average for executions with this number of rows, or 0 if there is none.
func (t *Typical) of(rows int64) time.Duration {
	if t == nil {
		return 0
	}
	return time.Duration(t.byWork[workClass(rows)].mean.Load())
}

// charge returns the CPU time to charge for an execution that was not measured. The argument passed is the time that
// the execution took, and rows is how many rows it read and wrote. The charge is the average of the class, plus the
// time that faster executions were not charged. But it is never more than the execution took. If the class has no
// average, the charge is the time that the execution took.
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
		// When the executions of a kind become faster, the average follows after about typicalWeight measurements, and
		// one in sampleEvery executions is measured. So drop the uncharged time beyond typicalWeight*sampleEvery
		// averages: it comes from the old average, and later executions must not be charged for it.
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

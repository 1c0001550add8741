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
type Typical struct {
	known  atomic.Bool
	byWork [workClasses]atomic.Int64 // nanoseconds, of executions whose number of rows has so many bits; 0 before the first
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
	return time.Duration(t.byWork[workClass(rows)].Load())
}

func (t *Typical) learn(used time.Duration, rows int64) {
	if t == nil {
		return
	}
	mean := &t.byWork[workClass(rows)]
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

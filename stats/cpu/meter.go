package cpu

import (
	"math/bits"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"time"
)

// A Meter measures the CPU time of one execution by the clock of the thread its
// goroutine runs on. A Meter with an Account is ready to Start.
//
// Go moves goroutines between threads, and threads between goroutines, so the
// clock of a thread is a goroutine's only between two moments at which it did
// not block. Hence segments:
//
//   - Pause before a wait that is known (a lock, a commit's sync), Resume after it.
//   - Lap now and then in long work (a frame sent, a batch of rows). Once a segment has gone on for lockAfter the
//     goroutine is locked to its thread until the next Pause, so that being preempted, every 10 ms or so under
//     load, charges it nothing of what others do meanwhile. Hold does so before a wait that may be and may not be
//     (a client that is slow to read).
//
// Short segments stay unlocked, because a goroutine that is locked pays tens
// of microseconds when it blocks after all (on a mutex, say): its thread
// sleeps with it. If it blocked unlocked and went on on another thread, the
// difference of two threads' clocks is out of all proportion to the time that
// has passed: that is noticed, and the account's average charged instead. If it came
// back to the same thread it is charged what others did there, at most the time that passed.
//
// Reading the clock of a thread is a system call of half a microsecond, see
// BenchmarkCPU, and an execution needs two. An execution with a Typical may be charged what such
// executions take instead.
//
// Where there is no clock of threads (anything but Linux) time stands in for it: an upper bound.
type Meter struct {
	Account *Account
	Typical *Typical // nil: this execution must be measured

	sum     time.Duration
	once    time.Duration // what of sum its kind does not take every time
	clock   time.Duration // the thread's, at the begin of the segment
	began   time.Duration // the time then
	running bool
	locked  bool
	drawn   bool // its kind is sampled: one in sampleEvery is measured
	spared  bool // this one is not
}

// Typical is what executions of one kind take: one prepared statement, one
// shape of a read. While executions are few all are measured. When they are many, and these
// are short, one in sampleEvery is measured, and the others are charged the
// moving average of those that did as much work, counted in rows: what all of a kind are charged stays right,
// and a user who reads one row is not charged for one who reads a thousand.
// Time is no measure for what was not measured: on a busy machine it is wrong by half.
type Typical struct {
	mean   atomic.Int64              // nanoseconds; 0 before the first
	byWork [workClasses]atomic.Int64 // of those whose number of rows has so many bits
}

const (
	// lockAfter is how long a segment may be before its goroutine is locked to its thread.
	lockAfter = 500 * time.Microsecond
	// clockSlack is how much more than the time that passed a thread's clock may show: its ticks are no finer on some systems.
	clockSlack = 20 * time.Microsecond

	// sampleEvery is how many executions share a measurement when there are more than fewExecutions per second.
	sampleEvery   = 16
	fewExecutions = 1000
	// alwaysMeasured is from where on a measurement costs nothing by comparison.
	alwaysMeasured = 200 * time.Microsecond
	// typicalWeight is how many measurements the moving average is over.
	typicalWeight = 32
	// workClasses are of so many bits of rows each; the last is of all that have more.
	workClasses = 24
)

// epoch is what times are measured from: its difference to now is read off the monotonic clock.
var epoch = time.Now()

// Start begins to measure what this goroutine does.
func (c *Meter) Start() {
	c.drawn = c.Account.busy.Load() && c.Typical.isShort()
	c.spared = c.drawn && rand.Uint32()%sampleEvery != 0
	c.Resume()
}

// Open begins to measure an execution whose kind is not known yet; Is tells it if it becomes known.
func (c *Meter) Open() {
	c.drawn = c.Account.busy.Load()
	c.spared = c.drawn && rand.Uint32()%sampleEvery != 0
	c.Resume()
}

// Is tells which kind of execution it is. If there is nothing typical of the kind it is measured from here on at least.
func (c *Meter) Is(t *Typical) {
	c.Typical = t
	if t.isShort() {
		return
	}
	if c.drawn = false; c.spared {
		c.spared = false
		c.Resume()
	}
}

// Once tells that the execution has spent some time on what others of its kind need not do again, such as planning: it
// says nothing about what is typical. It must be told before the kind.
func (c *Meter) Once(used time.Duration) {
	c.once += used
	if c.spared {
		c.sum += used
		c.Account.settle(used)
	}
}

// Spent measures the CPU time of f.
func Spent(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadCPU()
	f()
	return threadCPU() - before
}

// Weight is how many executions this one stands for, itself included, if it is measured; 0 if another stands for it.
func (c *Meter) Weight() int64 {
	switch {
	case c.spared || c.Account.off:
		return 0
	case c.drawn:
		return sampleEvery
	}
	return 1
}

// isShort says that executions of the kind take too little time for each to be measured.
func (t *Typical) isShort() bool {
	if t == nil {
		return false
	}
	mean := t.mean.Load()
	return mean > 0 && mean < int64(alwaysMeasured)
}

// of is what an execution with so many rows is charged that was not measured.
func (t *Typical) of(rows int64) time.Duration {
	if mean := t.byWork[workClass(rows)].Load(); mean != 0 {
		return time.Duration(mean)
	}
	return time.Duration(t.mean.Load())
}

func (t *Typical) learn(used time.Duration, rows int64) {
	moveMean(&t.mean, int64(used))
	moveMean(&t.byWork[workClass(rows)], int64(used))
}

func workClass(rows int64) int { return min(bits.Len64(uint64(rows)), workClasses-1) }

func moveMean(mean *atomic.Int64, latest int64) {
	if old := mean.Load(); old != 0 {
		latest = old + (latest-old)/typicalWeight
	}
	mean.Store(latest)
}

// Resume goes on after Pause. The goroutine may be another one.
func (c *Meter) Resume() {
	if c.spared || c.Account.off {
		return
	}
	c.running = true
	c.begin()
}

func (c *Meter) begin() {
	c.began = time.Since(epoch)
	c.clock = threadCPU()
}

// Pause stops measuring.
func (c *Meter) Pause() {
	if !c.running {
		return
	}
	c.settle()
	c.running = false
	if c.locked {
		c.locked = false
		runtime.UnlockOSThread()
	}
}

// Lap keeps a long segment exact.
func (c *Meter) Lap() {
	if c.running && time.Since(epoch)-c.began >= lockAfter {
		c.Hold()
	}
}

// Hold keeps the segment exact though the goroutine may block, until the next Pause: its thread waits with it.
func (c *Meter) Hold() {
	if c.locked || !c.running {
		return
	}
	c.settle()
	runtime.LockOSThread()
	c.locked = true
	c.begin()
}

// Stop ends the measurement. With its load comes a share of the CPU that no execution is measured for
// (connections, garbage collection, compaction), so that all executions add up to what the process used.
func (c *Meter) Stop(l Load) time.Duration {
	if c.Account.off {
		return 0
	}
	c.Pause()
	switch {
	case c.spared && c.Typical == nil: // it ended before it was known what it is
		c.sum = c.Account.typical()
		c.Account.settle(c.sum)
	case c.spared:
		used := c.Typical.of(l.Rows)
		c.sum += used
		c.Account.settle(used)
	case c.Typical != nil:
		c.Typical.learn(max(c.sum-c.once, 0), l.Rows)
	}
	return max(c.sum+c.Account.charge(l.parts(c.sum)), 0)
}

// SoFar is what an execution that goes on has used; where it is not measured, what is typical of it.
func (c *Meter) SoFar() time.Duration {
	if c.spared {
		return c.sum + time.Duration(c.Typical.mean.Load())
	}
	if c.running {
		c.settle()
		c.begin()
	}
	return c.sum
}

// Measured is the execution's own CPU time, without a share of the rest, up to the last Pause or Lap.
func (c *Meter) Measured() time.Duration { return c.sum }

func (c *Meter) settle() {
	used := threadCPU() - c.clock
	passed := time.Since(epoch) - c.began
	if !c.locked && (used < 0 || used > passed+clockSlack) {
		used = passed
		if typical := c.Account.typical(); typical > 0 { // else this is among the first
			used = min(passed, typical)
		}
	}
	c.sum += used
	c.Account.settle(used)
}

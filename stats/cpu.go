package stats

import (
	"runtime"
	"time"
)

// A CPU measures the CPU time of one execution by the clock of the thread its
// goroutine runs on. The zero CPU with an Account is ready to Start.
//
// Go moves goroutines between threads, and threads between goroutines, so the
// clock of a thread is a goroutine's only between two moments at which it did
// not block. Hence segments:
//
//   - Pause before a wait that is known (a lock, a commit's sync, a slow client), Resume after it.
//   - Lap now and then in long work (a frame sent, a batch of rows). Once a segment has gone on for lockAfter the
//     goroutine is locked to its thread until the next Pause, so that being preempted, every 10 ms or so under
//     load, charges it nothing of what others do meanwhile.
//
// Short segments stay unlocked, because a goroutine that is locked pays tens
// of microseconds when it blocks after all (on a mutex, say): its thread
// sleeps with it. If it blocked unlocked and went on on another thread, the
// difference of two threads' clocks is out of all proportion to the time that
// has passed: that is noticed, and the account's average charged instead. If it came
// back to the same thread it is charged what others did there, at most the time that passed.
//
// Two readings of the thread's clock and two of the time cost half a
// microsecond where system calls are fast, see BenchmarkCPU. Where there is no
// clock of threads (anything but Linux) time stands in for it: an upper bound.
type CPU struct {
	Account *Account

	sum     time.Duration
	clock   time.Duration // the thread's, at the begin of the segment
	began   time.Duration // the time then
	running bool
	locked  bool
}

const (
	// lockAfter is how long a segment may be before its goroutine is locked to its thread.
	lockAfter = 500 * time.Microsecond
	// clockSlack is how much more than the time that passed a thread's clock may show: its ticks are no finer on some systems.
	clockSlack = 20 * time.Microsecond
)

// epoch is what times are measured from: its difference to now is read off the monotonic clock.
var epoch = time.Now()

// Start begins to measure what this goroutine does.
func (c *CPU) Start() { c.Resume() }

// Resume goes on after Pause. The goroutine may be another one.
func (c *CPU) Resume() {
	c.running = true
	c.began = time.Since(epoch)
	c.clock = threadCPU()
}

// Pause stops measuring.
func (c *CPU) Pause() {
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
func (c *CPU) Lap() {
	if c.locked || !c.running || time.Since(epoch)-c.began < lockAfter {
		return
	}
	c.settle()
	runtime.LockOSThread()
	c.locked = true
	c.Resume()
}

// Stop ends the measurement. messages is how many the execution received and
// sent: with each comes a share of the CPU that no execution is measured for
// (connections, garbage collection, compaction), so that all executions add up to what the process used.
func (c *CPU) Stop(messages int64) time.Duration {
	c.Pause()
	return c.sum + c.Account.charge(messages)
}

// Measured is what was measured up to the last Pause or Lap.
func (c *CPU) Measured() time.Duration { return c.sum }

func (c *CPU) settle() {
	used := threadCPU() - c.clock
	passed := time.Since(epoch) - c.began
	if !c.locked && (used < 0 || used > passed+clockSlack) {
		used = min(passed, c.Account.typical())
	}
	c.sum += used
	c.Account.settle(used)
}

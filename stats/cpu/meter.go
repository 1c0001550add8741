package cpu

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"
)

// A Meter measures the CPU time of one execution by the clock of the thread that runs its goroutine. Set Account before
// Start.
//
// Go moves goroutines between threads, so a thread's clock shows the CPU time of one goroutine only while the goroutine
// is locked to the thread. A Meter locks it from Start to Stop. The difference of two readings is then exactly the CPU
// time of the goroutine, in every package it called, and however often it was preempted.
//
// If a locked goroutine blocks, its thread must sleep and wake up too, which takes tens of microseconds. So callers put
// known waits (for a lock, for a commit's sync) between Pause and Resume, which end one segment of the measurement and
// begin the next. Other waits (for a mutex) use no CPU time, so they do not change the result.
//
// Reading a thread's clock is a system call of about 0.3 us (BenchmarkMeter), 1% of a point read. So a busy server
// measures only one in sampleEvery of the brief executions. For each of the others it reads the clock at the start, and
// again only if the execution takes briefLimit or longer. It charges the shorter ones the Typical time of their kind.
//
// On systems where threads have no clock (all but Linux) the meter reads the wall clock, whose time is an upper bound.
type Meter struct {
	Account *Account
	Typical *Typical // typical time of the execution's kind; nil if it has no kind

	task    *Task         // the background task that is measured; nil for an execution
	own     time.Duration // CPU time measured before the current segment
	elapsed time.Duration // wall-clock time of the segments that have ended
	rough   time.Duration // part of the time in elapsed for which no CPU time was measured; below briefLimit
	shared  time.Duration // CPU time taken from the account's pool so far
	parts   int64         // parts (see Load.parts) that the account has counted for the execution so far
	lapped  time.Duration // value of the field own at the last Lap
	clock   time.Duration // the thread's clock at the start of the segment
	began   time.Duration // when the segment began, as the time since the variable epoch
	running bool
	busy    bool // the server is busy, so it measures only one in sampleEvery brief executions
	sampled bool // the execution is measured even if it is brief
}

const (
	// briefLimit is the time below which an execution may be charged the typical time of its kind. For longer ones, the
	// system call that reads the clock takes less than half a percent of their time.
	briefLimit = 100 * time.Microsecond
	// If there are more than fewExecutions executions per second, only one in sampleEvery brief ones is measured.
	sampleEvery   = 16
	fewExecutions = 1000
	// lapEvery is the minimum time between two reports of Lap. Within it, Lap does not report CPU time to the account.
	lapEvery = 10 * time.Millisecond
)

// epoch is the origin of all times in this package. Times are differences from it by the monotonic clock.
var epoch = time.Now()

// Start begins to measure the calling goroutine, and locks the goroutine to its thread.
func (m *Meter) Start() {
	if m.Account.off {
		return
	}
	m.busy = m.Account.busy.Load()
	m.sampled = m.task != nil || !m.busy || rand.Uint32()%sampleEvery == 0
	m.Resume()
}

// Is sets the kind of the measured execution: t has the averages of earlier executions of the same statement or API
// method. Call Is as soon as the kind is known.
func (m *Meter) Is(t *Typical) { m.Typical = t }

// Resume begins a segment, after Pause. The goroutine that calls it need not be the one that called Pause.
func (m *Meter) Resume() {
	if m.Account.off {
		return
	}
	m.running = true
	runtime.LockOSThread()
	m.began = time.Since(epoch)
	m.clock = threadCPU()
}

// Pause ends the segment and unlocks the goroutine from its thread. It does nothing if no segment runs.
func (m *Meter) Pause() {
	if m != nil && m.running {
		m.pause(m.Typical.isKnown())
	}
}

// pause ends the segment. It reads the clock, except for an execution that meets three conditions: it is not sampled;
// it has taken less than briefLimit so far, and none of its segments was measured; its kind has a typical time (the
// parameter typical is true). Such an execution is charged the typical time when it ends.
func (m *Meter) pause(typical bool) {
	passed := time.Since(epoch) - m.began
	if typical && !m.sampled && m.elapsed == m.rough && m.elapsed+passed < briefLimit {
		m.rough += passed
	} else {
		m.add(threadCPU() - m.clock)
	}
	m.elapsed += passed
	m.running = false
	runtime.UnlockOSThread()
}

// Lap reports the CPU time that a long segment has used so far to the account, so that the account counts the time in
// the tick in which it was used. If less than lapEvery has passed since the last report, Lap only reads the time and
// reports nothing.
func (m *Meter) Lap() {
	if m == nil || !m.running {
		return
	}
	now := time.Since(epoch)
	passed := now - m.began
	if m.own-m.lapped+passed < lapEvery {
		return
	}
	clock := threadCPU()
	m.add(clock - m.clock)
	m.clock, m.began = clock, now
	m.elapsed += passed
	m.lapped = m.own
	if m.task == nil {
		m.share((&Load{}).parts(m.own))
	}
}

// add adds CPU time that was measured in a segment, for the execution or the task.
func (m *Meter) add(used time.Duration) {
	m.own += used
	if m.task != nil {
		m.task.used.Add(int64(used))
	} else {
		m.Account.add(used)
	}
}

// share raises the execution's number of parts to parts, and takes the share of the additional parts from the account's
// pool.
func (m *Meter) share(parts int64) {
	more := max(parts-m.parts, 0)
	m.parts += more
	m.Account.count(more)
	// A long execution has caused most of the CPU time since the last Tick. So share calls Tick before it draws from
	// the pool: then this execution pays for the remainder of that time, and not a later one.
	if m.own >= lapEvery {
		m.Account.Tick()
	}
	m.shared += m.Account.draw(more)
}

// Stop ends the measurement and returns the CPU time of the execution itself. After Stop, Shared returns the
// execution's share of unmeasured CPU time, which depends on l.
func (m *Meter) Stop(l Load) time.Duration {
	if m.Account.off {
		return 0
	}
	if m.running {
		m.pause(m.Typical.of(l.Rows) > 0)
	}
	if m.rough > 0 {
		m.add(m.stoodFor(l.Rows))
	} else if m.elapsed < briefLimit {
		m.Typical.learn(m.own, l.Rows)
	}
	m.Account.executed()
	m.share(l.parts(m.own))
	return m.own
}

// Shared returns the execution's share of the CPU time that belongs to no execution and no task, such as that of
// connections and of Go's garbage collection. It is complete after Stop.
func (m *Meter) Shared() time.Duration { return m.shared }

// stoodFor returns the charge for the segments in which the clock was not read. rows is how many rows the execution
// read and wrote. If the clock was read in no segment at all, the charge is the typical time of executions of the kind
// with this number of rows. Otherwise, or if no typical time is known, it is the wall-clock time of those segments,
// which is less than briefLimit.
func (m *Meter) stoodFor(rows int64) time.Duration {
	if m.elapsed == m.rough {
		return m.Typical.charge(m.rough, rows)
	}
	return m.rough
}

// SoFar returns the CPU time that the execution itself has used until now.
func (m *Meter) SoFar() time.Duration {
	if !m.running {
		return m.own + m.rough
	}
	return m.own + m.rough + threadCPU() - m.clock
}

// Weight returns how many executions this one represents in a sample: sampleEvery if a busy server chose it to be
// measured, 1 if the server measures all executions, 0 if it was not chosen or nothing is measured.
func (m *Meter) Weight() int64 {
	switch {
	case m.Account.off || !m.sampled:
		return 0
	case m.busy:
		return sampleEvery
	}
	return 1
}

// Spent returns the CPU time of f, which runs under ctx. If f waits by Waiting(ctx), or pauses the meter of ctx, the
// wait is not counted, and the goroutine is not locked to a thread meanwhile.
func Spent(ctx context.Context, f func()) time.Duration {
	if m := From(ctx); m != nil && m.running {
		before := m.SoFar()
		f()
		return m.SoFar() - before
	}
	s := BeginSegment()
	f()
	return s.End()
}

// A Segment measures the CPU time of one goroutine between BeginSegment and End.
type Segment struct {
	thread thread
	clock  time.Duration
}

// BeginSegment locks the calling goroutine to its thread and begins to measure its CPU time.
func BeginSegment() Segment {
	runtime.LockOSThread()
	return Segment{thread: thisThread(), clock: threadCPU()}
}

// SoFar returns the CPU time since BeginSegment. Any goroutine may call it until End was called.
func (s Segment) SoFar() time.Duration { return s.thread.cpu() - s.clock }

// End returns the CPU time since BeginSegment, and unlocks the goroutine from its thread. The goroutine that called
// BeginSegment must call it.
func (s Segment) End() time.Duration {
	used := threadCPU() - s.clock
	runtime.UnlockOSThread()
	return used
}

package cpu

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"
)

// A Meter measures the CPU time of one execution by the clock of the thread its
// goroutine runs on. A Meter with an Account is ready to Start.
//
// Go moves goroutines between threads, so a thread's clock says what one
// goroutine used only while the goroutine is locked to the thread. A Meter locks
// it from Start to Stop, and the difference of two readings is what the
// goroutine used in between: however long that was, in every package it called, and
// however often it was preempted. Nothing that an execution does can be forgotten.
//
// A locked goroutine that blocks costs tens of microseconds, since its thread
// sleeps with it. So waits that are known (a lock, a commit's sync) stand between Pause and Resume,
// which end one segment and begin the next. Waits that are not known (a mutex) use no CPU and spoil nothing.
//
// Reading a thread's clock is a system call of about 0.3 us (BenchmarkMeter), 1% of a
// point read. On a busy server one execution in sampleEvery is measured, brief or not. The
// others have the clock read when they start, and when they end only if that is briefLimit or more later: if it is
// less, they are charged what is Typical of their kind.
//
// Where threads have no clock (anything but Linux) time stands in for it: an upper bound.
type Meter struct {
	Account *Account
	Typical *Typical // of its kind; nil if it is of no kind

	task    *Task         // nil for an execution
	own     time.Duration // measured, up to the begin of the segment
	elapsed time.Duration // in segments that have ended
	rough   time.Duration // the part of elapsed, below briefLimit, for which no clock was read
	shared  time.Duration // drawn so far
	parts   int64         // counted by Lap
	lapped  time.Duration // own at the last Lap
	clock   time.Duration // of the thread, at the begin of the segment
	began   time.Duration // since epoch, at the begin of the segment
	running bool
	busy    bool // the server is busy: of brief executions only one in sampleEvery is measured
	sampled bool // this one is
}

const (
	// briefLimit is how long an execution may take and be charged what is typical of its kind. From there on the system
	// call that reads the clock is below half a percent of it.
	briefLimit = 100 * time.Microsecond
	// sampleEvery is how many brief executions share a measurement when there are more than fewExecutions per second.
	sampleEvery   = 16
	fewExecutions = 1000
	// lapEvery is how often a long segment is told to the account.
	lapEvery = 10 * time.Millisecond
)

// epoch is what times are measured from: its difference to now is read off the monotonic clock.
var epoch = time.Now()

// Start begins to measure what this goroutine does, and locks the goroutine to its thread.
func (m *Meter) Start() {
	if m.Account.off {
		return
	}
	m.busy = m.Account.busy.Load()
	m.sampled = m.task != nil || !m.busy || rand.Uint32()%sampleEvery == 0
	m.Resume()
}

// Is tells which kind of execution it is, once that is known.
func (m *Meter) Is(t *Typical) { m.Typical = t }

// Resume begins a segment, after Pause. The goroutine may be another one.
func (m *Meter) Resume() {
	if m.Account.off {
		return
	}
	m.running = true
	runtime.LockOSThread()
	m.began = time.Since(epoch)
	m.clock = threadCPU()
}

// Pause ends the segment and unlocks the goroutine.
func (m *Meter) Pause() {
	if m != nil && m.running {
		m.pause(m.Typical.isKnown())
	}
}

// pause ends the segment. The clock need not be read if what is typical stands for it: if nothing was measured so far, and the execution
// is brief.
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

// Lap tells the account what a long segment has used so far, so that what is dealt out in each tick is right. It costs a look at the time.
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

// add counts what a segment has used.
func (m *Meter) add(used time.Duration) {
	m.own += used
	if m.task != nil {
		m.task.used.Add(int64(used))
	} else {
		m.Account.add(used)
	}
}

// share counts what Lap has not counted yet of so many parts, and draws what is due for it.
func (m *Meter) share(parts int64) {
	more := max(parts-m.parts, 0)
	m.parts += more
	m.Account.count(more)
	if m.own >= lapEvery { // it is most of what has happened of late: what is due for it must not be left to the next
		m.Account.Tick()
	}
	m.shared += m.Account.draw(more)
}

// Stop ends the measurement and returns the CPU time of the execution itself. Shared is its share of what serves all, which is by
// its load.
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

// Shared is the execution's share of the CPU time that no execution and no task is measured for, such as that of connections and of Go's
// garbage collection. It is complete after Stop.
func (m *Meter) Shared() time.Duration { return m.shared }

// stoodFor is what segments are charged for which no clock was read: what is typical if that was all of the execution. An execution that
// turned out long, or is the first of its kind with so many rows, is charged the time that passed in them: less than briefLimit.
func (m *Meter) stoodFor(rows int64) time.Duration {
	if m.elapsed == m.rough {
		return m.Typical.charge(m.rough, rows)
	}
	return m.rough
}

// SoFar is the CPU time that the execution has used itself so far.
func (m *Meter) SoFar() time.Duration {
	if !m.running {
		return m.own + m.rough
	}
	return m.own + m.rough + threadCPU() - m.clock
}

// Weight is how many executions this one stands for: sampleEvery if it was sampled on a busy server, 1 if all are measured, 0 if it was
// not sampled.
func (m *Meter) Weight() int64 {
	switch {
	case m.Account.off || !m.sampled:
		return 0
	case m.busy:
		return sampleEvery
	}
	return 1
}

// Spent measures the CPU time of f, which runs under ctx. While f waits with the meter of ctx paused, no time counts and no thread is held.
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

// A Segment is what one goroutine does between BeginSegment and End.
type Segment struct {
	thread thread
	clock  time.Duration
}

// BeginSegment locks the goroutine to its thread and begins to measure.
func BeginSegment() Segment {
	runtime.LockOSThread()
	return Segment{thread: thisThread(), clock: threadCPU()}
}

// SoFar returns the CPU time since BeginSegment. Any goroutine may call it, until End is called.
func (s Segment) SoFar() time.Duration { return s.thread.cpu() - s.clock }

// End returns the CPU time since BeginSegment. The same goroutine must call it.
func (s Segment) End() time.Duration {
	used := threadCPU() - s.clock
	runtime.UnlockOSThread()
	return used
}

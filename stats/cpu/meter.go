package cpu

import (
	"context"
	"math/rand/v2"
	"runtime"
	"time"
)

// A Meter measures the CPU time of one execution by the clock of the thread that runs its goroutine. Set Account before Start.
//
// Go moves goroutines between threads, so a thread's clock tells the CPU time of one goroutine only while the goroutine is locked
// to the thread. A Meter locks it from Start to Stop. The difference of two readings is then exactly the CPU time of the
// goroutine, in every package it called, and however often it was preempted.
//
// A locked goroutine that blocks costs tens of microseconds, because its thread sleeps with it. So known waits (a lock, a
// commit's sync) stand between Pause and Resume, which end one segment and begin the next. Other waits (a mutex) use no CPU time,
// so they do not distort the result.
//
// Reading a thread's clock is a system call of about 0.3 us (BenchmarkMeter), 1% of a point read. So a busy server samples: it
// measures one execution in sampleEvery, brief or not. For the others it reads the clock when they start, and again only if they
// take briefLimit or longer. It charges shorter ones the Typical time of their kind.
//
// Where threads have no clock (anything but Linux) the meter reads the wall clock, which gives an upper bound.
type Meter struct {
	Account *Account
	Typical *Typical // of the execution's kind; nil if it has no kind

	task    *Task         // nil for an execution
	own     time.Duration // measured before the current segment
	elapsed time.Duration // of the segments that have ended
	rough   time.Duration // part of elapsed, below briefLimit, for which the clock was not read
	shared  time.Duration // drawn from the account so far
	parts   int64         // counted in the account so far
	lapped  time.Duration // own at the last Lap
	clock   time.Duration // of the thread, at the start of the segment
	began   time.Duration // since epoch, at the start of the segment
	running bool
	busy    bool // the server is busy: it measures only one in sampleEvery brief executions
	sampled bool // this execution is measured
}

const (
	// briefLimit bounds the executions that may be charged the typical time of their kind. For longer ones the system call that
	// reads the clock takes less than half a percent.
	briefLimit = 100 * time.Microsecond
	// sampleEvery: one in sampleEvery brief executions is measured when there are more than fewExecutions per second.
	sampleEvery   = 16
	fewExecutions = 1000
	// lapEvery is the least CPU time between two reports of a long segment to the account.
	lapEvery = 10 * time.Millisecond
)

// epoch is the origin of all times in this package. The difference to now comes from the monotonic clock.
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

// Is sets the kind of the execution, as soon as the caller knows it.
func (m *Meter) Is(t *Typical) { m.Typical = t }

// Resume begins a segment, after Pause. Another goroutine than before may call it.
func (m *Meter) Resume() {
	if m.Account.off {
		return
	}
	m.running = true
	runtime.LockOSThread()
	m.began = time.Since(epoch)
	m.clock = threadCPU()
}

// Pause ends the segment and unlocks the goroutine from its thread.
func (m *Meter) Pause() {
	if m != nil && m.running {
		m.pause(m.Typical.isKnown())
	}
}

// pause ends the segment. typical says that the typical time of the kind is known. If so, a brief execution that was not measured
// so far is charged that time, and pause does not read the clock.
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

// Lap reports the CPU time of a long segment to the account so far, so that the account's ticks are right. A call that has
// nothing to report costs one look at the time.
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

// add adds measured CPU time of a segment.
func (m *Meter) add(used time.Duration) {
	m.own += used
	if m.task != nil {
		m.task.used.Add(int64(used))
	} else {
		m.Account.add(used)
	}
}

// share raises the counted parts of the execution to parts, and draws the share of the added ones from the account.
func (m *Meter) share(parts int64) {
	more := max(parts-m.parts, 0)
	m.parts += more
	m.Account.count(more)
	if m.own >= lapEvery { // most recent CPU time is its own, so it must not leave its share to the next execution
		m.Account.Tick()
	}
	m.shared += m.Account.draw(more)
}

// Stop ends the measurement and returns the CPU time of the execution itself. After Stop, Shared returns its share of the
// unmeasured CPU time, which depends on l.
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

// Shared returns the execution's share of the CPU time that belongs to no execution and no task, such as that of connections and
// of Go's garbage collection. It is complete after Stop.
func (m *Meter) Shared() time.Duration { return m.shared }

// stoodFor returns the charge for segments for which the clock was not read. It is the typical time of the kind if the execution
// has no other segments. Otherwise, and for the first execution of a kind with that many rows, it is the time that passed in
// them, less than briefLimit.
func (m *Meter) stoodFor(rows int64) time.Duration {
	if m.elapsed == m.rough {
		return m.Typical.charge(m.rough, rows)
	}
	return m.rough
}

// SoFar returns the CPU time that the execution itself has used so far.
func (m *Meter) SoFar() time.Duration {
	if !m.running {
		return m.own + m.rough
	}
	return m.own + m.rough + threadCPU() - m.clock
}

// Weight returns the number of executions that this one represents: sampleEvery if a busy server sampled it, 1 if the server
// measures all, 0 if it was not sampled.
func (m *Meter) Weight() int64 {
	switch {
	case m.Account.off || !m.sampled:
		return 0
	case m.busy:
		return sampleEvery
	}
	return 1
}

// Spent returns the CPU time of f, which runs under ctx. A wait of f that pauses the meter of ctx does not count, and holds no
// thread.
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

// A Segment measures one goroutine between BeginSegment and End.
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

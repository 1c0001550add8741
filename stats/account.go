package stats

import (
	"sync"
	"sync/atomic"
	"time"
)

// An Account is the CPU time of a process: what was measured for executions,
// and what remains. There is one in a server.
//
// The remainder of each tick, over the messages of that tick, is the share that
// each message of the next is charged. An idle process charges nobody: its housekeeping
// is not dealt out to the few requests that come. So what is
// charged adds up to what the process used because the remainder is dealt out; that measurements are right is
// another matter, and tested apart.
type Account struct {
	measured atomic.Int64 // nanoseconds
	segments atomic.Int64
	messages atomic.Int64
	share    atomic.Int64 // nanoseconds per message
	average  atomic.Int64 // nanoseconds per segment
	busy     atomic.Bool  // there are many segments: not all have to be measured

	mu   sync.Mutex // guards last
	last reading
}

// reading is an Account at one moment.
type reading struct {
	at                 time.Duration // since epoch
	process, measured  time.Duration
	segments, messages int64
}

// fewMessages in a tick say nothing about what a message costs.
const fewMessages = 100

// maxShare is more than a message can cost: what is beyond is the process's own.
const maxShare = time.Millisecond

// NewAccount opens the account of this process.
func NewAccount() *Account {
	a := new(Account)
	a.last = a.read()
	return a
}

func (a *Account) read() reading {
	return reading{time.Since(epoch), processCPU(), time.Duration(a.measured.Load()), a.segments.Load(), a.messages.Load()}
}

func (a *Account) settle(used time.Duration) {
	a.measured.Add(int64(used))
	a.segments.Add(1)
}

// charge counts messages and returns their share.
func (a *Account) charge(messages int64) time.Duration {
	a.messages.Add(messages)
	return time.Duration(a.share.Load() * messages)
}

func (a *Account) typical() time.Duration { return time.Duration(a.average.Load()) }

// Tick learns from what happened since the last Tick; call it about once per second. Half of what it learns is new.
func (a *Account) Tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.read()
	messages, segments := now.messages-a.last.messages, now.segments-a.last.segments
	a.busy.Store(float64(segments) > fewExecutions*(now.at-a.last.at).Seconds())
	if messages >= fewMessages && segments > 0 {
		rest := now.process - a.last.process - (now.measured - a.last.measured)
		learn(&a.share, min(max(int64(rest)/messages, 0), int64(maxShare)))
		learn(&a.average, int64(now.measured-a.last.measured)/segments)
	}
	a.last = now
}

func learn(v *atomic.Int64, latest int64) {
	if old := v.Load(); old > 0 {
		latest = (old + latest) / 2
	}
	v.Store(latest)
}

package cpu

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/stats/stripe"
)

// An Account is the CPU time of a process: what was measured for executions,
// and what remains. There is one in a server.
//
// The remainder of each tick goes into a pool. Each execution of the next tick
// draws from it what would be its share if as much were going on as in the
// last (see Load), until the pool is empty. So what is charged adds up to what the process
// used, no more, however the load changes; what is drawn late, by requests of another kind, is a tick's at
// most. An idle process fills no pool: its housekeeping is not dealt out to the few
// requests that come. That measurements are right is another matter, and tested apart.
type Account struct {
	off     bool
	busy    atomic.Bool  // there are many segments: not all have to be measured
	share   atomic.Int64 // nanoseconds for as much as a message's share is
	average atomic.Int64 // nanoseconds per segment
	_       [stripe.CacheLine]byte
	pool    atomic.Int64 // nanoseconds that are left to be charged
	_       [stripe.CacheLine]byte
	stripes [stripe.Max]accountStripe

	mu   sync.Mutex // guards last
	last reading
}

// accountStripe is what executions on one processor add up to.
type accountStripe struct {
	measured atomic.Int64 // nanoseconds
	segments atomic.Int64
	parts    atomic.Int64 // of shares
	_        [stripe.CacheLine]byte
}

// reading is an Account at one moment.
type reading struct {
	at                time.Duration // since epoch
	process, measured time.Duration
	segments, parts   int64
}

// TickEvery is how often Tick should be called: what changes sooner than that is charged to whoever comes next.
const TickEvery = 100 * time.Millisecond

// fewMessages in a tick, or what amounts to them, say nothing about what a message costs.
const fewMessages = 10

// maxShare is more than a message can cost: what is beyond is the process's own.
const maxShare = time.Millisecond

// Load is what an execution had to do with, and gave others to do whose work is not measured for it.
type Load struct {
	Messages int64 // received and sent
	Bytes    int64 // in them
	Commits  int64 // made durable
	Rows     int64 // read and written
}

// The share of an execution in what is not measured is by what makes the work, in parts: one message of some bytes is
// as much as another, whatever it asks for, but not as much as a long stream, and reads sync nothing. On loopback, with 4 to 16 clients,
// a message takes some 17 us (to be read, written, and waited for), each 40 KiB as much again, each 160 us of
// measured work as much for its garbage, and a commit four times as much for log and compaction. TestCPUToldApart of
// cmd/crowfoot watches over what comes of it.
const (
	messageParts = 1 << 10
	commitParts  = 4 * messageParts
	bytesPerPart = 40 << 10 / messageParts
	workPerPart  = 160 * time.Microsecond / messageParts
)

// parts are those of an execution whose own work was measured.
func (l *Load) parts(own time.Duration) int64 {
	return l.Messages*messageParts + l.Bytes/bytesPerPart + l.Commits*commitParts + int64(max(own, 0)/workPerPart)
}

// NewAccount opens the account of this process.
func NewAccount() *Account {
	a := new(Account)
	a.last = a.read()
	return a
}

// NoAccount is for a server that measures nothing: executions cost nothing by it.
func NoAccount() *Account { return &Account{off: true} }

func (a *Account) read() reading {
	now := reading{at: time.Since(epoch), process: processCPU()}
	for i := range a.stripes {
		l := &a.stripes[i]
		now.measured += time.Duration(l.measured.Load())
		now.segments += l.segments.Load()
		now.parts += l.parts.Load()
	}
	return now
}

func (a *Account) settle(used time.Duration) {
	l := &a.stripes[stripe.Current()]
	l.measured.Add(int64(used))
	l.segments.Add(1)
}

// charge counts parts and draws their share from the pool.
func (a *Account) charge(parts int64) time.Duration {
	a.stripes[stripe.Current()].parts.Add(parts)
	want := a.share.Load() * parts / messageParts
	if left := a.pool.Add(-want); left < 0 {
		lacking := min(-left, want)
		a.pool.Add(lacking)
		want -= lacking
	}
	return time.Duration(want)
}

func (a *Account) typical() time.Duration { return time.Duration(a.average.Load()) }

// Tick learns from what happened since the last Tick.
func (a *Account) Tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.read()
	messages, segments := (now.parts-a.last.parts)/messageParts, now.segments-a.last.segments
	a.busy.Store(float64(segments) > fewExecutions*(now.at-a.last.at).Seconds())
	if messages >= fewMessages && segments > 0 {
		rest := now.process - a.last.process - (now.measured - a.last.measured)
		a.fill(int64(rest), messages)
		learn(&a.average, int64(now.measured-a.last.measured)/segments)
	}
	a.last = now
}

// fill adds the remainder of a tick to the pool; a negative one, from measurements that were too high, is taken from it. What
// nobody drew for long is dropped.
func (a *Account) fill(rest, messages int64) {
	most := int64(maxShare) * messages
	pool := min(max(a.pool.Load()+rest, -most), most)
	a.share.Store(max(pool, 0) / messages)
	a.pool.Store(pool)
}

func learn(v *atomic.Int64, latest int64) {
	if old := v.Load(); old > 0 {
		latest = (old + latest) / 2
	}
	v.Store(latest)
}

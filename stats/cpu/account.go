package cpu

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/stats/stripe"
)

// An Account is the CPU time of a process: what was measured for executions,
// what was measured for tasks in the background, and what remains. There is one in a server.
//
// The remainder of each tick (connections, Go's garbage collection) goes into a pool. Each execution of the next tick
// draws from the pool what would be its share if as much were going on as in the
// last (see Load), until the pool is empty. So what is drawn adds up to what the process
// used and no more, however the load changes. What is drawn late, by requests of another kind, is that of two ticks at
// most: the remainder of the first tick without executions is the sending of what they left. After that an idle process fills no pool: its housekeeping is
// not dealt out to the few requests that come.
type Account struct {
	off     bool
	busy    atomic.Bool  // there are many executions: brief ones need not be measured
	share   atomic.Int64 // nanoseconds charged for messageParts
	_       [stripe.CacheLine]byte
	pool    atomic.Int64 // nanoseconds that are left to be drawn
	_       [stripe.CacheLine]byte
	stripes [stripe.Max]accountStripe

	mu       sync.Mutex // guards what follows
	last     reading
	quiet    time.Duration // remainders of ticks in which no execution ended, but the first; older ones count less
	messages int64         // of the last tick
	tasks    []*Task
}

// accountStripe is what executions on one processor add up to.
type accountStripe struct {
	measured   atomic.Int64 // nanoseconds
	executions atomic.Int64
	parts      atomic.Int64 // of shares
	_          [stripe.CacheLine]byte
}

// reading is an Account at one moment.
type reading struct {
	at                            time.Duration // since epoch
	process, measured, background time.Duration
	executions, parts             int64
}

// TickEvery is how often Tick should be called: what changes sooner than that is charged to the executions that come next.
const TickEvery = 100 * time.Millisecond

// quietTicks is for how many ticks a remainder counts in quiet: an execution that ends now may have used CPU time so long ago.
const quietTicks = 100

// fewMessages is how many messages, or parts of as many, a tick must have for its remainder to say what a message costs.
const fewMessages = 10

// maxShare is the most that is dealt out for a message. A larger remainder comes from work of the process that no request caused.
const maxShare = time.Millisecond

// Load is what an execution had to do with, and made others do whose work is not measured for it.
type Load struct {
	Messages int64 // received and sent
	Bytes    int64 // in them
	Commits  int64 // made durable
	Rows     int64 // read and written
}

// The share of an execution in what is not measured is by what makes the work, in parts: one message of some bytes is
// as much as another, for every API method, but not as much as a long stream, and reads sync nothing. On loopback, with 4 to 16 clients,
// a message takes some 17 us (to be read, written, and waited for), each 40 KiB as much again, each 160 us of
// measured work as much for its garbage, and a commit four times as much for the log.
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

// NoAccount is for a server that measures nothing: its executions and tasks cost nothing.
func NoAccount() *Account { return &Account{off: true} }

// read reads the account. The mutex is held.
func (a *Account) read() reading {
	now := reading{at: time.Since(epoch), process: processCPU()}
	for i := range a.stripes {
		l := &a.stripes[i]
		now.measured += time.Duration(l.measured.Load())
		now.executions += l.executions.Load()
		now.parts += l.parts.Load()
	}
	for _, t := range a.tasks {
		now.background += t.Used()
	}
	return now
}

// add counts what was measured for an execution.
func (a *Account) add(used time.Duration) { a.stripes[stripe.Current()].measured.Add(int64(used)) }

// executed counts an execution.
func (a *Account) executed() { a.stripes[stripe.Current()].executions.Add(1) }

// count counts parts.
func (a *Account) count(parts int64) { a.stripes[stripe.Current()].parts.Add(parts) }

// draw takes the share of parts from the pool.
func (a *Account) draw(parts int64) time.Duration {
	want := a.share.Load() * parts / messageParts
	if left := a.pool.Add(-want); left < 0 {
		lacking := min(-left, want)
		a.pool.Add(lacking)
		want -= lacking
	}
	return time.Duration(want)
}

// Tick learns from what happened since the last Tick. That may have been a moment ago, so a few executions since then do not make the server busy.
func (a *Account) Tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.read()
	messages, executions := (now.parts-a.last.parts)/messageParts, now.executions-a.last.executions
	a.busy.Store(executions >= sampleEvery && float64(executions) > fewExecutions*(now.at-a.last.at).Seconds())
	known := now.measured - a.last.measured + now.background - a.last.background
	rest := now.process - a.last.process - known
	after := a.messages // what was sent for them may be on its way still, though they have ended
	a.messages = messages
	switch {
	case messages < fewMessages && after >= fewMessages:
		a.fill(int64(rest), after)
	case messages < fewMessages:
		a.quiet += rest - a.quiet/quietTicks
	case rest < 0: // a long execution is measured now that used its time in ticks before
		a.fill(int64(rest+a.quiet), messages)
		a.quiet = 0
	default:
		a.fill(int64(rest), messages)
		a.quiet = 0
	}
	a.last = now
}

// fill adds the remainder of a tick to the pool; a negative one is taken from it. What no execution has drawn for long is dropped.
func (a *Account) fill(rest, messages int64) {
	most := int64(maxShare) * messages
	pool := min(max(a.pool.Load()+rest, -most), most)
	a.share.Store(max(pool, 0) / messages)
	a.pool.Store(pool)
}

package cpu

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/stats/stripe"
)

// An Account divides the CPU time of a process into three parts: the time measured for executions, the time measured for
// background tasks, and the remainder. A server has one Account.
//
// The remainder of each tick (connections, Go's garbage collection) goes into a pool. Each execution of the next tick draws its
// share from the pool, until the pool is empty. The share assumes that the load is the same as in the last tick (see Load). So
// executions draw what the process used and no more, however the load changes.
//
// The first tick without executions still fills the pool, because its remainder comes from sending their last replies. So
// requests of another kind draw the remainders of two ticks at most. Later idle ticks do not fill the pool: the few requests that
// come to an idle process do not pay for its housekeeping.
type Account struct {
	off     bool
	busy    atomic.Bool  // the server runs many executions, so it samples the brief ones
	share   atomic.Int64 // nanoseconds charged for messageParts
	_       [stripe.CacheLine]byte
	pool    atomic.Int64 // nanoseconds left to draw
	_       [stripe.CacheLine]byte
	stripes [stripe.Max]accountStripe

	mu       sync.Mutex // guards the fields below
	last     reading
	quiet    time.Duration // remainders of the ticks without executions, except the first; older ones count less
	messages int64         // of the last tick
	tasks    []*Task
}

// accountStripe counts the executions on one processor.
type accountStripe struct {
	measured   atomic.Int64 // nanoseconds
	executions atomic.Int64
	parts      atomic.Int64 // see Load.parts
	_          [stripe.CacheLine]byte
}

// reading holds the totals of an Account at one moment.
type reading struct {
	at                            time.Duration // since epoch
	process, measured, background time.Duration
	executions, parts             int64
}

// TickEvery is the time between calls of Tick. CPU time that is used in between is charged to the executions that come next.
const TickEvery = 100 * time.Millisecond

// quietTicks is the number of ticks for which quiet remembers a remainder. An execution that ends now may have used its CPU time
// that long ago.
const quietTicks = 100

// fewMessages is the least number of messages, or of equal parts, that a tick needs. With fewer, its remainder does not tell the
// cost of a message.
const fewMessages = 10

// maxShare bounds the charge for one message. A larger remainder comes from work of the process that no request caused.
const maxShare = time.Millisecond

// Load counts the work of an execution that causes unmeasured work elsewhere in the process.
type Load struct {
	Messages int64 // received and sent
	Bytes    int64 // in them
	Commits  int64 // made durable
	Rows     int64 // read and written
}

// An execution pays for unmeasured work in parts, whose number depends on its load. Messages of any API method cost the same, a
// long stream costs more than one message, and reads sync nothing. Measured on loopback with 4 to 16 clients: a message takes
// about 17 us (to read, to write, and to wait for). Each 40 KiB takes as much again. So does each 160 us of measured work, for
// its garbage. A commit takes four times as much, for the log.
const (
	messageParts = 1 << 10
	commitParts  = 4 * messageParts
	bytesPerPart = 40 << 10 / messageParts
	workPerPart  = 160 * time.Microsecond / messageParts
)

// parts returns the number of parts that an execution pays for; own is its measured CPU time.
func (l *Load) parts(own time.Duration) int64 {
	return l.Messages*messageParts + l.Bytes/bytesPerPart + l.Commits*commitParts + int64(max(own, 0)/workPerPart)
}

// NewAccount opens the account of this process.
func NewAccount() *Account {
	a := new(Account)
	a.last = a.read()
	return a
}

// NoAccount returns an Account that measures nothing: executions and tasks cost nothing.
func NoAccount() *Account { return &Account{off: true} }

// read returns the current totals. The caller holds mu.
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

// add adds CPU time that was measured for an execution.
func (a *Account) add(used time.Duration) { a.stripes[stripe.Current()].measured.Add(int64(used)) }

// executed counts an execution.
func (a *Account) executed() { a.stripes[stripe.Current()].executions.Add(1) }

// count adds parts of executions.
func (a *Account) count(parts int64) { a.stripes[stripe.Current()].parts.Add(parts) }

// draw takes the share for parts from the pool and returns it. It returns less when the pool runs empty.
func (a *Account) draw(parts int64) time.Duration {
	want := a.share.Load() * parts / messageParts
	if left := a.pool.Add(-want); left < 0 {
		lacking := min(-left, want)
		a.pool.Add(lacking)
		want -= lacking
	}
	return time.Duration(want)
}

// Tick distributes the CPU time since the last Tick. The last Tick may be a moment ago, so a few executions since then do not
// mark the server as busy.
func (a *Account) Tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.read()
	messages, executions := (now.parts-a.last.parts)/messageParts, now.executions-a.last.executions
	a.busy.Store(executions >= sampleEvery && float64(executions) > fewExecutions*(now.at-a.last.at).Seconds())
	known := now.measured - a.last.measured + now.background - a.last.background
	rest := now.process - a.last.process - known
	after := a.messages // their replies may still be on their way, though the executions have ended
	a.messages = messages
	switch {
	case messages < fewMessages && after >= fewMessages:
		a.fill(int64(rest), after)
	case messages < fewMessages:
		a.quiet += rest - a.quiet/quietTicks
	case rest < 0: // a long execution has just reported time that it used in earlier ticks
		a.fill(int64(rest+a.quiet), messages)
		a.quiet = 0
	default:
		a.fill(int64(rest), messages)
		a.quiet = 0
	}
	a.last = now
}

// fill adds the remainder of a tick to the pool; a negative remainder reduces it. The pool is bounded, so time that no execution
// draws for long is dropped.
func (a *Account) fill(rest, messages int64) {
	most := int64(maxShare) * messages
	pool := min(max(a.pool.Load()+rest, -most), most)
	a.share.Store(max(pool, 0) / messages)
	a.pool.Store(pool)
}

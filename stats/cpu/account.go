package cpu

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/stats/stripe"
)

// An Account divides the CPU time of a process into three parts: the time measured for executions, the time measured
// for background tasks, and the remainder. A server has one Account.
//
// A tick is the time between two calls of Tick. The remainder of each tick (connections, Go's garbage collection) goes
// into a pool. Each execution of the next tick takes a share from the pool, until the pool is empty. The size of a
// share is computed as if the load were the same as in the last tick (see Load). So executions together take what the
// process used and no more, however the load changes.
//
// The remainder of the first tick without executions still goes into the pool, because it comes from sending the last
// replies. So the executions after a pause are charged for the remainders of at most two ticks: the last one with
// executions and the first one without. Later ticks without executions do not fill the pool, so that the few requests
// that come to an idle process are not charged for its housekeeping.
type Account struct {
	off     bool
	busy    atomic.Bool  // the server runs many executions, so it measures only a sample of the brief ones
	share   atomic.Int64 // nanoseconds that an execution takes from the pool per messageParts parts (see Load.parts)
	_       [stripe.CacheLine]byte
	pool    atomic.Int64 // nanoseconds that executions can still take
	_       [stripe.CacheLine]byte
	stripes [stripe.Max]accountStripe

	mu       sync.Mutex // guards the fields below
	last     reading
	quiet    time.Duration // sum of the remainders of ticks without executions (see quietTicks)
	messages int64         // number of messages in the last tick
	tasks    []*Task
}

// accountStripe counts the executions that the processors of one stripe ran.
type accountStripe struct {
	measured   atomic.Int64 // measured CPU time in nanoseconds
	executions atomic.Int64
	parts      atomic.Int64 // sum of the parts of the executions (see Load.parts)
	_          [stripe.CacheLine]byte
}

// reading holds the totals of an Account at one moment.
type reading struct {
	at                            time.Duration // time since the variable epoch
	process, measured, background time.Duration
	executions, parts             int64
}

// TickEvery is the time between calls of Tick. The unmeasured CPU time between two calls is charged to executions after
// the second call.
const TickEvery = 100 * time.Millisecond

// quietTicks is the approximate number of ticks whose remainders Account.quiet adds up. The remainder of the first tick
// without executions is not added, and older remainders count less. If a long execution reports CPU time only after
// several ticks, the remainders of these ticks have wrongly included that time. In the tick in which the execution
// reports it, the remainder is therefore negative, and Tick adds quiet to it.
const quietTicks = 100

// fewMessages is the number of messages below which Tick treats a tick as one without executions: the remainder of
// such a tick does not show how much CPU time a message costs. Other work counts as messages, too: messageParts parts
// (see Load.parts) are one message.
const fewMessages = 10

// maxShare is the highest charge for one message. If the remainder of a tick is larger than maxShare for each message,
// the process has done work that no request caused. So fill drops the part above this limit.
const maxShare = time.Millisecond

// Load counts the work of an execution. That work causes unmeasured work elsewhere in the process, and the execution is
// charged a share of the unmeasured CPU time that depends on its Load.
type Load struct {
	Messages int64 // messages received and sent
	Bytes    int64 // bytes in the messages
	Commits  int64 // commits made durable
	Rows     int64 // rows read and written
}

// Unmeasured CPU time is shared out among the executions, in proportion to their parts. An execution has messageParts
// for each message, commitParts for each commit, one part for each bytesPerPart bytes, and one for each workPerPart of
// its own CPU time. The ratios were measured on loopback with 4 to 16 clients:
//
//   - A message takes about 17 us of CPU time for reading, writing and waiting, in all API methods.
//   - Each 40 KiB of messages take 17 us too.
//   - Each 160 us of an execution's own CPU time cause 17 us of garbage collection.
//   - A commit takes four times as much as a message, because it writes the log.
const (
	messageParts = 1 << 10
	commitParts  = 4 * messageParts
	bytesPerPart = 40 << 10 / messageParts
	workPerPart  = 160 * time.Microsecond / messageParts
)

// parts returns the number of parts (see messageParts) of an execution with this load. own is the CPU time that was
// measured for the execution.
func (l *Load) parts(own time.Duration) int64 {
	return l.Messages*messageParts + l.Bytes/bytesPerPart + l.Commits*commitParts + int64(max(own, 0)/workPerPart)
}

// NewAccount returns an account of this process. It counts the CPU time that is used from now on.
func NewAccount() *Account {
	a := new(Account)
	a.last = a.read()
	return a
}

// NoAccount returns an Account that measures nothing: all executions and tasks have a CPU time of 0.
func NoAccount() *Account { return &Account{off: true} }

// read returns the Account's totals at this moment. The caller holds mu.
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

// executed counts one execution.
func (a *Account) executed() { a.stripes[stripe.Current()].executions.Add(1) }

// count adds parts to the account's number of parts.
func (a *Account) count(parts int64) { a.stripes[stripe.Current()].parts.Add(parts) }

// draw takes from the pool the share of an execution with this number of parts, and returns it. If the pool has less,
// draw takes what there is.
func (a *Account) draw(parts int64) time.Duration {
	want := a.share.Load() * parts / messageParts
	if left := a.pool.Add(-want); left < 0 {
		lacking := min(-left, want)
		a.pool.Add(lacking)
		want -= lacking
	}
	return time.Duration(want)
}

// Tick shares out the CPU time that was used since the last Tick. It also decides whether the server is busy. It is
// busy if, since the last Tick, more than fewExecutions per second and at least sampleEvery in all have ended. The
// second condition is needed because the last Tick may have been only a moment ago: then two executions can already be
// a high rate.
func (a *Account) Tick() {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.read()
	messages, executions := (now.parts-a.last.parts)/messageParts, now.executions-a.last.executions
	a.busy.Store(executions >= sampleEvery && float64(executions) > fewExecutions*(now.at-a.last.at).Seconds())
	known := now.measured - a.last.measured + now.background - a.last.background
	rest := now.process - a.last.process - known
	after := a.messages // messages of the previous tick; some of their replies may have been sent only in this tick
	a.messages = messages
	switch {
	case messages < fewMessages && after >= fewMessages:
		a.fill(int64(rest), after)
	case messages < fewMessages:
		a.quiet += rest - a.quiet/quietTicks
	case rest < 0: // a long execution has just reported CPU time that it used in earlier ticks
		a.fill(int64(rest+a.quiet), messages)
		a.quiet = 0
	default:
		a.fill(int64(rest), messages)
		a.quiet = 0
	}
	a.last = now
}

// fill adds rest, the remainder of a tick, to the pool; a negative remainder reduces the pool. fill keeps the pool
// between -maxShare*messages and maxShare*messages, and drops the time beyond these limits. So time that no execution
// takes does not pile up in the pool.
func (a *Account) fill(rest, messages int64) {
	most := int64(maxShare) * messages
	pool := min(max(a.pool.Load()+rest, -most), most)
	a.share.Store(max(pool, 0) / messages)
	a.pool.Store(pool)
}

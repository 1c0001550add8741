package memory

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/usererror"
)

const (
	// MaxWait is how long a request waits for room in the budget before it is refused. It may hold memory while it waits, and others
	// may wait for that: the limit ends what would otherwise be a deadlock. It is above the time that most requests take, and below the time
	// after which people and load balancers give up.
	MaxWait = 2 * time.Second
	// A share of 1/reserved of the budget is kept for accounts of at most smallBytes, such as the rows that a stream is sending, so that
	// small requests go on while large ones have taken all they may.
	reserved   = 16
	smallBytes = 1 << 20
	// A statement may take 1/statementShare of the budget, and all of them together, but for small ones, 1/statementsShare: beyond that they
	// spill to disk. A commit cannot, and finds room beside them.
	statementShare  = 8
	statementsShare = 3
	// Statements that spill work with a few blocks and short lists. All of these together may take 1/spillingShare of the budget, and half of
	// what is kept for small accounts: so some statements go on while large requests have taken all they may.
	spillingShare = 8
	// Sessions may take 1/sessionsShare of their budget, which they share with prepared statements.
	sessionsShare = 2
)

// A Kind is what an account is for; metrics count what was refused by it.
type Kind int

// The kinds of accounts.
const (
	Request     Kind = iota // a message in receipt and decoded, and what is made of it
	Statement               // rows that a statement keeps; at most Budget.StatementBytes
	Stream                  // a frame that the client has not been sent yet
	Transaction             // what a read-write transaction writes and locks
	Spilling                // what a statement works with beyond its Statement account, while it spills
	Cache                   // prepared statements, and what else follows from a schema version
	Session                 // sessions
	kinds       = iota
)

var kindNames = [kinds]string{"request", "statement", "stream", "transaction", "spilling", "cache", "session"}

// String is the name of the kind in metrics.
func (k Kind) String() string { return kindNames[k] }

// A Budget is how many bytes the accounts that are open may take together. It may be used by many goroutines.
type Budget struct {
	limit int64

	mu      sync.Mutex
	taken   int64
	byKind  [kinds]int64 // taken
	waiting []*waiter    // in the order in which they came

	refused [kinds]atomic.Int64
}

// A waiter is an account that waits until there is room for n more bytes. If it gets them, done is closed.
type waiter struct {
	n     int64
	small bool
	kind  Kind
	done  chan struct{}
}

// NoLimit is the limit of a budget that refuses nothing.
const NoLimit = 1 << 62

// NewBudget makes a budget of limit bytes.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// StatementBytes is how much of the budget one statement may take.
func (b *Budget) StatementBytes() int64 { return b.limit / statementShare }

// SessionBytes is how much of the budget sessions may take.
func (b *Budget) SessionBytes() int64 { return b.limit / sessionsShare }

// Usage is what a budget says of itself at a moment.
type Usage struct {
	Limit, Taken int64        // bytes
	Waiting      int          // accounts
	Refused      [kinds]int64 // since the start, by Kind
}

// Usage is how much is taken, and how many accounts wait for room.
func (b *Budget) Usage() Usage {
	b.mu.Lock()
	u := Usage{Limit: b.limit, Taken: b.taken, Waiting: len(b.waiting)}
	b.mu.Unlock()
	for k := range b.refused {
		u.Refused[k] = b.refused[k].Load()
	}
	return u
}

// allowed is how much may be taken in all when an account, small or not, has taken its part.
func (b *Budget) allowed(small bool) int64 {
	if small {
		return b.limit
	}
	return b.limit - b.limit/reserved
}

// tryTake takes n bytes if there is room.
func (b *Budget) tryTake(n int64, small bool, kind Kind) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.takeLocked(n, small, kind)
}

func (b *Budget) takeLocked(n int64, small bool, kind Kind) bool {
	all := b.byKind[kind] + n
	switch {
	case kind == Statement && !small && all > b.limit/statementsShare,
		kind == Spilling && all > b.limit/spillingShare,
		kind == Session && all > b.SessionBytes():
		return false
	case kind == Spilling:
		small = all <= b.limit/reserved/2
	}
	if b.taken+n > b.allowed(small) {
		return false
	}
	b.taken += n
	b.byKind[kind] += n
	return true
}

// give gives n bytes back, and serves those that wait and for whom there is room now. One that wants much does not keep later
// ones that want less from being served.
func (b *Budget) give(n int64, kind Kind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken -= n
	b.byKind[kind] -= n
	still := b.waiting[:0]
	for _, w := range b.waiting {
		if b.takeLocked(w.n, w.small, w.kind) {
			close(w.done)
		} else {
			still = append(still, w)
		}
	}
	clear(b.waiting[len(still):])
	b.waiting = still
}

// take takes n bytes for an account of a kind, and waits for room. Its request has held bytes of the budget already.
func (b *Budget) take(ctx context.Context, n, held int64, small bool, kind Kind) error {
	b.mu.Lock()
	if b.takeLocked(n, small, kind) {
		b.mu.Unlock()
		return nil
	}
	if held+n > b.allowed(small) {
		b.mu.Unlock()
		b.refused[kind].Add(1)
		return usererror.TooMuchMemory(held+n, b.allowed(small))
	}
	w := &waiter{n: n, small: small, kind: kind, done: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()

	timer := time.NewTimer(MaxWait)
	defer timer.Stop()
	select {
	case <-w.done:
		return nil
	case <-timer.C:
	case <-ctx.Done():
	}
	if b.leave(w) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b.refused[kind].Add(1)
	return usererror.MemoryTaken(n, b.limit, MaxWait)
}

// leave ends the wait of w. It says whether w was served in the last moment.
func (b *Budget) leave(w *waiter) (served bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.waiting {
		if b.waiting[i] == w {
			b.waiting = append(b.waiting[:i], b.waiting[i+1:]...)
			return false
		}
	}
	return true
}

package memory

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxWait is how long a request waits for memory of the budget before it is refused. Without this limit, requests
	// that wait for each other's memory would wait forever. MaxWait is above the time that most requests take, and
	// below the time after which people and load balancers give up.
	MaxWait = 2 * time.Second
	// 1/smallShare of the budget is reserved for accounts of at most smallBytes, such as an account for the rows that a
	// stream is sending. So small requests go on when large ones have taken all that they may take.
	smallShare = 16
	smallBytes = 1 << 20
	// One statement may take 1/statementShare of the budget. All statements together may take 1/statementsShare; only
	// small accounts may exceed this limit. Statements that need more spill to disk. So the other part of the budget is
	// left for commits, which cannot spill.
	statementShare  = 8
	statementsShare = 3
	// A statement that spills still needs memory for a few blocks and short lists, in an account of kind Spilling. All
	// these accounts together may take 1/spillingShare of the budget. They may use half of what is reserved for small
	// accounts, so that some statements go on when large requests have taken all that they may take.
	spillingShare = 8
	// All sessions together may take 1/sessionsShare of the budget that they share with prepared statements.
	sessionsShare = 2
)

// A Kind says what an account is charged for. Metrics count refusals by kind.
type Kind int

// The kinds of accounts.
const (
	Request     Kind = iota // a message while it is received and decoded, and the data made from it
	Statement               // rows that a statement holds in memory; at most Budget.StatementBytes
	Stream                  // frames that are not yet sent to a client; large rows and columnar data being read
	Transaction             // writes and locks of a read-write transaction
	Spilling                // working memory of a statement that spills, beyond its Statement account
	Cache                   // prepared statements, and other data that is computed from a schema version
	Session                 // the sessions of clients
	kinds       = iota
)

var kindNames = [kinds]string{"request", "statement", "stream", "transaction", "spilling", "cache", "session"}

// String returns the name of the kind in metrics.
func (k Kind) String() string { return kindNames[k] }

// A Budget limits the bytes that all its accounts may take together. Any goroutine may use it.
type Budget struct {
	limit int64

	mu       sync.Mutex
	reserved int64
	byKind   [kinds]int64 // bytes taken by accounts of each kind
	waiting  []*waiter    // in the order of arrival

	refused [kinds]atomic.Int64
}

// A waiter is an account that waits for n more bytes. done is closed when the account gets them.
type waiter struct {
	n     int64
	small bool
	kind  Kind
	done  chan struct{}
}

// NoLimit is the limit of a budget that refuses nothing.
const NoLimit = 1 << 62

// NewBudget makes a budget. The parameter limit is the number of bytes that all its accounts may take together.
func NewBudget(limit int64) *Budget { return &Budget{limit: limit} }

// StatementBytes returns how many bytes of the budget one statement may take at most.
func (b *Budget) StatementBytes() int64 { return b.limit / statementShare }

// SessionBytes returns how many bytes of the budget all sessions together may take at most.
func (b *Budget) SessionBytes() int64 { return b.limit / sessionsShare }

// Usage describes the state of a budget at a moment.
type Usage struct {
	Limit, Reserved int64        // bytes that all accounts together may take, and bytes that they have taken
	Waiting         int          // number of accounts that wait
	Refused         [kinds]int64 // number of refusals since the start, by Kind
}

// Usage returns the current state of the budget.
func (b *Budget) Usage() Usage {
	b.mu.Lock()
	u := Usage{Limit: b.limit, Reserved: b.reserved, Waiting: len(b.waiting)}
	b.mu.Unlock()
	for k := range b.refused {
		u.Refused[k] = b.refused[k].Load()
	}
	return u
}

// allowed returns how many bytes all accounts together may take, including those of the present request. small says
// that a small account makes the request. Only then may the last part of the budget (smallShare) be used.
func (b *Budget) allowed(small bool) int64 {
	if small {
		return b.limit
	}
	return b.limit - b.limit/smallShare
}

// tryReserve takes n bytes and returns true if the budget has them.
func (b *Budget) tryReserve(n int64, small bool, kind Kind) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reserveLocked(n, small, kind)
}

func (b *Budget) reserveLocked(n int64, small bool, kind Kind) bool {
	all := b.byKind[kind] + n
	switch {
	case kind == Statement && !small && all > b.limit/statementsShare,
		kind == Spilling && all > b.limit/spillingShare,
		kind == Session && all > b.SessionBytes():
		return false
	case kind == Spilling:
		small = all <= b.limit/smallShare/2
	}
	if b.reserved+n > b.allowed(small) {
		return false
	}
	b.reserved += n
	b.byKind[kind] += n
	return true
}

// release gives n bytes back to the budget, and then gives bytes to those waiters for which there are enough. A waiter
// that needs many bytes does not block later ones that need few.
func (b *Budget) release(n int64, kind Kind) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved -= n
	b.byKind[kind] -= n
	still := b.waiting[:0]
	for _, w := range b.waiting {
		if b.reserveLocked(w.n, w.small, w.kind) {
			close(w.done)
		} else {
			still = append(still, w)
		}
	}
	clear(b.waiting[len(still):])
	b.waiting = still
}

// reserve takes n bytes for an account of the given kind, and waits if the budget does not have them. held is the number
// of bytes that the same request has already taken from the budget.
func (b *Budget) reserve(ctx context.Context, n, held int64, small bool, kind Kind) error {
	b.mu.Lock()
	if b.reserveLocked(n, small, kind) {
		b.mu.Unlock()
		return nil
	}
	if held+n > b.allowed(small) {
		b.mu.Unlock()
		b.refused[kind].Add(1)
		return &TooMuchError{held + n, b.allowed(small)}
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
	return &ExhaustedError{n, b.limit, MaxWait}
}

// leave ends the wait of w. It returns true if w has just got its bytes.
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

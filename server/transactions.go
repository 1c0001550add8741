package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/memory"
)

// transactions holds the transactions of a server by number. The newest rememberedTransactions of those that have ended stay, for clients
// that did not get a reply and ask again.
type transactions struct {
	clock    func() time.Time
	budget   *memory.Budget
	last     atomic.Uint64
	byNumber sync.Map // uint64 → *transaction

	mu         sync.Mutex
	remembered []uint64 // a ring of finished ones
	oldest     int
}

// rememberedTransactions is about as many as a busy server commits in a second or two. A client that lost a reply
// asks again within that time.
const rememberedTransactions = 16 << 10

func (ts *transactions) add(t *transaction) { ts.byNumber.Store(t.number, t) }

func (ts *transactions) get(number uint64) *transaction {
	if v, ok := ts.byNumber.Load(number); ok {
		return v.(*transaction)
	}
	return nil
}

// finished remembers a transaction that has ended, and forgets the one that ended first of those that are remembered.
func (ts *transactions) finished(t *transaction) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.remembered) < rememberedTransactions {
		ts.remembered = append(ts.remembered, t.number)
		return
	}
	ts.byNumber.Delete(ts.remembered[ts.oldest])
	ts.remembered[ts.oldest] = t.number
	ts.oldest = (ts.oldest + 1) % rememberedTransactions
}

// sweep rolls back transactions that have had no request for abandonedAfter.
func (ts *transactions) sweep(now time.Time) {
	ts.byNumber.Range(func(_, v any) bool {
		if t := v.(*transaction); now.Sub(time.Unix(t.lastUsed.Load(), 0)) > abandonedAfter {
			t.abandon()
			if t.partitioned {
				ts.byNumber.Delete(t.number)
			}
		}
		return true
	})
}

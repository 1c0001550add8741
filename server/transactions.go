package server

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/token"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// transactions holds the transactions of a server that have not ended, and the newest rememberedTransactions of those
// that ended without writing. So a client that did not get a reply can send its request again. The store has the
// outcome of transactions that wrote (txn.Manager.Outcome).
type transactions struct {
	clock  func() time.Time
	budget *memory.Budget
	tokens token.Key
	start  uint32        // how many times the store has been opened: see database.Identity
	last   atomic.Uint64 // highest number in an id so far
	byKey  sync.Map      // txn.ClientID → *transaction

	mu         sync.Mutex
	remembered []txn.ClientID // ended transactions, as a ring buffer
	oldest     int
}

// rememberedTransactions is how many ended transactions are remembered. On a busy server, about 4000 transactions
// are aborted within a second. A client that lost a reply sends its request again within that time.
const rememberedTransactions = 4 << 10

// next returns the id of a new transaction. The number in the id also says when the transaction began, and the store
// keeps the outcome of the transaction for some time after that. So the number is the time of the manager's clock, or
// the last number plus 1 if that is higher.
func (ts *transactions) next(txns *txn.Manager) txn.ClientID {
	for {
		last := ts.last.Load()
		number := max(last+1, uint64(txns.Now()))
		if ts.last.CompareAndSwap(last, number) {
			return txn.ClientID{Start: ts.start, Number: number}
		}
	}
}

func (ts *transactions) add(t *transaction) { ts.byKey.Store(t.key, t) }

func (ts *transactions) remove(t *transaction) { ts.byKey.Delete(t.key) }

func (ts *transactions) get(key txn.ClientID) *transaction {
	if v, ok := ts.byKey.Load(key); ok {
		return v.(*transaction)
	}
	return nil
}

// recall returns a transaction that is not in memory. There are three cases:
//
//   - The transaction was committed, and the store has its outcome.
//   - The transaction ended without writing, and the server does not remember it: the server has restarted, or
//     thousands of transactions have ended since. The outcome of the returned transaction is ABORTED, so that the
//     client runs the transaction again.
//   - The transaction began so long ago that the store may have deleted its outcome. recall returns NOT_FOUND, so that
//     the client does not run the transaction again, because the transaction may have written.
//
// A partitioned DML transaction continues where it stopped, as long as the store has the progress of its statement.
func (ts *transactions) recall(ses *session, id []byte, key txn.ClientID) (*transaction, error) {
	if !isSealed(ts.tokens, id, ses.name) {
		return nil, usererror.TransactionNotFound(id)
	}
	if isPartitioned(id) {
		if !ses.db.ResumesPartitionedDML(key.Began().Time()) {
			return nil, usererror.TransactionNotFound(id)
		}
		t, _ := ts.byKey.LoadOrStore(key, ts.newTransaction(ses, id, key))
		return t.(*transaction), nil
	}
	txns := ses.db.Transactions()
	t := ts.newTransaction(ses, id, key)
	switch outcome, committed, err := txns.Outcome(key); {
	case err != nil:
		return nil, err
	case committed:
		t.outcome, t.committed = usererror.TransactionCommitted(), &outcome
	case txns.Expired(key): // checked last, because the outcome may have been deleted during the lookup
		return nil, usererror.TransactionNotFound(id)
	default:
		t.outcome = usererror.TransactionLost(retryLost)
	}
	return t, nil
}

// retryLost is the delay after which a client should retry a transaction that a restart has ended. It is short because
// the server runs again by then.
const retryLost = time.Millisecond

// finished adds t to the remembered ended transactions. If there are already rememberedTransactions of them, t replaces
// the one that ended longest ago.
func (ts *transactions) finished(t *transaction) {
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if len(ts.remembered) < rememberedTransactions {
		ts.remembered = append(ts.remembered, t.key)
		return
	}
	ts.byKey.Delete(ts.remembered[ts.oldest])
	ts.remembered[ts.oldest] = t.key
	ts.oldest = (ts.oldest + 1) % rememberedTransactions
}

// abandonedAfter is how long a transaction may be without requests before it is rolled back. Other transactions need
// not wait so long for its locks: they can take them after txn.IdleLimit.
const abandonedAfter = time.Hour

// sweep rolls back transactions that have had no request for abandonedAfter. It forgets those of them that are
// partitioned, and all transactions of dropped databases.
func (ts *transactions) sweep(now time.Time) {
	ts.byKey.Range(func(_, v any) bool {
		t := v.(*transaction)
		dropped := t.session.db.Dropped()
		if dropped || t.usage.idle(now) > abandonedAfter {
			t.abandon()
		}
		if dropped || t.partitioned && t.usage.idle(now) > abandonedAfter {
			ts.remove(t)
		}
		return true
	})
}

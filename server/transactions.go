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

// transactions holds the transactions of a server. Of those that have ended it remembers the newest rememberedTransactions that have
// written nothing, for clients that did not get a reply and ask again. The outcome of the others is in the store (txn.Manager.Outcome).
type transactions struct {
	clock  func() time.Time
	budget *memory.Budget
	tokens token.Key
	start  uint32        // of the server, see database.Identity
	last   atomic.Uint64 // number given out
	byKey  sync.Map      // txn.ClientID → *transaction

	mu         sync.Mutex
	remembered []txn.ClientID // a ring of finished ones
	oldest     int
}

// rememberedTransactions is about as many as abort each other on a busy server within a second. A client that lost a reply asks again
// within that time.
const rememberedTransactions = 4 << 10

// next makes what the next transaction of a database is known by. Its time is the one that outcomes are kept by, which does not go back when the
// clock does.
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

// recall says what became of a transaction that is not in memory: it was committed; or it has ended without having written anything, because the
// server was restarted, or because its client ended it so long ago that its end is forgotten, and its client may run it again. If it is older than
// outcomes are kept, that cannot be told, and to run it again might write twice: to its client it is not there.
//
// A partitioned DML transaction goes on where it was, while what its statement has done is in the store.
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
	case txns.Outlived(key): // asked last: what was looked up may have been deleted meanwhile
		return nil, usererror.TransactionNotFound(id)
	default:
		t.outcome = usererror.TransactionLost(retryLost)
	}
	return t, nil
}

// retryLost is how long a client should wait before it runs again a transaction that a restart has ended. The server is back already.
const retryLost = time.Millisecond

// finished remembers a transaction that has ended, and forgets the one that ended first of those that are remembered.
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

// abandonedAfter is how long a transaction may be without a request before it is rolled back. Other transactions can take its locks much sooner.
const abandonedAfter = time.Hour

// sweep rolls back transactions that have had no request for abandonedAfter, and forgets those of dropped databases.
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

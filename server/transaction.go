package server

import (
	"context"
	"encoding/binary"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/server/token"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A transaction is a read-write or partitioned DML transaction that a client
// began and names by its id. Read-only transactions have no such object: their id says it all.
//
// Reads of one transaction run side by side. Statements that write, commits and
// rollbacks take turns.
//
// The server remembers thousands of transactions that have ended, so such a transaction keeps only what it answers to
// later requests.
type transaction struct {
	id          []byte
	number      uint64
	all         *transactions
	session     *session
	partitioned bool
	lastUsed    atomic.Int64 // Unix seconds

	turn  chan struct{} // holds a token while a writing request runs
	spent bool          // partitioned, and its one statement has run; the holder of the turn uses it

	mu      sync.Mutex
	open    *openTransaction          // nil if partitioned, and once it has ended
	age     txn.Age                   // for a retry, once it has been aborted
	outcome error                     // what requests are answered once it has ended
	reply   *spannerpb.CommitResponse // what another Commit is answered
}

// An openTransaction is what a read-write transaction needs until it ends. A request that began before the end may use it after the end.
type openTransaction struct {
	attempt
	tx *txn.Tx

	// The holder of the turn uses these.
	replays   replays
	mutations int64 // how many the statements so far count for in commit_stats
}

// abandonedAfter is how long a transaction may be without a request before it is rolled back. Other transactions can take its locks much sooner.
const abandonedAfter = time.Hour

// Transaction ids are opaque to clients:
//
//	read-write:  'w' | number 8
//	read-only:   'r' | read timestamp 8 | checksum 8 (of these and the session's name)
//
// Numbers begin at the server's start in microseconds, so that an id from before a restart names nothing.
const (
	readWriteID     = 'w'
	readOnlyID      = 'r'
	readWriteIDSize = 1 + 8
	readOnlyHead    = 1 + 8
)

func newReadWriteID(number uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{readWriteID}, number)
}

func readWriteNumber(id []byte) (number uint64, ok bool) {
	if len(id) != readWriteIDSize || id[0] != readWriteID {
		return 0, false
	}
	return binary.BigEndian.Uint64(id[1:]), true
}

// newReadOnlyID makes the id of a read-only transaction of a session: its
// timestamp. The server keeps nothing about it.
func newReadOnlyID(k token.Key, session string, at mvcc.Timestamp) []byte {
	id := make([]byte, 0, 64+len(session))
	id = append(id, readOnlyID)
	id = binary.BigEndian.AppendUint64(id, uint64(at))
	sealed := k.Seal(append(id, session...), 0)
	return append(id, sealed[len(sealed)-token.ChecksumSize:]...)
}

// readOnlyTimestamp is the timestamp of a read-only transaction of a session.
func readOnlyTimestamp(k token.Key, id []byte, session string) (mvcc.Timestamp, bool) {
	if len(id) != readOnlyHead+token.ChecksumSize || id[0] != readOnlyID {
		return 0, false
	}
	at := mvcc.Timestamp(binary.BigEndian.Uint64(id[1:]))
	return at, string(newReadOnlyID(k, session, at)) == string(id)
}

// begin begins a read-write or partitioned DML transaction.
func (ts *transactions) begin(ses *session, options *spannerpb.TransactionOptions, tag string) *transaction {
	number := ts.last.Add(1)
	t := &transaction{
		id:          newReadWriteID(number),
		number:      number,
		all:         ts,
		session:     ses,
		partitioned: options.GetPartitionedDml() != nil,
		turn:        make(chan struct{}, 1),
	}
	t.use(ts.clock())
	if !t.partitioned {
		t.open = new(openTransaction)
		opts := ts.options(ses, options, tag)
		t.open.begin(ses.db, &opts, ts.clock())
		t.open.tx = ses.db.Transactions().Begin(opts)
	}
	ts.add(t)
	if !ses.multiplexed && !t.partitioned {
		ses.replaceActive(t)
	}
	return t
}

// replaceActive makes t the session's one read-write transaction and ends the one before.
func (ses *session) replaceActive(t *transaction) {
	ses.mu.Lock()
	old := ses.active
	ses.active = t
	ses.mu.Unlock()
	if old != nil {
		old.abandon()
	}
}

// options translates what a client asks of a read-write transaction.
func (ts *transactions) options(ses *session, o *spannerpb.TransactionOptions, tag string) txn.Options {
	opts := txn.Options{Tag: stats.Tag(tag), Memory: ts.budget}
	if o.GetIsolationLevel() == spannerpb.TransactionOptions_REPEATABLE_READ {
		opts.Isolation = txn.RepeatableRead
	}
	switch o.GetReadWrite().GetReadLockMode() {
	case spannerpb.TransactionOptions_ReadWrite_OPTIMISTIC:
		opts.ReadLock = txn.Optimistic
	case spannerpb.TransactionOptions_ReadWrite_PESSIMISTIC:
		opts.ReadLock = txn.Pessimistic
	}
	opts.Previous = ts.previous(ses, o.GetReadWrite().GetMultiplexedSessionPreviousTransactionId())
	return opts
}

// previous is the age of the aborted attempt that a new transaction repeats. With that age the new one
// is older than the transactions that began meanwhile, and wins against them.
func (ts *transactions) previous(ses *session, id []byte) txn.Age {
	var t *transaction
	if number, ok := readWriteNumber(id); ok {
		t = ts.get(number)
	} else if !ses.multiplexed {
		ses.mu.Lock()
		t = ses.active
		ses.mu.Unlock()
	}
	if t == nil || t.session != ses {
		return txn.Age{}
	}
	t.settle()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.age
}

// find finds the read-write transaction of a session that a request names.
func (ts *transactions) find(ses *session, id []byte) (*transaction, error) {
	number, ok := readWriteNumber(id)
	if !ok {
		return nil, usererror.TransactionNotFound(id)
	}
	t := ts.get(number)
	if t == nil || t.session != ses {
		return nil, usererror.TransactionNotFound(id)
	}
	t.use(ts.clock())
	return t, nil
}

func (t *transaction) use(now time.Time) {
	if seconds := now.Unix(); t.lastUsed.Load() != seconds {
		t.lastUsed.Store(seconds)
	}
}

// current is the transaction while it is open, or else what it ended with; both are nil if it is partitioned.
func (t *transaction) current() (*openTransaction, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open, t.outcome
}

// takeTurn waits until no other writing request of the transaction runs. giveTurn must follow.
func (t *transaction) takeTurn(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	default:
	}
	defer cpu.Waiting(ctx)()
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *transaction) giveTurn() { <-t.turn }

// settle ends the transaction if its Tx was aborted or has failed.
func (t *transaction) settle() {
	open, _ := t.current()
	if open == nil {
		return
	}
	if err := open.tx.Err(); err != nil {
		t.end(err, nil)
	}
}

// end closes the transaction. It keeps only what later requests are answered: outcome, or reply to another Commit.
func (t *transaction) end(outcome error, reply *spannerpb.CommitResponse) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		return
	}
	if usererror.IsAborted(outcome) {
		t.age = t.open.tx.Age()
	}
	failure := outcome
	if reply != nil {
		failure = nil // it was committed, and outcome is for requests that come later
	}
	t.open.end(t.open.tx, t.all.clock(), failure)
	t.open, t.outcome, t.reply = nil, outcome, reply
	t.all.finished(t)
}

// LockWait implements cost.Transaction: how long the transaction has waited for locks.
func (t *openTransaction) LockWait() time.Duration { return t.tx.Stats().LockWait }

// abandon rolls the transaction back because its session was closed, began another one, or has been idle.
func (t *transaction) abandon() {
	open, _ := t.current()
	if open == nil || open.tx.Rollback() != nil { // committed meanwhile
		return
	}
	t.end(usererror.TransactionClosed(), nil)
}

// forget removes a transaction whose first request failed, so that to its client it has never begun.
func (t *transaction) forget() {
	if open, _ := t.current(); open != nil {
		open.neverBegan()
	}
	t.settle()
	t.abandon()
	t.all.byNumber.Delete(t.number)
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	if t.session.active == t {
		t.session.active = nil
	}
}

package server

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync"
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
	id      []byte       // what its client names it by
	key     txn.ClientID // what the id holds
	all     *transactions
	session *session
	usage   usage
	turn    chan struct{} // holds a token while a writing request runs

	partitioned bool
	excluded    bool                  // a partitioned one that change streams leave out, if they allow that
	statement   *partitionedStatement // of a partitioned one, once it has run; the holder of the turn uses it

	mu        sync.Mutex
	open      *openTransaction // nil if partitioned, and once it has ended
	age       txn.Age          // for a retry, once it has been aborted
	outcome   error            // what requests are answered once it has ended
	committed *txn.Outcome     // what another Commit is answered
}

// A partitionedStatement is the request that the one statement of a partitioned DML transaction came in. Sent again, it is answered again.
type partitionedStatement struct {
	fingerprint uint64
	seqno       int64
}

// An openTransaction is what a read-write transaction needs until it ends. A request that began before the end may use it after the end.
type openTransaction struct {
	attempt
	tx *txn.Tx

	// The holder of the turn uses these.
	replays   replays
	mutations int64 // how many the statements so far count for in commit_stats
}

// Transaction ids are opaque to clients:
//
//	read-write:       'w' | start 4 | number 8 | checksum 8
//	partitioned DML:  'p', or 'x' if change streams leave it out | start 4 | number 8 | checksum 8
//	read-only:        'r' | read timestamp 8 | checksum 8
//
// The checksum is of what comes before it and the session's name. It tells, also after a restart, an id that the server has given out from all
// others.
const (
	readWriteID     = 'w'
	partitionedID   = 'p'
	excludedID      = 'x'
	readOnlyID      = 'r'
	readWriteIDSize = 1 + 4 + 8 + token.ChecksumSize
	readOnlyIDSize  = 1 + 8 + token.ChecksumSize
	largestSealedID = 160 // of an id with its session's name, mostly
)

// sealID appends the checksum to an id.
func sealID(k token.Key, id []byte, session string) []byte {
	var room [largestSealedID]byte
	return binary.BigEndian.AppendUint64(id, k.Checksum(append(append(room[:0], id...), session...)))
}

// isSealed says whether an id was given out to a session.
func isSealed(k token.Key, id []byte, session string) bool {
	n := len(id) - token.ChecksumSize
	return n >= 0 && string(sealID(k, id[:n:n], session)) == string(id)
}

// newReadWriteID makes the id of a read-write or partitioned DML transaction of a session.
func newReadWriteID(k token.Key, kind byte, session string, key txn.ClientID) []byte {
	id := append(make([]byte, 0, readWriteIDSize), kind)
	id = binary.BigEndian.AppendUint32(id, key.Start)
	return sealID(k, binary.BigEndian.AppendUint64(id, key.Number), session)
}

// isPartitioned says whether an id is that of a partitioned DML transaction.
func isPartitioned(id []byte) bool { return id[0] == partitionedID || id[0] == excludedID }

// readWriteKey is what the id of a read-write or partitioned DML transaction holds. The checksum is not checked.
func readWriteKey(id []byte) (key txn.ClientID, ok bool) {
	if len(id) != readWriteIDSize || id[0] != readWriteID && !isPartitioned(id) {
		return txn.ClientID{}, false
	}
	return txn.ClientID{Start: binary.BigEndian.Uint32(id[1:]), Number: binary.BigEndian.Uint64(id[5:])}, true
}

// newReadOnlyID makes the id of a read-only transaction of a session: its
// timestamp. The server keeps nothing about it.
func newReadOnlyID(k token.Key, session string, at mvcc.Timestamp) []byte {
	id := append(make([]byte, 0, readOnlyIDSize), readOnlyID)
	return sealID(k, binary.BigEndian.AppendUint64(id, uint64(at)), session)
}

// readOnlyTimestamp is the timestamp of a read-only transaction of a session.
func readOnlyTimestamp(k token.Key, id []byte, session string) (mvcc.Timestamp, bool) {
	if len(id) != readOnlyIDSize || id[0] != readOnlyID || !isSealed(k, id, session) {
		return 0, false
	}
	return mvcc.Timestamp(binary.BigEndian.Uint64(id[1:])), true
}

// begin begins a read-write or partitioned DML transaction.
func (ts *transactions) begin(ses *session, options *spannerpb.TransactionOptions, tag string) *transaction {
	kind := byte(readWriteID)
	if options.GetPartitionedDml() != nil {
		kind = partitionedID
		if options.GetExcludeTxnFromChangeStreams() {
			kind = excludedID
		}
	}
	key := ts.next(ses.db.Transactions())
	t := ts.newTransaction(ses, newReadWriteID(ts.tokens, kind, ses.name, key), key)
	if !t.partitioned {
		t.open = new(openTransaction)
		opts := ts.options(ses, options, tag)
		opts.ID = key
		t.open.begin(ses.db, &opts, ts.clock())
		t.open.tx = ses.db.Transactions().Begin(opts)
	}
	ts.add(t)
	if !ses.stored.Multiplexed && !t.partitioned {
		ses.replaceActive(t)
	}
	return t
}

func (ts *transactions) newTransaction(ses *session, id []byte, key txn.ClientID) *transaction {
	t := &transaction{id: id, key: key, all: ts, session: ses, partitioned: isPartitioned(id), excluded: id[0] == excludedID, turn: make(chan struct{}, 1)}
	t.usage.at(ts.clock())
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
	opts := txn.Options{Tag: stats.Tag(tag), Memory: ts.budget, Excluded: o.GetExcludeTxnFromChangeStreams()}
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
	if key, ok := readWriteKey(id); ok {
		t = ts.get(key)
	} else if !ses.stored.Multiplexed {
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

// find finds the read-write or partitioned DML transaction of a session that a request names.
func (ts *transactions) find(ses *session, id []byte) (*transaction, error) {
	key, ok := readWriteKey(id)
	if !ok {
		return nil, usererror.TransactionNotFound(id)
	}
	if t := ts.get(key); t != nil && t.session == ses && bytes.Equal(t.id, id) {
		t.usage.at(ts.clock())
		return t, nil
	}
	return ts.recall(ses, id, key)
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

// end closes the transaction. It keeps only what later requests are answered: outcome, or committed to another Commit.
func (t *transaction) end(outcome error, committed *txn.Outcome) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		return
	}
	if usererror.IsAborted(outcome) {
		t.age = t.open.tx.Age()
	}
	failure := outcome
	if committed != nil {
		failure = nil // outcome is for requests that come later
	}
	tx := t.open.tx
	t.open.end(tx, t.all.clock(), failure)
	t.open, t.outcome, t.committed = nil, outcome, committed
	if committed != nil && tx.Stats().Keys > 0 {
		t.all.remove(t) // the store has the outcome
	} else {
		t.all.finished(t)
	}
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
	t.all.remove(t)
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	if t.session.active == t {
		t.session.active = nil
	}
}

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

// A transaction is a read-write or partitioned DML transaction that a client began and names by its id. Read-only transactions
// have no such object, because their id contains their timestamp.
//
// Reads of one transaction run concurrently. Statements that write, commits and rollbacks take turns.
//
// The server remembers thousands of ended transactions, so such a transaction keeps only its answer to later requests.
type transaction struct {
	id      []byte       // by which the client names it
	key     txn.ClientID // the content of the id
	all     *transactions
	session *session
	usage   usage
	sem     chan struct{} // holds a token while a writing request runs

	partitioned bool
	excluded    bool                  // change streams that allow it leave out this partitioned transaction
	statement   *partitionedStatement // of a partitioned transaction that has run it; guarded by the turn

	mu        sync.Mutex
	open      *openTransaction // nil if partitioned or ended
	age       txn.Age          // of an aborted transaction, for its retry
	outcome   error            // error for requests after the end
	committed *txn.Outcome     // reply to another Commit
}

// A partitionedStatement identifies the request with the only statement of a partitioned DML transaction. If the client resends
// the request, the statement continues and is answered again.
type partitionedStatement struct {
	fingerprint uint64
	seqno       int64
}

// An openTransaction is the state of a read-write transaction until it ends. A request that began before the end may still use it
// afterwards.
type openTransaction struct {
	attempt
	tx *txn.Tx

	// Guarded by the turn.
	replays   replays
	mutations int64 // of the statements so far, as commit_stats counts them
}

// Transaction ids are opaque to clients:
//
//	read-write:       'w' | start 4 | number 8 | checksum 8
//	partitioned DML:  'p', or 'x' if change streams leave it out | start 4 | number 8 | checksum 8
//	read-only:        'r' | read timestamp 8 | checksum 8
//
// The checksum covers the bytes before it and the session's name. With it the server recognizes the ids that it has given out,
// even after a restart.
const (
	readWriteID     = 'w'
	partitionedID   = 'p'
	excludedID      = 'x'
	readOnlyID      = 'r'
	readWriteIDSize = 1 + 4 + 8 + token.ChecksumSize
	readOnlyIDSize  = 1 + 8 + token.ChecksumSize
	largestSealedID = 160 // usual bound for an id with its session's name
)

// sealID appends the checksum to an id.
func sealID(k token.Key, id []byte, session string) []byte {
	var room [largestSealedID]byte
	return binary.BigEndian.AppendUint64(id, k.Checksum(append(append(room[:0], id...), session...)))
}

// isSealed reports whether an id was given out to a session.
func isSealed(k token.Key, id []byte, session string) bool {
	n := len(id) - token.ChecksumSize
	return n >= 0 && string(sealID(k, id[:n:n], session)) == string(id)
}

// newReadWriteID returns a new id of a read-write or partitioned DML transaction of a session.
func newReadWriteID(k token.Key, kind byte, session string, key txn.ClientID) []byte {
	id := append(make([]byte, 0, readWriteIDSize), kind)
	id = binary.BigEndian.AppendUint32(id, key.Start)
	return sealID(k, binary.BigEndian.AppendUint64(id, key.Number), session)
}

// isPartitioned reports whether an id belongs to a partitioned DML transaction.
func isPartitioned(id []byte) bool { return id[0] == partitionedID || id[0] == excludedID }

// readWriteKey returns the content of the id of a read-write or partitioned DML transaction. It does not check the checksum.
func readWriteKey(id []byte) (key txn.ClientID, ok bool) {
	if len(id) != readWriteIDSize || id[0] != readWriteID && !isPartitioned(id) {
		return txn.ClientID{}, false
	}
	return txn.ClientID{Start: binary.BigEndian.Uint32(id[1:]), Number: binary.BigEndian.Uint64(id[5:])}, true
}

// newReadOnlyID returns the id of a read-only transaction of a session: its timestamp. The server keeps no state for it.
func newReadOnlyID(k token.Key, session string, at mvcc.Timestamp) []byte {
	id := append(make([]byte, 0, readOnlyIDSize), readOnlyID)
	return sealID(k, binary.BigEndian.AppendUint64(id, uint64(at)), session)
}

// readOnlyTimestamp returns the timestamp in the id of a read-only transaction. It returns false if the id was not given out to
// the session.
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
	t := &transaction{id: id, key: key, all: ts, session: ses, partitioned: isPartitioned(id), excluded: id[0] == excludedID, sem: make(chan struct{}, 1)}
	t.usage.at(ts.clock())
	return t
}

// replaceActive makes t the session's read-write transaction and ends the previous one.
func (ses *session) replaceActive(t *transaction) {
	ses.mu.Lock()
	old := ses.active
	ses.active = t
	ses.mu.Unlock()
	if old != nil {
		old.abandon()
	}
}

// options converts the client's options of a read-write transaction.
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

// previous returns the age of the aborted attempt that a new transaction repeats. With that age the new transaction is older than
// those that began in between, and wins against them.
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

// find returns the read-write or partitioned DML transaction of a session that a request names.
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

// current returns the open transaction, or the error for requests after its end. Both are nil if it is partitioned.
func (t *transaction) current() (*openTransaction, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open, t.outcome
}

// acquire waits until no other writing request of the transaction runs. release must follow.
func (t *transaction) acquire(ctx context.Context) error {
	select {
	case t.sem <- struct{}{}:
		return nil
	default:
	}
	defer cpu.Waiting(ctx)()
	select {
	case t.sem <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *transaction) release() { <-t.sem }

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

// end closes the transaction. It keeps only the answers to later requests: committed for another Commit, outcome for all others.
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
		failure = nil // outcome is only for later requests
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

// LockWait implements cost.Transaction. It returns how long the transaction has waited for locks.
func (t *openTransaction) LockWait() time.Duration { return t.tx.Stats().LockWait }

// abandon rolls the transaction back because its session was closed or began another one, or because it has been idle.
func (t *transaction) abandon() {
	open, _ := t.current()
	if open == nil || open.tx.Rollback() != nil { // committed in the meantime
		return
	}
	t.end(usererror.TransactionClosed(), nil)
}

// forget removes a transaction whose first request failed. For its client it never began.
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

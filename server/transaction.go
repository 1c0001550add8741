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

// A transaction is a read-write or partitioned DML transaction that a client began and names by its id. Read-only
// transactions have no such object, because their id contains their timestamp.
//
// Reads of one transaction run concurrently. Statements that write, commits and rollbacks run one after another: each
// first acquires sem.
//
// Once a transaction has ended, it holds only the outcome, from which later requests are answered. It must be small,
// because the server remembers thousands of ended transactions.
type transaction struct {
	id      []byte       // the name that the client uses
	key     txn.ClientID // the key that id contains
	all     *transactions
	session *session
	usage   usage
	sem     chan struct{} // holds a token while a writing request runs

	partitioned bool
	excluded    bool                  // partitioned, and left out of change streams that allow exclusion
	statement   *partitionedStatement // the statement of a partitioned transaction, once it was run; guarded by sem

	mu        sync.Mutex
	open      *openTransaction // nil if partitioned or ended
	age       txn.Age          // age of an aborted transaction, which its retry gets
	outcome   error            // the error for requests after the end; nil before the end
	committed *txn.Outcome     // the outcome of the Commit, for a Commit that is sent again
}

// A partitionedStatement identifies the request that ran the only statement of a partitioned DML transaction. If the
// client sends that request again, the statement continues where it stopped, and the request is answered again.
type partitionedStatement struct {
	fingerprint uint64
	seqno       int64
}

// An openTransaction is the state of a read-write transaction that has not ended. A request that began before the end
// may still use this state afterwards.
type openTransaction struct {
	attempt
	tx *txn.Tx

	// Guarded by transaction.sem.
	replays   replays
	mutations int64 // mutations of the statements so far, as commit_stats counts them
}

// Kinds of transactions in ids, and sizes of ids in bytes. Transaction ids are opaque to clients and have these fields:
//
//	read-write:       'w' | start 4 | number 8 | checksum 8
//	partitioned DML:  'p', or 'x' if change streams leave it out | start 4 | number 8 | checksum 8
//	read-only:        'r' | read timestamp 8 | checksum 8
//
// The checksum covers the bytes before it and the session's name. With the checksum the server recognizes ids that it
// made for this session, even before a restart.
const (
	readWriteID     = 'w'
	partitionedID   = 'p'
	excludedID      = 'x'
	readOnlyID      = 'r'
	readWriteIDSize = 1 + 4 + 8 + token.ChecksumSize
	readOnlyIDSize  = 1 + 8 + token.ChecksumSize
	largestSealedID = 160 // bytes for an id and the name of its session; longer ones need an allocation
)

// sealID appends the checksum to an id that the session will use.
func sealID(k token.Key, id []byte, session string) []byte {
	var room [largestSealedID]byte
	return binary.BigEndian.AppendUint64(id, k.Checksum(append(append(room[:0], id...), session...)))
}

// isSealed reports whether the server made the id for the session.
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

// readWriteKey returns the key in the id of a read-write or partitioned DML transaction. ok is false if the id is
// malformed or belongs to a read-only transaction. readWriteKey does not check the checksum.
func readWriteKey(id []byte) (key txn.ClientID, ok bool) {
	if len(id) != readWriteIDSize || id[0] != readWriteID && !isPartitioned(id) {
		return txn.ClientID{}, false
	}
	return txn.ClientID{Start: binary.BigEndian.Uint32(id[1:]), Number: binary.BigEndian.Uint64(id[5:])}, true
}

// newReadOnlyID returns the id of a session's read-only transaction. The id contains the read timestamp, so the server
// keeps no state for such a transaction.
func newReadOnlyID(k token.Key, session string, at mvcc.Timestamp) []byte {
	id := append(make([]byte, 0, readOnlyIDSize), readOnlyID)
	return sealID(k, binary.BigEndian.AppendUint64(id, uint64(at)), session)
}

// readOnlyTimestamp returns the timestamp in the id of a read-only transaction. It returns false if the server did not
// make the id for the session.
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

// replaceActive makes t the session's read-write transaction and rolls the previous one back.
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

// previous returns the age of the aborted transaction that a new transaction retries, or the zero Age if it retries
// none. With that age the new transaction counts as older than all transactions that began after the aborted one. If
// one of these holds a lock that the new transaction needs, the holder is aborted.
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

// find returns the session's read-write or partitioned DML transaction with this id.
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

// current returns the state of the transaction while it is open, and after its end the error for further requests. For
// a partitioned transaction both results are nil.
func (t *transaction) current() (*openTransaction, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open, t.outcome
}

// acquire waits until no other writing request of the transaction runs. The caller must call release.
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

// settle ends the transaction if it has failed or if package txn has aborted it.
func (t *transaction) settle() {
	open, _ := t.current()
	if open == nil {
		return
	}
	if err := open.tx.Err(); err != nil {
		t.end(err, nil)
	}
}

// end closes the transaction. From then on it holds only the answers to later requests: the argument committed answers
// another Commit, and the error outcome all other requests. committed is nil if the transaction was not committed.
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
		failure = nil // the transaction succeeded; outcome is the error for later requests
	}
	tx := t.open.tx
	t.open.end(tx, t.all.clock(), failure)
	t.open, t.outcome, t.committed = nil, outcome, committed
	if committed != nil && tx.Stats().Keys > 0 {
		t.all.remove(t) // later requests get the outcome from the store
	} else {
		t.all.finished(t)
	}
}

// LockWait implements cost.Transaction. It returns how long the transaction has waited for locks.
func (t *openTransaction) LockWait() time.Duration { return t.tx.Stats().LockWait }

// abandon rolls the transaction back. It is called when the session was closed, when the session began another
// transaction, or when the transaction has been idle for too long.
func (t *transaction) abandon() {
	open, _ := t.current()
	if open == nil || open.tx.Rollback() != nil { // the transaction is partitioned or has ended
		return
	}
	t.end(usererror.TransactionClosed(), nil)
}

// forget removes a transaction whose first request failed. Its client never got its id.
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

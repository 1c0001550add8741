package txn

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tidwall/btree"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Isolation is the isolation level of a read-write transaction.
type Isolation uint8

const (
	Serializable Isolation = iota
	// RepeatableRead is snapshot isolation: all reads see the state at one timestamp. The transaction is aborted if,
	// after that timestamp, another transaction has written a key that this one writes.
	RepeatableRead
)

// ReadLock says how a transaction protects what it reads from changes by other transactions. In RepeatableRead, only
// some reads are protected: reads FOR UPDATE, reads of DML statements and mutations, and reads that a constraint
// depends on. All other reads need only be valid at the snapshot.
type ReadLock uint8

const (
	DefaultReadLock ReadLock = iota // Pessimistic if the transaction is Serializable, otherwise Optimistic
	Pessimistic                     // a read takes a lock, so no other transaction can change what was read
	Optimistic                      // a read takes no lock; Commit checks that what was read has not changed
)

// Age decides which of two conflicting transactions goes first: the older one. A retry has the age of the first
// attempt.
type Age struct {
	rank     uint64 // lower is older; 0 means not set yet
	attempts uint8
}

// Options are the options of a read-write transaction. The zero value is Spanner's default.
type Options struct {
	Isolation Isolation
	ReadLock  ReadLock
	Tag       string
	// ID names the transaction to the client. If ID is not zero, the outcome of the commit is stored: see
	// Manager.Outcome.
	ID ClientID
	// Previous is the Age of the aborted transaction that this one retries.
	Previous Age
	// Background gives the transaction the lowest priority. Another transaction that needs one of its locks aborts it.
	// A background transaction that would have to wait for a lock is aborted instead.
	Background bool
	// Excluded is exclude_txn_from_change_streams: change streams with the option allow_txn_exclusion do not record the
	// transaction.
	Excluded bool
	// System marks a transaction of the server itself. Change streams show the mark to their readers, and can be set
	// to leave out the deletes of such transactions.
	System bool
	// AnySize says that the limit on the bytes written, table.MaxCommitBytes, does not apply.
	AnySize bool
	// Waited, if it is not nil, is called after every wait of this transaction for a lock.
	Waited func(*LockWait)
	// Memory is the budget that is charged for the transaction's writes and locks; if nil, nothing is charged.
	Memory *memory.Budget
	// Owner is a value of the caller's choice, such as an id of the transaction. LockParty.Owner holds the same
	// value.
	Owner any
}

// Stats counts the cost of a transaction so far.
type Stats struct {
	LockWait time.Duration // total time spent waiting for locks
	Keys     int           // number of keys written, index entries included
	Bytes    int           // bytes written: keys, values and the records of change streams
}

// These are the states of a transaction. It ends in one of the last four.
const (
	active int32 = iota
	committing
	committed
	aborted    // a retry by the client may succeed
	failed     // a retry would meet the same error
	rolledBack // the client rolled it back
)

// Tx is a read-write transaction. It implements table.Writer.
//
// Any goroutine may call any method. A Request saves allocations: its Get reuses the buffer of its previous Get.
type Tx struct {
	m         *Manager
	opts      Options
	id        uint64
	age       Age
	snapshots bool // reads see the versions at readAt
	locksNow  bool // reads and writes lock at once; otherwise Commit takes the locks

	calls    atomic.Int32 // number of running requests
	lastUse  atomic.Int64 // when the last request ended, as Unix time in nanoseconds
	lockWait atomic.Int64 // total time spent waiting for locks, a time.Duration
	lateTag  atomic.Pointer[string]
	state    atomic.Int32 // changed under the lock table's mu

	// The lock table's mu guards the next fields, up to err. Once state says that the transaction has ended, err may be
	// read without the mutex, because finish writes err before state.
	held         []*request
	dependencies []*schema.Dependencies
	room         [4]*schema.Dependencies // the first backing array of dependencies, which saves an allocation
	readCatalog  *schema.Catalog         // the catalog at readAt, or a slightly older one
	err          error                   // why the transaction ended; requests return it

	ending sync.Mutex // held by the Commit that runs; a second Commit waits and returns the result of the first
	ts     mvcc.Timestamp
	closed atomic.Bool // Commit was called: only Commit's own Request may read and write; changed under mu

	mu     sync.Mutex // guards the fields below
	readAt mvcc.Timestamp
	writes *btree.Map[string, write]
	run    *table.Run // not nil if the transaction has written this run and nothing else; the map writes is empty then
	size   int
	reads  []*readSpan // the reads that Commit must validate
	memory footprint
	// changes are the row changes that change streams will record.
	changes changestream.Changes
}

// Begin begins a read-write transaction. It neither waits nor fails.
func (m *Manager) Begin(opts Options) *Tx {
	if opts.ReadLock == DefaultReadLock {
		opts.ReadLock = Pessimistic
		if opts.Isolation == RepeatableRead {
			opts.ReadLock = Optimistic
		}
	}
	t := &Tx{
		m:         m,
		opts:      opts,
		id:        m.ids.Add(1),
		age:       opts.Previous,
		snapshots: opts.Isolation == RepeatableRead || opts.ReadLock == Optimistic,
		locksNow:  opts.ReadLock == Pessimistic,
		writes:    new(btree.Map[string, write]),
	}
	if t.age.rank == 0 {
		t.age.rank = t.id
	}
	if opts.Background {
		t.age.rank = math.MaxUint64
	}
	if opts.Memory != nil {
		t.memory.account, t.memory.counts = *opts.Memory.Open(memory.Transaction), true
	}
	t.lastUse.Store(m.clock().UnixNano())
	return t
}

// Age returns the age that a retry of this transaction passes as Options.Previous.
func (t *Tx) Age() Age { return Age{rank: t.age.rank, attempts: min(t.age.attempts+1, maxAttempts)} }

// Options returns the options that were passed to Begin, with the default in place of DefaultReadLock.
func (t *Tx) Options() Options { return t.opts }

// Tag returns the transaction's tag.
func (t *Tx) Tag() string {
	if late := t.lateTag.Load(); late != nil {
		return *late
	}
	return t.opts.Tag
}

// SetTag sets the tag of a transaction that has none. Some clients send the tag not with BeginTransaction but with a
// later request.
func (t *Tx) SetTag(tag string) {
	if tag == "" || t.opts.Tag != "" {
		return
	}
	late := tag
	t.lateTag.CompareAndSwap(nil, &late)
}

// Stats returns the counts so far. It may be called at any time.
func (t *Tx) Stats() Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return Stats{LockWait: time.Duration(t.lockWait.Load()), Keys: t.keys(), Bytes: t.size}
}

// EachWrite calls f with every key that the transaction has written, in order. f must not retain the slice, which the
// next call overwrites.
func (t *Tx) EachWrite(f func(key []byte)) {
	if run := t.onlyRun(); run != nil {
		for i := range run.Len() {
			f(run.Key(i))
		}
		return
	}
	var room []byte
	t.copyWrites().Scan(func(key string, _ write) bool {
		room = append(room[:0], key...)
		f(room)
		return true
	})
}

// older reports whether t is older than o, by rank and then by id. In a conflict the older transaction goes first.
func (t *Tx) older(o *Tx) bool {
	if t.age.rank != o.age.rank {
		return t.age.rank < o.age.rank
	}
	return t.id < o.id
}

const (
	firstBackoff = 2 * time.Millisecond
	maxAttempts  = 6 // retries that double the delay; so backoff returns less than 128 times firstBackoff
)

// backoff returns how long the client should wait before it retries. The delay doubles with each attempt. It also
// depends on the transaction's id, so that conflicting transactions do not all retry at the same moment.
func (t *Tx) backoff() time.Duration {
	d := firstBackoff << t.age.attempts
	share := (t.id * 0x9E3779B97F4A7C15) >> 56 // 0 to 255
	return d + d*time.Duration(share)/256
}

// Err returns nil while the transaction is active or committing. Afterwards it returns the error that every further
// request returns.
func (t *Tx) Err() error {
	t.m.locks.mu.Lock()
	defer t.m.locks.mu.Unlock()
	if t.state.Load() == committing {
		return nil
	}
	return t.check()
}

// check returns an error unless the transaction is active. It takes no mutex, so it may miss a change of state that
// happens at the same time.
//
// A read calls check after it has read. If the transaction is still active then, the result is valid: either the
// transaction has locked what it read and keeps the locks until its commit has a timestamp, or its commit will validate
// the read.
func (t *Tx) check() error {
	switch t.state.Load() {
	case active:
		return nil
	case committing:
		return usererror.CommitCalled()
	}
	return t.err
}

// idle reports whether t has run no request for IdleLimit. Another transaction that waits for a lock of t may then
// abort t.
func (t *Tx) idle() bool {
	idle := t.m.clock().UnixNano() - t.lastUse.Load()
	return t.calls.Load() == 0 && idle >= int64(IdleLimit)
}

// finish ends t in the given state; later requests return err. The caller holds the lock table's mu.
func (t *Tx) finish(state int32, err error) {
	t.err = err
	t.state.Store(state)
	delete(t.m.schema.dependents, t)
	t.dependencies = nil
	t.mu.Lock()
	t.memory.end()
	t.mu.Unlock()
}

// Enter begins a request. The transaction does not count as idle until the request calls Leave. Requests may nest and
// overlap. Enter fails once Commit has been called.
func (t *Tx) Enter() error {
	if t.closed.Load() && t.state.Load() == active {
		return usererror.CommitCalled()
	}
	return t.enter()
}

func (t *Tx) enter() error {
	t.calls.Add(1)
	err := t.check()
	if err != nil {
		t.Leave()
	}
	return err
}

// Leave ends a request.
func (t *Tx) Leave() {
	t.lastUse.Store(t.m.clock().UnixNano())
	t.calls.Add(-1)
}

// Fail ends an active transaction with err, an error that a retry would meet again. Every further request returns
// err.
func (t *Tx) Fail(err error) {
	t.m.locks.mu.Lock()
	defer t.m.locks.mu.Unlock()
	if t.state.Load() == active {
		t.finish(failed, err)
		t.m.locks.release(t)
	}
}

// Rollback ends the transaction without a commit. It fails only if the transaction has committed.
func (t *Tx) Rollback() error {
	t.m.locks.mu.Lock()
	if t.state.Load() == committing {
		t.m.locks.mu.Unlock()
		t.ending.Lock()
		//lint:ignore SA2001 the commit holds this lock until it has ended
		t.ending.Unlock()
		t.m.locks.mu.Lock()
	}
	defer t.m.locks.mu.Unlock()
	switch t.state.Load() {
	case active:
		t.finish(rolledBack, usererror.TransactionRolledBack())
		t.m.locks.release(t)
	case committed:
		return usererror.TransactionCommitted()
	}
	return nil
}

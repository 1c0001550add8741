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
	// RepeatableRead is snapshot isolation: all reads see one timestamp. The transaction is aborted if another one has
	// since written a row that it writes.
	RepeatableRead
)

// ReadLock says when a transaction finds that another one has changed what it read.
type ReadLock uint8

const (
	DefaultReadLock ReadLock = iota // Pessimistic, or Optimistic in RepeatableRead
	Pessimistic                     // at once: a read locks
	Optimistic                      // at commit, which validates all reads
)

// Age decides which of two transactions in conflict goes first. A retry has the age of the attempt that it repeats.
type Age struct {
	rank     uint64 // lower is older; 0 means not set yet
	attempts uint8
}

// Options of a read-write transaction. The zero value is Spanner's default.
type Options struct {
	Isolation Isolation
	ReadLock  ReadLock
	Tag       string
	// ID names the transaction to the client. If it is not zero, the outcome of the commit is kept: see Manager.Outcome.
	ID ClientID
	// Previous is the Age of the aborted transaction that this one retries.
	Previous Age
	// Background makes the transaction give way to all others, whenever they began. A transaction that wants one of its locks
	// aborts it. It is also aborted instead of waiting for a lock.
	Background bool
	// Excluded says that change streams that allow it do not record the transaction: exclude_txn_from_change_streams.
	Excluded bool
	// System marks a transaction of the server itself. Change streams tell their readers so, and may leave out its deletes.
	System bool
	// AnySize lifts the limit on the bytes written, table.MaxCommitBytes.
	AnySize bool
	// Waited, if it is not nil, is called after every wait of this transaction for a lock.
	Waited func(*LockWait)
	// Memory is the budget charged for the transaction's writes and locks; nil counts nothing.
	Memory *memory.Budget
	// Owner identifies the transaction to the caller in a LockParty.
	Owner any
}

// Stats counts the cost of a transaction so far.
type Stats struct {
	LockWait time.Duration // spent waiting for locks
	Keys     int           // written, index entries included
	Bytes    int           // written: keys, values and the records of change streams
}

// The states of a transaction. It ends in one of the last four.
const (
	active int32 = iota
	committing
	committed
	aborted    // the client should run the transaction again
	failed     // it met an error that another run would meet too
	rolledBack // the client rolled it back
)

// Tx is a read-write transaction. It implements table.Writer.
//
// Any goroutine may call any method. Get of a Request saves the allocation that Get of the Tx makes.
type Tx struct {
	m         *Manager
	opts      Options
	id        uint64
	age       Age
	snapshots bool // reads see the versions at readAt
	locksNow  bool // reads and writes lock at once; otherwise Commit takes the locks

	calls    atomic.Int32 // running requests
	lastUse  atomic.Int64 // when the last request ended, in nanoseconds of the clock
	lockWait atomic.Int64 // time.Duration
	lateTag  atomic.Pointer[string]
	state    atomic.Int32 // changed under the lock table's mu

	// The lock table's mu guards these; err is written before state.
	held         []*request
	dependencies []*schema.Dependencies
	room         [4]*schema.Dependencies // first backing array of dependencies; saves an allocation
	readCatalog  *schema.Catalog         // as of readAt, or a little older
	err          error                   // why it ended

	ending sync.Mutex // held by the one Commit that runs; a second one returns the result of the first
	ts     mvcc.Timestamp
	closed atomic.Bool // Commit was called: only Commit's own Request may read and write; changed under mu

	mu     sync.Mutex // guards what follows
	readAt mvcc.Timestamp
	writes *btree.Map[string, write]
	run    *table.Run // all that the transaction writes, if it wrote one run and nothing else; then writes is empty
	size   int
	reads  []*readSpan // to be validated at commit
	memory footprint
	// changes are the changes of rows that change streams watch.
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

// SetTag sets the tag of a transaction that has none. Some clients send the tag only with a later request than BeginTransaction.
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

// EachWrite calls f with every key that was written, in order. f must not keep the slice.
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
	maxAttempts  = 6 // so backoff returns less than 128 times firstBackoff
)

// backoff returns how long the client should wait before it retries. The delay doubles with each attempt. It depends on the
// transaction's id, so that transactions that conflicted do not meet again when they retry.
func (t *Tx) backoff() time.Duration {
	d := firstBackoff << t.age.attempts
	share := (t.id * 0x9E3779B97F4A7C15) >> 56 // 0 to 255
	return d + d*time.Duration(share)/256
}

// Err returns nil while the transaction is active or committing. Afterwards it returns the error of every further request.
func (t *Tx) Err() error {
	t.m.locks.mu.Lock()
	defer t.m.locks.mu.Unlock()
	if t.state.Load() == committing {
		return nil
	}
	return t.check()
}

// check fails unless the transaction is active. It takes no lock, so it may miss a change that happens at the same time.
//
// A read calls check after it has read. If the transaction is still active then, the read is part of it: its locks were
// taken before the commit got its timestamp, or the commit will validate the read.
func (t *Tx) check() error {
	switch t.state.Load() {
	case active:
		return nil
	case committing:
		return usererror.CommitCalled()
	}
	return t.err
}

// idle reports whether t has run no request for IdleLimit, so that a transaction that waits for its locks may abort it.
func (t *Tx) idle() bool {
	idle := t.m.clock().UnixNano() - t.lastUse.Load()
	return t.calls.Load() == 0 && idle >= int64(IdleLimit)
}

// finish ends t. The lock table's mu is held.
func (t *Tx) finish(state int32, err error) {
	t.err = err
	t.state.Store(state)
	delete(t.m.schema.dependents, t)
	t.dependencies = nil
	t.mu.Lock()
	t.memory.end()
	t.mu.Unlock()
}

// Enter begins a request, which keeps the transaction from being idle until
// Leave. Requests may nest and overlap. It fails once Commit has been called.
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

// Fail ends an active transaction with an error that a retry would meet again. Every further request returns err.
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

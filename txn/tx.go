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

// Isolation is what a read-write transaction promises.
type Isolation uint8

const (
	Serializable Isolation = iota
	// RepeatableRead is snapshot isolation: reads see one timestamp, and the transaction is aborted if another one has
	// written the rows that it writes since then.
	RepeatableRead
)

// ReadLock says when conflicts of what was read are found.
type ReadLock uint8

const (
	DefaultReadLock ReadLock = iota // Pessimistic, or Optimistic in RepeatableRead
	Pessimistic                     // what is read is locked
	Optimistic                      // what was read is validated at commit
)

// Age decides which of two transactions in conflict goes first. A retry has the age of the attempt that it repeats.
type Age struct {
	rank     uint64 // lower is older; 0 is none yet
	attempts uint8
}

// Options of a read-write transaction. The zero value is Spanner's default.
type Options struct {
	Isolation Isolation
	ReadLock  ReadLock
	Tag       string
	// ID is what the client knows the transaction by. If it is not zero, the outcome of the commit is kept: see Manager.Outcome.
	ID ClientID
	// Previous is the Age of the aborted transaction that this one retries.
	Previous Age
	// Background makes the transaction give way to all others, whenever they began: a transaction that wants one of its locks
	// aborts it, and it is aborted where it would have to wait for a lock.
	Background bool
	// Excluded says that change streams that allow it do not record the transaction: exclude_txn_from_change_streams.
	Excluded bool
	// System says that the server writes by itself: change streams tell their readers, and may leave out what it deletes.
	System bool
	// AnySize lifts the limit on the bytes that it writes, table.MaxCommitBytes.
	AnySize bool
	// Waited, if it is not nil, is called after every wait of this transaction for a lock.
	Waited func(*LockWait)
	// Memory is charged what the transaction writes and locks; nil counts nothing.
	Memory *memory.Budget
	// Owner is what the caller knows the transaction by: LockParty.Owner.
	Owner any
}

// Stats is what a transaction cost.
type Stats struct {
	LockWait time.Duration // spent waiting for locks
	Keys     int           // written, index entries included
	Bytes    int           // of them and their values, and of the records of change streams
}

// states of a transaction. It ends in one of the last four.
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
// Any method may be called by any goroutine. A Request saves the allocation that each call of Get makes.
type Tx struct {
	m         *Manager
	opts      Options
	id        uint64
	age       Age
	snapshots bool // reads see the versions at readAt
	locksNow  bool // a statement takes the locks that it needs; otherwise Commit takes them

	calls    atomic.Int32 // requests that are running
	lastUse  atomic.Int64 // when the last one ended, in nanoseconds of the clock
	lockWait atomic.Int64 // time.Duration
	lateTag  atomic.Pointer[string]
	state    atomic.Int32 // changed under the lock table's mu

	// The lock table's mu guards these; err is written before state.
	held         []*request
	dependencies []*schema.Dependencies
	room         [4]*schema.Dependencies // of dependencies, for the common case
	readCatalog  *schema.Catalog         // as of readAt, or a little older
	err          error                   // why it ended

	ending sync.Mutex // one Commit at a time; the second learns what the first did
	ts     mvcc.Timestamp
	closed atomic.Bool // Commit was called: only its own request reads and writes; changed under mu

	mu     sync.Mutex // guards what follows
	readAt mvcc.Timestamp
	writes *btree.Map[string, write]
	run    *table.Run // all that it writes, in the place of writes; nil if that is not a run
	size   int
	reads  []*readSpan // to be validated at commit
	memory footprint
	// changes are those of rows that change streams watch.
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

// Age is what a retry of this transaction gives as Previous.
func (t *Tx) Age() Age { return Age{rank: t.age.rank, attempts: min(t.age.attempts+1, maxAttempts)} }

// Options returns what the transaction was begun with, with defaults in the place of zero values.
func (t *Tx) Options() Options { return t.opts }

// Tag is the transaction's tag.
func (t *Tx) Tag() string {
	if late := t.lateTag.Load(); late != nil {
		return *late
	}
	return t.opts.Tag
}

// SetTag gives a transaction a tag that was begun without one: some clients send it only with what follows BeginTransaction.
func (t *Tx) SetTag(tag string) {
	if tag == "" || t.opts.Tag != "" {
		return
	}
	late := tag
	t.lateTag.CompareAndSwap(nil, &late)
}

// Stats may be asked for at any time.
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

// older tells whether t goes before o.
func (t *Tx) older(o *Tx) bool {
	if t.age.rank != o.age.rank {
		return t.age.rank < o.age.rank
	}
	return t.id < o.id
}

const (
	firstBackoff = 2 * time.Millisecond
	maxAttempts  = 6 // so the longest delay is 64 firstBackoffs and its share
)

// backoff is how long the client should wait before it retries. It doubles with each attempt, and transactions that
// conflicted get different ones, so that their retries do not conflict again.
func (t *Tx) backoff() time.Duration {
	d := firstBackoff << t.age.attempts
	share := (t.id * 0x9E3779B97F4A7C15) >> 56 // 0 to 255
	return d + d*time.Duration(share)/256
}

// Err is nil while the transaction may go on, else what every further request answers.
func (t *Tx) Err() error {
	t.m.locks.mu.Lock()
	defer t.m.locks.mu.Unlock()
	if t.state.Load() == committing {
		return nil
	}
	return t.check()
}

// check fails unless the transaction is active. It takes no lock, so it may miss what is happening now.
//
// A read that finds the transaction active after it has read is part of it: what it locked was locked before the commit
// got its timestamp, or the commit will validate it.
func (t *Tx) check() error {
	switch t.state.Load() {
	case active:
		return nil
	case committing:
		return usererror.CommitCalled()
	}
	return t.err
}

// idle reports whether a transaction that waits for t may abort it, because t has run no request for so long.
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

// Fail ends the transaction with an error that is not to be retried; every further request answers it.
func (t *Tx) Fail(err error) {
	t.m.locks.mu.Lock()
	defer t.m.locks.mu.Unlock()
	if t.state.Load() == active {
		t.finish(failed, err)
		t.m.locks.release(t)
	}
}

// Rollback gives the transaction up. It fails only after a commit.
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

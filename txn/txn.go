// Package txn runs transactions: timestamps, locks, buffered writes, commits.
//
// It owns the oracle of a store, which gives out commit timestamps and says
// what is visible, and for each database a Manager with its lock table. It
// promises, for read-write transactions, serializability and external
// consistency by default (strict two-phase locking of rows and ranges,
// wound-wait), validation at commit in the optimistic mode, and snapshot
// isolation in REPEATABLE READ; for snapshots, that a read at a timestamp gives
// the same answer for ever. What anybody was shown is durable.
//
// The life of a commit: the mutations are applied to the transaction's buffer;
// what it writes is locked exclusively; what it read optimistically is locked
// and validated; the oracle gives a timestamp; the versions are written and
// synced, together with those of other commits; the oracle makes them visible in
// the order of timestamps; the locks go.
//
// It leaves out sessions, transaction ids and what rows mean: database and
// table know. Locks are kept in memory: one process leads a database.
//
// Imports of this module: kv, mvcc, table, usererror.
package txn

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/mvcc"
)

// DefaultRetention is how long versions are kept unless the database says otherwise:
// https://cloud.google.com/spanner/docs/pitr#ways-to-recover.
const DefaultRetention = time.Hour

// Config is what a Manager is told about its database.
type Config struct {
	Retention time.Duration // 0: DefaultRetention
	// Waited is told of every wait for a lock once it is over; nil if nobody wants to know.
	Waited func(*LockWait)
}

// Manager runs the transactions of one database. It may be used by many goroutines.
type Manager struct {
	versions  *mvcc.Versions
	oracle    *Oracle
	clock     func() time.Time
	retention atomic.Int64 // time.Duration
	ids       atomic.Uint64
	landed    atomic.Uint64 // commits that wrote; each counts before its locks go
	delays    delays

	waited func(*LockWait)

	schema schemaGate
	locks  lockTable
}

// NewManager returns the manager of a database.
func NewManager(versions *mvcc.Versions, oracle *Oracle, cfg Config) *Manager {
	m := &Manager{versions: versions, oracle: oracle, clock: oracle.clock, waited: cfg.Waited}
	if cfg.Retention == 0 {
		cfg.Retention = DefaultRetention
	}
	m.SetRetention(cfg.Retention)
	m.schema.turn = make(chan struct{}, 1)
	m.locks.m = m
	return m
}

// SetRetention changes how long versions are kept: version_retention_period.
func (m *Manager) SetRetention(d time.Duration) { m.retention.Store(int64(d)) }

// Retention is how long versions are kept.
func (m *Manager) Retention() time.Duration { return time.Duration(m.retention.Load()) }

// Earliest is the oldest timestamp that may be read: earliest_version_time.
func (m *Manager) Earliest() mvcc.Timestamp {
	kept := m.oracle.Now() - mvcc.Timestamp(m.Retention().Microseconds())
	return max(kept, m.versions.Horizon())
}

// Collect deletes versions that no read at or above olderThan, once Earliest, can see, and all of keys that are dead, if that is
// not nil. It stays the earliest, whatever the retention becomes meanwhile. Calls must not overlap.
func (m *Manager) Collect(ctx context.Context, olderThan mvcc.Timestamp, dead func(key []byte) bool) (mvcc.Collected, error) {
	return m.versions.Collect(ctx, olderThan, dead)
}

// schemaGate keeps transactions and schema changes apart. Its fields but turn and epoch are guarded by the lock table's mu.
type schemaGate struct {
	turn       chan struct{} // holds one token while a change runs: one at a time
	epoch      atomic.Uint64 // odd while a change runs; a transaction belongs to the epoch it began in
	open       chan struct{} // closed when the running change ends
	committing int           // commits past their point of no return
	drained    chan struct{} // closed when committing falls to 0
}

// ChangeSchema runs fn as the only thing in the database that writes. No
// transaction straddles it: those that are committing are waited for, others are
// aborted, and new ones wait for its end. What fn writes at ts becomes visible
// when it returns nil. If it fails it must have written nothing.
//
// Commits of the whole store become visible only after fn: long work, such as
// back-filling, belongs before it, into transactions.
func (m *Manager) ChangeSchema(ctx context.Context, fn func(ts mvcc.Timestamp) error) error {
	select {
	case m.schema.turn <- struct{}{}:
		defer func() { <-m.schema.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	m.closeGate()
	defer m.openGate()
	if err := m.drain(ctx); err != nil {
		return err
	}
	f, err := m.oracle.takeReserved()
	if err != nil {
		return err
	}
	landed := false
	defer func() {
		if !landed { // fn panicked: it must not hold up every commit of the store
			_ = m.oracle.abandon(f)
		}
	}()
	err = fn(f.ts)
	landed = true
	return errors.Join(err, m.oracle.land(f, nil))
}

// closeGate begins an epoch of change: transactions of earlier ones are doomed, those that wait for a lock learn it now.
func (m *Manager) closeGate() {
	m.locks.mu.Lock()
	defer m.locks.mu.Unlock()
	m.schema.epoch.Add(1)
	m.schema.open = make(chan struct{})
	for len(m.locks.waiting) > 0 {
		t := m.locks.waiting[0].tx
		m.locks.abort(t, AbortSchemaChange)
	}
}

func (m *Manager) openGate() {
	m.locks.mu.Lock()
	defer m.locks.mu.Unlock()
	m.schema.epoch.Add(1)
	close(m.schema.open)
	m.schema.open = nil
}

// drain waits for commits past their point of no return.
func (m *Manager) drain(ctx context.Context) error {
	for {
		m.locks.mu.Lock()
		if m.schema.committing == 0 {
			m.locks.mu.Unlock()
			return nil
		}
		m.schema.drained = make(chan struct{})
		drained := m.schema.drained
		m.locks.mu.Unlock()
		select {
		case <-drained:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// awaitGate waits until no schema change runs.
func (m *Manager) awaitGate(ctx context.Context) error {
	m.locks.mu.Lock()
	open := m.schema.open
	m.locks.mu.Unlock()
	if open == nil {
		return nil
	}
	select {
	case <-open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

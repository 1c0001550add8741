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
// A schema change aborts the open transactions that depend on what it alters
// (DependOn, ChangeSchema), and no others.
//
// It leaves out sessions, transaction ids and what rows mean: database and
// table know. Locks are kept in memory: one process leads a database.
//
// Imports of this module: kv, mvcc, schema, stats/cpu, table, usererror.
package txn

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
)

// DefaultRetention is how long versions are kept unless the database says otherwise:
// https://cloud.google.com/spanner/docs/pitr#ways-to-recover.
const DefaultRetention = time.Hour

// Config is what a Manager is told about its database.
type Config struct {
	Retention time.Duration   // 0: DefaultRetention
	Catalog   *schema.Catalog // the newest one; see ChangeSchema
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
	m.schema.dependents = map[*Tx]struct{}{}
	m.schema.catalog.Store(cfg.Catalog)
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

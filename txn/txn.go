// Package txn runs transactions: timestamps, locks, buffered writes, commits.
//
// It owns the oracle of a store, which gives out commit timestamps and says
// what is visible, and for each database a Manager with its lock table. It
// promises, for read-write transactions, serializability and external
// consistency by default (strict two-phase locking of rows and ranges,
// wound-wait), validation at commit in the optimistic mode, and snapshot
// isolation in REPEATABLE READ; for snapshots, that a read at a timestamp gives
// the same answer for ever. A value is durable before a client is shown it.
//
// A commit takes these steps. It applies the mutations to the transaction's
// buffer, locks the written keys exclusively, and locks and validates the keys
// that were read optimistically. The oracle gives it a timestamp. It writes and
// syncs the versions, together with those of other commits. The oracle makes the
// commits visible in the order of their timestamps. Then it releases the locks.
//
// A schema change aborts the open transactions that depend on a schema object it
// alters (DependOn, ChangeSchema), and no others.
//
// It leaves out sessions and transaction ids (package server) and what rows
// mean (packages database and table). Locks are kept in memory: one process
// leads a database.
//
// Mutexes are locked in this order; a goroutine that holds one locks only those
// that stand below it:
//
//	Tx.ending           for all of a Commit, with the function that applies its mutations
//	schemaGate.sem      for all of a ChangeSchema, with the function that it runs
//	lockTable.mu        for moments
//	Tx.mu               for moments
//	Oracle.reserving    while a reservation is written
//	Oracle.mu           for moments, and for all of Oracle.Close
//	delays.mu           for moments
//
// The last three are never locked under lockTable.mu or Tx.mu. While a goroutine
// holds a mutex "for moments", it waits for nothing, does not use the store and
// calls none of the caller's functions (Waited, the argument of EachWrite) except
// the clock. So the packages above may hold mutexes of their own when they call
// txn: server locks the turn of a transaction, then its mu, then the mutexes of
// its attempt and of statistics. Package database/schemachange takes the token of
// a schema change before it calls ChangeSchema.
//
// Imports of this module: changestream, kv, memory, mvcc, schema, stats/cpu, table, usererror.
package txn

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
)

// DefaultRetention is how long versions are kept unless the database says otherwise:
// https://cloud.google.com/spanner/docs/pitr#ways-to-recover.
const DefaultRetention = time.Hour

// Config describes a database to its Manager.
type Config struct {
	Retention time.Duration   // 0: DefaultRetention
	Catalog   *schema.Catalog // the newest catalog; ChangeSchema replaces it
	// Waited, if it is not nil, is called after every wait for a lock.
	Waited func(*LockWait)
	// Streams are the change streams of the database; nil records nothing.
	Streams *changestream.Log
}

// Manager runs the transactions of one database. It may be used by many goroutines.
type Manager struct {
	versions      *mvcc.Versions
	oracle        *Oracle
	clock         func() time.Time
	retention     atomic.Int64 // time.Duration
	ids           atomic.Uint64
	recentCommits recentCommits
	delays        delays
	streams       *changestream.Log

	waited func(*LockWait)

	schema schemaGate
	locks  lockTable
}

// NewManager returns the manager of a database.
func NewManager(versions *mvcc.Versions, oracle *Oracle, cfg Config) *Manager {
	m := &Manager{versions: versions, oracle: oracle, clock: oracle.clock, waited: cfg.Waited, streams: cfg.Streams}
	if cfg.Retention == 0 {
		cfg.Retention = DefaultRetention
	}
	m.SetRetention(cfg.Retention)
	m.schema.sem = make(chan struct{}, 1)
	m.schema.dependents = map[*Tx]struct{}{}
	m.schema.catalog.Store(cfg.Catalog)
	m.locks.m = m
	return m
}

// SetRetention changes how long versions are kept: version_retention_period.
func (m *Manager) SetRetention(d time.Duration) { m.retention.Store(int64(d)) }

// Retention returns how long versions are kept.
func (m *Manager) Retention() time.Duration { return time.Duration(m.retention.Load()) }

// Commits counts the commits that had something to write since the Manager was made.
func (m *Manager) Commits() uint64 { return m.recentCommits.count.Load() }

// Now returns the clock's time, or the newest timestamp that reads see if the clock has gone back behind it.
func (m *Manager) Now() mvcc.Timestamp { return m.oracle.Now() }

// Earliest returns the oldest timestamp that may be read: earliest_version_time.
func (m *Manager) Earliest() mvcc.Timestamp {
	kept := m.oracle.Now() - mvcc.Timestamp(m.Retention().Microseconds())
	return max(kept, m.versions.Horizon())
}

// Collect deletes the versions that no read at or above olderThan can see. If dead is not nil, Collect also deletes all versions of
// the keys for which dead returns true. olderThan is a result of Earliest. Later reads below it fail, even if the retention period has
// been made longer meanwhile. Calls must not overlap.
func (m *Manager) Collect(ctx context.Context, olderThan mvcc.Timestamp, dead func(key []byte) bool) (mvcc.Collected, error) {
	return m.versions.Collect(ctx, olderThan, dead)
}

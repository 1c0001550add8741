// Package txn runs transactions: timestamps, locks, buffered writes, commits.
//
// It has one Oracle for each store, which gives out commit timestamps and says which commits reads see. It has one
// Manager for each database, with a lock table. Read-write transactions are serializable and externally consistent by
// default (strict two-phase locking of rows and ranges, wound-wait). In the optimistic mode, Commit validates the
// reads. In REPEATABLE READ, transactions have snapshot isolation. A read of a snapshot always gives the same answer at
// the same timestamp. A client is shown a value only after the value is durable.
//
// A commit takes these steps. The transaction applies the mutations to its buffer, locks the written keys exclusively,
// and locks and validates the keys that it has read optimistically. The oracle gives the commit a timestamp. The
// transaction writes and syncs its versions, together with those of other commits. The oracle makes the commits visible
// in the order of their timestamps. Then the transaction releases its locks.
//
// A schema change aborts the open transactions that depend on a schema object that it alters (DependOn, ChangeSchema),
// and no others.
//
// Package server has the sessions and the transaction ids of clients. Packages table and database give keys and values
// their meaning as rows. Locks exist only in memory, so only one process may serve a database.
//
// Mutexes are locked in the order of this table. A goroutine that holds one of them may lock only those that stand
// below it:
//
//	Tx.ending           for all of a Commit, including the function that applies its mutations
//	schemaGate.sem      for all of a ChangeSchema, including the function that it runs
//	lockTable.mu        for moments
//	Tx.mu               for moments
//	Oracle.reserving    while a bound is written
//	Oracle.mu           for moments, and while Oracle.Close writes the bound
//	delays.mu           for moments
//	recentCommits.mu    for moments
//
// One rule is stricter than the table: a goroutine that holds lockTable.mu or Tx.mu must not lock the last four. While
// a goroutine holds a mutex "for moments", it waits for nothing, does not use the store, and calls no function of its
// caller (Waited, the argument of EachWrite) except the clock. So the packages above txn may hold mutexes of their own
// when they call txn. Package server takes the token of a transaction (one writing request holds it at a time), then
// the transaction's mu, then the mutexes of its attempt and of statistics. Package database/schemachange takes the
// token of a schema change before it calls ChangeSchema.
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

// DefaultRetention is how long old versions are stored, unless the database sets another period:
// https://cloud.google.com/spanner/docs/pitr#ways-to-recover.
const DefaultRetention = time.Hour

// Config describes a database to its Manager.
type Config struct {
	Retention time.Duration   // how long versions are stored; 0 means DefaultRetention
	Catalog   *schema.Catalog // the newest catalog; ChangeSchema replaces it
	// Waited, if it is not nil, is called after every wait for a lock.
	Waited func(*LockWait)
	// Streams are the change streams of the database; if nil, no changes are recorded.
	Streams *changestream.Log
}

// Manager runs the transactions of one database. It may be used by many goroutines.
type Manager struct {
	versions      *mvcc.Versions
	oracle        *Oracle
	clock         func() time.Time
	retention     atomic.Int64 // how long old versions are stored, a time.Duration
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

// SetRetention sets how long old versions are stored: version_retention_period.
func (m *Manager) SetRetention(d time.Duration) { m.retention.Store(int64(d)) }

// Retention returns how long old versions are stored.
func (m *Manager) Retention() time.Duration { return time.Duration(m.retention.Load()) }

// Commits returns the number of commits with writes since the Manager was made. A commit that failed in the store
// counts, too.
func (m *Manager) Commits() uint64 { return m.recentCommits.count.Load() }

// Now returns the clock's time, or the watermark if the clock is behind it, for example because the clock was set back.
func (m *Manager) Now() mvcc.Timestamp { return m.oracle.Now() }

// Earliest returns the oldest timestamp that may be read: earliest_version_time.
func (m *Manager) Earliest() mvcc.Timestamp {
	kept := m.oracle.Now() - mvcc.Timestamp(m.Retention().Microseconds())
	return max(kept, m.versions.Horizon())
}

// Collect deletes the versions that no read at or above olderThan can see. olderThan is a result of Earliest. If dead
// is not nil, Collect also deletes all versions of the keys for which dead returns true. Later reads below olderThan
// fail, even if the retention period has been made longer meanwhile. The caller must not run two calls at once.
func (m *Manager) Collect(ctx context.Context, olderThan mvcc.Timestamp, dead func(key []byte) bool) (mvcc.Collected, error) {
	return m.versions.Collect(ctx, olderThan, dead)
}

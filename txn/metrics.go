package txn

import (
	"time"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Metrics count what the lock table of a Manager has done since the Manager was made, and what it holds now.
type Metrics struct {
	Locks        int           // locks that are granted now, on points and ranges
	Waiting      int           // requests for a lock that are waiting now
	LockWaits    int64         // finished waits of requests for a lock
	LockWaitTime time.Duration // sum of the waits counted in LockWaits
	Aborts       [AbortReasons]int64
}

// AbortReason says why a transaction was aborted. The client must run an aborted transaction again.
type AbortReason uint8

const (
	AbortWounded      AbortReason = iota // an older transaction wanted a lock that the aborted one held or waited for
	AbortGaveWay                         // a background transaction would have had to wait for a lock
	AbortConflict                        // another transaction changed a key that the aborted one read or writes
	AbortIdle                            // the transaction was idle, and another one wanted a lock that it held
	AbortSchemaChange                    // a schema change altered a schema object that the transaction read or wrote
	AbortExpired                         // the versions at the transaction's read timestamp may already be deleted
	// AbortReasons is the number of reasons.
	AbortReasons
)

var abortReasonNames = [AbortReasons]string{"wounded", "gave way", "conflict", "idle", "schema change", "expired"}

func (r AbortReason) String() string { return abortReasonNames[r] }

// error returns the error that every request of a transaction returns after it was aborted for reason r. backoff is
// how long the client should wait before it retries.
func (r AbortReason) error(backoff time.Duration) error {
	switch r {
	case AbortConflict:
		return usererror.Conflict(backoff)
	case AbortIdle:
		return usererror.IdleTransaction(IdleLimit, backoff)
	case AbortSchemaChange:
		return usererror.SchemaChanged(backoff)
	case AbortExpired:
		return usererror.SnapshotExpired(backoff)
	}
	return usererror.Wounded(backoff)
}

// Metrics returns the metrics. All counts are of the same moment.
func (m *Manager) Metrics() Metrics {
	m.locks.mu.Lock()
	defer m.locks.mu.Unlock()
	counts := m.locks.counts
	counts.Waiting = len(m.locks.waiting)
	counts.Locks -= counts.Waiting
	return counts
}

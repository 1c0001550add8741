package server

import (
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/live"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// An attempt collects the statistics of one execution of a read-write transaction. A client that gets ABORTED runs the
// transaction again, which is another attempt.
type attempt struct {
	db       *database.Database
	began    time.Time
	timeline *live.TimelineRecorder

	mu         sync.Mutex // guards the fields below: reads of the transaction can overlap each other and the commit
	footprint  stats.Footprint
	committing time.Time // when Commit was received; zero before Commit
	unknown    bool      // the first request failed, so the client never got the transaction's id
}

// begin starts the attempt. It sets the options through which the transaction reports its waits for locks.
func (a *attempt) begin(db *database.Database, opts *txn.Options, now time.Time) {
	a.db, a.began = db, now
	opts.Owner = a
	if a.timeline = db.Live().StartTimeline(opts.Tag, now); a.timeline != nil {
		opts.Waited = a.waited
	}
}

// commit records the time at which Commit was received.
func (a *attempt) commit(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.committing = now
}

// neverBegan records that the request which began the transaction failed, so that the client never got the
// transaction's id.
func (a *attempt) neverBegan() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.unknown = true
}

// waited adds a wait for a lock to the timeline of the attempt, which /debug/transactions shows.
func (a *attempt) waited(w *txn.LockWait) {
	a.timeline.Add(w.Began, live.Event{Kind: live.EventLock, What: a.db.LockText(w), Duration: w.Waited})
}

// LockColumns implements database.LockOwner.
func (a *attempt) LockColumns(target string, written bool) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.footprint.Columns(target, written)
}

// Timeline implements cost.Transaction.
func (a *attempt) Timeline() *live.TimelineRecorder { return a.timeline }

// Touch implements cost.Transaction. It adds x, an access to a table or an index, to the attempt's footprint, which
// lists what the attempt has read and written.
func (a *attempt) Touch(x *stats.Access) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.footprint.Add(x)
}

// wrote adds to the attempt's footprint the rows and bytes that the attempt wrote.
func (a *attempt) wrote(list []table.Written) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, w := range list {
		a.footprint.Wrote(w.Table.FullName(), w.Rows, w.Bytes)
	}
}

// end adds the attempt to the statistics of transactions. outcome is the error of the attempt, or nil if it was
// committed.
func (a *attempt) end(tx *txn.Tx, now time.Time, outcome error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	opts := tx.Options()
	x := stats.Transaction{
		Footprint:    &a.footprint,
		Tag:          tx.Tag(),
		Outcome:      a.outcome(outcome),
		Isolation:    isolationOf(opts),
		Retry:        opts.Previous != txn.Age{},
		End:          now,
		TotalLatency: now.Sub(a.began),
		Participants: a.db.Splits().Participants(tx, now),
		Bytes:        int64(tx.Stats().Bytes),
	}
	if !a.committing.IsZero() {
		x.CommitLatency = now.Sub(a.committing)
	}
	if !a.unknown || x.Outcome == stats.AbortedEarly {
		a.db.Stats().Transaction(&x)
	}
	a.finishTimeline(now, x, outcome)
}

func (a *attempt) finishTimeline(now time.Time, x stats.Transaction, outcome error) {
	if a.timeline == nil {
		return
	}
	text := "OK"
	if outcome != nil {
		text = status.Code(outcome).String()
	}
	if !a.committing.IsZero() {
		ev := live.Event{Kind: live.EventCommit, Duration: x.CommitLatency}
		if outcome != nil {
			ev.Error = outcome.Error()
		}
		a.timeline.Add(a.committing, ev)
	}
	a.timeline.Finish(now, text)
}

// outcome returns how the attempt ended. err is the error with which it failed, or nil if it succeeded. A commit can
// fail because of the rows: a key exists, a row does not exist, or a constraint is broken. The statistics then count a
// failed precondition, even if the client gets a more precise code.
func (a *attempt) outcome(err error) stats.TxnOutcome {
	code := status.Code(err)
	if a.committing.IsZero() {
		if code == codes.Aborted {
			return stats.AbortedEarly
		}
		return stats.Abandoned
	}
	switch code {
	case codes.OK:
		return stats.Committed
	case codes.Aborted:
		return stats.Aborted
	case codes.FailedPrecondition, codes.AlreadyExists, codes.NotFound, codes.OutOfRange:
		return stats.FailedPrecondition
	}
	return stats.CommitFailed
}

func isolationOf(o txn.Options) stats.TxnIsolation {
	switch {
	case o.Isolation == txn.RepeatableRead:
		return stats.RepeatableReadOptimistic
	case o.ReadLock == txn.Optimistic:
		return stats.SerializableOptimistic
	}
	return stats.SerializablePessimistic
}

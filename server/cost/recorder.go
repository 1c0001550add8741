package cost

import (
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/stats/live"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A Recorder records the cost of one request. It is a field of the request's Call and allocates nothing itself.
//
// Call Prepare and Begin first. Methods named Start say of which kind the request is, once that is known. Methods named
// Add and Set record the work of the request. End closes the record.
type Recorder struct {
	CPU    cpu.Meter
	Splits split.Tracker // splits that the request accesses; tracked only after TrackSplits or AddCommit
	Wire   Wire
	Began  time.Time

	clock func() time.Time
	db    *database.Database // database of the request; nil until it is known
	locks lockWait
	write written

	kind         kind
	changeStream bool // the statement is a query of a change stream
	query        stats.Query
	read         stats.Read
	profile      func() string // returns the plan with its statistics; nil if the profile is not stored
}

// Wire counts the traffic between client and server.
type Wire struct {
	Received, Sent int64 // bytes that the server has received and sent
	Messages       int64 // messages that the server has sent
	ClientWait     time.Duration
}

// A Transaction is the read-write transaction that a request may be part of.
type Transaction interface {
	LockWait() time.Duration // how long all requests of the transaction have waited for locks so far
	Touch(*stats.Access)
	Timeline() *live.TimelineRecorder // nil if the transaction has no tag
}

// lockWait counts the request's waits for locks.
type lockWait struct {
	transaction Transaction   // nil unless the request is part of a read-write transaction
	before      time.Duration // how long the transaction had waited when this request came
	committing  time.Duration // how long the commit waited, if the request is a Commit or BatchWrite
}

// written counts the writes of the request's commits.
type written struct {
	mutations int64 // rows that mutations write or delete; a deleted key range counts as one
	commits   int64 // commits that wrote something
}

// kind says to which statistics a request is added.
type kind uint8

const (
	notRecorded kind = iota
	recordedQuery
	recordedRead
)

// Prepare sets the clock and the account of CPU time. Call it first, before the request is received.
func (r *Recorder) Prepare(clock func() time.Time, account *cpu.Account) {
	r.clock, r.CPU.Account = clock, account
}

// Begin starts to measure the latency and the CPU time of the request.
func (r *Recorder) Begin() {
	r.Began = r.clock()
	r.CPU.Start()
}

// Elapsed returns the time since Begin.
func (r *Recorder) Elapsed() time.Duration { return r.clock().Sub(r.Began) }

// RunIn sets the database of the request and, unless t is nil, its read-write transaction.
func (r *Recorder) RunIn(db *database.Database, t Transaction) {
	r.db, r.locks.transaction = db, t
	if t != nil {
		r.locks.before = t.LockWait()
	}
}

// LockWait returns how long the request has waited for locks. In a transaction, this includes the waits of requests
// that ran at the same time.
func (r *Recorder) LockWait() time.Duration {
	if r.locks.transaction == nil {
		return r.locks.committing
	}
	return r.locks.transaction.LockWait() - r.locks.before
}

// WaitForClient calls the function in its argument, which may wait for the client. It pauses the CPU meter meanwhile
// and measures the wait. It does neither before the second message of the reply: the first message always fits into the
// client's window.
func (r *Recorder) WaitForClient(send func() error) error {
	if r.Wire.Messages <= 1 {
		return send()
	}
	r.CPU.Pause()
	began := r.clock()
	err := send()
	r.Wire.ClientWait += r.clock().Sub(began)
	r.CPU.Resume()
	return err
}

// touch adds an access to those that statistics record for the request's transaction. It does nothing if the request
// has no transaction.
func (r *Recorder) touch(a *stats.Access) {
	if r.locks.transaction != nil {
		r.locks.transaction.Touch(a)
	}
}

// An Ending describes how a request ended.
type Ending struct {
	Err      error     // error of the reply
	Failure  error     // error of a part of the request; the reply is OK nevertheless
	Deadline time.Time // deadline that the client set; zero for none
}

// A Cost is the cost of a request.
type Cost struct {
	Latency, LockWait time.Duration
	CPU               time.Duration // CPU time measured for the request itself
	SharedCPU         time.Duration // the request's share of unmeasured CPU time; see cpu.Meter.Shared
	RemoteCalls       int64         // calls that Cloud Spanner would have sent to the servers of further splits
	ChangeStream      bool          // the request is a query of a change stream, which mostly waits for writes
}

// End closes the record and adds it to the statistics of the database. If Begin was not called, because the request
// could not be received, the latency is zero.
func (r *Recorder) End(e Ending) Cost {
	if r.Began.IsZero() {
		r.Began = r.clock()
	}
	used := r.CPU.Stop(r.load())
	now := r.clock()
	total := Cost{Latency: now.Sub(r.Began), CPU: used, SharedCPU: r.CPU.Shared(), LockWait: r.LockWait(), RemoteCalls: r.Splits.RemoteCalls(), ChangeStream: r.changeStream}
	switch r.kind {
	case recordedQuery:
		r.endQuery(now, total, e)
	case recordedRead:
		r.endRead(now, total, e)
	}
	if r.Splits.Sampled() {
		r.db.Splits().Charge(&r.Splits, used, now)
	}
	return total
}

// load returns how much work the request did. From that the account computes the request's share of the CPU time that
// is not measured for single requests.
func (r *Recorder) load() cpu.Load {
	return cpu.Load{
		Messages: 1 + r.Wire.Messages,
		Bytes:    r.Wire.Received + r.Wire.Sent,
		Commits:  r.write.commits,
		Rows:     r.query.RowsScanned + r.query.RowsWritten + r.query.Rows + r.read.Rows + r.write.mutations,
	}
}

// outcome returns the outcome that statistics count for a request. Its arguments are the error of the request, the time
// at which the request ended, and how long it took.
func (e Ending) outcome(err error, now time.Time, took time.Duration) stats.Outcome {
	switch status.Code(err) {
	case codes.OK:
		return stats.Succeeded
	case codes.Canceled:
		if e.timedOut(now, took) {
			return stats.TimedOut
		}
		return stats.Cancelled
	case codes.DeadlineExceeded:
		return stats.TimedOut
	}
	return stats.Failed
}

// timedOut reports whether a cancelled request was cancelled by the client's deadline. The client starts to measure a
// little earlier than the server, so its cancellation can arrive before the server sees the deadline pass. Therefore
// timedOut also returns true if less than a tenth of the time between the request's start and its deadline is left.
func (e Ending) timedOut(now time.Time, took time.Duration) bool {
	if e.Deadline.IsZero() {
		return false
	}
	left := e.Deadline.Sub(now)
	return left < (took+left)/10
}

// addToTimeline adds the request to the timeline of its transaction, if there is one.
func (r *Recorder) addToTimeline(kind live.EventKind, what string, total Cost, rows int64, err error) {
	if r.locks.transaction == nil {
		return
	}
	timeline := r.locks.transaction.Timeline()
	if timeline == nil {
		return
	}
	ev := live.Event{Kind: kind, What: what, Duration: total.Latency, LockWait: total.LockWait, Rows: rows}
	if err != nil {
		ev.Error = usererror.Text(err)
	}
	timeline.Add(r.Began, ev)
}

// Attributes returns the log attributes for the request's statement or read. Other requests have no such attributes.
func (r *Recorder) Attributes() []slog.Attr {
	switch r.kind {
	case recordedQuery:
		return []slog.Attr{slog.Int64("text_fingerprint", r.query.Text.Fingerprint), slog.Int64("rows", r.query.Rows+r.query.RowsWritten)}
	case recordedRead:
		return []slog.Attr{slog.String("table", r.read.Access.Target()), slog.Int64("rows", r.read.Rows)}
	}
	return nil
}

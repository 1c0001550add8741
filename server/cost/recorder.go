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
)

// A Recorder records the cost of one request. It is a part of the request's Call and allocates nothing itself.
//
// Prepare and Begin start the record. Methods named Start set the kind of the record, as soon as it is known. Methods named Add
// and Set record the work of the request. End closes the record.
type Recorder struct {
	CPU    cpu.Meter
	Splits split.Tracker // splits that the request accesses, if TrackSplits has turned tracking on
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
	profile      func() string // returns the plan with its statistics; nil unless the profile is to be kept
}

// Wire counts the traffic between client and server.
type Wire struct {
	Received, Sent int64 // bytes
	Messages       int64 // sent
	ClientWait     time.Duration
}

// A Transaction is the read-write transaction that a request may be part of.
type Transaction interface {
	LockWait() time.Duration // of all its requests, so far
	Touch(*stats.Access)
	Timeline() *live.TimelineRecorder // nil without a tag
}

// lockWait counts the request's waits for locks.
type lockWait struct {
	transaction Transaction   // nil unless the request is part of a read-write transaction
	before      time.Duration // wait of the transaction when the request came
	committing  time.Duration // wait of the commit, if the request is a Commit or BatchWrite
}

// written counts the writes of the request's commits.
type written struct {
	mutations int64 // rows in mutations
	commits   int64 // commits that wrote something
}

// kind chooses the statistics in which a request is recorded.
type kind uint8

const (
	notRecorded kind = iota
	recordedQuery
	recordedRead
)

// Prepare must be called first, before the request is received.
func (r *Recorder) Prepare(clock func() time.Time, account *cpu.Account) {
	r.clock, r.CPU.Account = clock, account
}

// Begin starts the request's latency and its CPU meter.
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

// LockWait returns how long the request has waited for locks. It includes waits of concurrent requests of the same transaction.
func (r *Recorder) LockWait() time.Duration {
	if r.locks.transaction == nil {
		return r.locks.committing
	}
	return r.locks.transaction.LockWait() - r.locks.before
}

// WaitForClient calls send, which may wait until the client reads. The CPU meter pauses meanwhile. The first message of a reply
// always fits into the client's window, so it is sent without a pause.
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

// touch adds an access of the request to the transaction.
func (r *Recorder) touch(a *stats.Access) {
	if r.locks.transaction != nil {
		r.locks.transaction.Touch(a)
	}
}

// An Ending describes how a request ended.
type Ending struct {
	Err      error     // error of the reply
	Failure  error     // error of a part of the request, although the reply is OK
	Deadline time.Time // set by the client; zero for none
}

// A Cost is the cost of a request.
type Cost struct {
	Latency, LockWait time.Duration
	CPU               time.Duration // the request's own, measured
	SharedCPU         time.Duration // its share of unmeasured CPU time; see cpu.Meter.Shared
	RemoteCalls       int64         // calls that Cloud Spanner would have sent to the servers of further splits
	ChangeStream      bool          // a query of a change stream, whose latency is mostly waiting for writes
}

// End closes the record and adds it to the statistics of the database. If the request could not be received, Begin was never
// called, and the request took no time.
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

// load returns the work that determines the request's share of the unmeasured CPU time.
func (r *Recorder) load() cpu.Load {
	return cpu.Load{
		Messages: 1 + r.Wire.Messages,
		Bytes:    r.Wire.Received + r.Wire.Sent,
		Commits:  r.write.commits,
		Rows:     r.query.RowsScanned + r.query.RowsWritten + r.query.Rows + r.read.Rows + r.write.mutations,
	}
}

// outcome returns the outcome that statistics count for a request that ended with err now, after took.
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

// timedOut reports whether the client's deadline has passed, or will pass within a tenth of the request's time. The client's
// clock started a little before the server's, so its cancellation may arrive a little before the deadline.
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
		ev.Error = err.Error()
	}
	timeline.Add(r.Began, ev)
}

// Attributes returns log attributes of the statement or the read. Other requests have none.
func (r *Recorder) Attributes() []slog.Attr {
	switch r.kind {
	case recordedQuery:
		return []slog.Attr{slog.Int64("text_fingerprint", r.query.Text.Fingerprint), slog.Int64("rows", r.query.Rows+r.query.RowsWritten)}
	case recordedRead:
		return []slog.Attr{slog.String("table", r.read.Access.Target()), slog.Int64("rows", r.read.Rows)}
	}
	return nil
}

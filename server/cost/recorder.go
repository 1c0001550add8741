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

// A Recorder records what one request costs. It is a part of the request's Call and allocates nothing itself.
//
// Prepare and Begin open it. The methods named Start say as what the request is recorded, once that is known; those named Add and Set say
// what the request did; End closes the record.
type Recorder struct {
	CPU    cpu.Meter
	Splits split.Tracker // the splits that it goes to, if TrackSplits has them tracked
	Wire   Wire
	Began  time.Time

	clock func() time.Time
	db    *database.Database // that it runs in; nil until that is known
	locks lockWait
	write written

	kind         kind
	changeStream bool // the statement is a query of one
	query        stats.Query
	read         stats.Read
	profile      func() string // the plan with what it cost, if it is to be kept
}

// Wire is what goes between client and server.
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

// lockWait is how long the request waits for locks.
type lockWait struct {
	transaction Transaction   // nil unless the request is part of a read-write transaction
	before      time.Duration // what the transaction had waited when the request came
	committing  time.Duration // what a commit has waited, if the request is a Commit or BatchWrite
}

// written is what the request's commits write.
type written struct {
	mutations int64 // rows that mutations name
	commits   int64 // that wrote something
}

// kind says in which statistics of its database a request is recorded.
type kind uint8

const (
	notRecorded kind = iota
	recordedQuery
	recordedRead
)

// Prepare is called first, before the request has come.
func (r *Recorder) Prepare(clock func() time.Time, account *cpu.Account) {
	r.clock, r.CPU.Account = clock, account
}

// Begin starts the request's latency and its CPU meter.
func (r *Recorder) Begin() {
	r.Began = r.clock()
	r.CPU.Start()
}

// Elapsed is the time since Begin.
func (r *Recorder) Elapsed() time.Duration { return r.clock().Sub(r.Began) }

// RunIn says where the request runs: in a database and, unless t is nil, in a read-write transaction.
func (r *Recorder) RunIn(db *database.Database, t Transaction) {
	r.db, r.locks.transaction = db, t
	if t != nil {
		r.locks.before = t.LockWait()
	}
}

// LockWait is how long the request has waited for locks. It includes what other requests of the transaction waited at the same time.
func (r *Recorder) LockWait() time.Duration {
	if r.locks.transaction == nil {
		return r.locks.committing
	}
	return r.locks.transaction.LockWait() - r.locks.before
}

// WaitForClient calls send, which may have to wait until the client reads. The CPU meter pauses meanwhile. The first message of a reply always
// fits into the client's window and is sent without a pause.
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

// touch tells the transaction what the request accesses.
func (r *Recorder) touch(a *stats.Access) {
	if r.locks.transaction != nil {
		r.locks.transaction.Touch(a)
	}
}

// An Ending is how a request ended.
type Ending struct {
	Err      error     // that it was answered with
	Failure  error     // of a part of it, though it was answered OK
	Deadline time.Time // that the client set; zero for none
}

// A Cost is what a request has cost.
type Cost struct {
	Latency, LockWait time.Duration
	CPU               time.Duration // of the request's own, measured
	SharedCPU         time.Duration // its share of what serves all
	RemoteCalls       int64         // that the servers of further splits would have been sent
	ChangeStream      bool          // it is a query of a change stream, whose latency is mostly the time for which nothing was written
}

// End closes the record and adds it to the statistics of the database. A request that could not be received never began; it
// took no time.
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

// load is the work by which the request is charged its share of the CPU time that no request is measured for.
func (r *Recorder) load() cpu.Load {
	return cpu.Load{
		Messages: 1 + r.Wire.Messages,
		Bytes:    r.Wire.Received + r.Wire.Sent,
		Commits:  r.write.commits,
		Rows:     r.query.RowsScanned + r.query.RowsWritten + r.query.Rows + r.read.Rows + r.write.mutations,
	}
}

// outcome is how statistics count a request that ended with err now, after took.
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

// timedOut says whether the client's deadline has passed, or will within a tenth of the time that the request took. The client's clock
// started a little before the server's, so its cancellation may arrive a little before the deadline.
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

// Attributes describe the statement or the read in a line of the log. Other requests have none.
func (r *Recorder) Attributes() []slog.Attr {
	switch r.kind {
	case recordedQuery:
		return []slog.Attr{slog.Int64("text_fingerprint", r.query.Text.Fingerprint), slog.Int64("rows", r.query.Rows+r.query.RowsWritten)}
	case recordedRead:
		return []slog.Attr{slog.String("table", r.read.Access.Target()), slog.Int64("rows", r.read.Rows)}
	}
	return nil
}

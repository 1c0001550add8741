package server

import (
	"context"
	"errors"
	"sync"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/stats/live"
	"github.com/crowfoot-db/crowfoot/stats/metrics"
	"github.com/crowfoot-db/crowfoot/txn"
)

// An execution is one request from when it has come to when its reply has gone,
// and what it costs. It is the sender of a streamed reply. Executions are used
// again, so nothing may keep one.
//
// Its cost goes three ways when it ends: to the metrics of its method, to the
// statistics of the database if it ran a query or a read, and to the timeline of its transaction if that is tagged.
type execution struct {
	server  *Server
	method  *method
	ctx     context.Context // of the request, once it was decoded
	request proto.Message
	refusal error  // why the request could not be decoded
	out     sender // of a streamed reply
	timing  timing // nil if the client does not care

	cpu            cpu.Meter
	began          time.Time
	received, sent int64 // bytes
	messages       int64 // sent
	clientWait     time.Duration
	mutations      int64 // of commits
	commits        int64 // that were made durable

	db          *database.Database
	transaction *transaction  // that it is part of, if it is read-write
	waited      time.Duration // for locks, by the transaction, before it
	waitedHere  time.Duration // for locks, if it is a commit
	kind        executionKind
	query       stats.Query
	read        stats.Read
	active      live.Query
	running     context.Context // of a query that can be cancelled
	cancel      context.CancelCauseFunc
	failure     error         // of a batch, or of a part of it, although it was answered
	profile     func() string // the plan with what it cost, if it is to be kept
	tracker     split.Tracker
}

// executionKind says what of an execution is recorded.
type executionKind uint8

const (
	otherExecution executionKind = iota
	queryExecution
	readExecution
)

var executions = sync.Pool{New: func() any { return new(execution) }}

// newExecution is for a request that is about to be decoded. It must be ended.
func (s *Server) newExecution(m *method) *execution {
	e := executions.Get().(*execution)
	e.server, e.method, e.request = s, m, m.request()
	e.cpu.Account = s.account
	return e
}

// open begins to count: the request has come, with size bytes.
func (e *execution) open(size int) {
	e.received = int64(size)
	e.began = e.server.cfg.Clock()
	switch m := e.method; {
	case m.measured:
		e.cpu.Start()
	case m.varied:
		e.cpu.Open()
	default:
		e.cpu.Open()
		e.cpu.Is(m.typical)
	}
}

// SendMsg implements sender. The first message finds room always; what later ones wait for is the client.
func (e *execution) SendMsg(m any) error {
	if e.count(m); e.messages == 1 {
		e.cpu.Lap()
		return e.out.SendMsg(m)
	}
	e.cpu.Hold()
	began := e.server.cfg.Clock()
	err := e.out.SendMsg(m)
	e.clientWait += e.server.cfg.Clock().Sub(began)
	return err
}

// count notes a message of the reply.
func (e *execution) count(m any) {
	e.messages++
	if e.messages == 1 && e.timing != nil {
		e.timing.begins(frontEnds(e.server.cfg.Clock().Sub(e.began)))
	}
	switch m := m.(type) {
	case *frame:
		e.sent += int64(len(m.data))
	case proto.Message:
		e.sent += int64(proto.Size(m))
	}
}

// end accounts for the execution and gives it back.
func (e *execution) end(err error) {
	e.active.Finish()
	if e.began.IsZero() { // the request could not be read
		e.began = e.server.cfg.Clock()
	}
	cpu := e.cpu.Stop(e.load())
	now := e.server.cfg.Clock()
	switch e.kind {
	case queryExecution:
		e.endQuery(now, cpu, err)
	case readExecution:
		e.endRead(now, cpu, err)
	}
	if e.timing != nil {
		e.timing.ends(totals(now.Sub(e.began), cpu, e.lockWait()))
	}
	if e.tracker.Sampled() {
		e.db.Splits().Charge(&e.tracker, cpu, now)
	}
	e.method.metrics.Observe(metrics.Call{
		Code: codeOf(err), Latency: now.Sub(e.began), CPU: cpu, Received: e.received, Sent: e.sent, RemoteCalls: e.tracker.RemoteCalls(),
	})
	e.log(now.Sub(e.began), cpu, err)
	*e = execution{}
	executions.Put(e)
}

// load is what the execution had to do with.
func (e *execution) load() cpu.Load {
	return cpu.Load{
		Messages: 1 + e.messages,
		Bytes:    e.received + e.sent,
		Commits:  e.commits,
		Rows:     e.query.RowsScanned + e.query.RowsWritten + e.query.Rows + e.read.Rows + e.mutations,
	}
}

func codeOf(err error) codes.Code {
	if err == nil {
		return codes.OK
	}
	st, _ := statusOf(err)
	return st.Code()
}

// outcome is how the execution, which answered err after a while, has ended.
func (e *execution) outcome(err error, took time.Duration) stats.Outcome {
	switch codeOf(err) {
	case codes.OK:
		return stats.Succeeded
	case codes.Canceled:
		if e.timedOut(took) {
			return stats.TimedOut
		}
		return stats.Cancelled
	case codes.DeadlineExceeded:
		return stats.TimedOut
	}
	return stats.Failed
}

// timedOut says that the time the client gave is over, or all but over: its own clock began to run a little before the
// server's, and then it cancels.
func (e *execution) timedOut(took time.Duration) bool {
	if e.ctx == nil {
		return false
	}
	deadline, ok := e.ctx.Deadline()
	left := time.Until(deadline)
	return ok && left < (took+left)/10
}

// in says where the execution runs.
func (e *execution) in(sc *scope) {
	e.db = sc.session.db
	if sc.transaction != nil && !sc.transaction.partitioned {
		e.transaction = sc.transaction
		e.waited = sc.writer.Stats().LockWait
	}
}

// isRead makes the execution one of a read.
func (e *execution) isRead(p *database.Projection, tag string, partitioned bool) {
	e.cpu.Is(&p.Typical)
	e.kind = readExecution
	e.read.Access, e.read.Tag, e.read.Partitioned = p.Access, tag, partitioned
	if e.transaction != nil {
		e.transaction.touch(p.Access)
	}
}

func (e *execution) endRead(now time.Time, cpu time.Duration, err error) {
	r := &e.read
	r.Outcome, r.InReadWrite, r.End, r.CPU = e.outcome(err, now.Sub(e.began)), e.transaction != nil, now, cpu
	r.LockingDelay, r.ClientWait = e.lockWait(), e.clientWait
	e.db.Stats().Read(r)
	e.happened(live.EventRead, e.read.Access.Target(), now, r.Rows, err)
}

// metered is ctx with which waiting in a transaction costs the execution nothing.
func (e *execution) metered(ctx context.Context) context.Context {
	if e.transaction == nil {
		return ctx
	}
	return txn.WithMeter(ctx, &e.cpu)
}

// isQuery makes the execution one of a statement, which runs under the context
// that is returned until stop.
func (e *execution) isQuery(ctx context.Context, q queryRequest, sc *scope, s *database.Statement) context.Context {
	e.kind = queryExecution
	r := &e.query
	r.Text, r.Tag, r.Accesses = s.Text, q.RequestOptions.GetRequestTag(), s.Accesses
	r.Kind = q.kind(sc)
	e.planned(s)
	e.cpu.Is(&s.Typical)
	if e.transaction != nil {
		e.transaction.touch(s.Accesses...)
	}
	return e.start(ctx, sc, s, q.RequestOptions)
}

// planned charges the execution for planning a statement, if it is the first to use it.
func (e *execution) planned(s *database.Statement) {
	if s.FirstUse() {
		e.query.PlanTime += s.PlanTime
		e.cpu.Once(s.PlanTime)
	}
}

// failed makes the execution that of a statement which was refused before it ran: it counts as a query that failed.
func (e *execution) failed(q queryRequest, sc *scope) {
	if e.kind != otherExecution || e.db == nil {
		return
	}
	e.kind = queryExecution
	e.query.Text, e.query.Tag, e.query.Kind = stats.TextOf(q.Sql), q.RequestOptions.GetRequestTag(), q.kind(sc)
}

// isBatch makes the execution one of a batch of DML, which counts as one.
func (e *execution) isBatch(req *spannerpb.ExecuteBatchDmlRequest) {
	e.kind = queryExecution
	texts := make([]string, len(req.Statements))
	for i, p := range req.Statements {
		texts[i] = p.GetSql()
	}
	e.query.Text, e.query.Tag = stats.BatchText(texts), req.RequestOptions.GetRequestTag()
	e.query.Statements = int64(len(texts))
}

// batched begins one statement of a batch.
func (e *execution) batched(ctx context.Context, sc *scope, s *database.Statement, o *spannerpb.RequestOptions) context.Context {
	e.query.Accesses = append(e.query.Accesses, s.Accesses...)
	e.planned(s)
	e.transaction.touch(s.Accesses...)
	e.cpu.Lap()
	e.track(false)
	return e.start(ctx, sc, s, o)
}

// ran adds what a DML statement did.
func (e *execution) ran(out *dmlOutcome) {
	e.used(out.stats)
	e.query.RowsWritten += out.rowCount
	e.query.BytesWritten += out.stats.BytesWritten
}

// start registers a statement as one that runs now, and that users may cancel.
// Brief ones, which wait for nobody, are over before anybody could.
func (e *execution) start(ctx context.Context, sc *scope, s *database.Statement, o *spannerpb.RequestOptions) context.Context {
	e.active = live.Query{
		SQL:         s.Text.SQL,
		Fingerprint: s.Text.Fingerprint,
		Tag:         o.GetRequestTag(),
		Start:       e.began,
		Session:     sc.session.id(),
		Priority:    o.GetPriority().String(),
		Transaction: sc.kind(),
	}
	if !sc.readOnly() || !s.Brief {
		e.active.ClientAddress, e.active.APIClient, e.active.UserAgent = caller(ctx)
		ctx, e.cancel = context.WithCancelCause(ctx)
		e.running, e.active.Cancel = ctx, e.cancel
	}
	e.db.Live().Start(&e.active)
	return ctx
}

// stop ends what start began, and returns the error to answer.
func (e *execution) stop(err error) error {
	e.active.Finish()
	if e.cancel == nil {
		return err
	}
	if err != nil && errors.Is(context.Cause(e.running), live.ErrCancelled) {
		err = context.Canceled
	}
	e.cancel(nil)
	e.cancel, e.running = nil, nil
	return err
}

func (e *execution) endQuery(now time.Time, cpu time.Duration, err error) {
	q := &e.query
	q.RemoteCalls = e.tracker.RemoteCalls()
	q.InReadWrite, q.End, q.Latency, q.CPU = e.transaction != nil, now, now.Sub(e.began), cpu
	q.Outcome = e.outcome(errors.Join(err, e.failure), q.Latency)
	e.db.Stats().Query(q)
	if e.profile != nil && err == nil {
		e.db.Stats().Profile(&stats.Profile{Text: q.Text, Tag: q.Tag, Latency: q.Latency, End: now, JSON: e.profile()})
	}
	e.happened(live.EventQuery, q.Text.SQL, now, q.Rows+q.RowsWritten, err)
}

// lockWait is how long the execution has waited for locks; what others of its
// transaction waited meanwhile is in it.
func (e *execution) lockWait() time.Duration {
	if e.transaction == nil {
		return e.waitedHere
	}
	return e.transaction.lockWait() - e.waited
}

// happened notes the execution in the timeline of its transaction.
func (e *execution) happened(kind live.EventKind, what string, now time.Time, rows int64, err error) {
	if e.transaction == nil || e.transaction.timeline == nil {
		return
	}
	ev := live.Event{Kind: kind, What: what, Duration: now.Sub(e.began), LockWait: e.lockWait(), Rows: rows}
	if err != nil {
		ev.Error = err.Error()
	}
	e.transaction.timeline.Add(e.began, ev)
}

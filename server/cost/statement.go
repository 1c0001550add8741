package cost

import (
	"errors"
	"time"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/live"
)

// StartStatement says that the request is about to run a SQL statement.
func (r *Recorder) StartStatement(s *prepare.Statement, tag string, kind stats.QueryKind) {
	r.AnnounceStatement(s, tag, kind)
	r.CPU.Is(&s.Typical)
	r.touchAll(s.Accesses)
}

// AnnounceStatement says that the request announces a SQL statement, whose rows later requests fetch. Statistics count
// the announcement as the execution, and the later requests add their rows and times to it.
func (r *Recorder) AnnounceStatement(s *prepare.Statement, tag string, kind stats.QueryKind) {
	r.kind = recordedQuery
	r.query.Text, r.query.Tag, r.query.Kind, r.query.Accesses = s.Text, tag, kind, s.Accesses
	r.chargePlanning(s)
}

// Continue says that the request fetches rows of a statement or read that an earlier request announced.
func (r *Recorder) Continue() { r.query.Continues, r.read.Continues = true, true }

// StartChangeStream says that the statement is a query of a change stream, which waits for changes. Call StartStatement
// first.
func (r *Recorder) StartChangeStream() { r.changeStream = true }

// StartRefusedStatement records a statement that was refused before it ran; statistics count it as a failed query. It
// does nothing if the statement has been started, or if the request failed before its database was known.
func (r *Recorder) StartRefusedStatement(sql, tag string, kind stats.QueryKind) {
	if r.kind != notRecorded || r.db == nil {
		return
	}
	r.kind = recordedQuery
	r.query.Text, r.query.Tag, r.query.Kind = stats.TextOf(sql), tag, kind
}

// StartBatch says that the request is a batch of DML statements, which statistics count as one query.
func (r *Recorder) StartBatch(texts []string, tag string) {
	r.kind = recordedQuery
	r.query.Text, r.query.Tag, r.query.Statements = stats.BatchText(texts), tag, int64(len(texts))
}

// AddToBatch adds the accesses and the planning time of s, the next statement of the batch. It is called just before s
// runs.
func (r *Recorder) AddToBatch(s *prepare.Statement) {
	r.query.Accesses = append(r.query.Accesses, s.Accesses...)
	r.chargePlanning(s)
	r.touchAll(s.Accesses)
	r.CPU.Lap()
}

func (r *Recorder) touchAll(accesses []*stats.Access) {
	for _, a := range accesses {
		r.touch(a)
	}
}

// chargePlanning adds the time it took to plan the statement, if this request is the first to use the plan.
func (r *Recorder) chargePlanning(s *prepare.Statement) {
	if s.FirstUse() {
		r.query.PlanTime += s.PlanTime
	}
}

// AddRun adds the statistics of one execution of a plan.
func (r *Recorder) AddRun(run exec.Stats) {
	q := &r.query
	q.RowsScanned += run.RowsScanned
	q.RowsSpooled += run.Spilled.Rows
	q.MemoryPeak = max(q.MemoryPeak, run.MemoryPeak)
	q.MemoryShare = MemoryShare(q.MemoryPeak)
}

// MemoryShare returns peak, in bytes, as a percentage of the memory limit of a query.
func MemoryShare(peak int64) float64 { return 100 * float64(peak) / exec.MaxMemory }

// AddWritten adds the number of rows that DML wrote, and their bytes.
func (r *Recorder) AddWritten(rows, bytes int64) {
	r.query.RowsWritten += rows
	r.query.BytesWritten += bytes
}

// SetReturned sets the number of rows that the statement returned, and their bytes of data.
func (r *Recorder) SetReturned(rows, bytes int64) { r.query.Rows, r.query.Bytes = rows, bytes }

// KeepProfile makes End store the statement's profile in the statistics, if the statement succeeds. The function
// profile returns it: the plan with the statistics of each operator, as JSON.
func (r *Recorder) KeepProfile(profile func() string) { r.profile = profile }

func (r *Recorder) endQuery(now time.Time, total Cost, e Ending) {
	q := &r.query
	q.RemoteCalls, q.InReadWrite = total.RemoteCalls, r.locks.transaction != nil
	q.End, q.Latency, q.CPU = now, total.Latency, total.CPU
	q.Outcome = e.outcome(errors.Join(e.Err, e.Failure), now, total.Latency)
	r.db.Stats().Query(q)
	if r.profile != nil && e.Err == nil {
		r.db.Stats().Profile(&stats.Profile{Text: q.Text, Tag: q.Tag, Latency: q.Latency, End: now, JSON: r.profile()})
	}
	r.addToTimeline(live.EventQuery, q.Text.SQL, total, q.Rows+q.RowsWritten, e.Err)
}

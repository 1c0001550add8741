package cost

import (
	"errors"
	"time"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/live"
)

// StartStatement makes the record one of a SQL statement that is about to run.
func (r *Recorder) StartStatement(s *database.Statement, tag string, kind stats.QueryKind) {
	r.AnnounceStatement(s, tag, kind)
	r.CPU.Is(&s.Typical)
	r.touchAll(s.Accesses)
}

// AnnounceStatement makes the record one of a SQL statement that later requests run: it counts as the execution to which they add.
func (r *Recorder) AnnounceStatement(s *database.Statement, tag string, kind stats.QueryKind) {
	r.kind = recordedQuery
	r.query.Text, r.query.Tag, r.query.Kind, r.query.Accesses = s.Text, tag, kind, s.Accesses
	r.chargePlanning(s)
}

// Continue says that the request reads rows of a statement, or of a read, that was announced.
func (r *Recorder) Continue() { r.query.Continues, r.read.Continues = true, true }

// StartChangeStream says that the statement, which StartStatement was called for, is a query of a change stream: it waits for changes.
func (r *Recorder) StartChangeStream() { r.changeStream = true }

// StartRefusedStatement makes the record one of a statement that was refused before it ran, which counts as a query that failed. It does
// nothing if the statement has been started, or if the request failed before its database was known.
func (r *Recorder) StartRefusedStatement(sql, tag string, kind stats.QueryKind) {
	if r.kind != notRecorded || r.db == nil {
		return
	}
	r.kind = recordedQuery
	r.query.Text, r.query.Tag, r.query.Kind = stats.TextOf(sql), tag, kind
}

// StartBatch makes the record one of a batch of DML, which counts as one query.
func (r *Recorder) StartBatch(texts []string, tag string) {
	r.kind = recordedQuery
	r.query.Text, r.query.Tag, r.query.Statements = stats.BatchText(texts), tag, int64(len(texts))
}

// AddToBatch adds a statement of the batch, which is about to run.
func (r *Recorder) AddToBatch(s *database.Statement) {
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

// chargePlanning charges the request the CPU time that planning the statement took, if the request is the first to use the plan.
func (r *Recorder) chargePlanning(s *database.Statement) {
	if s.FirstUse() {
		r.query.PlanTime += s.PlanTime
	}
}

// AddRun adds what a run of a plan took.
func (r *Recorder) AddRun(run exec.Stats) {
	q := &r.query
	q.RowsScanned += run.RowsScanned
	q.RowsSpooled += run.Spilled.Rows
	q.MemoryPeak = max(q.MemoryPeak, run.MemoryPeak)
	q.MemoryShare = MemoryShare(q.MemoryPeak)
}

// MemoryShare is the percentage that peak, in bytes, is of what one query may take.
func MemoryShare(peak int64) float64 { return 100 * float64(peak) / exec.MaxMemory }

// AddWritten adds rows that DML wrote, and their bytes.
func (r *Recorder) AddWritten(rows, bytes int64) {
	r.query.RowsWritten += rows
	r.query.BytesWritten += bytes
}

// SetReturned says what the statement has returned: rows, and bytes of data.
func (r *Recorder) SetReturned(rows, bytes int64) { r.query.Rows, r.query.Bytes = rows, bytes }

// KeepProfile keeps the statement's profile in the statistics if the statement succeeds. profile makes it: the plan with what each operator
// took, as JSON.
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

package database

import (
	"context"
	"errors"
	"time"

	"github.com/crowfoot-db/crowfoot/database/job"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/stats/live"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// PartitionedDML is a partitioned DML statement to run.
type PartitionedDML struct {
	Statement *prepare.Statement
	Params    []value.Value
	Session   string         // name of the session, shown with the progress of the statement
	Tracker   *split.Tracker // records the splits that the statement reads and writes
	Excluded  bool           // change streams that allow the exclusion do not record its changes
	// Job is a name of the execution that is unique in the database. If the statement fails, or the server stops, a run
	// with the same Job skips the rows that are done. After the statement has succeeded, a run with the same Job
	// changes nothing and returns the same result. Both hold until checkpointLife after the last checkpoint of the Job.
	// If Job is empty, each run begins with the first row.
	Job string
}

// Changed holds what a partitioned DML statement has changed, and its costs.
type Changed struct {
	Rows                      int64
	RowsScanned, BytesWritten int64
	MemoryPeak                int64 // bytes of memory that a single chunk needed at most
	Commits                   int64
}

func (c *Changed) add(o Changed) {
	c.Rows += o.Rows
	c.RowsScanned += o.RowsScanned
	c.BytesWritten += o.BytesWritten
	c.MemoryPeak = max(c.MemoryPeak, o.MemoryPeak)
	c.Commits += o.Commits
}

const (
	// dmlJobs is the prefix of the names of jobs that run partitioned DML.
	dmlJobs = "dml/"
	// retryPartitioned is how long a client should wait before it retries a statement that failed with errGone. The
	// wait is short, since the retry plans the statement again for the newest schema and can begin at once.
	retryPartitioned = time.Millisecond
)

// ResumesPartitionedDML reports whether a partitioned DML statement can still be resumed. The parameter began says when
// the statement began. Until checkpointLife has passed since then, the statement can certainly be resumed, because its
// checkpoint was stored after it began, and is kept for checkpointLife.
func (d *Database) ResumesPartitionedDML(began time.Time) bool {
	return d.registry.cfg.Clock().Sub(began) < checkpointLife
}

// PartitionedDML runs a statement over the rows of its table in chunks, each in a transaction of its own.
func (d *Database) PartitionedDML(ctx context.Context, p PartitionedDML) (Changed, error) {
	run := &dmlRun{PartitionedDML: p, db: d, partitions: d.chunksOf(layoutOf(p.Statement.Plan.Driving()))}
	text := p.Statement.Text
	run.progress = d.Live().StartPartitioned(text.SQL, text.Fingerprint, p.Session, run.partitions, d.registry.cfg.Clock())
	defer run.progress.Finish()
	j := job.Job{Find: run.find, Do: run.do, State: &run.state, Progress: run.advance, Excluded: p.Excluded}
	if p.Job != "" {
		j.Name = dmlJobs + p.Job
	}
	err := d.jobs.Run(ctx, j)
	if errors.Is(err, errGone) {
		err = usererror.SchemaChanged(retryPartitioned)
	}
	return run.state.Changed, err
}

// dmlRun is one run of a partitioned DML statement.
type dmlRun struct {
	PartitionedDML
	db       *Database
	state    dmlState
	progress *live.PartitionedDML
	// partitions is the number of all chunks, and complete is the number of chunks that are done. The field progress
	// shows both numbers. partitions is an estimate until all chunks are complete.
	partitions, complete int64
	shown                int64 // how many of the changed rows were already added to the field progress
}

// dmlState is stored in the checkpoint. It holds the counts so far, and the ID of the table or index that the statement
// scans. The key in the checkpoint belongs to this table or index.
type dmlState struct {
	Changed
	Object schema.TableID
}

// errGone says that a partitioned DML statement, planned again, would scan another table or index than when it began.
var errGone = errors.New("partitioned DML has lost its table")

// find finds the next chunk of the table or index that the statement scans. A statement without a scan has a single
// chunk.
func (r *dmlRun) find(ctx context.Context, view table.View, after []byte, limits table.Limits) (table.Chunk, error) {
	s := r.Statement.Plan.Driving()
	if s == nil {
		return table.Chunk{Rows: 1}, nil
	}
	if id := idOf(s); r.state.Object == 0 {
		r.state.Object = id
	} else if r.state.Object != id {
		return table.Chunk{}, errGone
	}
	if r.complete == r.partitions {
		r.partitions++
		r.progress.Split(1, r.db.registry.cfg.Clock())
	}
	return table.FindChunk(ctx, view, layoutOf(s), after, limits)
}

// do runs the statement over a chunk.
func (r *dmlRun) do(ctx context.Context, w table.Writer, c table.Chunk) error {
	s, err := r.db.renew(ctx, r.Statement)
	if err != nil {
		return err
	}
	run := prepare.Run{Writer: r.Tracker.Writer(w), Params: r.Params}
	if scan := s.Plan.Driving(); scan != nil {
		span := c.Span(layoutOf(scan))
		run.Restrict = &span
	}
	rows, err := s.Run(ctx, run, r.db.registry.cfg.Clock().UTC().Round(time.Microsecond))
	if err != nil {
		return err
	}
	changed, err := drain(rows)
	r.state.add(changed)
	return err
}

func (r *dmlRun) advance([]byte) {
	r.complete++
	r.progress.Advance(r.state.Rows-r.shown, r.db.registry.cfg.Clock())
	r.shown = r.state.Rows
}

// renew prepares the statement again for the newest schema version. This is necessary because a statement may run for
// so long that the schema version for which it was prepared is deleted meanwhile. renew fails if the statement would
// scan another table or index than before.
func (d *Database) renew(ctx context.Context, s *prepare.Statement) (*prepare.Statement, error) {
	now, err := s.In(ctx, d.schema.Newest().Preparer)
	if err != nil || now == s {
		return now, err
	}
	if err := now.Plan.PartitionedDML(); err != nil {
		return nil, err
	}
	if idOf(now.Plan.Driving()) != idOf(s.Plan.Driving()) {
		return nil, errGone
	}
	return now, nil
}

// layoutOf returns the layout of the table or index that a scan reads; nil if there is no scan.
func layoutOf(s *plan.Scan) *table.Layout {
	switch {
	case s == nil:
		return nil
	case s.Index != nil:
		return table.IndexLayout(s.Index)
	}
	return table.TableLayout(s.Table)
}

// idOf returns the ID of the table or index that a scan reads; 0 if there is no scan.
func idOf(s *plan.Scan) schema.TableID {
	if s == nil {
		return 0
	}
	return layoutOf(s).ID()
}

// drain reads a result to its end, closes it, and returns what the statement has changed.
func drain(rows exec.Rows) (Changed, error) {
	for {
		more, err := rows.Next()
		if err != nil {
			rows.Close()
			return Changed{}, err
		}
		if !more {
			ran := rows.Stats()
			return Changed{Rows: rows.RowCount(), RowsScanned: ran.RowsScanned, BytesWritten: ran.BytesWritten, MemoryPeak: ran.MemoryPeak, Commits: 1}, rows.Close()
		}
	}
}

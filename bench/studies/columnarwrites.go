package studies

import (
	"context"
	"errors"
	"fmt"
	"time"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// ColumnarWrites measures how much more a commit costs if its table has a columnar copy. The same commits go to a table
// with a copy and, on a second server with the same rows, to a table without one. The server also updates the copy
// between two turns. The CPU time of this update counts for the later turn. The benchmark needs the embedded server.
// Keys are random UUIDs, so that the commits change every part of the copy.
func ColumnarWrites() harness.Benchmark {
	c := new(columnarWrites)
	return harness.Benchmark{Name: "columnar-writes", About: columnarWritesAbout, Check: c.check, Prepare: c.prepare, After: c.after, Close: c.close, Figures: columnarWritesFigures}
}

const columnarWritesAbout = "Compared is what a commit costs with and without a columnar copy of its table, in CPU of the server and in latency: lower is better. " +
	"The copy's upkeep is included."

// columnarWrites holds the second server, whose table has no columnar copy.
type columnarWrites struct{ without *harness.ControlServer }

const (
	withCopy    = "with a columnar copy"
	withoutCopy = "without a copy"
	// targetCopyCost is a target: with a columnar copy, a commit should cost at most this many times what it costs
	// without a copy.
	targetCopyCost = 1.3
)

// check returns an error if the settings name a server, or an executable for a control server. The benchmark starts
// both of its servers from this program.
func (w *columnarWrites) check(s bench.Settings) error {
	if s.Control != "" {
		return errors.New("--columnar takes no --control: it compares with a server of its own")
	}
	return s.CheckEmbedded()
}

func (w *columnarWrites) prepare(ctx context.Context, r *harness.Runner) ([]harness.Experiment, error) {
	if err := fillWrites(ctx, r); err != nil {
		return nil, err
	}
	var err error
	if w.without, err = r.Target.StartControl(ctx, ""); err != nil {
		return nil, err
	}
	if err := r.Target.CreateTables(ctx, "ALTER TABLE "+writesTable+" SET OPTIONS (columnar_policy = 'enabled')"); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := w.awaitCopy(ctx, r); err != nil {
		return nil, err
	}
	r.Fact("the columnar copy of %d rows was made in %.1f s", r.Rows, time.Since(began).Seconds())
	var list []harness.Experiment
	for _, n := range r.Batches {
		commit := harness.Path{Name: withCopy, Method: "Commit", Operation: applied(n, spanner.ApplyAtLeastOnce()), CountsBetween: true}
		e := harness.Experiment{
			Name: harness.RowsPerCommit(n), Title: report.Plural(n, "row") + " per commit", Size: n,
			Paths: []harness.Path{commit.As(withoutCopy, &w.without.Server), commit},
		}
		e.Pairs = harness.AgainstFirst(e.Paths)
		list = append(list, e)
	}
	return list, nil
}

// awaitCopy waits until the columnar copy of the table is complete.
func (w *columnarWrites) awaitCopy(ctx context.Context, r *harness.Runner) error {
	ctx, cancel := context.WithTimeout(ctx, harness.CopyTimeout)
	defer cancel()
	for {
		c, err := w.copied(ctx, r)
		if err != nil {
			return fmt.Errorf("wait for the columnar copy: %w", err)
		}
		if c.chunks > 0 && c.missing == 0 {
			return nil
		}
		select {
		case <-time.After(harness.Tick):
		case <-ctx.Done():
			return fmt.Errorf("wait for the columnar copy: %w", ctx.Err())
		}
	}
}

// copied is the state of the copy, as the table SPANNER_SYS.COLUMNAR_POLICIES shows it.
type copied struct{ chunks, missing, rows, bytes, changed int64 }

func (w *columnarWrites) copied(ctx context.Context, r *harness.Runner) (c copied, err error) {
	err = r.Target.Client.Single().Query(ctx, spanner.Statement{
		SQL:    "SELECT CHUNKS, MISSING_CHUNKS, COPIED_ROWS, USED_BYTES, CHANGED_ROWS FROM SPANNER_SYS.COLUMNAR_POLICIES WHERE TABLE_NAME = @name AND INDEX_NAME IS NULL",
		Params: map[string]any{"name": writesTable},
	}).Do(func(row *spanner.Row) error {
		return row.Columns(&c.chunks, &c.missing, &c.rows, &c.bytes, &c.changed)
	})
	return c, err
}

// after adds the final state of the copy to the report.
func (w *columnarWrites) after(ctx context.Context, r *harness.Runner) error {
	c, err := w.copied(ctx, r)
	if err == nil {
		r.Fact("in the end the copy has %d rows in %d chunks, %d bytes a row; %d changed rows wait", c.rows, c.chunks, c.bytes/max(c.rows, 1), c.changed)
	}
	return err
}

// close stops the server whose table has no copy.
func (w *columnarWrites) close() error {
	if w.without == nil {
		return nil
	}
	return w.without.Close()
}

func columnarWritesFigures(s bench.Settings) (list []report.Figure) {
	for _, n := range s.Batches {
		list = append(list, report.Figure{
			Name: fmt.Sprintf("with / without a columnar copy, %s per commit, server CPU", report.Plural(n, "row")), Metric: report.ServerCPU,
			Left: report.RefTo(harness.RowsPerCommit(n), withCopy), Right: report.RefTo(harness.RowsPerCommit(n), withoutCopy), Target: targetCopyCost,
		})
	}
	return list
}

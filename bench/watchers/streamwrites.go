package watchers

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot/bench"
	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

// StreamWrites measures how much more a commit costs if a change stream watches its table. The same commits go to a
// table with one change stream and to a table without any. The tables have the same columns and index as the table of
// Run.
func StreamWrites() harness.Benchmark {
	return harness.Benchmark{Name: "stream-writes", About: streamWritesAbout, Prepare: prepareStreamWrites, Figures: streamWritesFigures}
}

const streamWritesAbout = "Compared is what a commit costs with one change stream on its table and without any, in CPU of the server and in latency: lower is better."

const (
	streamedTable   = "CrowfootBenchStreamed"
	unstreamedTable = "CrowfootBenchUnstreamed"
	writtenStream   = "CrowfootBenchStream"
	withStream      = "with a change stream"
	withoutStream   = "without"
	// targetStreamCost is a target: with a change stream, the server should use at most this many times as much CPU
	// time for a row as without one.
	targetStreamCost = 1.35
)

func prepareStreamWrites(ctx context.Context, r *harness.Runner) ([]harness.Experiment, error) {
	for _, table := range []string{streamedTable, unstreamedTable} {
		there, err := r.Target.Has(ctx, "TABLES", "TABLE_NAME", table)
		if err != nil {
			return nil, err
		}
		if there {
			continue
		}
		if err := r.Target.CreateTables(ctx, fmt.Sprintf(watchTableDDL, table), fmt.Sprintf(watchIndexDDL, table+"ByShard", table)); err != nil {
			return nil, err
		}
	}
	if err := makeStream(ctx, r.Target, writtenStream, streamedTable); err != nil {
		return nil, err
	}
	var list []harness.Experiment
	for _, n := range r.Batches {
		e := harness.Experiment{Name: harness.RowsPerCommit(n), Title: report.Plural(n, "row") + " per commit", Size: n, Paths: []harness.Path{
			{Name: withoutStream, Method: "BeginTransaction, Commit", Operation: insertSingers(unstreamedTable, n)},
			{Name: withStream, Method: "BeginTransaction, Commit", Operation: insertSingers(streamedTable, n)},
		}}
		e.Pairs = harness.AgainstFirst(e.Paths)
		list = append(list, e)
	}
	return list, nil
}

// makeStream creates a change stream for a table if the stream does not exist.
func makeStream(ctx context.Context, t *harness.Target, stream, table string) error {
	there, err := hasStream(ctx, t, stream)
	if err != nil || there {
		return err
	}
	return t.CreateTables(ctx, fmt.Sprintf("CREATE CHANGE STREAM `%s` FOR `%s`", stream, table))
}

// hasStream reports whether a change stream exists.
func hasStream(ctx context.Context, t *harness.Target, stream string) (bool, error) {
	n, err := harness.Drain(t.Client.Single().Query(ctx, spanner.Statement{
		SQL: "SELECT 1 FROM INFORMATION_SCHEMA.CHANGE_STREAMS WHERE CHANGE_STREAM_NAME = @name", Params: map[string]any{"name": stream},
	}))
	return n > 0, err
}

// insertSingers returns an operation that writes n rows per commit. No two commits of the run write the same key.
func insertSingers(table string, n int) harness.Operation {
	next := new(atomic.Int64)
	next.Store(rand.Int64N(keySpace)) // a random start, so that rows of an earlier run are rarely overwritten
	shared := newSingers(table, 1, pictureSize)
	return func(ctx context.Context, c harness.Call) (int, error) {
		_, err := c.Client.Apply(ctx, shared.seeded(c.Uint64()).list(next.Add(int64(n)), n), spanner.TransactionTag(c.Tag))
		return n, err
	}
}

func streamWritesFigures(s bench.Settings) (list []report.Figure) {
	for _, n := range s.Batches {
		list = append(list, report.Figure{
			Name: fmt.Sprintf("with / without a change stream, %s per commit, server CPU", report.Plural(n, "row")), Metric: report.ServerCPU,
			Left: report.RefTo(harness.RowsPerCommit(n), withStream), Right: report.RefTo(harness.RowsPerCommit(n), withoutStream), Target: targetStreamCost,
		})
	}
	return list
}

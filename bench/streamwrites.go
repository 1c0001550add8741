package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"

	"cloud.google.com/go/spanner"
)

// StreamWrites measures how much more a commit costs if a change stream watches its table. The same commits go to a
// table with one change stream and to a table without any. The tables and their indexes are those of Watch.
func StreamWrites() Benchmark {
	return Benchmark{name: "stream-writes", about: streamWritesAbout, prepare: prepareStreamWrites, figures: streamWritesFigures}
}

const streamWritesAbout = "Compared is what a commit costs with one change stream on its table and without any, in CPU of the server and in latency: lower is better."

const (
	streamedTable   = "CrowfootBenchStreamed"
	unstreamedTable = "CrowfootBenchUnstreamed"
	writtenStream   = "CrowfootBenchStream"
	withStream      = "with a change stream"
	withoutStream   = "without"
	// targetStreamCost is the highest target ratio of a row's cost with a change stream to its cost without.
	targetStreamCost = 1.35
)

func prepareStreamWrites(ctx context.Context, r *run) ([]experiment, error) {
	for _, table := range []string{streamedTable, unstreamedTable} {
		there, err := r.target.has(ctx, "TABLES", "TABLE_NAME", table)
		if err != nil {
			return nil, err
		}
		if there {
			continue
		}
		if err := r.target.createTables(ctx, fmt.Sprintf(watchTableDDL, table), fmt.Sprintf(watchIndexDDL, table+"ByShard", table)); err != nil {
			return nil, err
		}
	}
	if err := makeStream(ctx, r.target, writtenStream, streamedTable); err != nil {
		return nil, err
	}
	var list []experiment
	for _, n := range r.Batches {
		e := experiment{name: rowsPerCommit(n), title: plural(n, "row") + " per commit", size: n, paths: []path{
			{name: withoutStream, method: "BeginTransaction, Commit", op: insertSingers(unstreamedTable, n)},
			{name: withStream, method: "BeginTransaction, Commit", op: insertSingers(streamedTable, n)},
		}}
		e.pairs = against(e.paths)
		list = append(list, e)
	}
	return list, nil
}

// makeStream creates a change stream of a table if it is missing.
func makeStream(ctx context.Context, t *target, stream, table string) error {
	there, err := hasStream(ctx, t, stream)
	if err != nil || there {
		return err
	}
	return t.createTables(ctx, fmt.Sprintf("CREATE CHANGE STREAM `%s` FOR `%s`", stream, table))
}

// hasStream reports whether a change stream exists.
func hasStream(ctx context.Context, t *target, stream string) (bool, error) {
	n, err := drain(t.client.Single().Query(ctx, spanner.Statement{
		SQL: "SELECT 1 FROM INFORMATION_SCHEMA.CHANGE_STREAMS WHERE CHANGE_STREAM_NAME = @name", Params: map[string]any{"name": stream},
	}))
	return n > 0, err
}

// insertSingers writes n rows per commit. No two commits of the run write the same key.
func insertSingers(table string, n int) operation {
	next := new(atomic.Int64)
	next.Store(rand.Int64N(keySpace)) // a random start, so that rows of an earlier run are rarely overwritten
	shared := newSingers(table, 1, pictureSize)
	return func(ctx context.Context, c call) (int, error) {
		_, err := c.client.Apply(ctx, shared.seeded(c.Uint64()).list(next.Add(int64(n)), n), spanner.TransactionTag(c.tag))
		return n, err
	}
}

func streamWritesFigures(s Settings) (list []Figure) {
	for _, n := range s.Batches {
		list = append(list, Figure{
			Name: fmt.Sprintf("with / without a change stream, %s per commit, server CPU", plural(n, "row")), Metric: ServerCPU,
			Left: RefTo(rowsPerCommit(n), withStream), Right: RefTo(rowsPerCommit(n), withoutStream), Target: targetStreamCost,
		})
	}
	return list
}

package retrieval

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"cloud.google.com/go/spanner"
	"golang.org/x/sync/errgroup"

	"github.com/crowfoot-db/crowfoot/bench/harness"
	"github.com/crowfoot-db/crowfoot/bench/report"
)

const (
	viaPartitionedSQL  = "SQL, partitions, Go client"
	viaPartitionedREAD = "READ, partitions, Go client"
	viaKeyRanges       = "SQL, key ranges, Go client"
)

// readers returns the name of the experiment with n readers.
func readers(n int) string { return fmt.Sprint("readers_", n) }

// parallel returns the experiment in which n readers divide the table among them.
func (b *retrieval) parallel(n int) harness.Experiment {
	e := harness.Experiment{Name: readers(n), Title: "all rows, " + report.Plural(n, "reader"), Untagged: true}
	e.Paths = []harness.Path{
		{Name: viaPartitionedSQL, Method: "PartitionQuery, ExecuteStreamingSql", Operation: b.partitionedSQL(n), Codec: rowCodec},
		{Name: viaPartitionedREAD, Method: "PartitionRead, StreamingRead", Operation: b.partitionedREAD(n), Codec: rowCodec},
		{Name: viaKeyRanges, Method: "ExecuteStreamingSql", Operation: b.keyRanges(n), Codec: rowCodec},
		{Name: viaFlight, Method: "DoGet", Operation: b.byFlight(n), Codec: flightCodec},
		{Name: cannedFlight, Method: "DoGet", Operation: b.byCannedFlight(n), Codec: flightCodec, Server: b.canned},
	}
	e.Paths = append(e.Paths, b.fromFiles(n)...)
	e.Paths = append(e.Paths, b.fromOthers(n)...)
	e.Paths = append(e.Paths, b.fromPython(n)...)
	for i := range e.Paths {
		p := &e.Paths[i]
		if p.Clients, p.Parallel = 1, n > 1; p.Server == nil && !p.Local {
			p.Copy = b.copyUse()
		}
	}
	e.Pairs = harness.AgainstFirst(e.Paths)
	return e
}

func (b *retrieval) partitionedSQL(n int) harness.Operation {
	return b.partitioned(n, func(ctx context.Context, t *spanner.BatchReadOnlyTransaction) ([]*spanner.Partition, error) {
		return t.PartitionQuery(ctx, spanner.NewStatement(b.table.query()), spanner.PartitionOptions{})
	})
}

func (b *retrieval) partitionedREAD(n int) harness.Operation {
	return b.partitioned(n, func(ctx context.Context, t *spanner.BatchReadOnlyTransaction) ([]*spanner.Partition, error) {
		return t.PartitionRead(ctx, b.table.name, spanner.AllKeys(), b.table.columns, spanner.PartitionOptions{})
	})
}

// partitioned returns an operation that reads all partitions of a read or query, n at a time.
func (b *retrieval) partitioned(n int, partition func(context.Context, *spanner.BatchReadOnlyTransaction) ([]*spanner.Partition, error)) harness.Operation {
	return func(ctx context.Context, c harness.Call) (int, error) {
		t, err := c.Client.BatchReadOnlyTransaction(ctx, spanner.StrongRead())
		if err != nil {
			return 0, err
		}
		defer t.Close()
		list, err := partition(ctx, t)
		if err != nil {
			return 0, err
		}
		return b.whole(shared(ctx, n, len(list), func(ctx context.Context, i int) (int64, error) {
			return b.table.objects(t.Execute(ctx, list[i]))
		}))
	}
}

// shared calls read(ctx, part) for each part of a table, from 0 to parts-1, at most n at a time. It returns the sum of
// the row counts that these calls return.
func shared(ctx context.Context, n, parts int, read func(ctx context.Context, part int) (int64, error)) (int64, error) {
	if parts == 0 {
		return 0, errors.New("there are no partitions")
	}
	var rows atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(n)
	for i := range parts {
		g.Go(func() error {
			got, err := read(ctx, i)
			rows.Add(got)
			return err
		})
	}
	err := g.Wait()
	return rows.Load(), err
}

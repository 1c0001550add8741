package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"cloud.google.com/go/spanner"
	"golang.org/x/sync/errgroup"
)

const (
	viaPartitionedSQL  = "SQL, partitions, Go client"
	viaPartitionedREAD = "READ, partitions, Go client"
	viaKeyRanges       = "SQL, key ranges, Go client"
)

// readers returns the name of the experiment with n readers.
func readers(n int) string { return fmt.Sprint("readers_", n) }

// parallel is the experiment in which n readers share the table.
func (b *retrieval) parallel(n int) experiment {
	e := experiment{name: readers(n), title: "all rows, " + plural(n, "reader"), untagged: true}
	e.paths = []path{
		{name: viaPartitionedSQL, method: "PartitionQuery, ExecuteStreamingSql", op: b.partitionedSQL(n), codec: rowCodec},
		{name: viaPartitionedREAD, method: "PartitionRead, StreamingRead", op: b.partitionedREAD(n), codec: rowCodec},
		{name: viaKeyRanges, method: "ExecuteStreamingSql", op: b.keyRanges(n), codec: rowCodec},
		{name: viaFlight, method: "DoGet", op: b.byFlight(n), codec: flightCodec},
		{name: cannedFlight, method: "DoGet", op: b.byCannedFlight(n), codec: flightCodec, on: b.canned},
	}
	e.paths = append(e.paths, b.fromFiles(n)...)
	e.paths = append(e.paths, b.fromOthers(n)...)
	e.paths = append(e.paths, b.fromPython(n)...)
	for i := range e.paths {
		p := &e.paths[i]
		if p.clients, p.parallel = 1, n > 1; p.on == nil && !p.local {
			p.copy = b.copyUse()
		}
	}
	e.pairs = against(e.paths)
	return e
}

func (b *retrieval) partitionedSQL(n int) operation {
	return b.partitioned(n, func(ctx context.Context, t *spanner.BatchReadOnlyTransaction) ([]*spanner.Partition, error) {
		return t.PartitionQuery(ctx, spanner.NewStatement(b.table.query()), spanner.PartitionOptions{})
	})
}

func (b *retrieval) partitionedREAD(n int) operation {
	return b.partitioned(n, func(ctx context.Context, t *spanner.BatchReadOnlyTransaction) ([]*spanner.Partition, error) {
		return t.PartitionRead(ctx, b.table.name, spanner.AllKeys(), b.table.columns, spanner.PartitionOptions{})
	})
}

// partitioned reads the partitions of a read or query, n at a time.
func (b *retrieval) partitioned(n int, partition func(context.Context, *spanner.BatchReadOnlyTransaction) ([]*spanner.Partition, error)) operation {
	return func(ctx context.Context, c call) (int, error) {
		t, err := c.client.BatchReadOnlyTransaction(ctx, spanner.StrongRead())
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

// shared reads parts 0 to parts-1, n at a time, and returns the sum of their rows.
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

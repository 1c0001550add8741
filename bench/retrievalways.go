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

// parallel is the table shared by n readers.
func (b *retrieval) parallel(n int) experiment {
	e := experiment{name: fmt.Sprint("readers_", n), title: "all rows, " + plural(n, "reader"), untagged: true}
	e.paths = []path{
		{name: viaPartitionedSQL, method: "PartitionQuery, ExecuteStreamingSql", op: b.partitionedSQL(n), clients: 1},
		{name: viaPartitionedREAD, method: "PartitionRead, StreamingRead", op: b.partitionedREAD(n), clients: 1},
		{name: viaKeyRanges, method: "ExecuteStreamingSql", op: b.keyRanges(n), clients: 1},
		{name: viaFlight, method: "DoGet", op: b.byFlight(n), clients: 1},
	}
	e.paths = append(e.paths, b.fromFiles(n)...)
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

// partitioned reads partitions, n at a time.
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

// keyRanges is the study's own way: COUNT(*), and then each reader reads its part of the keys.
func (b *retrieval) keyRanges(n int) operation {
	key := b.table.columns[0]
	return func(ctx context.Context, c call) (int, error) {
		var rows, last int64
		count := spanner.NewStatement("SELECT COUNT(*), MAX(" + key + ") FROM " + b.table.name)
		if err := c.client.Single().Query(ctx, count).Do(func(r *spanner.Row) error { return r.Columns(&rows, &last) }); err != nil {
			return 0, err
		}
		if rows != b.rows {
			return 0, fmt.Errorf("COUNT(*) is %d of %d", rows, b.rows)
		}
		return b.whole(shared(ctx, n, n, func(ctx context.Context, i int) (int64, error) {
			return b.table.objects(c.client.Single().Query(ctx, spanner.Statement{
				SQL:    b.table.query() + " WHERE " + key + " > @after AND " + key + " <= @until",
				Params: map[string]any{"after": last * int64(i) / int64(n), "until": last * int64(i+1) / int64(n)},
			}))
		}))
	}
}

// shared reads parts 0 to parts-1, n at a time, and adds up their rows.
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

package endtoend_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/spanner"
	"google.golang.org/api/iterator"
)

// crowd is the number of workers that compete for one row. The constant share is the number of times that each worker
// must succeed. A worker goes on until all workers have succeeded share times. If one worker always loses, the test
// does not end.
const (
	crowd = 32
	share = 3
)

// contend runs as many workers as the constant crowd says. Each worker calls the function work again and again, until
// all workers have succeeded at least share times. contend returns how many calls of work succeeded in total.
func contend(t *testing.T, work func(ctx context.Context, worker int) error) int64 {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var turns, done atomic.Int64
	var workers sync.WaitGroup
	for w := range crowd {
		workers.Go(func() {
			for n := 1; done.Load() < crowd; n++ {
				if err := work(ctx, w); err != nil {
					t.Errorf("worker %d, turn %d: %v", w, n, err)
					cancel() // so that the other workers do not wait for this one
					return
				}
				turns.Add(1)
				if n == share {
					done.Add(1)
				}
			}
		})
	}
	workers.Wait()
	return turns.Load()
}

// number returns the number that is the only value of a query's result.
func number(ctx context.Context, t *testing.T, c *spanner.Client, sql string) (n int64) {
	t.Helper()
	err := c.Single().Query(ctx, spanner.NewStatement(sql)).Do(func(r *spanner.Row) error { return r.Column(0, &n) })
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestCounter lets all workers increment a counter in one row, by a read and a buffered mutation, or by one statement.
// No increment may be lost.
func TestCounter(t *testing.T) {
	for name, count := range map[string]func(context.Context, *spanner.ReadWriteTransaction) error{
		"mutation": func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			row, err := tx.ReadRow(ctx, "T", spanner.Key{1}, []string{"V"})
			if err != nil {
				return err
			}
			var v int64
			if err := row.Column(0, &v); err != nil {
				return err
			}
			return tx.BufferWrite([]*spanner.Mutation{spanner.Update("T", []string{"K", "V"}, []any{1, v + 1})})
		},
		"DML": func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, spanner.NewStatement("UPDATE T SET V = V + 1 WHERE K = 1"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			_, c := client(t)
			if _, err := c.Apply(ctx, []*spanner.Mutation{spanner.Insert("T", []string{"K", "V"}, []any{1, 0})}); err != nil {
				t.Fatal(err)
			}
			turns := contend(t, func(ctx context.Context, _ int) error {
				_, err := c.ReadWriteTransaction(ctx, count)
				return err
			})
			if got := number(ctx, t, c, "SELECT V FROM T"); got != turns {
				t.Errorf("counted to %d in %d turns", got, turns)
			}
		})
	}
}

// TestQueue lets all workers take the first job of a queue, mark it, and add another job at the end. No job may be
// taken twice.
func TestQueue(t *testing.T) {
	for name, first := range map[string]string{
		"plain":  "SELECT K FROM T WHERE V = -1 ORDER BY K LIMIT 1",
		"locked": "SELECT K FROM T WHERE V = -1 ORDER BY K LIMIT 1 FOR UPDATE",
	} {
		t.Run(name, func(t *testing.T) {
			ctx := context.Background()
			_, c := client(t)
			var jobs []*spanner.Mutation
			for k := range 2 * crowd {
				jobs = append(jobs, spanner.Insert("T", []string{"K", "V"}, []any{k, -1}))
			}
			if _, err := c.Apply(ctx, jobs); err != nil {
				t.Fatal(err)
			}
			var last atomic.Int64
			last.Store(2 * crowd)
			turns := contend(t, func(ctx context.Context, worker int) error {
				k := last.Add(1)
				_, err := c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
					return takeJob(ctx, tx, first, worker, k)
				})
				return err
			})
			if got := number(ctx, t, c, "SELECT COUNT(*) FROM T WHERE V >= 0"); got != turns {
				t.Errorf("%d jobs were taken in %d turns", got, turns)
			}
			if got := number(ctx, t, c, "SELECT COUNT(*) FROM T WHERE V < 0"); got != 2*crowd {
				t.Errorf("%d jobs are left", got)
			}
		})
	}
}

func takeJob(ctx context.Context, tx *spanner.ReadWriteTransaction, first string, worker int, next int64) error {
	rows := tx.Query(ctx, spanner.NewStatement(first))
	defer rows.Stop()
	row, err := rows.Next()
	if errors.Is(err, iterator.Done) {
		return errors.New("the queue is empty")
	}
	if err != nil {
		return err
	}
	var k int64
	if err := row.Column(0, &k); err != nil {
		return err
	}
	return tx.BufferWrite([]*spanner.Mutation{
		spanner.Update("T", []string{"K", "V"}, []any{k, worker}),
		spanner.Insert("T", []string{"K", "V"}, []any{next, -1}),
	})
}

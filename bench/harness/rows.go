package harness

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner"
	"golang.org/x/sync/errgroup"
)

// When a table is filled, loadClients clients send commits of LoadBatch rows each.
const (
	LoadBatch   = 1000
	loadClients = 4
)

// Fill writes rows 0 to n-1 of a table. The function row must return the mutations that write row i. The screen shows
// the progress.
func (r *Runner) Fill(ctx context.Context, table string, n int, row func(i int64) []*spanner.Mutation) (time.Duration, error) {
	return r.Target.Fill(ctx, r.Screen, table, n, func(first, last int64) (rows []*spanner.Mutation) {
		for i := first; i < last; i++ {
			rows = append(rows, row(i)...)
		}
		return rows
	})
}

// Fill writes rows 0 to n-1 of a table. The function rows must return the mutations that write the rows from first to
// last-1. The screen shows the progress.
func (t *Target) Fill(ctx context.Context, s *Screen, table string, n int, rows func(first, last int64) []*spanner.Mutation) (time.Duration, error) {
	began := time.Now()
	var done atomic.Int64
	g, loading := errgroup.WithContext(ctx)
	g.SetLimit(loadClients)
	for first := 0; first < n && loading.Err() == nil; first += LoadBatch {
		g.Go(func() error {
			last := min(first+LoadBatch, n)
			if _, err := t.Client.Apply(loading, rows(int64(first), int64(last))); err != nil {
				return err
			}
			s.Loaded(table, int(done.Add(int64(last-first))), n)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return 0, fmt.Errorf("load %s: %w", table, err)
	}
	return time.Since(began), ctx.Err()
}

// Letters returns n random letters. It always returns the same letters for the same ID and column. The letters are
// random so that the storage engine can hardly compress them.
func Letters(id int64, column string, n int) string {
	r := rand.New(rand.NewPCG(uint64(id), uint64(column[len(column)-1])))
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(r.UintN(26))
	}
	return string(b)
}

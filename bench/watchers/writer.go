package watchers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner"
	"golang.org/x/sync/errgroup"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

// writer makes the changes. Its updaters are goroutines. Each takes a transaction from the field pace, waits until the
// transaction is due, sends it, and takes the next one. If a transaction is overdue, the updater sends it at once. The
// latency of the changes still counts from when they were due, so that a stall of the server shows in the latencies.
type writer struct {
	Load
	client  *spanner.Client
	table   string
	changes *changes

	mu     sync.Mutex // guards the fields below
	pace   *pace
	unsent int64         // transactions that were due during the load but never sent
	late   time.Duration // how long after its due time the last transaction was taken from pace
}

// run sends transactions for the duration of the load, and then waits for those in progress.
func (w *writer) run(ctx context.Context, lasts time.Duration) error {
	w.pace = newPace(w.Load)
	g, ctx := errgroup.WithContext(ctx)
	for i := range w.Updaters {
		g.Go(func() error { return w.update(ctx, newSingers(w.table, w.Seed+uint64(i), pictureSize), lasts) })
	}
	return g.Wait()
}

func (w *writer) update(ctx context.Context, rows *singers, lasts time.Duration) error {
	for {
		due, number, n := w.nextTransaction(lasts)
		if n == 0 {
			return nil
		}
		list := rows.list(number, n)
		if err := harness.Wait(ctx, due-time.Since(w.changes.began)); err != nil {
			return err
		}
		if err := w.send(ctx, list, number); err != nil {
			return err
		}
	}
}

// nextTransaction returns the next transaction: when it is due, the number of its first change, and its number of
// rows. If the duration of the load is over, it returns 0 rows.
func (w *writer) nextTransaction(lasts time.Duration) (due time.Duration, number int64, rows int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		due, rows = w.pace.next()
		switch {
		case due >= lasts:
			return due, 0, 0
		case time.Since(w.changes.began) < lasts:
			w.late = max(0, time.Since(w.changes.began)-due)
			return due, w.changes.add(due, rows), rows
		}
		w.unsent++
	}
}

func (w *writer) send(ctx context.Context, list []*spanner.Mutation, number int64) error {
	if _, err := w.client.Apply(ctx, list); err != nil {
		return fmt.Errorf("write %d rows: %w", len(list), err)
	}
	w.changes.commit(number, len(list))
	return nil
}

// backlog writes n changes, as fast as it can, before the load begins. batch is the number of changes in a transaction.
// The watchers must catch up with this backlog.
func (w *writer) backlog(ctx context.Context, n, batch int, s *harness.Screen) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(w.Updaters)
	var done atomic.Int64
	shared := newSingers(w.table, w.Seed, pictureSize)
	for first := 0; first < n && ctx.Err() == nil; first += batch {
		size := min(batch, n-first)
		number := w.changes.add(-1, size)
		g.Go(func() error {
			rows := shared.seeded(uint64(number))
			if err := w.send(ctx, rows.list(number, size), number); err != nil {
				return err
			}
			s.Loaded(w.table+" (backlog)", int(done.Add(int64(size))), n)
			return nil
		})
	}
	return g.Wait()
}

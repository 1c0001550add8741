package pebble

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// minFreedBytes is a size in bytes. FreeSpace does nothing if the deleted range takes less than this in table
	// files.
	minFreedBytes = 1 << 20
	// maxCompactedBytes is a size in bytes: if at most this much of the deleted range is left in files that also hold
	// other data, freeSpace compacts these files itself.
	maxCompactedBytes = 64 << 20
	// freeingPoll is the interval at which freeSpace reads the size of the deleted range while Pebble deletes files.
	// freeSpace gives up after freeingPolls readings, which is half a minute.
	freeingPoll  = 100 * time.Millisecond
	freeingPolls = 300
)

// freeing runs the jobs that FreeSpace has requested, one at a time.
type freeing struct {
	ctx context.Context // ends when the store is closed
	end context.CancelFunc
	all *sync.WaitGroup // the waiting and running jobs
	mu  *sync.Mutex     // held by the running job
}

func newFreeing() freeing {
	ctx, end := context.WithCancel(context.Background())
	return freeing{ctx, end, new(sync.WaitGroup), new(sync.Mutex)}
}

func (f *freeing) close() {
	f.end()
	f.all.Wait()
}

// FreeSpace implements kv.Store.
func (s *Store) FreeSpace(lower, upper []byte) {
	if size, err := s.ApproximateSize(lower, upper); err != nil || size < minFreedBytes || s.guard.failure() != nil {
		return
	}
	f := &s.freeing
	f.all.Go(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if err := s.freeSpace(f.ctx, lower, upper); err != nil && f.ctx.Err() == nil {
			messages{}.background(fmt.Errorf("free the space of what was deleted: %w", err))
		}
	})
}

// freeSpace flushes the range deletion from memory to a table. Pebble then deletes the files that lie within the
// range, without reading them. Deleted data in files that also hold other data needs a compaction. freeSpace starts
// such a compaction when at most maxCompactedBytes of the range are left.
func (s *Store) freeSpace(ctx context.Context, lower, upper []byte) error {
	if ctx.Err() != nil { // the store was closed while the job waited for its turn
		return ctx.Err()
	}
	flushed, err := s.db.AsyncFlush()
	if err != nil {
		return err
	}
	select {
	case <-flushed:
	case <-ctx.Done():
		return ctx.Err()
	}
	poll := time.NewTicker(freeingPoll)
	defer poll.Stop()
	for range freeingPolls {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		size, err := s.ApproximateSize(lower, upper)
		switch {
		case err != nil || size < minFreedBytes:
			return err
		case size <= maxCompactedBytes:
			return s.db.Compact(ctx, lower, upper, false)
		}
	}
	return nil
}

package pebble

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	// minFreedBytes in tables are worth a flush.
	minFreedBytes = 1 << 20
	// maxCompactedBytes are read by the compaction that frees what lies in files with other data, and is not due yet.
	maxCompactedBytes = 64 << 20
	// freeingPoll is how often the size is looked at while Pebble deletes files, and freeingPolls how many times: half a minute.
	freeingPoll  = 100 * time.Millisecond
	freeingPolls = 300
)

// freeing is what FreeSpace has begun. One runs at a time.
type freeing struct {
	ctx  context.Context // until close
	end  context.CancelFunc
	all  *sync.WaitGroup
	turn *sync.Mutex
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
		f.turn.Lock()
		defer f.turn.Unlock()
		if err := s.freeSpace(f.ctx, lower, upper); err != nil && f.ctx.Err() == nil {
			messages{}.background(fmt.Errorf("free the space of what was deleted: %w", err))
		}
	})
}

// freeSpace flushes what deletes the range from memory to a table. Then Pebble deletes the files that lie within it, without reading them. What lies in files
// with other data needs a compaction, which waits until little else is left to be read.
func (s *Store) freeSpace(ctx context.Context, lower, upper []byte) error {
	if ctx.Err() != nil { // it waited for its turn
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

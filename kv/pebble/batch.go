package pebble

import (
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/crowfoot-db/crowfoot/kv"
)

// NewBatch implements kv.Store.
func (s *Store) NewBatch() kv.Batch {
	return &batch{store: s, b: s.db.NewBatch()}
}

type batch struct {
	store      *Store
	b          *pebble.Batch
	useReserve bool
}

func (b *batch) Put(key, value []byte) error           { return b.b.Set(key, value, nil) }
func (b *batch) Delete(key []byte) error               { return b.b.Delete(key, nil) }
func (b *batch) DeleteRange(lower, upper []byte) error { return b.b.DeleteRange(lower, upper, nil) }
func (b *batch) Len() int                              { return b.b.Len() }
func (b *batch) Close() error                          { return b.b.Close() }
func (b *batch) UseReserve()                           { b.useReserve = true }
func (b *batch) Commit() error                         { return b.commit(pebble.Sync) }
func (b *batch) CommitNoSync() error                   { return b.commit(pebble.NoSync) }

func (b *batch) commit(how *pebble.WriteOptions) error {
	s, n := b.store, b.b.Len()
	if err := s.guard.failure(); err != nil {
		return err
	}
	if err := s.disk.admit(n, b.useReserve); err != nil {
		return err
	}
	err := b.b.Commit(how)
	// The idle iterators must be closed after a failed commit, too, because parts of the batch may be visible.
	s.disk.ended(n)
	s.writes.Add(1)
	s.idle.clear()
	if err != nil {
		return fmt.Errorf("commit batch: %w", err)
	}
	// The guard returns success to Pebble for some writes that have failed, and Commit then returns no error. So after
	// the commit the guard must be asked whether the store has failed.
	return s.guard.failure()
}

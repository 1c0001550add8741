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
	store *Store
	b     *pebble.Batch
}

func (b *batch) Put(key, value []byte) error           { return b.b.Set(key, value, nil) }
func (b *batch) Delete(key []byte) error               { return b.b.Delete(key, nil) }
func (b *batch) DeleteRange(lower, upper []byte) error { return b.b.DeleteRange(lower, upper, nil) }
func (b *batch) Len() int                              { return b.b.Len() }
func (b *batch) Close() error                          { return b.b.Close() }
func (b *batch) Commit() error                         { return b.commit(pebble.Sync) }
func (b *batch) CommitNoSync() error                   { return b.commit(pebble.NoSync) }

func (b *batch) commit(how *pebble.WriteOptions) error {
	err := b.b.Commit(how)
	// Also after a failure: parts of it may be visible.
	b.store.writes.Add(1)
	b.store.idle.clear()
	if err != nil {
		return fmt.Errorf("commit batch: %w", err)
	}
	return nil
}

package disktest

import (
	"fmt"
	"sync"

	"github.com/crowfoot-db/crowfoot/kv"
)

// Refusing is a store that refuses batches when a test tells it to. To its caller it looks like a store whose disk is
// full and whose reserve is used up.
type Refusing struct {
	kv.Store

	mu     sync.Mutex
	refuse func() bool
}

// When makes every commit call f first. The commit is refused if f returns true. When(nil) ends that.
func (r *Refusing) When(f func() bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = f
}

// NewBatch implements kv.Store.
func (r *Refusing) NewBatch() kv.Batch { return refusedBatch{r.Store.NewBatch(), r} }

func (r *Refusing) ask() error {
	r.mu.Lock()
	f := r.refuse
	r.mu.Unlock()
	if f != nil && f() {
		return fmt.Errorf("%w: the test wants it so", kv.ErrRefused)
	}
	return nil
}

type refusedBatch struct {
	kv.Batch
	store *Refusing
}

// Commit implements kv.Batch.
func (b refusedBatch) Commit() error {
	if err := b.store.ask(); err != nil {
		return err
	}
	return b.Batch.Commit()
}

// CommitNoSync implements kv.Batch.
func (b refusedBatch) CommitNoSync() error {
	if err := b.store.ask(); err != nil {
		return err
	}
	return b.Batch.CommitNoSync()
}

package watch

import (
	"context"
	"sync"
)

// A Repository keeps the checkpoints of feeds. Its methods are called from several goroutines.
//
// Watchers may share one if they have different feeds: other tables or shards. A watcher that finds a checkpoint of its feed that it has not stored
// ends with FAILED_PRECONDITION, since each of two would overwrite how far the other has come.
type Repository interface {
	// Check says whether the repository can be used, and makes what is missing, before the first Load.
	Check(ctx context.Context) error
	// Load gives a feed's checkpoint; false if it has none.
	Load(ctx context.Context, id FeedID) (Checkpoint, bool, error)
	// Store keeps the checkpoint, in place of an earlier one. Once it has returned nil, the checkpoint survives a crash.
	Store(ctx context.Context, id FeedID, c Checkpoint) error
}

// Memory keeps checkpoints as long as it lives: several watchers, one after the other, may have it.
type Memory struct {
	mu   sync.Mutex
	list map[FeedID]Checkpoint
}

// NewMemory makes an empty one.
func NewMemory() *Memory { return &Memory{list: map[FeedID]Checkpoint{}} }

// Check has nothing to do.
func (m *Memory) Check(context.Context) error { return nil }

// Load is a Repository's.
func (m *Memory) Load(_ context.Context, id FeedID) (Checkpoint, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.list[id]
	return c, ok, nil
}

// Store is a Repository's.
func (m *Memory) Store(_ context.Context, id FeedID, c Checkpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list[id] = c
	return nil
}

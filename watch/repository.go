package watch

import (
	"context"
	"sync"
)

// A Repository keeps the checkpoints of feeds. Its methods may be called from several goroutines.
//
// Several watchers may share a repository if they have different feeds, that is, different tables or shards. If another
// watcher stores a checkpoint of a feed while Run delivers this feed, Run ends with FAILED_PRECONDITION. Otherwise
// the two watchers would overwrite each other's progress.
type Repository interface {
	// Check tests whether the repository can be used, and creates what is missing, such as a table. It is called
	// before the first Load.
	Check(ctx context.Context) error
	// Load returns a feed's checkpoint. The boolean is false if the feed has none.
	Load(ctx context.Context, id FeedID) (Checkpoint, bool, error)
	// Store replaces a feed's checkpoint. After Store has returned nil, the checkpoint survives a crash.
	Store(ctx context.Context, id FeedID, c Checkpoint) error
}

// Memory keeps checkpoints in memory. Several watchers may use it, one after the other.
type Memory struct {
	mu   sync.Mutex
	list map[FeedID]Checkpoint
}

// NewMemory returns an empty Memory.
func NewMemory() *Memory { return &Memory{list: map[FeedID]Checkpoint{}} }

// Check does nothing.
func (m *Memory) Check(context.Context) error { return nil }

// Load implements Repository.
func (m *Memory) Load(_ context.Context, id FeedID) (Checkpoint, bool, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c, ok := m.list[id]
	return c, ok, nil
}

// Store implements Repository.
func (m *Memory) Store(_ context.Context, id FeedID, c Checkpoint) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.list[id] = c
	return nil
}

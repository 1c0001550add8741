package changestream

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
)

// Oracle gives out commit timestamps and knows up to which timestamp commits are visible. Package txn implements it.
type Oracle interface {
	// Now returns the time of the clock, or Visible if that is later.
	Now() mvcc.Timestamp
	// Visible returns the watermark: every commit at or below it is stored, with its records, and no later commit gets
	// a timestamp at or below it.
	Visible() mvcc.Timestamp
	// CloseAt raises Visible to the given timestamp if Visible is lower, and waits until that is done. The clock must
	// already have shown this timestamp.
	CloseAt(ctx context.Context, at mvcc.Timestamp) error
	// Begin gives out the timestamp of a commit whose batch is b. If the returned commit is not nil, the caller must
	// finish or abandon it, even if there is an error.
	Begin(b kv.Batch) (mvcc.Timestamp, PendingCommit, error)
}

// A PendingCommit is a commit that has a timestamp and is not visible yet. Each method returns when the commit is
// visible or given up. Commits become visible in the order of their timestamps, so each method waits until all commits
// with lower timestamps have ended.
type PendingCommit interface {
	// Finish must be called with the result of the batch's Commit. It returns this result, or an error of the store.
	// After an error other than kv.ErrRefused, it is unknown what the store has kept, and no further commit succeeds.
	Finish(committed error) error
	// Abandon gives up the timestamp. It is called if the batch is not committed.
	Abandon() error
}

// Config holds the dependencies of a Log.
type Config struct {
	Space  mvcc.Space // the space of the database
	Store  kv.Store
	Oracle Oracle
	Clock  func() time.Time // the oracle's clock, by which readers time heartbeats
	Secret [16]byte         // a secret of the store: the key of the checksums in partition tokens
}

// Log holds the change streams of one database. It may be used by many goroutines.
//
// Each commit writes its records to the partitions that live at its timestamp. Reshape takes its timestamp T while it
// holds mu, and publishes the new partitions before it unlocks mu. A commit takes its timestamp first and then looks
// up the partitions (At). A commit above T has to wait for mu, and then finds the new partitions. A commit below T
// finds the old partitions, which are kept until the next Reshape. The next Reshape waits until all commits below T
// have finished.
type Log struct {
	cfg Config

	reshaping sync.Mutex // held by a Reshape until its commit has finished, so that only one runs

	mu      sync.RWMutex // guards the fields below, and the stored streams and partitions
	streams map[schema.ChangeStreamID]*stream
	closed  error // the error that readers return; nil while the log is open
}

// Open reads the streams of a database.
func Open(cfg Config) (*Log, error) {
	l := &Log{cfg: cfg, streams: map[schema.ChangeStreamID]*stream{}}
	if err := l.load(); err != nil {
		return nil, fmt.Errorf("open change streams: %w", err)
	}
	return l, nil
}

// Close ends all readers. The parameter why is the error that they return. Readers that begin later return it, too.
func (l *Log) Close(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed != nil {
		return
	}
	l.closed = why
	for _, s := range l.streams {
		s.end(why)
	}
}

// At returns the partitions of a stream that exist at ts, the timestamp of a commit that is still pending. It returns
// nil if there is no such stream.
func (l *Log) At(id schema.ChangeStreamID, ts mvcc.Timestamp) *Partitions {
	l.mu.RLock()
	defer l.mu.RUnlock()
	s := l.streams[id]
	switch {
	case s == nil:
		return nil
	case ts < s.current.from:
		return s.previous
	}
	return s.current
}

// A Change creates and drops streams. It takes effect when its batch has been committed and the caller calls End. The
// caller must call End even if the batch was not committed. Until End returns, the caller must prevent transactions
// from taking commit timestamps.
type Change struct {
	log              *Log
	created, dropped []*stream
}

// Change adds to a batch the creation of those streams in the list that the database does not have yet, and the
// deletion of the streams that are not in the list. The parameter at is the timestamp at which new streams begin.
// bounds returns the keys that divide a new stream into partitions. Deleted streams lose all their records.
func (l *Log) Change(b kv.Batch, streams []*schema.ChangeStream, at mvcc.Timestamp, bounds func(*schema.ChangeStream) [][]byte) (*Change, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := &Change{log: l}
	for _, cs := range streams {
		if l.streams[cs.ID] != nil {
			continue
		}
		s := l.newStream(cs.ID, at, bounds(cs))
		c.created = append(c.created, s)
		err := s.put(b)
		for _, p := range s.current.list {
			err = cmp.Or(err, p.put(b))
		}
		if err != nil {
			return nil, fmt.Errorf("create change stream: %w", err)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.streams)) {
		if slices.ContainsFunc(streams, func(cs *schema.ChangeStream) bool { return cs.ID == id }) {
			continue
		}
		s := l.streams[id]
		c.dropped = append(c.dropped, s)
		if err := s.erase(b); err != nil {
			return nil, fmt.Errorf("drop change stream: %w", err)
		}
	}
	for _, s := range c.dropped {
		s.leaving = true
	}
	return c, nil
}

// End must be called with the result of the batch's Commit, and returns that result. If the commit has succeeded,
// commits and readers see the change from then on.
func (c *Change) End(committed error) error {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range c.dropped {
		s.leaving = false
	}
	if committed != nil {
		return committed
	}
	for _, s := range c.created {
		l.streams[s.id] = s
	}
	for _, s := range c.dropped {
		s.end(nil)
		delete(l.streams, s.id)
	}
	return nil
}

// Bounds returns the start keys of the current partitions of all streams. The keys are not sorted, and may repeat.
func (l *Log) Bounds() (bounds [][]byte) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	for _, s := range l.streams {
		for _, p := range s.current.list {
			if p.start != nil {
				bounds = append(bounds, p.start)
			}
		}
	}
	return bounds
}

// find returns a stream. It returns nil if the stream was dropped, and an error if the log is closed.
func (l *Log) find(id schema.ChangeStreamID) (*stream, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.streams[id], l.closed
}

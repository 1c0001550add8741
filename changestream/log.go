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

// Oracle gives out commit timestamps and knows which are visible. Package txn implements it.
type Oracle interface {
	// Now returns the clock's time, or Visible if that is ahead.
	Now() mvcc.Timestamp
	// Visible returns the watermark: every commit at or below it is stored, with its records, and no later commit gets a timestamp at or
	// below it.
	Visible() mvcc.Timestamp
	// CloseAt makes Visible at least at, which is a timestamp that the clock has shown.
	CloseAt(ctx context.Context, at mvcc.Timestamp) error
	// Begin gives out the timestamp of a commit whose batch is b. Also after an error, the caller must finish or abandon the commit if it is not nil.
	Begin(b kv.Batch) (mvcc.Timestamp, PendingCommit, error)
}

// A PendingCommit is a commit that has its timestamp and is not visible yet. Its methods return when it is visible or given up. So they wait for all
// commits before it.
type PendingCommit interface {
	// Land is called with the result of the batch's Commit. It returns that error, or one of the store. After an error other than kv.ErrRefused it
	// is unknown what the store has kept, and nothing commits any more.
	Finish(committed error) error
	// Abandon gives the timestamp up, instead of a call of the batch's Commit.
	Abandon() error
}

// Config holds the dependencies of a Log.
type Config struct {
	Space  mvcc.Space // of the database
	Store  kv.Store
	Oracle Oracle
	Clock  func() time.Time // the oracle's clock, by which readers time heartbeats
	Secret [16]byte         // keys the checksum of partition tokens; the store keeps it
}

// Log holds the change streams of one database. It may be used by many goroutines.
//
// Each commit writes its records to the partitions that live at its timestamp. Reshape takes its timestamp T while it holds mu, and publishes the
// new partitions before it unlocks mu. A commit takes its timestamp first and then looks up the partitions (At). A commit above T has to wait for
// mu, and finds the new ones. A commit below T finds the old ones, which are kept until the next Reshape. The next Reshape waits until all
// commits below T have finished.
type Log struct {
	cfg Config

	reshaping sync.Mutex // held by one Reshape until its commit has finished

	mu      sync.RWMutex // guards the fields below, and the stored streams and partitions
	streams map[schema.ChangeStreamID]*stream
	closed  error // the error of readers; nil while the log is open
}

// Open reads the streams of a database.
func Open(cfg Config) (*Log, error) {
	l := &Log{cfg: cfg, streams: map[schema.ChangeStreamID]*stream{}}
	if err := l.load(); err != nil {
		return nil, fmt.Errorf("open change streams: %w", err)
	}
	return l, nil
}

// Close ends all readers with the error why. Later readers get it, too.
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

// At returns the partitions of a stream that live at ts, which is the timestamp of a commit that is still pending. It returns nil if there is no
// such stream.
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

// A Change creates and drops streams. It takes effect when its batch has been committed and the caller calls End, which it must do. Until then no
// transaction may take a commit timestamp.
type Change struct {
	log              *Log
	created, dropped []*stream
}

// Change adds to a batch the creation of the streams that the database does not have yet, and the deletion of those that are not in the list. New
// streams begin at a timestamp, with partitions between bounds. Deleted streams lose all records.
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

// End is called with the result of the batch's Commit, and returns that. If it is nil, commits and readers see the change from then on.
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

// Bounds returns the keys at which the living partitions of all streams begin. The keys are not sorted, and may repeat.
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

// find returns a stream, or nil if it was dropped, and the error of a closed log.
func (l *Log) find(id schema.ChangeStreamID) (*stream, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.streams[id], l.closed
}

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

// Oracle says what is visible: package txn's.
type Oracle interface {
	// Now is the clock's time, or Visible if that is ahead.
	Now() mvcc.Timestamp
	// Visible is the newest timestamp at which everything is known: every commit at or below it is stored, with its records, and no other will ever
	// be at or below it.
	Visible() mvcc.Timestamp
	// CloseAt makes Visible at least a timestamp that the clock has shown.
	CloseAt(ctx context.Context, at mvcc.Timestamp) error
	// Take gives out the timestamp of a commit whose batch is b. The flight, unless it is nil, must be landed or abandoned, also after an error.
	Take(b kv.Batch) (mvcc.Timestamp, Flight, error)
}

// A Flight is a commit that has its timestamp and is not visible yet. Its methods return when it is visible, or given up, which waits for all commits
// before it.
type Flight interface {
	// Land is called with what Commit of the batch has returned, and returns that error, or one of the store. An error other than kv.ErrRefused
	// leaves open what the store has kept: then nothing commits any more.
	Land(committed error) error
	// Abandon gives the timestamp up: Commit of the batch was not called.
	Abandon() error
}

// Config is what a Log needs from outside.
type Config struct {
	Space  mvcc.Space // of the database
	Store  kv.Store
	Oracle Oracle
	Clock  func() time.Time // by which readers send heartbeats: the oracle's
	Secret [16]byte         // keys the checksum of partition tokens; the store keeps it
}

// Log is the change streams of one database. It may be used by many goroutines.
//
// The partitions of a commit's records are exact. Reshape takes its timestamp T while it holds mu, and publishes the new partitions before it
// lets go. A commit takes its timestamp first and then looks for partitions (At): above T it must have waited for the new ones, below T it
// finds the old ones, which are kept until the next change. That one waits until all commits below T have landed.
type Log struct {
	cfg Config

	reshaping sync.Mutex // one change of partitions at a time, until it has landed

	mu      sync.RWMutex // guards what follows, and what is stored of it
	streams map[schema.ChangeStreamID]*stream
	closed  error // why readers end; nil while the log is open
}

// Open reads the streams of a database.
func Open(cfg Config) (*Log, error) {
	l := &Log{cfg: cfg, streams: map[schema.ChangeStreamID]*stream{}}
	if err := l.load(); err != nil {
		return nil, fmt.Errorf("open change streams: %w", err)
	}
	return l, nil
}

// Close ends all readers with an error. Later ones get it too.
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

// At is the partitions of a stream that live at the timestamp of a commit that has not landed yet. It is nil if there is no such stream.
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

// A Change is a change of which streams there are. It takes effect when the batch that it was added to has been committed and End is called, which
// must follow; until then no transaction may take a commit timestamp.
type Change struct {
	log              *Log
	created, dropped []*stream
}

// Change adds to a batch what makes the database have these streams and no others. New ones begin at a timestamp, with
// partitions between bounds; those that are gone lose all records.
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

// End is called with what Commit of the batch has returned, and returns that. Without an error, commits and readers see the change from then on.
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

// Bounds are the keys at which the living partitions of all streams begin, in no order; some of them are there several times.
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

// find is a stream; nil if it was dropped.
func (l *Log) find(id schema.ChangeStreamID) (*stream, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.streams[id], l.closed
}

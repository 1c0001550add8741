package stats

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/stats/live"
	"github.com/crowfoot-db/crowfoot/stats/stripe"
)

// Config configures a Collector.
type Config struct {
	Store kv.Store
	Space mvcc.Space // of the database
	Clock func() time.Time
	Log   *slog.Logger
	Live  *live.Lists // of the database
	Task  *cpu.Task   // measures the work of Run; nil for none
	// Off turns recording off: the tables show only intervals that were stored before.
	Off bool
	Sources
}

// Collector holds the statistics of one database. Any goroutine may call its methods.
//
// Records go to the shard of the processor's stripe. A record holds the shard's mutex for a tenth of a microsecond, so the mutex
// is rarely contended. Slow work (closing intervals, the store) holds mu, which records do not take.
type Collector struct {
	cfg    Config
	opened time.Time

	shards []shard
	// past is the number of the last closed minute. A record that ended in it or before counts in the next minute.
	past    atomic.Int64
	sampler sampler

	asideMu sync.Mutex
	aside   []*set // sets of minutes that were over when a record came, not yet stored

	mu        sync.Mutex // guards the fields below
	recovered bool       // the open minute of a former process has been loaded
	rolledUp  [len(resolutions)]int64
	sized     time.Time // end of the last hour whose table sizes are stored
	flushed   time.Time
}

// shard is one part of the open minute.
type shard struct {
	mu    sync.Mutex
	open  *set
	dirty bool     // something was recorded since the last flush
	_     [40]byte // padding, so that shards do not share a cache line
}

// set holds the statistics of one minute, or of one interval.
type set struct {
	minute     int64 // since 1970
	boards     [familyCount]*board
	operations operations
}

// New returns the collector of a database. It first reads the store when a method needs it, and writes only in Advance, Run and
// Close.
func New(cfg Config) *Collector {
	c := &Collector{cfg: cfg, opened: cfg.Clock(), shards: make([]shard, stripe.Count)}
	c.past.Store(minuteOf(c.opened) - 1)
	return c
}

// Run stores intervals as they end and flushes the open minute, until ctx ends.
func (c *Collector) Run(ctx context.Context) {
	if c.cfg.Off {
		return
	}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			c.cfg.Task.Do(ctx, c.advanceAndLog)
		case <-ctx.Done():
			return
		}
	}
}

func (c *Collector) advanceAndLog(context.Context) {
	if err := c.Advance(); err != nil {
		c.cfg.Log.Error("statistics not stored", slog.Any("error", err))
	}
}

// Close stores the open minute durably, unless the store takes no writes. Nothing may be recorded afterwards.
func (c *Collector) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.Store.Writable() != nil {
		return nil
	}
	now := c.cfg.Clock()
	return errors.Join(c.advance(now), c.flush(now, kv.Batch.Commit))
}

// enter locks and returns the shard of the current processor.
func (c *Collector) enter() *shard {
	s := &c.shards[stripe.Current()]
	s.mu.Lock()
	s.dirty = true
	return s
}

// at returns the set for an event that ended at the given time. The caller holds the shard's lock.
func (s *shard) at(c *Collector, end time.Time) *set {
	minute := minuteOf(end)
	if s.open != nil && minute <= s.open.minute {
		return s.open
	}
	if s.open != nil {
		c.setAside(s.open)
	}
	// past is stored before the shards are emptied. So if a record still finds an old past, its shard is emptied afterwards.
	s.open = &set{minute: max(minute, c.past.Load()+1)}
	return s.open
}

func (c *Collector) setAside(s *set) {
	c.asideMu.Lock()
	defer c.asideMu.Unlock()
	c.aside = append(c.aside, s)
}

// board returns the set's board of a family, and creates it if there is none.
func (s *set) board(family int) *board {
	if s.boards[family] == nil {
		s.boards[family] = newBoard(families[family])
	}
	return s.boards[family]
}

// operate counts operations on tables and columns.
func (s *set) operate(accesses []*Access) {
	for _, a := range accesses {
		s.operateOne(a)
	}
}

func (s *set) operateOne(a *Access) {
	if s.operations.count(a) {
		s.addOperations()
	}
}

func (s *set) addOperations() {
	if len(s.operations.counts) > 0 {
		s.operations.addTo(s.board(tableOperations), s.board(columnOperations))
	}
}

// Operations counts accesses that belong to no query and no read: the accesses of a commit's mutations.
func (c *Collector) Operations(end time.Time, accesses []*Access) {
	if c.cfg.Off {
		return
	}
	s := c.enter()
	defer s.mu.Unlock()
	s.at(c, end).operate(accesses)
}

// merge adds another set, which the caller must not use afterwards.
func (s *set) merge(o *set) {
	o.addOperations()
	for i, b := range o.boards {
		if b != nil {
			s.board(i).merge(b)
		}
	}
}

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

// Config is what a Collector needs from outside.
type Config struct {
	Store kv.Store
	Space mvcc.Space // of the database
	Clock func() time.Time
	Log   *slog.Logger
	Live  *live.Lists // of the database
	Task  *cpu.Task   // measures what Run does; nil for none
	// Off makes a Collector that takes nothing in: its tables show what was stored before, and no executions.
	Off bool
	Sources
}

// Collector holds the statistics of one database. Its methods may be called by any goroutine.
//
// Records go to the shard of the processor's stripe, so that the mutex of a shard, held for a tenth of a microsecond, is
// rarely contended. Slow work (closing intervals, the
// store) holds mu, and recording does not take mu.
type Collector struct {
	cfg    Config
	opened time.Time

	shards []shard
	// past is the number of the last minute that is closed. A record that ended in it or before counts in the minute after it.
	past    atomic.Int64
	sampler sampler

	asideMu sync.Mutex
	aside   []*set // full sets of minutes that a record found over

	mu        sync.Mutex // guards what follows
	recovered bool       // what a former process left has been taken up
	rolledUp  [len(resolutions)]int64
	sized     time.Time // end of the last hour whose table sizes are stored
	flushed   time.Time
}

// shard is a part of the open minute.
type shard struct {
	mu    sync.Mutex
	open  *set
	dirty bool     // something was recorded since the last flush
	_     [40]byte // so that shards do not share a cache line
}

// set is what happened in one minute, or one interval.
type set struct {
	minute     int64 // since 1970
	boards     [familyCount]*board
	operations operations
}

// New makes the collector of a database. It reads the store when it is first asked to, and writes in Run and Close.
func New(cfg Config) *Collector {
	c := &Collector{cfg: cfg, opened: cfg.Clock(), shards: make([]shard, stripe.Count)}
	c.past.Store(minuteOf(c.opened) - 1)
	return c
}

// Run closes intervals as they end and flushes what is open, until ctx ends.
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

// Close stores what is open, durably, unless the store takes no writes. Nothing may be recorded afterwards.
func (c *Collector) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.Store.Writable() != nil {
		return nil
	}
	now := c.cfg.Clock()
	return errors.Join(c.advance(now), c.flush(now, kv.Batch.Commit))
}

// enter locks a shard.
func (c *Collector) enter() *shard {
	s := &c.shards[stripe.Current()]
	s.mu.Lock()
	s.dirty = true
	return s
}

// at is the set that something which ended at a time counts in. The shard is locked.
func (s *shard) at(c *Collector, end time.Time) *set {
	minute := minuteOf(end)
	if s.open != nil && minute <= s.open.minute {
		return s.open
	}
	if s.open != nil {
		c.setAside(s.open)
	}
	// past is stored before shards are emptied, so a record that still finds an old value goes into a shard that is emptied afterwards.
	s.open = &set{minute: max(minute, c.past.Load()+1)}
	return s.open
}

func (c *Collector) setAside(s *set) {
	c.asideMu.Lock()
	defer c.asideMu.Unlock()
	c.aside = append(c.aside, s)
}

// board is the set's board of a family.
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

// Operations counts accesses that belong to no query and no read: those of a commit's mutations.
func (c *Collector) Operations(end time.Time, accesses []*Access) {
	if c.cfg.Off {
		return
	}
	s := c.enter()
	defer s.mu.Unlock()
	s.at(c, end).operate(accesses)
}

// merge adds another set, which may not be used afterwards.
func (s *set) merge(o *set) {
	o.addOperations()
	for i, b := range o.boards {
		if b != nil {
			s.board(i).merge(b)
		}
	}
}

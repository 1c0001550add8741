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
	Space mvcc.Space // key space of the database
	Clock func() time.Time
	Log   *slog.Logger
	Live  *live.Lists // current activity of the database
	Task  *cpu.Task   // measures the CPU time of Run; nil for no measurement
	// Off turns recording off. The tables then show only intervals that were stored before.
	Off bool
	Sources
}

// Collector collects the statistics of one database. Any goroutine may call its methods.
//
// There is one shard for each stripe of processors (stats/stripe), and a goroutine records an event in the shard of its
// processor. Recording locks the shard's mutex for a tenth of a microsecond, so goroutines rarely wait for it. The slow
// work, which is to store intervals that have ended, is done under mu, which recording does not lock.
type Collector struct {
	cfg    Config
	opened time.Time

	shards []shard
	// past is the newest minute to which no more events are added, as a number of minutes since 1970. An event that
	// ended in this minute or earlier, but is recorded only now, is counted in the minute after past.
	past    atomic.Int64
	sampler sampler

	asideMu sync.Mutex
	aside   []*set // sets that are no longer in a shard and not yet stored; guarded by asideMu

	mu        sync.Mutex // guards the fields below
	recovered bool       // whether the unfinished minute of an earlier process was loaded (see loadOpen)
	rolledUp  [len(resolutions)]int64
	sized     time.Time // end of the last hour for which table sizes are stored
	flushed   time.Time
}

// shard holds a part of the current minute's statistics: the events that the processors of one stripe recorded.
type shard struct {
	mu    sync.Mutex
	open  *set
	dirty bool     // something was recorded since the last flush
	_     [40]byte // keeps the mutexes of different shards in different cache lines
}

// set holds the statistics of one minute, or the part of them that one shard has recorded.
type set struct {
	minute     int64 // number of the minute since 1970
	boards     [familyCount]*board
	operations operations
}

// New returns the collector of a database. New does not use the store. The Collector's methods read the store when they
// need it, and only Advance, Run and Close write it.
func New(cfg Config) *Collector {
	c := &Collector{cfg: cfg, opened: cfg.Clock(), shards: make([]shard, stripe.Count)}
	c.past.Store(minuteOf(c.opened) - 1)
	return c
}

// Run stores the statistics of intervals that have ended. Every flushInterval it also stores those of the current
// minute, so that a crash loses little. It returns when ctx ends.
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

// Close stores the statistics of the current minute durably. If the store takes no writes, Close does nothing. Callers
// must not record anything after Close.
func (c *Collector) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cfg.Store.Writable() != nil {
		return nil
	}
	now := c.cfg.Clock()
	return errors.Join(c.advance(now), c.flush(now, kv.Batch.Commit))
}

// enter returns the shard of the current processor, with its mutex locked.
func (c *Collector) enter() *shard {
	s := &c.shards[stripe.Current()]
	s.mu.Lock()
	s.dirty = true
	return s
}

// at returns the shard's set for an event that ended at the given time. The caller holds the shard's mutex.
func (s *shard) at(c *Collector, end time.Time) *set {
	minute := minuteOf(end)
	if s.open != nil && minute <= s.open.minute {
		return s.open
	}
	if s.open != nil {
		c.setAside(s.open)
	}
	// The method advance raises c.past before it empties the shards. So if this call reads the old value of c.past,
	// advance empties this shard later, and the event is not lost.
	s.open = &set{minute: max(minute, c.past.Load()+1)}
	return s.open
}

func (c *Collector) setAside(s *set) {
	c.asideMu.Lock()
	defer c.asideMu.Unlock()
	c.aside = append(c.aside, s)
}

// board returns the set's board of a family. It creates the board if there is none.
func (s *set) board(family int) *board {
	if s.boards[family] == nil {
		s.boards[family] = newBoard(families[family])
	}
	return s.boards[family]
}

// operate counts one operation for each access in the list.
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

// Operations counts accesses that belong to neither a query nor a read: those of a commit's mutations.
func (c *Collector) Operations(end time.Time, accesses []*Access) {
	if c.cfg.Off {
		return
	}
	s := c.enter()
	defer s.mu.Unlock()
	s.at(c, end).operate(accesses)
}

// merge adds another set to s. The caller must not use the other set afterwards.
func (s *set) merge(o *set) {
	o.addOperations()
	for i, b := range o.boards {
		if b != nil {
			s.board(i).merge(b)
		}
	}
}

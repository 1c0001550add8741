package copies

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/database/background"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A commit does nothing for columnar copies. Instead, one goroutine of each database, the upkeep, keeps its copies up to date. It sleeps while there are none. It
// does three things:
//
//   - It counts the rows of each chunk that have changed since the chunk was copied (copyChanges). It does so after commits, in
//     passes that read the changes only.
//   - It writes chunks for keys that have no chunk, or none with all columns. It rewrites a chunk when many of its rows have changed,
//     and merges neighbours after rows were deleted.
//   - It gives chunks in which no row has changed a new timestamp, before garbage collection may remove the versions that a read at
//     the old timestamp needs.
//
// Only one database of the store writes chunks at a time. After each chunk the upkeep rests for as long as the chunk
// took, or restBesideCommits times as long if there were commits and the chunk was copied before. So it takes at most
// half a core, or a tenth. If changes come faster than the upkeep can follow, more rows of each chunk have changed when
// its turn comes, so that the work for each change becomes less.
const (
	restBesideCommits = 9
	// countEvery is the shortest time between two passes. The upkeep looks for commits as often.
	countEvery = time.Second
	// AfterRefusal is how long the upkeep waits when the disk or the memory is full, and afterFailure how long after
	// any other error.
	AfterRefusal = 10 * time.Second
	afterFailure = time.Minute
	// Forever is the pause while a database has no copies.
	Forever time.Duration = 1<<63 - 1
	// settling is how long the upkeep waits after a schema change, since many often come in a row.
	settling = 100 * time.Millisecond
)

// Config configures an Upkeep.
type Config struct {
	Rows         *mvcc.Versions
	Transactions *txn.Manager
	Catalog      func() *schema.Catalog
	Copies       *columnar.Copies
	Clock        func() time.Time
	Log          *slog.Logger
	Memory       *memory.Budget   // is charged what writing a chunk takes; nil counts nothing
	Task         *cpu.Task        // measures the CPU time
	Token        background.Token // held while a chunk is written and in the rest after it: only one database of the store writes at a time
}

// Upkeep keeps the columnar copies of a database up to date.
type Upkeep struct {
	cfg   Config
	Work  background.Task
	woken chan struct{} // holds a token when the catalog has changed

	StepMu  sync.Mutex      // held for a step; guards the fields up to Took. A test that holds it makes all steps itself.
	catalog *schema.Catalog // from which wanted was made; nil before the first step
	wanted  []*wantedCopy   // in the order of the tables, each followed by its indexes
	changes copyChanges
	commits uint64     // number of the database's commits when the last work ended
	queue   []copyWork // work that is due, in the order in which it is done
	looked  time.Time  // when the queue was made
	// retention is the retention period when the queue was made.
	retention time.Duration
	Took      time.Duration // CPU time of the last pass over changes

	mu      sync.Mutex
	changed map[schema.TableID]int64 // number of rows of a copy that have changed since they were copied, approximately
}

// wantedCopy is the copy of a table or index whose columnar_policy is 'enabled'.
type wantedCopy struct {
	table      *schema.Table
	index      *schema.Index // nil for the table itself
	layout     *table.Layout
	projection *table.Projection // all columns; made at first use
	*columnar.Copy

	due  bool      // it may need work
	look time.Time // when to look at it again, even if nothing changes
}

// New returns an Upkeep that has not looked at the copies yet.
func New(cfg Config) *Upkeep {
	return &Upkeep{cfg: cfg, woken: make(chan struct{}, 1), changed: map[schema.TableID]int64{}}
}

// Wake makes the upkeep look at the newest catalog.
func (u *Upkeep) Wake() {
	select {
	case u.woken <- struct{}{}:
	default:
	}
}

// Run keeps the columnar copies up to date until ctx ends.
func (u *Upkeep) Run(ctx context.Context) {
	for ctx.Err() == nil {
		pause := u.Once(ctx)
		if pause == 0 {
			continue
		}
		timer := time.NewTimer(pause)
		if pause == Forever {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-u.woken:
			timer.Stop()
			background.Sleep(ctx, settling)
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// Once takes the next step, and returns the pause after it. It logs an error.
func (u *Upkeep) Once(ctx context.Context) (pause time.Duration) {
	u.StepMu.Lock()
	defer u.StepMu.Unlock()
	err := u.follow(u.cfg.Catalog())
	if err == nil && len(u.wanted) == 0 && u.cfg.Copies.Swept() {
		return Forever
	}
	now := u.cfg.Clock()
	if err == nil {
		pause, err = u.Step(ctx)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return Forever
	case errors.Is(err, kv.ErrRefused) || usererror.IsExhausted(err):
		pause = AfterRefusal
	default:
		u.cfg.Log.Error("keep columnar copies up", slog.Any("error", err))
		pause = afterFailure
	}
	u.Work.Ran(now, err)
	return pause
}

// Step follows the catalog, counts changes if a pass is due, and does the first work in the queue. The caller holds
// StepMu.
func (u *Upkeep) Step(ctx context.Context) (pause time.Duration, err error) {
	if err := u.follow(u.cfg.Catalog()); err != nil {
		return 0, err
	}
	if err := u.cfg.Copies.Sweep(); err != nil && !errors.Is(err, kv.ErrRefused) {
		return 0, err
	}
	if len(u.wanted) == 0 {
		if !u.cfg.Copies.Swept() {
			return AfterRefusal, nil
		}
		return Forever, nil
	}
	if u.countIsDue() {
		u.cfg.Task.Do(ctx, func(ctx context.Context) { err = u.Count(ctx) })
		if err != nil {
			return 0, err
		}
	}
	u.cfg.Task.Do(ctx, func(context.Context) { u.lookForWork() })
	if len(u.queue) == 0 {
		return countEvery, nil
	}
	return 0, u.work(ctx)
}

// follow sets wanted to the copies that a catalog asks for, and drops all other copies.
func (u *Upkeep) follow(c *schema.Catalog) error {
	if c == u.catalog {
		return nil
	}
	before, wanted := map[schema.TableID]*wantedCopy{}, map[schema.TableID]bool{}
	for _, w := range u.wanted {
		before[w.layout.ID()] = w
	}
	u.requeue()
	u.wanted = nil
	add := func(t *schema.Table, x *schema.Index, layout *table.Layout) {
		w := before[layout.ID()]
		if w == nil || w.table != t {
			w = &wantedCopy{table: t, index: x, layout: layout, due: true}
		}
		w.Copy = u.cfg.Copies.Make(layout.ID())
		u.wanted, wanted[layout.ID()] = append(u.wanted, w), true
	}
	for t := range c.Tables() {
		if c.TableIsColumnar(t) {
			add(t, nil, table.TableLayout(t))
		}
		for _, x := range t.Indexes {
			if x.State == schema.IndexReadWrite && c.IndexIsColumnar(x) {
				add(t, x, table.IndexLayout(x))
			}
		}
	}
	for _, have := range u.cfg.Copies.All() {
		if !wanted[have.ID()] {
			if err := u.cfg.Copies.Drop(have.ID()); err != nil {
				return err // the next step calls follow again
			}
		}
	}
	u.changes.follow(c, u.wanted)
	u.catalog = c
	return nil
}

// columns returns the projection of the copy, which has all columns.
func (w *wantedCopy) columns() (p *table.Projection, err error) {
	if w.projection == nil {
		w.projection, err = columnar.Columns(w.table, w.index)
	}
	return w.projection, err
}

// space returns the range of all keys of the table or index.
func (w *wantedCopy) space() table.Span {
	span, _ := w.layout.Space()
	return span
}

// Policies returns the rows of SPANNER_SYS.COLUMNAR_POLICIES: one for each table and index that has a columnar
// copy.
func (u *Upkeep) Policies() (list []stats.ColumnarPolicy) {
	u.mu.Lock()
	changed := maps.Clone(u.changed)
	u.mu.Unlock()
	c := u.cfg.Catalog()
	for l := range table.Layouts(c) {
		if !c.TableIsColumnar(l.Table) && l.Index == nil || l.Index != nil && !c.IndexIsColumnar(l.Index) {
			continue
		}
		row := stats.ColumnarPolicy{Table: l.Table.FullName(), Changed: changed[l.ID()]}
		if l.Index != nil {
			row.Index = l.Index.FullName()
		}
		for _, chunk := range u.cfg.Copies.Of(l.ID()).Chunks() {
			row.Chunks, row.Rows, row.Bytes = row.Chunks+1, row.Rows+chunk.Rows, row.Bytes+chunk.Bytes
			if at := chunk.At.Time(); row.Oldest.IsZero() || at.Before(row.Oldest) {
				row.Oldest = at
			}
		}
		p, err := columnar.Columns(l.Table, l.Index)
		if err != nil {
			continue
		}
		space, _ := l.Space()
		read := columnar.Read{Projection: p, Spans: []table.Span{space}, At: u.cfg.Transactions.Now()}
		row.Missing = int64(len(u.cfg.Copies.Of(l.ID()).Estimate(read).Rest))
		list = append(list, row)
	}
	return list
}

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

// A commit does nothing for columnar copies. Instead, each database has one goroutine, the upkeep, which keeps its
// copies up to date and sleeps while there are none. It does three things:
//
//   - It counts the rows of each chunk that have changed since the chunk was copied (copyChanges). It does so after
//     commits, in passes that read the changes only.
//   - It writes chunks for keys that have no chunk yet, or only a chunk without some of the columns. It rewrites a chunk
//     when many of its rows have changed, and merges neighbouring chunks after rows were deleted.
//   - It gives a new timestamp to chunks in which no row has changed, before garbage collection may remove the versions
//     that a read at the old timestamp needs.
//
// Only one database of the store writes chunks at a time. After a chunk the upkeep pauses for as long as writing the
// chunk took. If there were commits since the last chunk, and the chunk replaces an older one, it pauses
// restBesideCommits times as long. So the upkeep uses at most half a core, or a tenth of a core while there are
// commits. If rows change faster than the upkeep can follow, more rows of a chunk have changed when the chunk is
// rewritten, so that the work for each changed row becomes less.
const (
	restBesideCommits = 9
	// countEvery is the shortest time between two passes over changes. It is also the pause after a step that found no
	// work.
	countEvery = time.Second
	// AfterRefusal is the pause after a step that failed because the disk or the memory is full. afterFailure is the
	// pause after any other error.
	AfterRefusal = 10 * time.Second
	afterFailure = time.Minute
	// Forever is the pause while a database has no copies. Only Wake ends it.
	Forever time.Duration = 1<<63 - 1
	// settling is how long the upkeep waits after a schema change before it looks at the catalog, since many schema
	// changes often follow each other.
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
	Memory       *memory.Budget   // charged for the memory that writing a chunk needs; nil counts nothing
	Task         *cpu.Task        // measures the CPU time of the upkeep
	Token        background.Token // held while a chunk is written and in the pause after it; shared by all databases
}

// Upkeep keeps the columnar copies of a database up to date.
type Upkeep struct {
	cfg    Config
	Status background.Task
	woken  chan struct{} // has an element if Wake was called and Run has not noticed it yet

	StepMu  sync.Mutex      // held for a step; guards the fields up to Took. A test that holds it makes all steps itself.
	catalog *schema.Catalog // the catalog from which the field wanted was made; nil if wanted must be made anew
	wanted  []*wantedCopy   // copies that the field catalog asks for; the copy of a table precedes those of its indexes
	changes copyChanges
	commits uint64     // how many commits the database had made when the last chunk was written
	queue   []copyWork // work that is due, the most urgent first
	looked  time.Time  // when lookForWork last filled the queue
	// retention is the version retention period when lookForWork last filled the queue. If the period has changed
	// since, lookForWork looks at all copies again.
	retention time.Duration
	Took      time.Duration // CPU time that the last pass over changes used

	mu      sync.Mutex
	changed map[schema.TableID]int64 // by table or index: about how many rows have changed since they were copied
}

// wantedCopy is the copy of a table or index whose columnar_policy is 'enabled'.
type wantedCopy struct {
	table      *schema.Table
	index      *schema.Index // nil for the table itself
	layout     *table.Layout
	projection *table.Projection // has all columns; made at first use
	*columnar.Copy

	due  bool      // the copy may need work
	look time.Time // when to look for work on the copy again, even if no row changes
}

// New returns an Upkeep that has not made a step yet.
func New(cfg Config) *Upkeep {
	return &Upkeep{cfg: cfg, woken: make(chan struct{}, 1), changed: map[schema.TableID]int64{}}
}

// Wake ends the pause of Run, so that the upkeep looks at the newest catalog.
func (u *Upkeep) Wake() {
	select {
	case u.woken <- struct{}{}:
	default:
	}
}

// Run makes steps until ctx ends.
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

// Once makes the next step and returns the pause after it. If the step fails, it returns a longer pause. It logs the
// error, unless the disk or the memory is full or ctx has ended.
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
	u.Status.Ran(now, err)
	return pause
}

// Step makes one step: it finds out which copies the newest catalog asks for, counts changes if a pass is due, and does
// the first work in the queue. It returns the pause before the next step. The caller holds StepMu.
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

// follow makes the list u.wanted of the columnar copies that catalog c asks for, and drops all other copies.
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

// columns returns the projection of the copy: all columns of the table or index.
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

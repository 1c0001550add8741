package database

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/database/background"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// The tables and indexes whose columnar_policy is 'enabled' have columnar copies. A commit does nothing for them.
// Instead, one goroutine of each database, the upkeep, keeps its copies up to date. It sleeps while there are none. It
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
	// afterRefusal is how long the upkeep waits when the disk or the memory is full, and afterFailure how long after
	// any other error.
	afterRefusal = 10 * time.Second
	afterFailure = time.Minute
	// settling is how long the upkeep waits after a schema change, since many often come in a row.
	settling = 100 * time.Millisecond
)

// copying holds the columnar copies of a database and the state of their upkeep.
type copying struct {
	background.Task
	copies *columnar.Copies
	woken  chan struct{} // holds a token when the catalog has changed
	stepMu sync.Mutex    // held for a step of the upkeep
	upkeep upkeep        // guarded by stepMu

	mu      sync.Mutex
	changed map[schema.TableID]int64 // number of rows of a copy that have changed since they were copied, approximately
}

// openCopies opens the stored columnar copies.
func (d *Database) openCopies() (err error) {
	d.copying.woken = make(chan struct{}, 1)
	d.copying.upkeep.Database, d.copying.changed = d, map[schema.TableID]int64{}
	d.copying.copies, err = columnar.Open(d.rows)
	return err
}

// Copies returns the columnar copies of the tables and indexes. A read at any timestamp looks up the copy of its table
// or index by number. The copy itself leaves out what it cannot serve at that timestamp.
func (d *Database) Copies() *columnar.Copies { return d.copying.copies }

// wake makes the upkeep look at the newest catalog.
func (c *copying) wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

// keepCopies keeps the columnar copies up until ctx ends.
func (d *Database) keepCopies(ctx context.Context) {
	c := &d.copying
	for ctx.Err() == nil {
		pause := c.step(ctx)
		if pause == 0 {
			continue
		}
		timer := time.NewTimer(pause)
		if pause == forever {
			timer.Stop()
		}
		select {
		case <-timer.C:
		case <-c.woken:
			timer.Stop()
			background.Sleep(ctx, settling)
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// forever is the pause while a database has no copies.
const forever time.Duration = 1<<63 - 1

// step takes the next step of the upkeep, and returns the pause after it.
func (c *copying) step(ctx context.Context) (pause time.Duration) {
	c.stepMu.Lock()
	defer c.stepMu.Unlock()
	u := &c.upkeep
	err := u.follow(u.Catalog())
	if err == nil && len(u.wanted) == 0 && u.copying.copies.Swept() {
		return forever
	}
	now := u.registry.cfg.Clock()
	if err == nil {
		pause, err = u.step(ctx)
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return forever
	case errors.Is(err, kv.ErrRefused) || usererror.IsExhausted(err):
		pause = afterRefusal
	default:
		u.log().Error("keep columnar copies up", slog.Any("error", err))
		pause = afterFailure
	}
	c.Ran(now, err)
	return pause
}

// upkeep is the state of the goroutine that keeps the copies up to date.
type upkeep struct {
	*Database
	catalog *schema.Catalog // from which wanted was made; nil before the first step
	wanted  []*wantedCopy   // in the order of the tables, each followed by its indexes
	changes copyChanges
	commits uint64     // number of the database's commits when the last work ended
	queue   []copyWork // work that is due, in the order in which it is done
	looked  time.Time  // when the queue was made
	// retention is the retention period when the queue was made.
	retention time.Duration
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

// step follows the catalog, counts changes if a pass is due, and does the first work in the queue.
func (u *upkeep) step(ctx context.Context) (pause time.Duration, err error) {
	if err := u.follow(u.Catalog()); err != nil {
		return 0, err
	}
	if err := u.copying.copies.Sweep(); err != nil && !errors.Is(err, kv.ErrRefused) {
		return 0, err
	}
	if len(u.wanted) == 0 {
		if !u.copying.copies.Swept() {
			return afterRefusal, nil
		}
		return forever, nil
	}
	account := u.registry.account.Task(taskCopies)
	if u.changes.isTime(u.registry.cfg.Clock(), u.txns.Commits()) {
		account.Do(ctx, func(ctx context.Context) { err = u.count(ctx) })
		if err != nil {
			return 0, err
		}
	}
	account.Do(ctx, func(context.Context) { u.lookForWork() })
	if len(u.queue) == 0 {
		return countEvery, nil
	}
	return 0, u.work(ctx)
}

// follow sets wanted to the copies that a catalog asks for, and drops all other copies.
func (u *upkeep) follow(c *schema.Catalog) error {
	if c == u.catalog {
		return nil
	}
	before := map[schema.TableID]*wantedCopy{}
	for _, w := range u.wanted {
		before[w.layout.ID()] = w
	}
	u.requeue()
	u.wanted = nil
	add := func(t *schema.Table, x *schema.Index) {
		id := t.ID
		if x != nil {
			id = x.ID
		}
		w := before[id]
		if w == nil || w.table != t {
			w = &wantedCopy{table: t, index: x, due: true}
		}
		delete(before, id)
		u.wanted = append(u.wanted, w)
	}
	for t := range c.Tables() {
		if c.TableIsColumnar(t) {
			add(t, nil)
		}
		for _, x := range t.Indexes {
			if x.State == schema.IndexReadWrite && c.IndexIsColumnar(x) {
				add(t, x)
			}
		}
	}
	wanted := map[schema.TableID]bool{}
	for _, w := range u.wanted {
		w.prepare(u.copying.copies)
		wanted[w.layout.ID()] = true
	}
	for _, have := range u.copying.copies.All() {
		if !wanted[have.ID()] {
			if err := u.copying.copies.Drop(have.ID()); err != nil {
				return err // the next step calls follow again
			}
		}
	}
	u.changes.follow(c, u.wanted)
	u.catalog = c
	return nil
}

// prepare sets the layout and the copy of a new wantedCopy.
func (w *wantedCopy) prepare(copies *columnar.Copies) {
	if w.layout == nil {
		if w.index == nil {
			w.layout = table.TableLayout(w.table)
		} else {
			w.layout = table.IndexLayout(w.index)
		}
	}
	w.Copy = copies.Make(w.layout.ID())
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

// source returns the source from which a chunk is written: a snapshot of now with the columns of its catalog. The
// caller closes src.Memory.
func (u *upkeep) source(ctx context.Context, w *wantedCopy) (src columnar.Source, err error) {
	if src.Projection, err = w.columns(); err != nil {
		return src, err
	}
	snapshot, err := u.txns.Snapshot(ctx, txn.Bound{Kind: txn.Strong})
	if err != nil {
		return src, err
	}
	src.View, src.At = snapshot, snapshot.Timestamp()
	if budget := u.registry.cfg.Memory; budget != nil {
		src.Memory = budget.Open(memory.Spilling)
	}
	return src, nil
}

// damaged reports whether an error says that stored data is damaged.
func damaged(err error) bool { return usererror.CodeOf(err) == codes.DataLoss }

// ColumnarPolicies returns the rows of SPANNER_SYS.COLUMNAR_POLICIES: one for each table and index that has a columnar
// copy.
func (d *Database) ColumnarPolicies() (list []stats.ColumnarPolicy) {
	d.copying.mu.Lock()
	changed := maps.Clone(d.copying.changed)
	d.copying.mu.Unlock()
	c := d.Catalog()
	for l := range table.Layouts(c) {
		if !c.TableIsColumnar(l.Table) && l.Index == nil || l.Index != nil && !c.IndexIsColumnar(l.Index) {
			continue
		}
		row := stats.ColumnarPolicy{Table: l.Table.FullName(), Changed: changed[l.ID()]}
		if l.Index != nil {
			row.Index = l.Index.FullName()
		}
		for _, chunk := range d.copying.copies.Of(l.ID()).Chunks() {
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
		read := columnar.Read{Projection: p, Spans: []table.Span{space}, At: d.txns.Now()}
		row.Missing = int64(len(d.copying.copies.Of(l.ID()).Estimate(read).Rest))
		list = append(list, row)
	}
	return list
}

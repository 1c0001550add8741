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
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// The tables and indexes whose columnar_policy is 'enabled' have columnar copies. A commit does nothing for them. One goroutine of each database keeps its
// copies up, and sleeps while there are none:
//
//   - It counts what has changed in each chunk since it was copied (copyChanges), after commits, in passes over the changes alone.
//   - It writes chunks of what has not been copied, or not with the columns that there are now, and writes those anew of which much has changed. Where
//     rows were deleted, neighbours become one chunk.
//   - It gives chunks in which no commit has changed a row a new timestamp, before garbage collection may remove the versions that a read of them needs.
//
// Chunks are written in one database of the store at a time, and after each the upkeep rests as long as that took, or restBesideCommits times as long if there
// were commits and the chunk has been copied before: it takes half or a tenth of a core at most. When more changes than it can follow, more of each chunk has changed
// when its turn comes, so that the work for each change becomes less.
const (
	restBesideCommits = 9
	// countEvery is the shortest time between two passes, and how often the upkeep looks for commits.
	countEvery = time.Second
	// afterRefusal is how long the upkeep waits when the disk is full or the memory taken, and afterFailure after an error that should not be.
	afterRefusal = 10 * time.Second
	afterFailure = time.Minute
	// settling is how long it waits after a schema change: many come in a row.
	settling = 100 * time.Millisecond
)

// copying is the columnar copies of a database, and their upkeep.
type copying struct {
	task
	copies *columnar.Copies
	woken  chan struct{} // holds a token when the catalog has changed
	turn   sync.Mutex    // held for a step of the upkeep
	upkeep upkeep        // guarded by turn

	mu      sync.Mutex
	changed map[schema.TableID]int64 // about how many rows of a copy have changed since they were copied
}

// openCopies reads which columnar copies there are.
func (d *Database) openCopies() (err error) {
	d.copying.woken = make(chan struct{}, 1)
	d.copying.upkeep.Database, d.copying.changed = d, map[schema.TableID]int64{}
	d.copying.copies, err = columnar.Open(d.rows)
	return err
}

// Copies are the columnar copies of the tables and indexes. A read finds the one of its table or index by number, at every timestamp: a copy knows what
// it cannot serve.
func (d *Database) Copies() *columnar.Copies { return d.copying.copies }

// wake has the upkeep look at the newest catalog.
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
			sleep(ctx, settling)
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// forever is the pause of a database without copies.
const forever time.Duration = 1<<63 - 1

// step does what is to be done first, and says when to come again.
func (c *copying) step(ctx context.Context) (pause time.Duration) {
	c.turn.Lock()
	defer c.turn.Unlock()
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
	c.ran(now, err)
	return pause
}

// upkeep is what the goroutine knows that keeps the copies up.
type upkeep struct {
	*Database
	catalog *schema.Catalog // that wanted follows from; nil before the first step
	wanted  []*wantedCopy   // in the order of their numbers
	changes copyChanges
	commits uint64     // of the database when the last work ended
	queue   []copyWork // what is due, in the order in which it is done
	looked  time.Time  // when the queue was made
	// retention is the retention period at that time.
	retention time.Duration
}

// wantedCopy is the copy of a table or an index whose columnar_policy is 'enabled'.
type wantedCopy struct {
	table      *schema.Table
	index      *schema.Index // nil: the table itself
	layout     *table.Layout
	projection *table.Projection // to all columns; made when it is first needed
	*columnar.Copy

	due  bool      // something of it may be to be done
	look time.Time // when it must be looked at again, even if nothing changes
}

// step follows the catalog, then counts changes if it is time to, then does the first work in the queue.
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
	if u.changes.isTime(u.registry.cfg.Clock(), u.txns.Landed()) {
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

// follow makes wanted the copies that a catalog wants, and drops the others.
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
				return err // and the next step begins here again
			}
		}
	}
	u.changes.follow(c, u.wanted)
	u.catalog = c
	return nil
}

// prepare makes what a new one lacks.
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

// columns is the projection to all columns of the copy.
func (w *wantedCopy) columns() (p *table.Projection, err error) {
	if w.projection == nil {
		w.projection, err = columnar.Columns(w.table, w.index)
	}
	return w.projection, err
}

// space are all keys of the table or index.
func (w *wantedCopy) space() table.Span {
	span, _ := w.layout.Space()
	return span
}

// source is where a chunk is written from: a snapshot of now, with the columns of the catalog of that time.
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

// damaged says whether an error is about what is stored.
func damaged(err error) bool { return usererror.CodeOf(err) == codes.DataLoss }

// ColumnarPolicies are the rows of SPANNER_SYS.COLUMNAR_POLICIES: the tables and indexes that have columnar copies.
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

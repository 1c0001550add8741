package database

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crowfoot-db/crowfoot/database/background"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// collectEvery is how often old versions are collected. A pass reads every version. That costs a second of CPU for a
// million rows, and evicts blocks of other reads from the block cache. The shortest retention period is one hour, for
// which four passes are enough.
const collectEvery = 15 * time.Minute

// checkpointLife is how long the checkpoint of an interrupted job is kept, so that the job can be resumed.
const checkpointLife = 24 * time.Hour

// collectGarbage removes data that no read can see any more, every collectEvery until ctx ends.
func (r *Registry) collectGarbage(ctx context.Context) {
	for background.Sleep(ctx, collectEvery) {
		r.account.Task(taskCollection).Do(ctx, r.collectOnce)
	}
}

func (r *Registry) collectOnce(ctx context.Context) {
	if err := r.sweepOperations(); err != nil {
		r.cfg.Log.Error("forget operations", "error", err)
	}
	if err := r.oracle.ForgetOutcomes(); err != nil {
		r.cfg.Log.Error("forget outcomes of commits", "error", err)
	}
	for _, d := range *r.databases.Load() {
		if err := d.background.WhileOpen(ctx, d.collect); err != nil && ctx.Err() == nil && !d.Dropped() {
			d.log().Error("collect old versions", "error", err)
		}
	}
}

// collect removes row versions and schema versions older than the retention period, expired split points, old
// checkpoints and old records of change streams.
func (d *Database) collect(ctx context.Context) (err error) {
	horizon := d.txns.Earliest()
	defer func() { d.collection.Ran(horizon.Time(), err) }()
	if err := d.splits.SweepPoints(); err != nil {
		return err
	}
	if err := d.jobs.ForgetOlder(ctx, "", d.registry.cfg.Clock().Add(-checkpointLife)); err != nil {
		return fmt.Errorf("forget checkpoints: %w", err)
	}
	if err := d.collectStreams(); err != nil {
		return err
	}
	past := d.findObsolete(horizon)
	if _, err := d.txns.Collect(ctx, horizon, past.owns()); err != nil {
		return fmt.Errorf("collect row versions: %w", err)
	}
	return d.forget(past)
}

// obsoleteVersions holds schema versions that are too old for any read, and the keys of the tables and indexes that only they
// use.
type obsoleteVersions struct {
	versions []*version
	spans    []table.Span    // key ranges of tables and indexes that are not interleaved
	layouts  []*table.Layout // of interleaved ones, whose keys lie between the keys of others
}

// findObsolete finds the schema versions that were replaced before the horizon. While a schema change runs, which may take
// hours, it finds none. It never returns the newest version that is not tentative, nor the versions after it, since a
// change may have to go back to it.
func (d *Database) findObsolete(horizon mvcc.Timestamp) *obsoleteVersions {
	if !d.changing.TryAcquire() {
		return new(obsoleteVersions)
	}
	defer d.changing.Release() // an object that no version has now never appears in a later one
	list := *d.versions.Load()
	kept := 0
	settled := slices.Index(list, d.settled()) // -1 if there is none
	for kept < settled && list[kept+1].at <= horizon {
		kept++
	}
	past := &obsoleteVersions{versions: list[:kept]}
	for _, v := range list[1 : kept+1] {
		past.spans = append(past.spans, v.garbage...)
	}
	if kept > 0 {
		past.layouts = interleavedOnlyIn(list[:kept], list[kept:])
	}
	return past
}

// interleavedOnlyIn returns the interleaved tables and indexes that some of versions have and none of others, the
// versions after them.
func interleavedOnlyIn(versions, others []*version) (list []*table.Layout) {
	// A schema change that fails publishes again the objects that it has dropped. So a later version may have an object
	// that an earlier one lacks.
	again := map[schema.TableID]bool{}
	for i := range others[1:] {
		for _, l := range droppedBetween(others[i], others[i+1]) {
			again[l.ID()] = true
		}
	}
	newest := others[len(others)-1].catalog
	for i := range versions {
		next := others[0]
		if i+1 < len(versions) {
			next = versions[i+1]
		}
		for _, l := range droppedBetween(versions[i], next) {
			if !again[l.ID()] && table.LayoutOf(newest, l.ID()) == nil {
				list, again[l.ID()] = append(list, l), true
			}
		}
	}
	return list
}

// droppedBetween returns the interleaved tables and indexes of a version that the next one does not have.
func droppedBetween(v, next *version) (list []*table.Layout) {
	tables, indexes := v.catalog.Without(next.catalog)
	for _, t := range tables {
		if t.Parent != nil {
			list = append(list, table.TableLayout(t))
		}
	}
	for _, x := range indexes {
		if x.Parent != nil {
			list = append(list, table.IndexLayout(x))
		}
	}
	return list
}

// owns returns a function that reports whether a key belongs to one of the interleaved tables or indexes; nil if there
// are none.
func (o *obsoleteVersions) owns() func(key []byte) bool {
	if len(o.layouts) == 0 {
		return nil
	}
	return func(key []byte) bool {
		return slices.ContainsFunc(o.layouts, func(l *table.Layout) bool { return l.Owns(key) })
	}
}

// forget deletes the schema versions, and the keys of their tables and indexes that are not interleaved. The keys of
// interleaved ones have been collected already. If a schema change has begun meanwhile, forget leaves the work to the
// next collection.
func (d *Database) forget(past *obsoleteVersions) error {
	if len(past.versions) == 0 || !d.changing.TryAcquire() {
		return nil
	}
	defer d.changing.Release()
	b := d.rows.NewBatch()
	defer b.Close()
	b.KV().UseReserve() // it makes room
	all := *d.versions.Load()
	rest := slices.Clone(all[len(past.versions):])
	if err := d.forgetVersions(b.KV(), rest[0].catalog.Version); err != nil {
		return err
	}
	for _, g := range past.spans {
		if err := b.Erase(g.Start, g.End); err != nil {
			return err
		}
	}
	if len(rest) == 1 {
		if err := d.sequences.Forget(b.KV(), rest[0].catalog.Counters()); err != nil {
			return err
		}
	}
	d.versions.Store(&rest)
	if err := b.Commit(); err != nil {
		d.versions.Store(&all) // the store still has them
		return fmt.Errorf("forget schema versions: %w", err)
	}
	for _, g := range past.spans {
		d.rows.FreeSpace(g.Start, g.End)
	}
	for _, v := range past.versions {
		v.preparer.Close()
	}
	return nil
}

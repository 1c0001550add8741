package database

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// collectEvery is how often old versions are collected. A pass reads every version, which costs a second of CPU for
// a million rows, and displaces blocks of other reads from the block cache: four in the shortest retention period, one hour, are enough.
const collectEvery = 15 * time.Minute

// checkpointLife is how long the checkpoint of a job that does not go on is kept, so that the job can be resumed.
const checkpointLife = 24 * time.Hour

// collectGarbage removes, while the server runs, what no read can see any more.
func (r *Registry) collectGarbage(ctx context.Context) {
	for sleep(ctx, collectEvery) {
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
		if err := d.whileOpen(ctx, d.collect); err != nil && ctx.Err() == nil && !d.Dropped() {
			d.log().Error("collect old versions", "error", err)
		}
	}
}

// collect removes row versions and schema versions that lie behind the retention period, and split points that have expired.
func (d *Database) collect(ctx context.Context) (err error) {
	horizon := d.txns.Earliest()
	defer func() { d.background.collection.ran(horizon.Time(), err) }()
	if err := d.splits.SweepPoints(); err != nil {
		return err
	}
	if err := d.jobs.ForgetOlder(ctx, "", d.registry.cfg.Clock().Add(-checkpointLife)); err != nil {
		return fmt.Errorf("forget checkpoints: %w", err)
	}
	if err := d.collectStreams(); err != nil {
		return err
	}
	past := d.outlived(horizon)
	if _, err := d.txns.Collect(ctx, horizon, past.owns()); err != nil {
		return fmt.Errorf("collect row versions: %w", err)
	}
	return d.forget(past)
}

// outlived are schema versions that are too old for any read, and the keys of tables and indexes that only they name.
type outlived struct {
	versions []*version
	spans    []table.Span    // of tables and indexes that are not interleaved
	layouts  []*table.Layout // of interleaved ones: their keys lie among those of others
}

// outlived finds the schema versions that were replaced before the horizon. While a schema change runs, which may take hours, it finds none.
// Versions are kept from the newest one that is not tentative on, which those after it may have to be replaced by.
func (d *Database) outlived(horizon mvcc.Timestamp) *outlived {
	if !d.tryLockSchema() {
		return new(outlived)
	}
	defer d.unlockSchema() // later versions cannot name what none names now
	list := *d.versions.Load()
	kept := 0
	settled := slices.Index(list, d.settled()) // -1 if there is none
	for kept < settled && list[kept+1].at <= horizon {
		kept++
	}
	past := &outlived{versions: list[:kept]}
	for _, v := range list[1 : kept+1] {
		past.spans = append(past.spans, v.garbage...)
	}
	if kept > 0 {
		past.layouts = interleavedOnlyIn(list[:kept], list[kept:])
	}
	return past
}

// interleavedOnlyIn are the interleaved tables and indexes that some versions have and those that follow them do not.
func interleavedOnlyIn(versions, others []*version) (list []*table.Layout) {
	// What a failed schema change has dropped is there again after it, so a later version may have it even if an earlier one does not.
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

// droppedBetween are the interleaved tables and indexes of a version that the next one does not have.
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

// owns says whether a key belongs to one of the interleaved tables or indexes; it is nil if there are none.
func (o *outlived) owns() func(key []byte) bool {
	if len(o.layouts) == 0 {
		return nil
	}
	return func(key []byte) bool {
		return slices.ContainsFunc(o.layouts, func(l *table.Layout) bool { return l.Owns(key) })
	}
}

// forget deletes the schema versions, and the keys of what was not interleaved. Those of what was interleaved have been collected. If a
// schema change has begun meanwhile, the next collection does it.
func (d *Database) forget(past *outlived) error {
	if len(past.versions) == 0 || !d.tryLockSchema() {
		return nil
	}
	defer d.unlockSchema()
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
		d.versions.Store(&all) // they are stored yet
		return fmt.Errorf("forget schema versions: %w", err)
	}
	for _, g := range past.spans {
		d.rows.FreeSpace(g.Start, g.End)
	}
	for _, v := range past.versions {
		v.close()
	}
	return nil
}

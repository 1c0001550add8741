package database

import (
	"context"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/mvcc"
)

// collectEvery is how often old versions are collected. A pass reads every version, a second of CPU for
// a million rows, and pushes out of the block cache what reads want: four in the shortest retention period, one hour, are enough.
const collectEvery = 15 * time.Minute

// collectGarbage removes, while the server runs, what no read can see any more.
func (r *Registry) collectGarbage(ctx context.Context) {
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := r.sweepOperations(); err != nil {
			r.cfg.Log.Error("forget operations", "error", err)
		}
		for _, d := range *r.databases.Load() {
			if err := d.collect(ctx); err != nil && ctx.Err() == nil && !d.Dropped() {
				d.log().Error("collect old versions", "error", err)
			}
		}
	}
}

// collect removes row versions and schema versions that lie behind the retention period, and split points that nobody sees.
func (d *Database) collect(ctx context.Context) (err error) {
	horizon := d.txns.Earliest()
	defer func() { d.background.collection.ran(horizon.Time(), err) }()
	if err := d.sweepSplitPoints(); err != nil {
		return err
	}
	if _, err := d.txns.Collect(ctx); err != nil {
		return fmt.Errorf("collect row versions: %w", err)
	}
	return d.collectSchema(ctx, horizon)
}

// collectSchema forgets the schema versions that were replaced before the horizon, and the keys that only they name.
func (d *Database) collectSchema(ctx context.Context, horizon mvcc.Timestamp) error {
	if err := d.lockSchema(ctx); err != nil {
		return err
	}
	defer d.unlockSchema()
	list := *d.versions.Load()
	kept := 0
	for kept < len(list)-1 && list[kept+1].at <= horizon {
		kept++
	}
	if kept == 0 {
		return nil
	}
	b := d.rows.NewBatch()
	for _, v := range list[:kept] {
		if err := b.KV().Delete(d.versionKey(v)); err != nil {
			return err
		}
	}
	for _, v := range list[1 : kept+1] {
		for _, g := range v.garbage {
			if err := b.Erase(g.Start, g.End); err != nil {
				return err
			}
		}
	}
	rest := append([]*version(nil), list[kept:]...)
	d.versions.Store(&rest)
	if err := b.Commit(); err != nil {
		return fmt.Errorf("forget schema versions: %w", err)
	}
	for _, v := range list[:kept] {
		v.close()
	}
	return nil
}

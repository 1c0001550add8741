package database

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/crowfoot-db/crowfoot/database/background"
)

// collectEvery is the pause between two collections of old versions. A collection reads every version: a second of CPU
// time for a million rows. The blocks that it reads also displace blocks in the block cache that requests need. Four
// collections per hour are enough, since the shortest retention period is one hour.
const collectEvery = 15 * time.Minute

// checkpointLife is how long the checkpoint of an interrupted job is kept. After this time the job can no longer be
// resumed.
const checkpointLife = 24 * time.Hour

// collectGarbage deletes data that no read can see any more, every collectEvery until ctx ends.
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

// collect deletes row versions and schema versions older than the retention period, expired split points, old
// checkpoints and old records of change streams.
func (d *Database) collect(ctx context.Context) (err error) {
	horizon := d.txns.Earliest()
	defer func() { d.collection.Ran(horizon.Time(), err) }()
	// A full disk refuses the commit that forgets checkpoints. The other deletions free disk space, so they must go on.
	err = errors.Join(d.splits.SweepPoints(), d.forgetCheckpoints(ctx), d.collectStreams())
	past := d.schema.FindObsolete(horizon)
	if _, collectErr := d.txns.Collect(ctx, horizon, past.Owns()); collectErr != nil {
		return errors.Join(err, fmt.Errorf("collect row versions: %w", collectErr))
	}
	return errors.Join(err, d.schema.Forget(past))
}

func (d *Database) forgetCheckpoints(ctx context.Context) error {
	err := d.jobs.ForgetOlder(ctx, "", d.registry.cfg.Clock().Add(-checkpointLife))
	if err != nil {
		return fmt.Errorf("forget checkpoints: %w", err)
	}
	return nil
}

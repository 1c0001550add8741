package database

import (
	"context"
	"log/slog"
	"time"

	"github.com/crowfoot-db/crowfoot/database/split"
)

// splitBySizeEvery is how often the server looks for ranges that have grown large.
const splitBySizeEvery = time.Minute

// splitBySize splits, while the server runs, what has grown large.
func (r *Registry) splitBySize(ctx context.Context) {
	tick := time.NewTicker(splitBySizeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, d := range *r.databases.Load() {
			if err := d.splits.SplitBySize(split.LargeBytes); err != nil && !d.Dropped() {
				d.log().Error("split by size", slog.Any("error", err))
			}
		}
	}
}

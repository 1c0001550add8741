package database

import (
	"context"
	"log/slog"
	"time"

	"github.com/crowfoot-db/crowfoot/database/background"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
)

// splitBySizeEvery is how often the server looks for splits that have grown too large.
const splitBySizeEvery = time.Minute

// splitBySize divides splits that have grown too large, every splitBySizeEvery until ctx ends.
func (r *Registry) splitBySize(ctx context.Context) {
	for background.Sleep(ctx, splitBySizeEvery) {
		r.account.Task(taskSplits).Do(ctx, r.splitOnce)
	}
}

func (r *Registry) splitOnce(context.Context) {
	for _, d := range *r.databases.Load() {
		if err := d.splits.SplitBySize(split.LargeBytes); err != nil && !d.Dropped() {
			d.log().Error("split by size", slog.Any("error", err))
		}
		d.reshapeStreams() // needed in any case, since a split point may have expired
	}
}

// chunksOf estimates into how many chunks a job divides the table or index with the layout l. The result is at least 1.
// l is nil for a job that reads no table.
func (d *Database) chunksOf(l *table.Layout) int64 {
	if l == nil {
		return 1
	}
	space, _ := l.Space()
	size, err := d.rows.Size(space.Start, space.End)
	if err != nil {
		return 1
	}
	return max(int64(size/table.ChunkBytes), 1)
}

// tableSizes returns the sizes of tables and indexes. The size of a parent includes its interleaved children: their
// rows lie between the rows of the parent, and the engine knows only the sizes of ranges.
func (d *Database) tableSizes() ([]stats.TableSize, error) {
	var list []stats.TableSize
	add := func(name string, l *table.Layout) error {
		span, _ := l.Space()
		size, err := d.rows.Size(span.Start, span.End)
		list = append(list, stats.TableSize{Table: name, Bytes: size})
		return err
	}
	for t := range d.Catalog().Tables() {
		if err := add(t.FullName(), table.TableLayout(t)); err != nil {
			return nil, err
		}
		for _, x := range t.Indexes {
			if err := add(x.Name, table.IndexLayout(x)); err != nil {
				return nil, err
			}
		}
	}
	return list, nil
}

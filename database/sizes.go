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

// splitBySizeEvery is how often the server looks for ranges that have grown large.
const splitBySizeEvery = time.Minute

// splitBySize splits ranges that have grown large, every splitBySizeEvery until ctx ends.
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
		d.reshapeStreams() // a split point may have expired, too
	}
}

// chunksOf estimates the number of chunks that a job over a layout has, at least one. l is nil for a job that reads no
// table.
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

// tableSizes returns the sizes of tables and indexes. Interleaved rows lie between the rows of their parents, and the
// engine knows only the sizes of ranges, so the size of a parent includes its children.
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

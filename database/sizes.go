package database

import (
	"context"
	"log/slog"
	"time"

	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
)

// splitBySizeEvery is how often the server looks for ranges that have grown large.
const splitBySizeEvery = time.Minute

// splitBySize splits, while the server runs, what has grown large.
func (r *Registry) splitBySize(ctx context.Context) {
	for sleep(ctx, splitBySizeEvery) {
		r.account.Task(taskSplits).Do(ctx, r.splitOnce)
	}
}

func (r *Registry) splitOnce(context.Context) {
	for _, d := range *r.databases.Load() {
		if err := d.splits.SplitBySize(split.LargeBytes); err != nil && !d.Dropped() {
			d.log().Error("split by size", slog.Any("error", err))
		}
		d.reshapeStreams() // also where a split point has expired
	}
}

// chunksOf estimates in how many chunks a job goes over a layout, at least one; it is nil for a job that goes over nothing.
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

// share estimates how much of the keys of a layout lies up to a key, from 0 to 1. The engine knows no sizes of what it has in memory
// only: there it is 0.
func (d *Database) share(l *table.Layout, key []byte) float64 {
	space, _ := l.Space()
	total, err := d.rows.Size(space.Start, space.End)
	if err != nil || total == 0 || key == nil {
		return 0
	}
	done, err := d.rows.Size(space.Start, key)
	if err != nil {
		return 0
	}
	return min(float64(done)/float64(total), 1)
}

// tableSizes are what tables and indexes take. What is interleaved lies among the
// rows it is interleaved in, so a parent's size holds its children's: the engine knows the sizes of ranges only.
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

package database

import (
	"context"
	"fmt"

	"github.com/crowfoot-db/crowfoot/database/job"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// fillJobs begins the names of the jobs that fill columns. The rest of a name is made of IDs, which are given out once.
const fillJobs = "fill/"

// backfill gives the rows that existed when a change was published, at a timestamp, their columns and index entries, as next has them.
func (d *Database) backfill(ctx context.Context, next *schema.Catalog, what *schema.Change, at mvcc.Timestamp, progress *rowsProgress) error {
	tables := table.NewDescriptors(next) // for all chunks
	for _, c := range what.Columns {
		name := fmt.Sprintf("%stable %d/column %d", fillJobs, c.Table.ID, c.Column.ID)
		err := d.fill(ctx, name, c.Table, progress, func(ctx context.Context, w table.Writer, chunk table.Chunk) error {
			return table.FillColumns(ctx, w, tables, c.Table, []*schema.Column{c.Column}, d.registry.cfg.Clock(), chunk)
		})
		if err != nil {
			return err
		}
	}
	for _, x := range what.Indexes {
		if err := d.buildIndex(ctx, x, at, progress); err != nil {
			return err
		}
	}
	return nil
}

// fill goes over the rows of a table.
func (d *Database) fill(ctx context.Context, name string, t *schema.Table, progress *rowsProgress, do func(context.Context, table.Writer, table.Chunk) error) error {
	layout := table.TableLayout(t)
	defer progress.jobDone()
	return d.jobs.Run(ctx, job.Job{
		Name: name,
		Find: func(ctx context.Context, view table.View, after []byte, limits table.Limits) (table.Chunk, error) {
			return table.FindChunk(ctx, view, layout, after, limits)
		},
		Do:       do,
		System:   true,
		AnySize:  true,
		Progress: progress.of(layout),
	})
}

// validateAll sees whether the rows that existed when a change was published obey it. It looks at the rows as they are now: those that
// were written since have to obey.
func (d *Database) validateAll(ctx context.Context, list []schema.Validation, progress *rowsProgress) error {
	for _, v := range list {
		err := d.jobs.Run(ctx, job.Job{
			Find: func(ctx context.Context, view table.View, after []byte, limits table.Limits) (table.Chunk, error) {
				return table.Validate(ctx, view, v, d.registry.cfg.Clock(), after, limits)
			},
			Progress: progress.of(validatedLayout(v)),
		})
		if err != nil {
			return err
		}
		progress.jobDone()
	}
	return nil
}

// validatedLayout is what a validation goes over.
func validatedLayout(v schema.Validation) *table.Layout {
	if v.Index != nil {
		return table.IndexLayout(v.Index)
	}
	return table.TableLayout(v.Table)
}

// rowsProgress is how far a schema change has come with existing rows, over all of its jobs. It may be nil.
type rowsProgress struct {
	db         *Database
	percent    func(int) // is told of it
	jobs, done int
}

// of is the Progress of a job that goes over a layout.
func (p *rowsProgress) of(l *table.Layout) func(last []byte) {
	if p == nil {
		return nil
	}
	return func(last []byte) {
		all := (float64(p.done) + p.db.share(l, last)) / float64(p.jobs)
		p.percent(min(int(100*all), 99)) // the rest is publication
	}
}

func (p *rowsProgress) jobDone() {
	if p != nil {
		p.done++
	}
}

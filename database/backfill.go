package database

import (
	"context"

	"github.com/crowfoot-db/crowfoot/database/job"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// fills returns the jobs that fill the change's new columns and build its new indexes, for the rows that existed when
// its first catalog was published.
func (c *rowsChange) fills() (list []rowsJob) {
	tables := table.NewDescriptors(c.next) // shared by all chunks
	for i, b := range c.what.Columns {
		list = append(list, rowsJob{c.jobName("column", i), table.TableLayout(b.Table), func(ctx context.Context, j rowsJob, progress func([]byte)) error {
			return c.db.fill(ctx, j, progress, func(ctx context.Context, w table.Writer, chunk table.Chunk) error {
				return table.FillColumns(ctx, w, tables, b.Table, []*schema.Column{b.Column}, c.db.registry.cfg.Clock(), chunk)
			})
		}})
	}
	for i, x := range c.what.Indexes {
		list = append(list, rowsJob{c.jobName("index", i), table.TableLayout(x.Table), func(ctx context.Context, j rowsJob, progress func([]byte)) error {
			return c.db.buildIndex(ctx, j.name, x, c.begun[0].at, progress)
		}})
	}
	return list
}

// fill runs do over the rows of a table, chunk by chunk.
func (d *Database) fill(ctx context.Context, j rowsJob, progress func([]byte), do func(context.Context, table.Writer, table.Chunk) error) error {
	return d.jobs.Run(ctx, job.Job{
		Name: j.name,
		Find: func(ctx context.Context, view table.View, after []byte, limits table.Limits) (table.Chunk, error) {
			return table.FindChunk(ctx, view, j.layout, after, limits)
		},
		Do:       do,
		System:   true,
		AnySize:  true,
		Progress: progress,
	})
}

// validations returns the jobs that check whether existing rows obey a published catalog. They read the rows as they
// are now, since writes after the publication must obey the catalog. For the same reason, rows that passed before an
// interruption need no second check.
func (c *rowsChange) validations(kind string, of []schema.Validation) (list []rowsJob) {
	for i, v := range of {
		list = append(list, rowsJob{c.jobName(kind, i), validatedLayout(v), func(ctx context.Context, j rowsJob, progress func([]byte)) error {
			return c.db.jobs.Run(ctx, job.Job{
				Name: j.name,
				Find: func(ctx context.Context, view table.View, after []byte, limits table.Limits) (table.Chunk, error) {
					return table.Validate(ctx, view, v, c.db.registry.cfg.Clock(), after, limits)
				},
				System:   true,
				Progress: progress,
			})
		}})
	}
	return list
}

// validatedLayout returns the layout of the table or index that a validation reads.
func validatedLayout(v schema.Validation) *table.Layout {
	if v.Index != nil {
		return table.IndexLayout(v.Index)
	}
	return table.TableLayout(v.Table)
}

// rowsProgress reports the progress of a schema change over existing rows, counted over all of its jobs.
type rowsProgress struct {
	db         *Database
	percent    func(int) // is called with each new percentage
	jobs, done int
}

// of returns the Progress function of a job that reads a layout.
func (p *rowsProgress) of(l *table.Layout) func(last []byte) {
	return func(last []byte) {
		all := (float64(p.done) + p.db.share(l, last)) / float64(p.jobs)
		p.percent(min(int(100*all), 99)) // 100 is reported when the change has taken effect
	}
}

func (p *rowsProgress) jobDone() { p.done++ }

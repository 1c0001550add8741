package schemachange

import (
	"context"

	"github.com/crowfoot-db/crowfoot/database/job"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// fills returns the jobs that fill the change's new columns and build its new indexes. They work on the rows that
// existed when the change published its first catalog.
func (c *rowsChange) fills() (list []rowsJob) {
	tables := table.NewDescriptors(c.next) // shared by all chunks
	for i, b := range c.what.Columns {
		list = append(list, rowsJob{c.jobName("column", i), table.TableLayout(b.Table), func(ctx context.Context, j rowsJob, progress func([]byte)) error {
			return c.manager.fill(ctx, j, progress, func(ctx context.Context, w table.Writer, chunk table.Chunk) error {
				return table.FillColumns(ctx, w, tables, b.Table, []*schema.Column{b.Column}, c.manager.cfg.Clock(), chunk)
			})
		}})
	}
	for i, x := range c.what.Indexes {
		list = append(list, rowsJob{c.jobName("index", i), table.TableLayout(x.Table), func(ctx context.Context, j rowsJob, progress func([]byte)) error {
			return c.manager.buildIndex(ctx, j.name, x, c.begun[0].At, progress)
		}})
	}
	return list
}

// fill calls the function do for each chunk of the rows that job j covers, each time in a transaction of its own.
func (m *Manager) fill(ctx context.Context, j rowsJob, progress func([]byte), do func(context.Context, table.Writer, table.Chunk) error) error {
	return m.jobs.Run(ctx, job.Job{
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

// validations returns the jobs that check whether existing rows obey a published catalog. The jobs read the newest
// rows, not those at the time of the publication: writes after the publication obey the catalog, so they add no row
// that fails the check. For the same reason, a resumed job does not check the rows again that it has checked before the
// interruption: only writes that obey the catalog can have changed them.
func (c *rowsChange) validations(kind string, of []schema.Validation) (list []rowsJob) {
	for i, v := range of {
		list = append(list, rowsJob{c.jobName(kind, i), validatedLayout(v), func(ctx context.Context, j rowsJob, progress func([]byte)) error {
			return c.manager.jobs.Run(ctx, job.Job{
				Name: j.name,
				Find: func(ctx context.Context, view table.View, after []byte, limits table.Limits) (table.Chunk, error) {
					return table.Validate(ctx, view, v, c.manager.cfg.Clock(), after, limits)
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

// rowsProgress computes the progress of a schema change from the progress of all its jobs over existing rows.
type rowsProgress struct {
	manager    *Manager
	percent    func(int) // is called with each new percentage, 0 to 99
	jobs, done int
}

// of returns the progress function of a job that reads the table or index of layout l.
func (p *rowsProgress) of(l *table.Layout) func(last []byte) {
	return func(last []byte) {
		all := (float64(p.done) + p.manager.share(l, last)) / float64(p.jobs)
		p.percent(min(int(100*all), 99)) // 100 is reported when the change has taken effect
	}
}

func (p *rowsProgress) jobDone() { p.done++ }

// share estimates which share of the data of a table or index lies before a key, from 0 to 1. It returns 0 if the data
// is only in memory, since the engine knows the sizes of files only.
func (m *Manager) share(l *table.Layout, key []byte) float64 {
	space, _ := l.Space()
	total, err := m.cfg.Rows.Size(space.Start, space.End)
	if err != nil || total == 0 || key == nil {
		return 0
	}
	done, err := m.cfg.Rows.Size(space.Start, key)
	if err != nil {
		return 0
	}
	return min(float64(done)/float64(total), 1)
}

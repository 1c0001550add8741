package schemachange

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// A rowsChange is a schema change that has work to do on existing rows. The field old holds the old catalog, from
// before the change. The field next holds the new catalog, which Apply has made from the old one. The change has
// several stages, after which the new catalog is the newest one. Each stage publishes a catalog and then goes over
// rows:
//
//  1. It publishes a catalog that new writes obey but reads do not rely on. Writes fill new columns and indexes, and
//     reads do not use them (schema.Catalog.Filling). Reads see changed columns and constraints as they were
//     (schema.Catalog.Expecting). Then it fills the new columns and index entries of every existing row.
//  2. If indexes are UNIQUE, it publishes a catalog that aborts the transactions which have looked for a key among
//     incomplete entries (schema.Catalog.ValidatingUnique), and then compares the entries.
//  3. It publishes the new catalog, which opens columns and indexes for reading, and checks existing rows against new
//     conditions. If the statement redefines columns or constraints, it checks the rows first, and publishes the new
//     catalog only if the rows obey.
//
// The versions are tentative until all stages are done. If a row does not obey, the change publishes the old catalog
// again. If the store refuses that write, the next schema change does it first. If the server stops, the next process
// resumes the change from its checkpoints if an operation runs it, and undoes it otherwise.
type rowsChange struct {
	manager   *Manager
	statement statement
	old, next *schema.Catalog
	what      *schema.Change
	begun     []*Version // the versions that the stages have published so far
}

// changeRecord is the stored form of the statement that made a tentative version. It is stored only if an operation
// will resume the statement after a restart.
type changeRecord struct {
	Operation string
	Began     time.Time // when the operation began: Operation.Began
	Number    int       // index of the statement in the operation
	Statement string
}

// stage is one stage of a rowsChange: it publishes a catalog, and then runs jobs over rows.
type stage struct {
	catalog *schema.Catalog
	jobs    []rowsJob // to run in this order once the catalog is published
}

// rowsJob is a job over existing rows. If a checkpoint of the job exists, the job continues after it.
type rowsJob struct {
	name   string // name of the checkpoint
	layout *table.Layout
	run    func(ctx context.Context, j rowsJob, progress func(last []byte)) error
}

// rowsJobs is the prefix of the names of the checkpoints of all rowsJobs.
const rowsJobs = "fill/"

// run runs the stages of the change that are not done yet, and returns the timestamp at which the change took effect.
// If a stage fails, run undoes the change, unless the next process will resume it.
func (c *rowsChange) run(ctx context.Context) (mvcc.Timestamp, error) {
	m := c.manager
	at, err := c.goThrough(ctx)
	if err != nil {
		if c.statement.operation.interrupted() {
			return 0, err // the next process resumes the change
		}
		err = m.undo(ctx, c.old, err)
	}
	// If Forget fails, garbage collection deletes the checkpoints later.
	if err := m.jobs.Forget(context.WithoutCancel(ctx), rowsJobs); err != nil {
		m.cfg.Log.Error("forget back-fills", slog.Any("error", err))
	}
	return at, err
}

func (c *rowsChange) goThrough(ctx context.Context) (at mvcc.Timestamp, err error) {
	stages := c.stages()
	progress := c.progress(stages)
	for i, s := range stages {
		if i == len(c.begun) {
			if _, err := c.manager.publish(ctx, publication{catalog: s.catalog, underWay: c}); err != nil {
				return 0, err
			}
			c.begun = append(c.begun, c.manager.Newest())
		}
		for _, j := range s.jobs {
			if i == len(c.begun)-1 {
				if err := j.run(ctx, j, progress.of(j.layout)); err != nil {
					return 0, err
				}
			}
			progress.jobDone()
		}
	}
	garbage := spacesOf(c.what.DroppedTables, c.what.DroppedIndexes)
	if c.what.Redefines() {
		return c.manager.publish(ctx, publication{catalog: c.next, garbage: garbage, statement: &c.statement})
	}
	return c.begun[len(c.begun)-1].At, c.manager.settle(garbage, &c.statement)
}

func (c *rowsChange) stages() (list []stage) {
	last := stage{c.next, c.validations("validation", c.what.Validations)}
	switch {
	case c.what.Redefines():
		last.catalog = c.old.Expecting(c.what)
	case c.what.Fills():
		list = append(list, stage{c.next.Filling(c.what), c.fills()})
		if unique := c.what.Unique(); len(unique) > 0 {
			list = append(list, stage{c.next.ValidatingUnique(c.what), c.validations("unique", unique)})
		}
	}
	return append(list, last)
}

// jobName returns the name of the checkpoint of a job. No other schema change of the database uses this name.
func (c *rowsChange) jobName(kind string, number int) string {
	return fmt.Sprintf("%s%d/%s/%d", rowsJobs, c.old.Version, kind, number)
}

func (c *rowsChange) progress(stages []stage) *rowsProgress {
	p := &rowsProgress{manager: c.manager, percent: func(p int) { c.statement.report(Progress{Percent: p}) }}
	for _, s := range stages {
		p.jobs += len(s.jobs)
	}
	return p
}

// percent returns the progress of an interrupted change, from 0 to 99.
func (c *rowsChange) percent(ctx context.Context) (percent int, err error) {
	stages := c.stages()
	p := c.progress(stages)
	p.percent = func(n int) { percent = n }
	for i, s := range stages[:len(c.begun)] {
		for _, j := range s.jobs {
			after, done, err := c.manager.jobs.Position(ctx, j.name)
			if err != nil {
				return 0, err
			}
			if !done && i == len(c.begun)-1 {
				p.of(j.layout)(after)
				return percent, nil
			}
			p.jobDone()
		}
	}
	return percent, nil
}

// record returns the stored form of the statement; nil if no operation will resume it.
func (c *rowsChange) record() *changeRecord {
	s := &c.statement
	if s.operation.Name == "" {
		return nil
	}
	return &changeRecord{s.operation.Name, s.operation.Began, s.number, s.text}
}

// is reports whether the record was made from this statement.
func (r *changeRecord) is(s *statement) bool {
	return r.Operation == s.operation.Name && r.Began.Equal(s.operation.Began) && r.Number == s.number && r.Statement == s.text
}

// FindInterrupted finds the change that the last process left unfinished, if its operation will resume it. It must be
// called before the Manager is used. A tentative catalog is not stored completely, so FindInterrupted makes the
// catalogs of the published versions again. If a new catalog differs from the stored one, because a new release makes a
// different one, the change is not resumed: it is undone, and the operation runs its statement from the beginning.
func (m *Manager) FindInterrupted(ctx context.Context) error {
	list := *m.versions.Load()
	first := len(list)
	for first > 0 && list[first-1].tentative.Load() {
		first--
	}
	if first == 0 || first == len(list) || list[first].by == nil {
		return nil
	}
	by := list[first].by
	if resumes, err := m.cfg.Resumes(by.Operation, by.Began); err != nil || !resumes {
		return err
	}
	op := &Operation{Name: by.Operation, Began: by.Began}
	c := &rowsChange{manager: m, statement: statement{by.Statement, by.Number, op}, old: list[first-1].Catalog}
	var err error
	if c.next, c.what, err = Apply(ctx, c.old, by.Statement, m.cfg.Clock, m.cfg.Sequences); err != nil || !c.what.OfRows() {
		return nil
	}
	stages := c.stages()
	if len(list)-first > len(stages) {
		return nil
	}
	for i, v := range list[first:] {
		again := m.newVersion(stages[i].catalog.WithVersion(v.Catalog.Version), v.At)
		again.Garbage, again.change, again.by = v.Garbage, c, v.by
		again.tentative.Store(true)
		if same, err := sameCatalog(c.old, v.Catalog, again.Catalog); err != nil || !same {
			return err
		}
		c.begun = append(c.begun, again)
	}
	copy(list[first:], c.begun)
	m.interrupted.Store(c)
	return nil
}

// sameCatalog reports whether the catalogs x and y would be stored in the same form. The parameter before holds the
// catalog of the version that precedes both, because the stored form of a version contains only what differs from the
// preceding version.
func sameCatalog(before, x, y *schema.Catalog) (bool, error) {
	a, err := x.Marshal(before)
	if err != nil {
		return false, err
	}
	b, err := y.Marshal(before)
	if err != nil {
		return false, err
	}
	return bytes.Equal(a.Catalog, b.Catalog) && maps.EqualFunc(a.Objects, b.Objects, bytes.Equal), nil
}

// Interrupted returns the progress of the statement that the last process left unfinished, if it belongs to the given
// operation. ok is false if there is no such statement. Interrupted does not wait for other schema changes.
func (m *Manager) Interrupted(ctx context.Context, operation string) (p Progress, ok bool, err error) {
	c := m.interrupted.Load()
	if c == nil || c.statement.operation.Name != operation {
		return p, false, nil
	}
	p.Statement = c.statement.number
	p.Percent, err = c.percent(ctx)
	return p, true, err
}

package database

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

// A rowsChange is a schema change that has work on existing rows to do. It makes next, which Apply has made of old, the newest catalog in stages, each of which
// publishes a catalog and then goes over rows:
//
//  1. A catalog is published in which new writes obey next already, but reads do not count on it: new columns and indexes are
//     written and not read (schema.Catalog.Filling), columns and constraints that change are to reads as they were (schema.Catalog.Expecting).
//     Every existing row gets its new columns and index entries.
//  2. If indexes are UNIQUE, a catalog is published that ends the transactions which have looked for a key among entries that were not complete
//     (schema.Catalog.ValidatingUnique), and the entries are compared.
//  3. next is published, which opens columns and indexes for reading, and existing rows are checked to obey new conditions. What redefines columns or constraints is
//     published only when they do.
//
// Until all is done the versions are tentative: if a row cannot obey, the old catalog is published again. If the store refuses that for the time being, the
// next change does it first. If the server goes down, the next process goes on with the change from its checkpoints on, if an operation runs it, and takes
// it back otherwise.
type rowsChange struct {
	db        *Database
	statement statement
	old, next *schema.Catalog
	what      *schema.Change
	begun     []*version // that the stages so far have published
}

// changeRecord is the statement that made a tentative version, as stored, if an operation is to go on with it after a restart.
type changeRecord struct {
	Operation string
	Began     time.Time // Operation.Started
	Number    int       // of the statement in the operation
	Statement string
}

// stage is a part of a rowsChange.
type stage struct {
	catalog *schema.Catalog
	jobs    []rowsJob // what is to be done once it is published, one after the other
}

// rowsJob goes over existing rows. It goes on behind its checkpoint, if it has one.
type rowsJob struct {
	name   string // of the checkpoint
	layout *table.Layout
	run    func(ctx context.Context, j rowsJob, progress func(last []byte)) error
}

// rowsJobs begins the names of their checkpoints.
const rowsJobs = "fill/"

// run makes the change, from the stage on to which it has come, or takes it back.
func (c *rowsChange) run(ctx context.Context) (mvcc.Timestamp, error) {
	d := c.db
	at, err := c.goThrough(ctx)
	if err != nil {
		if c.statement.operation.interrupted() {
			return 0, err // the next process goes on
		}
		err = d.undo(ctx, c.old, err)
	}
	if err := d.jobs.Forget(context.WithoutCancel(ctx), rowsJobs); err != nil { // they will be swept
		d.log().Error("forget back-fills", slog.Any("error", err))
	}
	return at, err
}

func (c *rowsChange) goThrough(ctx context.Context) (at mvcc.Timestamp, err error) {
	stages := c.stages()
	progress := c.progress(stages)
	for i, s := range stages {
		if i == len(c.begun) {
			if _, err := c.db.publish(ctx, publication{catalog: s.catalog, underWay: c}); err != nil {
				return 0, err
			}
			c.begun = append(c.begun, c.db.newest())
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
		return c.db.publish(ctx, publication{catalog: c.next, garbage: garbage, statement: &c.statement})
	}
	return c.begun[len(c.begun)-1].at, c.db.settle(garbage, &c.statement)
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

// jobName is the name of a job's checkpoint. No other schema change of the database has one of that name.
func (c *rowsChange) jobName(kind string, number int) string {
	return fmt.Sprintf("%s%d/%s/%d", rowsJobs, c.old.Version, kind, number)
}

func (c *rowsChange) progress(stages []stage) *rowsProgress {
	p := &rowsProgress{db: c.db, percent: func(p int) { c.statement.report(Progress{Percent: p}) }}
	for _, s := range stages {
		p.jobs += len(s.jobs)
	}
	return p
}

// percent is how far a change has come that is interrupted.
func (c *rowsChange) percent(ctx context.Context) (percent int, err error) {
	stages := c.stages()
	p := c.progress(stages)
	p.percent = func(n int) { percent = n }
	for i, s := range stages[:len(c.begun)] {
		for _, j := range s.jobs {
			after, done, err := c.db.jobs.Position(ctx, j.name)
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

// record is how the statement is stored; nil if no operation goes on with it.
func (c *rowsChange) record() *changeRecord {
	s := &c.statement
	if s.operation.Name == "" {
		return nil
	}
	return &changeRecord{s.operation.Name, s.operation.Began, s.number, s.text}
}

// is says whether a statement is the one of the record.
func (r *changeRecord) is(s *statement) bool {
	return r.Operation == s.operation.Name && r.Began.Equal(s.operation.Began) && r.Number == s.number && r.Statement == s.text
}

// findInterrupted finds the change that was under way when the last process ended, if an operation is to go on with it. The versions that it has
// published get the catalogs that it makes now, as not all of a tentative one is stored. If they are not the same otherwise, as a new release may make
// other ones, the change begins anew.
func (d *Database) findInterrupted(ctx context.Context, list []*version) error {
	first := len(list)
	for first > 0 && list[first-1].tentative.Load() {
		first--
	}
	if first == 0 || first == len(list) || list[first].by == nil {
		return nil
	}
	by := list[first].by
	if o, err := d.registry.Operation(by.Operation); err != nil || o == nil || !o.Ended.IsZero() || o.Cancelled || !o.Started.Equal(by.Began) {
		return err
	}
	op := &SchemaOperation{Name: by.Operation, Began: by.Began}
	c := &rowsChange{db: d, statement: statement{by.Statement, by.Number, op}, old: list[first-1].catalog}
	var err error
	if c.next, c.what, err = d.registry.apply(ctx, c.old, by.Statement, d.sequences); err != nil || !c.what.OfRows() {
		return nil
	}
	stages := c.stages()
	if len(list)-first > len(stages) {
		return nil
	}
	for i, v := range list[first:] {
		again := newVersion(d, stages[i].catalog.WithVersion(v.catalog.Version), v.at)
		again.garbage, again.change, again.by = v.garbage, c, v.by
		again.tentative.Store(true)
		if same, err := sameCatalog(c.old, v.catalog, again.catalog); err != nil || !same {
			return err
		}
		c.begun = append(c.begun, again)
	}
	copy(list[first:], c.begun)
	d.interrupted.Store(c)
	return nil
}

// sameCatalog says whether two catalogs are stored alike as the version after before.
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

// Interrupted is how far the statement of an operation had come that was under way when the last process ended; ok is false if there is none that
// UpdateSchema goes on with. It waits for no other schema change.
func (d *Database) Interrupted(ctx context.Context, operation string) (p Progress, ok bool, err error) {
	c := d.interrupted.Load()
	if c == nil || c.statement.operation.Name != operation {
		return p, false, nil
	}
	p.Statement = c.statement.number
	p.Percent, err = c.percent(ctx)
	return p, true, err
}

package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
)

// CheckSyntax finds what makes a whole request fail before any of its statements runs.
func (d *Database) CheckSyntax(statements []string) error {
	for _, s := range statements {
		if err := schema.CheckSyntax(s); err != nil {
			return err
		}
	}
	return nil
}

// Progress is how far one of the statements of UpdateSchema has come.
type Progress struct {
	Statement int       // which one
	Percent   int       // 100 once it has taken effect
	Commit    time.Time // when it took effect
}

// A SchemaOperation is a long-running operation that runs DDL statements, perhaps in several processes, one after the other.
type SchemaOperation struct {
	Name    string    // under which each statement that took effect is recorded with its effect, see Registry.Applied; "" records none
	Began   time.Time // Operation.Started
	Applied int       // how many statements have taken effect before
	// ProtoDescriptors is a serialized FileDescriptorSet from which the statements take the types of the proto bundle; nil if they need none.
	ProtoDescriptors []byte
	// Progress, if not nil, is told of each statement that took effect, and while existing rows are filled or validated.
	Progress func(Progress)
	// Interrupted, if not nil, says that a context which has ended has done so because the process ends: another one goes on with the operation. Then
	// UpdateSchema leaves the statement that is under way as it is.
	Interrupted func() bool
}

func (op *SchemaOperation) interrupted() bool { return op.Interrupted != nil && op.Interrupted() }

// UpdateSchema runs DDL statements in order and stops at the first failure; those before it stay. op is the operation that does it,
// nil if none. One change runs at a time: others wait.
func (d *Database) UpdateSchema(ctx context.Context, statements []string, op *SchemaOperation) error {
	if op == nil {
		op = new(SchemaOperation)
	}
	return d.whileOpen(ctx, func(ctx context.Context) (err error) {
		if err := d.lockSchema(ctx); err != nil {
			return errors.Join(err, d.abandon(op))
		}
		defer d.unlockSchema()
		d.registry.account.Task(taskSchemaChange).Do(ctx, func(ctx context.Context) { err = d.changeAll(ctx, statements, op) })
		return err
	})
}

// CheckSchema says whether the schema, as it is now, allows DDL statements one after the other. None of them runs; rows may still refuse one.
func (d *Database) CheckSchema(ctx context.Context, statements []string) error {
	catalog := d.Catalog()
	for _, text := range statements {
		next, _, err := d.registry.apply(ctx, catalog, text, d.sequences)
		if err != nil {
			return err
		}
		catalog = next
	}
	return nil
}

func (d *Database) changeAll(ctx context.Context, statements []string, op *SchemaOperation) error {
	for i, text := range statements {
		if i < op.Applied {
			continue
		}
		s := statement{text: text, number: i, operation: op}
		at, err := d.change(ctx, s)
		if err != nil {
			return err
		}
		s.report(Progress{Percent: 100, Commit: at.Time()})
	}
	return nil
}

// statement is a DDL statement that runs.
type statement struct {
	text      string
	number    int // among those of its operation
	operation *SchemaOperation
}

func (s *statement) report(p Progress) {
	if p.Statement = s.number; s.operation.Progress != nil {
		s.operation.Progress(p)
	}
}

// applied records in a batch that the statement takes effect.
func (s *statement) applied(b kv.Batch, at mvcc.Timestamp) error {
	if s.operation.Name == "" {
		return nil
	}
	return meta.Put(b, appliedKey(s.operation.Name, s.number), appliedRecord{at, s.operation.Began})
}

func (d *Database) lockSchema(ctx context.Context) error {
	select {
	case d.changing <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tryLockSchema is lockSchema that does not wait: it says whether no schema change runs.
func (d *Database) tryLockSchema() bool {
	select {
	case d.changing <- struct{}{}:
		return true
	default:
		return false
	}
}

func (d *Database) unlockSchema() { <-d.changing }

// change runs one statement.
func (d *Database) change(ctx context.Context, s statement) (mvcc.Timestamp, error) {
	if c := d.interrupted.Swap(nil); c != nil && c.record().is(&s) {
		again := *c // others may look at c
		again.statement = s
		return again.run(ctx)
	}
	if err := d.takeBackTentative(ctx); err != nil {
		return 0, err
	}
	old := d.Catalog()
	next, what, err := d.registry.apply(ctx, old, s.text, d.sequences, s.operation.ProtoDescriptors)
	if err != nil {
		return 0, err
	}
	if what.Nothing {
		return d.passOver(s)
	}
	if !what.OfRows() {
		return d.publish(ctx, publication{catalog: next, garbage: spacesOf(what.DroppedTables, what.DroppedIndexes), statement: &s})
	}
	c := &rowsChange{db: d, statement: s, old: old, next: next, what: what}
	return c.run(ctx)
}

// apply is schema.Catalog.Apply for a statement that is run until ctx ends.
func (r *Registry) apply(ctx context.Context, c *schema.Catalog, stmt string, sequences *sequence.Counters, protoDescriptors ...[]byte) (*schema.Catalog, *schema.Change, error) {
	next, what, err := c.Apply(stmt, compiler{ctx, r.cfg.Clock, sequences}, protoDescriptors...)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // Apply takes it for a fault of an expression
	}
	return next, what, err
}

// passOver records that a statement took effect that had nothing to do.
func (d *Database) passOver(s statement) (mvcc.Timestamp, error) {
	at := d.registry.oracle.Now()
	if s.operation.Name == "" {
		return at, nil
	}
	b := meta.NewBatch(d.registry.store)
	defer b.Close()
	if err := s.applied(b, at); err != nil {
		return 0, err
	}
	return at, b.Commit()
}

// settle records, durably, that the newest version is complete. Only now is what it dropped garbage.
func (d *Database) settle(garbage []table.Span, s *statement) error {
	v := d.newest()
	if err := d.storeVersion(v, v.catalog, publication{garbage: garbage, statement: s}, kv.Batch.Commit); err != nil {
		return err
	}
	v.garbage = garbage
	v.tentative.Store(false)
	return nil
}

// undo publishes the old catalog again, after a change that failed or was cancelled.
func (d *Database) undo(ctx context.Context, old *schema.Catalog, cause error) error {
	if d.Catalog() == old {
		return cause
	}
	if err := d.takeBack(context.WithoutCancel(ctx), old); err != nil {
		return fmt.Errorf("undo schema change (%v): %w", cause, err)
	}
	return cause
}

// takeBack publishes an older catalog again. What tables and indexes hold that only the newest one has is garbage.
func (d *Database) takeBack(ctx context.Context, old *schema.Catalog) error {
	tables, indexes := d.Catalog().Without(old)
	unread := slices.DeleteFunc(slices.Clone(indexes), d.hasServed)
	if _, err := d.publish(ctx, publication{catalog: old.After(d.Catalog()), garbage: spacesOf(tables, indexes)}); err != nil {
		return err
	}
	if err := d.eraseUnread(spacesOf(nil, unread)); err != nil { // they are garbage, too
		d.log().Error("erase index entries", slog.Any("error", err))
	}
	return nil
}

// hasServed says whether there is a version in which reads may use an index.
func (d *Database) hasServed(x *schema.Index) bool {
	return slices.ContainsFunc(*d.versions.Load(), func(v *version) bool {
		i := v.catalog.IndexByID(x.ID)
		return i != nil && i.State == schema.IndexReadWrite
	})
}

// eraseUnread deletes at once the entries of indexes that no version has let reads use: no read at any timestamp misses them.
func (d *Database) eraseUnread(spans []table.Span) error {
	if len(spans) == 0 {
		return nil
	}
	b := d.rows.NewBatch()
	defer b.Close()
	b.KV().UseReserve() // it makes room
	for _, s := range spans {
		if err := b.Erase(s.Start, s.End); err != nil {
			return err
		}
	}
	if err := b.Commit(); err != nil {
		return err
	}
	for _, s := range spans {
		d.rows.FreeSpace(s.Start, s.End)
	}
	return nil
}

// publication is a catalog that is to become the newest.
type publication struct {
	catalog   *schema.Catalog // of any version: it gets the next one
	garbage   []table.Span    // that only the catalogs before it name
	underWay  *rowsChange     // whose work on rows is not done: the catalog is tentative; nil if none
	statement *statement      // that takes effect with it; nil if none does
}

// publish makes a catalog the newest, durably, at a moment at which no transaction commits.
func (d *Database) publish(ctx context.Context, p publication) (mvcc.Timestamp, error) {
	var at mvcc.Timestamp
	catalog := p.catalog.WithVersion(d.Catalog().Version + 1)
	err := d.txns.ChangeSchema(ctx, catalog, func(ts mvcc.Timestamp, commit func(kv.Batch) error) error {
		v := newVersion(d, catalog, ts)
		v.garbage = p.garbage
		if v.change = p.underWay; v.change != nil {
			v.by = v.change.record()
			v.tentative.Store(true)
		}
		if err := d.storeVersion(v, d.Catalog(), p, commit); err != nil {
			return err
		}
		list := append(*d.versions.Load(), v) // what others hold ends before it
		d.versions.Store(&list)
		at = ts
		return nil
	})
	if err != nil {
		return 0, err
	}
	d.txns.SetRetention(d.Retention())
	d.reshapeStreams()
	d.copying.wake()
	return at, nil
}

// spacesOf are the keys of tables and indexes that are not interleaved.
func spacesOf(tables []*schema.Table, indexes []*schema.Index) []table.Span {
	var list []table.Span
	for _, t := range tables {
		if span, alone := table.TableLayout(t).Space(); alone {
			list = append(list, span)
		}
	}
	for _, x := range indexes {
		if span, alone := table.IndexLayout(x).Space(); alone {
			list = append(list, span)
		}
	}
	return list
}

// abandon takes back the statement of an operation that was under way when the last process ended, if the operation does not go on with it. It does not wait for
// another change, which may take hours: then the statement is taken back after that, if not by it.
func (d *Database) abandon(op *SchemaOperation) error {
	if op.interrupted() {
		return nil
	}
	c := d.interrupted.Load()
	if c == nil || c.statement.operation.Name != op.Name { // another change took it back
		return nil
	}
	if d.tryLockSchema() {
		defer d.unlockSchema()
		return d.takeBackInterrupted(c)
	}
	go d.whileOpen(d.background.ctx, func(ctx context.Context) error {
		if d.lockSchema(ctx) != nil {
			return nil // the next process takes it back
		}
		defer d.unlockSchema()
		if err := d.takeBackInterrupted(c); err != nil {
			d.log().Error("take back a cancelled schema change; the next change does it", slog.Any("error", err))
		}
		return nil
	})
	return nil
}

// takeBackInterrupted takes a change back that was under way when the last process ended, unless another one did. The caller has the schema locked.
func (d *Database) takeBackInterrupted(c *rowsChange) error {
	if !d.interrupted.CompareAndSwap(c, nil) {
		return nil
	}
	return d.takeBackTentative(context.WithoutCancel(d.background.ctx))
}

// takeBackTentative takes back a change that was under way when the server went down, or that failed when the store refused to take it back.
// No change runs.
func (d *Database) takeBackTentative(ctx context.Context) error {
	if !d.newest().tentative.Load() {
		return nil
	}
	before := d.settled()
	if before == nil {
		return fmt.Errorf("schema version %d of %s is half made and no version is before it", d.Catalog().Version, d.name)
	}
	if err := d.takeBack(ctx, before.catalog); err != nil {
		return fmt.Errorf("take back schema version %d: %w", d.Catalog().Version, err)
	}
	return d.jobs.Forget(ctx, rowsJobs)
}

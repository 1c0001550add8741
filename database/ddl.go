package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// CheckSyntax returns the syntax error that makes a whole request fail before any of its statements runs.
func (d *Database) CheckSyntax(statements []string) error {
	for _, s := range statements {
		if err := schema.CheckSyntax(s); err != nil {
			return err
		}
	}
	return nil
}

// Progress is the progress of one statement of UpdateSchema.
type Progress struct {
	Statement int       // its index, from 0
	Percent   int       // 100 once it has taken effect
	Commit    time.Time // when it took effect
}

// A SchemaOperation is a long-running operation that runs DDL statements in order, perhaps in several processes, one
// after the other.
type SchemaOperation struct {
	Name    string    // each statement is recorded under it as it takes effect, see Registry.Applied; "" records none
	Began   time.Time // Operation.Started
	Applied int       // number of statements that earlier processes have applied
	// ProtoDescriptors is a serialized FileDescriptorSet from which the statements take the types of the proto bundle; nil if they need none.
	ProtoDescriptors []byte
	// Progress, if not nil, is called when a statement has taken effect, and while it fills or validates existing rows.
	Progress func(Progress)
	// Interrupted, if not nil, reports whether the context has ended because the process ends, so that the next process
	// will resume the operation. Then UpdateSchema leaves the current statement unfinished and does not undo it.
	Interrupted func() bool
}

func (op *SchemaOperation) interrupted() bool { return op.Interrupted != nil && op.Interrupted() }

// UpdateSchema runs DDL statements in order and stops at the first failure; the statements before it stay in effect. op
// is the operation that runs them, nil if none. One schema change of a database runs at a time; others wait for it.
func (d *Database) UpdateSchema(ctx context.Context, statements []string, op *SchemaOperation) error {
	if op == nil {
		op = new(SchemaOperation)
	}
	err := d.background.WhileOpen(ctx, func(ctx context.Context) (err error) {
		if err := d.changing.Acquire(ctx); err != nil {
			return errors.Join(err, d.abandon(op))
		}
		defer d.changing.Release()
		d.registry.account.Task(taskSchemaChange).Do(ctx, func(ctx context.Context) { err = d.changeAll(ctx, statements, op) })
		return err
	})
	if err != nil && d.Dropped() {
		return usererror.DatabaseNotFound(d.name)
	}
	return err
}

// CheckSchema fails if the present schema does not allow the DDL statements, one after the other. It does not run them,
// so that existing rows may still make a statement fail.
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

// statement is a DDL statement of a running operation.
type statement struct {
	text      string
	number    int // index in the operation, from 0
	operation *SchemaOperation
}

func (s *statement) report(p Progress) {
	if p.Statement = s.number; s.operation.Progress != nil {
		s.operation.Progress(p)
	}
}

// applied adds to a batch the record that the statement takes effect at a time.
func (s *statement) applied(b kv.Batch, at mvcc.Timestamp) error {
	if s.operation.Name == "" {
		return nil
	}
	return meta.Put(b, appliedKey(s.operation.Name, s.number), appliedRecord{at, s.operation.Began})
}

// change runs one statement.
func (d *Database) change(ctx context.Context, s statement) (mvcc.Timestamp, error) {
	if c := d.interrupted.Swap(nil); c != nil && c.record().is(&s) {
		again := *c // other goroutines may read c
		again.statement = s
		return again.run(ctx)
	}
	if err := d.revertTentative(ctx); err != nil {
		return 0, err
	}
	old := d.Catalog()
	next, what, err := d.registry.apply(ctx, old, s.text, d.sequences, s.operation.ProtoDescriptors)
	if err != nil {
		return 0, err
	}
	if what.Nothing {
		return d.recordNoOp(s)
	}
	if !what.OfRows() {
		return d.publish(ctx, publication{catalog: next, garbage: spacesOf(what.DroppedTables, what.DroppedIndexes), statement: &s})
	}
	c := &rowsChange{db: d, statement: s, old: old, next: next, what: what}
	return c.run(ctx)
}

// apply calls schema.Catalog.Apply, and fails with ctx's error if ctx ends.
func (r *Registry) apply(ctx context.Context, c *schema.Catalog, stmt string, sequences *sequence.Counters, protoDescriptors ...[]byte) (*schema.Catalog, *schema.Change, error) {
	next, what, err := c.Apply(stmt, prepare.NewCompiler(ctx, r.cfg.Clock, sequences), protoDescriptors...)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // Apply blames it on an expression
	}
	return next, what, err
}

// recordNoOp records that a statement without any effect has run.
func (d *Database) recordNoOp(s statement) (mvcc.Timestamp, error) {
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

// settle records, durably, that the newest version is complete. From now on the objects that it dropped are garbage.
func (d *Database) settle(garbage []table.Span, s *statement) error {
	v := d.newest()
	if err := d.storeVersion(v, v.catalog, publication{garbage: garbage, statement: s}, kv.Batch.Commit); err != nil {
		return err
	}
	v.garbage = garbage
	v.tentative.Store(false)
	return nil
}

// undo publishes the old catalog again, after a change that failed or was cancelled. It returns cause, or an error that
// holds it.
func (d *Database) undo(ctx context.Context, old *schema.Catalog, cause error) error {
	if d.Catalog() == old {
		return cause
	}
	if err := d.revert(context.WithoutCancel(ctx), old); err != nil {
		return fmt.Errorf("undo schema change (%v): %w", cause, err)
	}
	return cause
}

// revert publishes an older catalog again. The keys of tables and indexes that only the newest catalog has become
// garbage.
func (d *Database) revert(ctx context.Context, old *schema.Catalog) error {
	tables, indexes := d.Catalog().Without(old)
	unread := slices.DeleteFunc(slices.Clone(indexes), d.hasServed)
	if _, err := d.publish(ctx, publication{catalog: old.After(d.Catalog()), garbage: spacesOf(tables, indexes)}); err != nil {
		return err
	}
	if err := d.eraseUnread(spacesOf(nil, unread)); err != nil { // if it fails, garbage collection erases them
		d.log().Error("erase index entries", slog.Any("error", err))
	}
	return nil
}

// hasServed reports whether reads may use an index in any version.
func (d *Database) hasServed(x *schema.Index) bool {
	return slices.ContainsFunc(*d.versions.Load(), func(v *version) bool {
		i := v.catalog.IndexByID(x.ID)
		return i != nil && i.State == schema.IndexReadWrite
	})
}

// eraseUnread deletes the entries of indexes at once. No version has let reads use the indexes, so no read at any
// timestamp misses them.
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
	catalog   *schema.Catalog // its version number is ignored: publish gives it the next one
	garbage   []table.Span    // key ranges that only earlier catalogs use
	underWay  *rowsChange     // the change that has not finished its work on rows, which makes the catalog tentative; nil if none
	statement *statement      // the statement that takes effect with the catalog; nil if none does
}

// publish makes a catalog the newest, durably, at a moment at which no transaction commits. It returns the timestamp of
// the new version.
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
		list := append(*d.versions.Load(), v) // requests may hold the list, but only without the new element
		d.versions.Store(&list)
		at = ts
		return nil
	})
	if err != nil {
		return 0, err
	}
	d.txns.SetRetention(d.Retention())
	d.reshapeStreams()
	d.copies.Wake()
	return at, nil
}

// spacesOf returns the key ranges of tables and indexes, except the interleaved ones.
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

// abandon undoes the statement of op that the last process left unfinished, unless op will be resumed. It does not wait
// for another schema change, which may take hours: the statement is undone after that change, or by it.
func (d *Database) abandon(op *SchemaOperation) error {
	if op.interrupted() {
		return nil
	}
	c := d.interrupted.Load()
	if c == nil || c.statement.operation.Name != op.Name { // another change has undone it
		return nil
	}
	if d.changing.TryAcquire() {
		defer d.changing.Release()
		return d.revertInterrupted(c)
	}
	go d.background.WhileOpen(context.Background(), func(ctx context.Context) error {
		if d.changing.Acquire(ctx) != nil {
			return nil // the next process undoes it
		}
		defer d.changing.Release()
		if err := d.revertInterrupted(c); err != nil {
			d.log().Error("take back a cancelled schema change; the next change does it", slog.Any("error", err))
		}
		return nil
	})
	return nil
}

// revertInterrupted undoes a change that the last process left unfinished, unless another goroutine has taken it. The
// caller holds the schema lock.
func (d *Database) revertInterrupted(c *rowsChange) error {
	if !d.interrupted.CompareAndSwap(c, nil) {
		return nil
	}
	return d.revertTentative(context.Background())
}

// revertTentative undoes an unfinished change: one that the last process left, or one that failed while the store
// refused the writes of its undo. The caller holds the schema lock, or is the only user of the database.
func (d *Database) revertTentative(ctx context.Context) error {
	if !d.newest().tentative.Load() {
		return nil
	}
	before := d.settled()
	if before == nil {
		return fmt.Errorf("schema version %d of %s is half made and no version is before it", d.Catalog().Version, d.name)
	}
	if err := d.revert(ctx, before.catalog); err != nil {
		return fmt.Errorf("take back schema version %d: %w", d.Catalog().Version, err)
	}
	return d.jobs.Forget(ctx, rowsJobs)
}

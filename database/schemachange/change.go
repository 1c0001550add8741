package schemachange

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
)

// Progress is the progress of one statement of Update.
type Progress struct {
	Statement int       // index of the statement, from 0
	Percent   int       // 100 once the statement has taken effect
	Commit    time.Time // when the statement took effect; zero before
}

// An Operation is a long-running operation that runs DDL statements in order. If a process ends, the next one resumes
// the operation.
type Operation struct {
	Name    string    // name under which the records that Applied reads are stored; "": none are stored
	Began   time.Time // when the operation began
	Applied int       // number of statements that earlier processes have applied
	// ProtoDescriptors is a serialized FileDescriptorSet from which the statements take the types of the proto bundle;
	// nil if they need none.
	ProtoDescriptors []byte
	// Progress, if not nil, is called when a statement has taken effect, and while a statement fills or validates
	// existing rows.
	Progress func(Progress)
	// Interrupted, if not nil, is called when the context has ended. It returns true if the process is ending, so that
	// the next process will resume the operation. Then Update leaves the current statement unfinished and does not undo
	// it.
	Interrupted func() bool
}

func (op *Operation) interrupted() bool { return op.Interrupted != nil && op.Interrupted() }

// Update runs DDL statements in order and stops at the first failure; the statements before it stay in effect. op is
// the operation that runs them, or nil. Only one schema change of a database runs at a time; Update waits until no
// other one runs.
func (m *Manager) Update(ctx context.Context, statements []string, op *Operation) error {
	if op == nil {
		op = new(Operation)
	}
	return m.cfg.Background.WhileOpen(ctx, func(ctx context.Context) (err error) {
		if err := m.Token.Acquire(ctx); err != nil {
			return errors.Join(err, m.abandon(op))
		}
		defer m.Token.Release()
		m.cfg.Task.Do(ctx, func(ctx context.Context) { err = m.changeAll(ctx, statements, op) })
		return err
	})
}

// Check fails if one of the DDL statements cannot be applied to the newest schema with the statements before it. It
// does not run the statements, so a statement may still fail later because of existing rows.
func (m *Manager) Check(ctx context.Context, statements []string) error {
	catalog := m.Catalog()
	for _, text := range statements {
		next, _, err := Apply(ctx, catalog, text, m.cfg.Clock, m.cfg.Sequences)
		if err != nil {
			return err
		}
		catalog = next
	}
	return nil
}

func (m *Manager) changeAll(ctx context.Context, statements []string, op *Operation) error {
	for i, text := range statements {
		if i < op.Applied {
			continue
		}
		s := statement{text: text, number: i, operation: op}
		at, err := m.change(ctx, s)
		if err != nil {
			return err
		}
		s.report(Progress{Percent: 100, Commit: at.Time()})
	}
	return nil
}

// statement is a DDL statement of an operation that Update runs.
type statement struct {
	text      string
	number    int // index in the operation, from 0
	operation *Operation
}

func (s *statement) report(p Progress) {
	if p.Statement = s.number; s.operation.Progress != nil {
		s.operation.Progress(p)
	}
}

// applied adds to a batch a record which says that the statement takes effect at the given timestamp. It adds nothing
// if the operation has no name.
func (s *statement) applied(b kv.Batch, at mvcc.Timestamp) error {
	if s.operation.Name == "" {
		return nil
	}
	return meta.Put(b, appliedKey(s.operation.Name, s.number), appliedRecord{at, s.operation.Began})
}

// change runs one statement and returns the timestamp at which it took effect. If the last process left this statement
// unfinished, change resumes it. If another statement is unfinished, change undoes that one first.
func (m *Manager) change(ctx context.Context, s statement) (mvcc.Timestamp, error) {
	if c := m.interrupted.Swap(nil); c != nil && c.record().is(&s) {
		again := *c // a copy, since other goroutines may read c
		again.statement = s
		return again.run(ctx)
	}
	if err := m.revertTentative(ctx); err != nil {
		return 0, err
	}
	old := m.Catalog()
	next, what, err := Apply(ctx, old, s.text, m.cfg.Clock, m.cfg.Sequences, s.operation.ProtoDescriptors)
	if err != nil {
		return 0, err
	}
	if what.Nothing {
		return m.recordNoOp(s)
	}
	if !what.OfRows() {
		return m.publish(ctx, publication{catalog: next, garbage: spacesOf(what.DroppedTables, what.DroppedIndexes), statement: &s})
	}
	c := &rowsChange{manager: m, statement: s, old: old, next: next, what: what}
	return c.run(ctx)
}

// Apply calls schema.Catalog.Apply. If ctx ends meanwhile, it returns ctx's error.
func Apply(ctx context.Context, c *schema.Catalog, stmt string, clock func() time.Time, sequences *sequence.Counters, protoDescriptors ...[]byte) (*schema.Catalog, *schema.Change, error) {
	next, what, err := c.Apply(stmt, prepare.NewCompiler(ctx, clock, sequences), protoDescriptors...)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err() // the error of c.Apply would wrongly say that an expression is invalid
	}
	return next, what, err
}

// recordNoOp records that a statement which changes nothing has run, and returns the current timestamp.
func (m *Manager) recordNoOp(s statement) (mvcc.Timestamp, error) {
	at := m.cfg.Oracle.Now()
	if s.operation.Name == "" {
		return at, nil
	}
	b := meta.NewBatch(m.cfg.Store)
	defer b.Close()
	if err := s.applied(b, at); err != nil {
		return 0, err
	}
	return at, b.Commit()
}

// settle records durably that the newest version is no longer tentative, because its schema change is complete. garbage
// holds the key ranges of the objects that the version has dropped. They are deleted together with the older versions.
func (m *Manager) settle(garbage []table.Span, s *statement) error {
	v := m.Newest()
	if err := m.storeVersion(v, v.Catalog, publication{garbage: garbage, statement: s}, kv.Batch.Commit); err != nil {
		return err
	}
	v.Garbage = garbage
	v.tentative.Store(false)
	return nil
}

// undo publishes the catalog from before a change again, after the change has failed or was cancelled. The parameter
// old holds this catalog. The parameter cause is the error of the change, and undo returns it. If the undo fails too,
// undo returns an error whose text contains the text of cause.
func (m *Manager) undo(ctx context.Context, old *schema.Catalog, cause error) error {
	if m.Catalog() == old {
		return cause
	}
	if err := m.revert(context.WithoutCancel(ctx), old); err != nil {
		return fmt.Errorf("undo schema change (%v): %w", cause, err)
	}
	return cause
}

// revert makes an older catalog, old, the newest one again. The keys of tables and indexes that are not in this older
// catalog become garbage, which is deleted later. Index entries that no read may have used are deleted at once.
func (m *Manager) revert(ctx context.Context, old *schema.Catalog) error {
	tables, indexes := m.Catalog().Without(old)
	unread := slices.DeleteFunc(slices.Clone(indexes), m.hasServed)
	if _, err := m.publish(ctx, publication{catalog: old.After(m.Catalog()), garbage: spacesOf(tables, indexes)}); err != nil {
		return err
	}
	if err := m.eraseUnread(spacesOf(nil, unread)); err != nil { // then garbage collection erases the entries
		m.cfg.Log.Error("erase index entries", slog.Any("error", err))
	}
	return nil
}

// hasServed reports whether any version lets reads use an index.
func (m *Manager) hasServed(x *schema.Index) bool {
	return slices.ContainsFunc(*m.versions.Load(), func(v *Version) bool {
		i := v.Catalog.IndexByID(x.ID)
		return i != nil && i.State == schema.IndexReadWrite
	})
}

// eraseUnread deletes the index entries in spans at once. This is safe because no version has let reads use these
// indexes, so no read at any timestamp needs the entries.
func (m *Manager) eraseUnread(spans []table.Span) error {
	if len(spans) == 0 {
		return nil
	}
	b := m.cfg.Rows.NewBatch()
	defer b.Close()
	b.KV().UseReserve() // the deletion frees disk space
	for _, s := range spans {
		if err := b.Erase(s.Start, s.End); err != nil {
			return err
		}
	}
	if err := b.Commit(); err != nil {
		return err
	}
	for _, s := range spans {
		m.cfg.Rows.FreeSpace(s.Start, s.End)
	}
	return nil
}

// publication is a catalog to be published, that is, to become the newest one.
type publication struct {
	catalog   *schema.Catalog // its version number is ignored: publish gives it the next one
	garbage   []table.Span    // key ranges that only earlier catalogs use
	underWay  *rowsChange     // the change that still has work on rows, which makes the catalog tentative; nil if none
	statement *statement      // the statement that takes effect with the catalog; nil if none does
}

// publish makes a catalog the newest one, durably, at a moment at which no transaction commits. It returns the
// timestamp of the new version.
func (m *Manager) publish(ctx context.Context, p publication) (mvcc.Timestamp, error) {
	var at mvcc.Timestamp
	catalog := p.catalog.WithVersion(m.Catalog().Version + 1)
	err := m.jobs.Transactions.ChangeSchema(ctx, catalog, func(ts mvcc.Timestamp, commit func(kv.Batch) error) error {
		v := m.newVersion(catalog, ts)
		v.Garbage = p.garbage
		if v.change = p.underWay; v.change != nil {
			v.by = v.change.record()
			v.tentative.Store(true)
		}
		if err := m.storeVersion(v, m.Catalog(), p, commit); err != nil {
			return err
		}
		list := append(*m.versions.Load(), v) // this may write behind the end of the list that requests hold, never into it
		m.versions.Store(&list)
		at = ts
		return nil
	})
	if err != nil {
		return 0, err
	}
	m.jobs.Transactions.SetRetention(m.Catalog().Options.VersionRetention())
	m.cfg.Changed()
	return at, nil
}

// spacesOf returns the key ranges of those tables and indexes that are not interleaved.
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

// abandon is called when op ends before Update could run it. It undoes the statement of op that the last process left
// unfinished, unless op will be resumed. It does not wait for another schema change, which may take hours. If one runs,
// that change undoes the statement, or else a goroutine does so after it.
func (m *Manager) abandon(op *Operation) error {
	if op.interrupted() {
		return nil
	}
	c := m.interrupted.Load()
	if c == nil || c.statement.operation.Name != op.Name { // a later change has already undone the statement of op
		return nil
	}
	if m.Token.TryAcquire() {
		defer m.Token.Release()
		return m.revertInterrupted(c)
	}
	go m.cfg.Background.WhileOpen(context.Background(), func(ctx context.Context) error {
		if m.Token.Acquire(ctx) != nil {
			return nil // the next process undoes the statement
		}
		defer m.Token.Release()
		if err := m.revertInterrupted(c); err != nil {
			m.cfg.Log.Error("take back a cancelled schema change; the next change does it", slog.Any("error", err))
		}
		return nil
	})
	return nil
}

// revertInterrupted undoes the change c, which the last process left unfinished, unless another goroutine has taken c
// to resume or undo it. The caller holds Manager.Token.
func (m *Manager) revertInterrupted(c *rowsChange) error {
	if !m.interrupted.CompareAndSwap(c, nil) {
		return nil
	}
	return m.revertTentative(context.Background())
}

// revertTentative undoes the newest change if it is unfinished: the last process left it so, or it failed and the store
// refused the writes of its undo. The caller holds Manager.Token, or is the only user of the database.
func (m *Manager) revertTentative(ctx context.Context) error {
	if !m.Newest().tentative.Load() {
		return nil
	}
	before := m.Settled()
	if before == nil {
		return fmt.Errorf("schema version %d of %s is half made and no version is before it", m.Catalog().Version, m.cfg.Name)
	}
	if err := m.revert(ctx, before.Catalog); err != nil {
		return fmt.Errorf("take back schema version %d: %w", m.Catalog().Version, err)
	}
	return m.jobs.Forget(ctx, rowsJobs)
}

package database

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/changestream"
	"github.com/crowfoot-db/crowfoot/columnar"
	"github.com/crowfoot-db/crowfoot/database/background"
	"github.com/crowfoot-db/crowfoot/database/copies"
	"github.com/crowfoot-db/crowfoot/database/job"
	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/database/ttl"
	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Database is one open database.
//
// Its schema is a list of versions. A schema change replaces the list and never modifies it: see schemachange.Manager.
type Database struct {
	registry *Registry
	name     string
	space    mvcc.Space
	created  time.Time
	// operation is the name of the long-running operation that made the database, "" if none did.
	operation string

	rows    *mvcc.Versions
	streams *changestream.Log
	txns    *txn.Manager
	// sequences are the counters of sequences and identity columns.
	sequences *sequence.Counters
	schema    *schemachange.Manager
	jobs      job.Runner

	statistics    statistics
	splits        *split.Manager
	background    background.Work
	collection    background.Task // status of garbage collection
	expiry        *ttl.Deletion
	copies        *columnar.Copies
	upkeep        *copies.Upkeep  // keeps the columnar copies up to date
	prepareConfig *prepare.Config // configures the preparers of all schema versions

	protected atomic.Bool
	dropped   atomic.Bool
	records   sync.Mutex // serialises writes of the database's databaseRecord
}

// databaseRecord is the stored form of a database.
type databaseRecord struct {
	Name           string
	Space          mvcc.Space
	Created        time.Time
	Operation      string `json:",omitempty"`
	DropProtection bool
}

func (d *Database) record() databaseRecord {
	return databaseRecord{Name: d.name, Space: d.space, Created: d.created, Operation: d.operation, DropProtection: d.protected.Load()}
}

// firstCatalog returns the schema that DDL statements make in an empty database. It writes nothing.
func (r *Registry) firstCatalog(ctx context.Context, name string, statements []string, sequences *sequence.Counters, protoDescriptors []byte) (*schema.Catalog, error) {
	c := schema.NewCatalog()
	c.Database = databaseID(name)
	for i, s := range statements {
		next, _, err := schemachange.Apply(ctx, c, s, r.cfg.Clock, sequences, protoDescriptors)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, &StatementError{Index: i, Err: err}
		}
		c = next
	}
	return c, nil
}

// HasSchema reports whether a database has the same schema as DDL statements would make in an empty database. It fails
// if one of the statements fails.
func (r *Registry) HasSchema(ctx context.Context, d *Database, statements []string, protoDescriptors []byte) (bool, error) {
	c, err := r.firstCatalog(ctx, d.Name(), statements, sequence.New(r.store), protoDescriptors)
	if err != nil {
		return false, err
	}
	want, have := c.DDL(), d.DDL()
	slices.Sort(want) // DDL orders tables and other objects by the time of their creation, which may differ
	slices.Sort(have)
	return slices.Equal(want, have), nil
}

// StatementError is the error of one of the DDL statements of CreateDatabase.
type StatementError struct {
	Index int // index of the statement, from 0
	Err   error
}

func (e *StatementError) Error() string { return e.Err.Error() }

func (e *StatementError) Unwrap() error { return e.Err }

// newDatabase makes and stores an empty database in a new key space. Requests do not find the database yet.
//
// Its first schema version is valid from timestamp 0 on. So a read at a time before the database was created finds the
// tables that it was created with, without rows. Cloud Spanner does the same, as the tests of its client show:
// https://github.com/googleapis/google-cloud-go/blob/main/spanner/integration_test.go (TestIntegration_SingleUse,
// exact_staleness).
func (r *Registry) newDatabase(ctx context.Context, c *Creation, operation string) (*Database, error) {
	created := r.oracle.Now()
	if err := r.oracle.CloseAt(ctx, created); err != nil { // from now on, strong reads get a timestamp after created
		return nil, err
	}
	d := r.attach(databaseRecord{Name: c.name, Space: r.nextSpace, Created: created.Time(), Operation: operation}, c.sequences)
	if err := errors.Join(d.openStreams(), d.openCopies()); err != nil {
		return nil, err
	}
	d.schema = schemachange.New(d.schemaConfig(), c.first)
	if err := d.openSplits(); err != nil {
		return nil, err
	}
	d.transact()
	return d, d.storeNew()
}

// storeNew stores a new database, its schema and the number of the next free key space, in one batch, durably. No key
// space is used for two databases, so no key of a dropped database can appear in a later one. The caller holds the
// registry's mu.
func (d *Database) storeNew() error {
	r := d.registry
	b := meta.NewBatch(r.store)
	defer b.Close()
	err := errors.Join(
		b.Put(meta.Key(meta.NextSpace), binary.BigEndian.AppendUint32(nil, uint32(d.space+1))),
		meta.Put(b, meta.Key(meta.Database, d.name), d.record()),
	)
	if err != nil {
		return err
	}
	if err := d.schema.StoreFirst(b); err != nil {
		return fmt.Errorf("store database: %w", err)
	}
	r.nextSpace = d.space + 1
	return nil
}

// openDatabase opens a stored database.
func (r *Registry) openDatabase(rec databaseRecord) (*Database, error) {
	d := r.attach(rec, sequence.New(r.store))
	if err := errors.Join(d.openStreams(), d.openCopies()); err != nil {
		return nil, err
	}
	var err error
	if d.schema, err = schemachange.Open(d.schemaConfig()); err != nil {
		return nil, err
	}
	if err := d.schema.FindInterrupted(context.Background()); err != nil {
		return nil, err
	}
	if err := d.openSplits(); err != nil {
		return nil, err
	}
	d.transact()
	if err := d.schema.Recover(context.Background()); err != nil {
		return nil, err
	}
	return d, nil
}

func (r *Registry) attach(rec databaseRecord, sequences *sequence.Counters) *Database {
	d := &Database{
		registry:  r,
		name:      rec.Name,
		space:     rec.Space,
		created:   rec.Created,
		operation: rec.Operation,
		rows:      r.versions.In(rec.Space),
		sequences: sequences,
	}
	d.protected.Store(rec.DropProtection)
	d.statistics = d.newStatistics()
	d.prepareConfig = &prepare.Config{
		Clock: r.cfg.Clock, Spill: r.cfg.Spill, Memory: r.cfg.Memory, Kept: r.cacheBudget, Statistics: d.statistics.tables, Sequences: sequences,
	}
	sequences.Open(rec.Space, d.Catalog)
	return d
}

// openCopies loads the list of the stored columnar copies.
func (d *Database) openCopies() (err error) {
	d.copies, err = columnar.Open(d.rows)
	d.prepareConfig.Copies = d.copies
	return err
}

func (d *Database) schemaConfig() schemachange.Config {
	r := d.registry
	return schemachange.Config{
		Name: d.name, Space: d.space, Created: d.created, Store: r.store, Rows: d.rows, Oracle: r.oracle, Clock: r.cfg.Clock, Log: d.log(),
		Task: r.account.Task(taskSchemaChange), Prepare: d.prepareConfig, Sequences: d.sequences, Streams: d.streams, Background: &d.background,
		Bounds: d.boundsOf, Changed: d.schemaChanged, Resumes: r.resumes,
	}
}

// schemaChanged is called after a new schema version was published. It makes change streams and columnar copies follow
// that version.
func (d *Database) schemaChanged() {
	d.reshapeStreams()
	d.upkeep.Wake()
}

// openSplits loads the split points of users. It also splits at the bounds of change stream partitions, as if
// SplitBySize had found them. Without these bounds, each start would join the partitions until SplitBySize finds the
// bounds again. The schema versions must have been loaded before.
func (d *Database) openSplits() (err error) {
	d.splits, err = split.Open(split.Config{
		Database: d.name, Space: d.space, Store: d.registry.store, Rows: d.rows, Clock: d.registry.cfg.Clock,
		Catalog: d.Catalog, SizeBounds: d.streams.Bounds(),
	})
	return err
}

// transact makes the manager of transactions and the managers of row deletion and columnar copies. It also gives the
// runner of jobs to the schema manager.
func (d *Database) transact() {
	txns := txn.NewManager(d.rows, d.registry.oracle, txn.Config{Retention: d.Retention(), Catalog: d.Catalog(), Waited: d.lockWaited, Streams: d.streams})
	d.txns, d.jobs = txns, job.Runner{Transactions: txns, Clock: d.registry.cfg.Clock, Catalog: d.Catalog}
	d.schema.Begin(d.jobs)
	d.expiry = ttl.New(ttl.Config{
		Jobs: d.jobs, Clock: d.registry.cfg.Clock, Log: d.log(), Task: d.registry.account.Task(taskRowDeletion), Token: d.registry.deleting, Tables: d.Tables,
	})
	d.upkeep = copies.New(copies.Config{
		Rows: d.rows, Transactions: txns, Catalog: d.Catalog, Copies: d.copies, Clock: d.registry.cfg.Clock, Log: d.log(), Memory: d.registry.cfg.Memory,
		Task: d.registry.account.Task(taskCopies), Token: d.registry.copying,
	})
}

// begin starts the background work of the database.
func (d *Database) begin(ctx context.Context) {
	d.background.Begin(ctx, d.statistics.Run, d.expiry.Run, d.upkeep.Run)
}

// close ends all background work of a dropped database and frees its memory.
func (d *Database) close() {
	d.streams.Close(usererror.DatabaseNotFound(d.name))
	d.splits.Close()
	d.background.End()
	d.schema.Close()
}

// Name returns the full name, projects/P/instances/I/databases/D.
func (d *Database) Name() string { return d.name }

// Created returns the time at which the database was created.
func (d *Database) Created() time.Time { return d.created }

// MadeBy reports whether the long-running operation of this name has made the database.
func (d *Database) MadeBy(operation string) bool { return d.operation == operation }

// Dropped reports whether the database was dropped. A request that found the database before may still use it.
func (d *Database) Dropped() bool { return d.dropped.Load() }

// Transactions returns the manager with which transactions of this database begin.
func (d *Database) Transactions() *txn.Manager { return d.txns }

// Splits returns the splits of this database.
func (d *Database) Splits() *split.Manager { return d.splits }

// Copies returns the columnar copies of the tables and indexes. A read at any timestamp may look up the copy of its
// table or index by ID: the copy returns which ranges it cannot serve at that timestamp.
func (d *Database) Copies() *columnar.Copies { return d.copies }

// ColumnarPolicies returns the rows of SPANNER_SYS.COLUMNAR_POLICIES: one for each table and index that has a columnar
// copy.
func (d *Database) ColumnarPolicies() []stats.ColumnarPolicy { return d.upkeep.Policies() }

// DropProtection reports whether the database refuses to be dropped.
func (d *Database) DropProtection() bool { return d.protected.Load() }

// SetDropProtection stores durably whether the database refuses to be dropped.
func (d *Database) SetDropProtection(on bool) error {
	d.records.Lock()
	defer d.records.Unlock()
	if d.Dropped() {
		return usererror.DatabaseNotFound(d.name)
	}
	rec := d.record()
	rec.DropProtection = on
	if err := meta.Store(d.registry.store, meta.Key(meta.Database, d.name), rec); err != nil {
		return fmt.Errorf("store database: %w", err)
	}
	d.protected.Store(on)
	return nil
}

// Catalog returns the catalog of the newest schema version.
func (d *Database) Catalog() *schema.Catalog { return d.schema.Catalog() }

// CatalogAt returns the catalog that was valid at a timestamp, for reads at that timestamp. It fails if that schema
// version has been deleted by garbage collection since the timestamp was chosen.
func (d *Database) CatalogAt(at mvcc.Timestamp) (*schema.Catalog, error) {
	return d.schema.CatalogAt(at)
}

// DDL returns the statements that make the newest schema version that is not tentative. A version is tentative until
// its schema change has ended.
func (d *Database) DDL() []string { return d.schema.SettledCatalog().DDL() }

// ProtoDescriptors returns the serialized FileDescriptorSet that the statements returned by DDL need; nil if they need
// none.
func (d *Database) ProtoDescriptors() []byte {
	if b := d.schema.SettledCatalog().ProtoBundle(); b != nil {
		return b.Descriptors
	}
	return nil
}

// Retention returns the version retention period: how long old versions of rows can be read.
func (d *Database) Retention() time.Duration { return d.Catalog().Options.VersionRetention() }

// EarliestVersion returns the oldest timestamp at which rows can be read, or the time of the database's creation if
// that is later.
func (d *Database) EarliestVersion() time.Time {
	earliest := d.txns.Earliest().Time()
	if d.created.After(earliest) {
		return d.created
	}
	return earliest
}

// Zone returns the database's default time zone.
func (d *Database) Zone() *time.Location { return d.schema.Newest().Preparer.Zone() }

// CheckSyntax returns the first syntax error in DDL statements. Such an error makes a whole request fail before any of
// its statements runs.
func (d *Database) CheckSyntax(statements []string) error {
	for _, s := range statements {
		if err := schema.CheckSyntax(s); err != nil {
			return err
		}
	}
	return nil
}

// UpdateSchema runs DDL statements: see schemachange.Manager.Update.
func (d *Database) UpdateSchema(ctx context.Context, statements []string, op *schemachange.Operation) error {
	err := d.schema.Update(ctx, statements, op)
	if err != nil && d.Dropped() {
		return usererror.DatabaseNotFound(d.name)
	}
	return err
}

// CheckSchema fails if one of the DDL statements cannot be applied to the newest schema, with the changes that the
// statements before it would make. It does not run the statements, so a statement may still fail later because of
// existing rows.
func (d *Database) CheckSchema(ctx context.Context, statements []string) error {
	return d.schema.Check(ctx, statements)
}

// Interrupted returns the progress of the statement that the last process left unfinished, if it belongs to the given
// operation. ok is false if there is no such statement. Interrupted does not wait for other schema changes.
func (d *Database) Interrupted(ctx context.Context, operation string) (p schemachange.Progress, ok bool, err error) {
	return d.schema.Interrupted(ctx, operation)
}

func (d *Database) log() *slog.Logger {
	return d.registry.cfg.Log.With("database", d.name)
}

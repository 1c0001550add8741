package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// A client calls the methods of the administrative services in a test.
type client struct {
	*testing.T
	*Admin
}

func (c client) create(database string, statements ...string) (*longrunningpb.Operation, error) {
	return c.databases.createDatabase(c.Context(), &databasepb.CreateDatabaseRequest{
		Parent: testInstance, CreateStatement: "CREATE DATABASE " + database, ExtraStatements: statements,
	})
}

func (c client) change(id string, statements ...string) (*longrunningpb.Operation, error) {
	return c.databases.updateDatabaseDDL(c.Context(), &databasepb.UpdateDatabaseDdlRequest{Database: testDatabase, OperationId: id, Statements: statements})
}

// ended waits for the end of an operation, and returns it.
func (c client) ended(name string) (*longrunningpb.Operation, error) {
	return c.operations.waitOperation(c.Context(), &longrunningpb.WaitOperationRequest{Name: name})
}

// succeeds waits for the end of an operation, which must succeed, and returns it.
func (c client) succeeds(name string) *longrunningpb.Operation {
	c.Helper()
	op, err := c.ended(name)
	if err != nil || !op.Done || op.GetError() != nil {
		c.Fatalf("%s: %v, %v", name, op, err)
	}
	return op
}

func (c client) ddl() []string {
	c.Helper()
	reply, err := c.databases.getDatabaseDDL(c.Context(), &databasepb.GetDatabaseDdlRequest{Database: testDatabase})
	if err != nil {
		c.Fatal(err)
	}
	return reply.Statements
}

func (c client) instance() {
	c.Helper()
	if _, err := c.databases.registry.CreateInstance(database.Instance{Name: testInstance}); err != nil {
		c.Fatal(err)
	}
}

// lockRow inserts a row into T in an open transaction, which holds the row's lock. Until the transaction ends, no
// statement can fill a new column of T.
func (c client) lockRow() *txn.Tx {
	c.Helper()
	return c.lockRowOf("T")
}

func (c client) lockRowOf(name string) *txn.Tx {
	c.Helper()
	d, err := c.databases.registry.Database(testDatabase)
	if err != nil {
		c.Fatal(err)
	}
	return lockRow(c.T, d, name)
}

func lockRow(t *testing.T, d *database.Database, name string) *txn.Tx {
	t.Helper()
	tx := d.Transactions().Begin(txn.Options{})
	of := d.Catalog().Table(name)
	m := table.Mutation{Op: table.InsertOrUpdate, Table: of, Columns: of.Columns[:1], Rows: [][]value.Value{{value.OfInt64(1)}}}
	if _, err := table.Apply(t.Context(), tx.Request(), table.NewDescriptors(d.Catalog()), []table.Mutation{m}, time.Now()); err != nil {
		t.Fatal(err)
	}
	return tx
}

// insertRow inserts the same row as lockRow, and commits.
func (c client) insertRow() {
	c.Helper()
	if _, err := c.lockRow().Commit(c.Context(), nil, txn.CommitOptions{}); err != nil {
		c.Fatal(err)
	}
}

// script holds the statements of an operation. The second one must visit the existing rows of T.
var script = []string{"CREATE TABLE A (K INT64) PRIMARY KEY (K)", "ALTER TABLE T ADD COLUMN D INT64 NOT NULL DEFAULT (4)", "CREATE TABLE B (K INT64) PRIMARY KEY (K)"}

// TestCrashAtEverySync: after a crash at any sync to disk, the next process finishes each operation that it finds in
// the store. The client then sends its requests again. A request whose operation is in the store fails with
// ALREADY_EXISTS, and any other request runs. In both cases the schema at the end must be that of a server which did
// not crash.
func TestCrashAtEverySync(t *testing.T) {
	const base = "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"
	mem := vfs.NewCrashableMem()
	var mu sync.Mutex
	var crashed []*vfs.MemFS
	armed := false
	statements := append([]string{"CREATE INDEX ByV ON T(V)", "CREATE UNIQUE INDEX OnceV ON T(V)"}, script...)
	fs := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		mu.Lock()
		defer mu.Unlock()
		if armed && (op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData || op.Kind == errorfs.OpFileSyncTo) {
			crashed = append(crashed, mem.CrashClone(vfs.CrashCloneCfg{}))
		}
		return nil
	}))
	crash := func(on bool) { mu.Lock(); armed = on; mu.Unlock() }

	admin, stop := served(t, fs, time.Now)
	c := client{t, admin}
	c.instance()
	crash(true)
	op, err := c.create("db", base)
	if err != nil {
		t.Fatal(err)
	}
	c.succeeds(op.Name)
	c.insertRow()
	if op, err = c.change("change", statements...); err != nil {
		t.Fatal(err)
	}
	c.succeeds(op.Name)
	want := c.ddl()
	crash(false)
	stop()

	if len(crashed) < 8 {
		t.Fatalf("only %d syncs", len(crashed))
	}
	for i, fs := range crashed {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			admin, stop := served(t, fs, time.Now)
			defer stop()
			c := client{t, admin}
			var began []*longrunningpb.Operation
			for op, err := range admin.operations.under(testDatabase+"/operations/", "") {
				if err != nil {
					t.Fatal(err)
				}
				began = append(began, op)
				c.succeeds(op.Name)
			}
			if _, err := c.create("db", base); err != nil && usererror.CodeOf(err) != codes.AlreadyExists {
				t.Fatal(err)
			}
			_, err := c.change("change", statements...)
			resumed := len(began) == 2 || len(began) == 1 && began[0].Name == testDatabase+"/operations/change"
			if again := usererror.CodeOf(err) == codes.AlreadyExists; again != resumed {
				t.Errorf("sent again: %v, after a start with %v", err, began)
			}
			op := c.succeeds(testDatabase + "/operations/change")
			checkMetadata(t, op, len(statements))
			if got := c.ddl(); !slices.Equal(got, want) {
				t.Errorf("schema %q, want %q", got, want)
			}
		})
	}
}

// checkMetadata checks the metadata of an UpdateDatabaseDdl. applied is the number of its statements that have taken
// effect.
func checkMetadata(t *testing.T, op *longrunningpb.Operation, applied int) {
	t.Helper()
	m := new(databasepb.UpdateDatabaseDdlMetadata)
	if err := op.Metadata.UnmarshalTo(m); err != nil {
		t.Fatal(err)
	}
	if len(m.CommitTimestamps) != applied || len(m.Progress) != len(m.Statements) || m.Throttled {
		t.Fatalf("metadata %v", m)
	}
	var last time.Time
	for i, at := range m.CommitTimestamps {
		p := m.Progress[i]
		if !at.AsTime().After(last) || p.ProgressPercent != 100 || !p.EndTime.AsTime().Equal(at.AsTime()) || p.StartTime == nil {
			t.Errorf("statement %d: %v in %v", i, p, m.CommitTimestamps)
		}
		last = at.AsTime()
	}
	if applied < len(m.Progress) && (m.Progress[applied].StartTime == nil || m.Progress[applied].EndTime != nil) {
		t.Errorf("the statement under way: %v", m.Progress[applied])
	}
}

// interrupted returns the file system of a process that has ended. When it ended, the second statement of the operation
// "change" was running, and the operation "next" was waiting for the end of "change". It also returns the progress of
// the first statement.
func interrupted(t *testing.T) (vfs.FS, *databasepb.OperationProgress) {
	t.Helper()
	fs := vfs.NewMem()
	admin, stop := served(t, fs, time.Now)
	c := client{t, admin}
	c.instance()
	if _, err := c.create("db", "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"); err != nil {
		t.Fatal(err)
	}
	c.insertRow()
	c.lockRow()
	c.begin("change", script...)
	c.begin("next", "ALTER TABLE T DROP COLUMN D", "CREATE INDEX Later ON T(V)")
	for c.applied("change") != 1 {
		time.Sleep(time.Millisecond)
	}
	before := c.progress("change")
	stop()
	return fs, before
}

// begin starts a schema change and does not wait for its end.
func (c client) begin(id string, statements ...string) {
	c.Helper()
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	req := &databasepb.UpdateDatabaseDdlRequest{Database: testDatabase, OperationId: id, Statements: statements}
	if op, err := c.databases.updateDatabaseDDL(ctx, req); err != nil || op.Done {
		c.Fatal(op, err)
	}
}

// metadata returns the metadata of an operation of the database.
func (c client) metadata(id string) *databasepb.UpdateDatabaseDdlMetadata {
	c.Helper()
	op, err := c.operations.get(testDatabase + "/operations/" + id)
	m := new(databasepb.UpdateDatabaseDdlMetadata)
	if err != nil || op.Metadata.UnmarshalTo(m) != nil {
		c.Fatal(op, err)
	}
	return m
}

// applied returns how many of an operation's statements have taken effect.
func (c client) applied(id string) int { return len(c.metadata(id).CommitTimestamps) }

// progress returns the progress of the first statement of an operation.
func (c client) progress(id string) *databasepb.OperationProgress { return c.metadata(id).Progress[0] }

// TestResume: after a restart the interrupted operations continue and end, in the order in which they began.
func TestResume(t *testing.T) {
	fs, before := interrupted(t)
	admin, stop := served(t, fs, time.Now)
	defer stop()
	c := client{t, admin}
	if after := c.progress("change"); !proto.Equal(after, before) {
		t.Errorf("the first statement: %v, before the restart %v", after, before)
	}
	_, err := c.change("change", script...)
	wantCode(t, err, codes.AlreadyExists)
	again, err := c.change("", script[0])
	if err != nil {
		t.Fatal(err)
	}
	if again, err = c.ended(again.Name); err != nil || again.GetError().GetCode() != int32(codes.FailedPrecondition) {
		t.Errorf("sent again: %v, %v", again, err) // want "Duplicate name in schema"
	}
	checkMetadata(t, c.succeeds(testDatabase+"/operations/change"), 3)
	checkMetadata(t, c.succeeds(testDatabase+"/operations/next"), 2)
	if list := c.ddl(); len(list) != 4 || !slices.Contains(list, "CREATE INDEX Later ON T(V)") {
		t.Errorf("the schema is %q", list)
	}
}

// TestResumeWhenTheClockWasSetBack: operations are resumed in the order in which they began, even if the clock was set
// back between them.
func TestResumeWhenTheClockWasSetBack(t *testing.T) {
	fs := vfs.NewMem()
	var back atomic.Int64 // nanoseconds by which the clock was set back
	clock := func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
	admin, stop := served(t, fs, clock)
	c := client{t, admin}
	c.instance()
	if _, err := c.create("db", "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"); err != nil {
		t.Fatal(err)
	}
	c.insertRow()
	c.lockRow()
	c.begin("change", script...)
	back.Store(int64(time.Hour))
	c.begin("next", "ALTER TABLE T DROP COLUMN D", "CREATE INDEX Later ON T(V)")
	stop()

	back.Store(int64(2 * time.Hour))
	admin, stop = served(t, fs, clock)
	defer stop()
	c = client{t, admin}
	if _, err := c.change("last", "DROP INDEX Later"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"change", "next", "last"} {
		c.succeeds(testDatabase + "/operations/" + id)
	}
}

// TestCancelResumed: a resumed operation can be cancelled. The statements that have taken effect are not undone.
func TestCancelResumed(t *testing.T) {
	fs, _ := interrupted(t)
	admin, stop := servedWith(t, fs, time.Now, func(r *database.Registry) {
		d, err := r.Database(testDatabase)
		if err != nil {
			t.Fatal(err)
		}
		lockRow(t, d, "T")
	})
	defer stop()
	c := client{t, admin}
	for _, id := range []string{"next", "change"} {
		name := testDatabase + "/operations/" + id
		op, err := c.operations.get(name)
		if err != nil || op.Done {
			t.Fatalf("%v, %v", op, err)
		}
		if _, err := c.operations.cancelOperation(t.Context(), &longrunningpb.CancelOperationRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
		if op, err = c.ended(name); err != nil || op.GetError().GetCode() != int32(codes.Canceled) {
			t.Errorf("%v, %v", op, err)
		}
	}
	if n := c.applied("change"); n != 1 {
		t.Errorf("%d statements are applied", n)
	}
	if list := c.ddl(); len(list) != 2 {
		t.Errorf("the schema is %q", list)
	}
}

// TestCancelBeforeRestart: if an operation was cancelled and the process ended before the operation did, the next
// process does not continue it. Its unfinished statement is undone, and the next operation runs.
func TestCancelBeforeRestart(t *testing.T) {
	fs := vfs.NewMem()
	admin, stop := served(t, fs, time.Now)
	c := client{t, admin}
	c.instance()
	if _, err := c.create("db", "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"); err != nil {
		t.Fatal(err)
	}
	c.insertRow()
	c.lockRow()
	c.begin("change", script...)
	c.begin("next", "CREATE INDEX Later ON T(V)")
	for c.applied("change") != 1 {
		time.Sleep(time.Millisecond)
	}
	// Only store that the operation was cancelled, as if the process had ended before it could stop the operation.
	if err := c.operations.keepCancelled(testDatabase + "/operations/change"); err != nil {
		t.Fatal(err)
	}
	stop()
	admin, stop = served(t, fs, time.Now)
	defer stop()
	c = client{t, admin}
	if op, err := c.ended(testDatabase + "/operations/change"); err != nil || op.GetError().GetCode() != int32(codes.Canceled) {
		t.Errorf("%v, %v", op, err)
	}
	if n := c.applied("change"); n != 1 {
		t.Errorf("%d statements are applied", n)
	}
	c.succeeds(testDatabase + "/operations/next")
	if list := c.ddl(); len(list) != 3 || strings.Contains(list[0], "D INT64") {
		t.Errorf("the schema is %q", list)
	}
}

// TestDropWhileOperationRuns: if a database is dropped while an operation runs on it, the operation ends. Neither a new
// database with the same name nor the next process knows the operation.
func TestDropWhileOperationRuns(t *testing.T) {
	fs := vfs.NewMem()
	admin, stop := served(t, fs, time.Now)
	c := client{t, admin}
	c.instance()
	if _, err := c.create("db", "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"); err != nil {
		t.Fatal(err)
	}
	c.insertRow()
	c.lockRow()
	c.begin("change", script...)
	for c.applied("change") != 1 {
		time.Sleep(time.Millisecond)
	}
	if _, err := c.databases.dropDatabase(t.Context(), &databasepb.DropDatabaseRequest{Database: testDatabase}); err != nil {
		t.Fatal(err)
	}
	none := func() {
		t.Helper()
		if _, err := c.operations.get(testDatabase + "/operations/change"); usererror.CodeOf(err) != codes.NotFound {
			t.Errorf("the operation of a dropped database: %v", err)
		}
	}
	none()
	if _, err := c.create("db"); err != nil {
		t.Fatal(err)
	}
	stop()
	admin, stop = served(t, fs, time.Now)
	defer stop()
	c = client{t, admin}
	none()
	if n := admin.operationsOf(t, ""); n != 1 {
		t.Errorf("%d operations", n)
	}
}

// TestNameIsTaken: while a database is being created, no second one with the same name can be created, and other
// databases can be used.
func TestNameIsTaken(t *testing.T) {
	admin, stop := served(t, vfs.NewMem(), time.Now)
	defer stop()
	c := client{t, admin}
	c.instance()
	creation, err := admin.databases.registry.BeginDatabase(t.Context(), testDatabase)
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.create("db")
	wantCode(t, err, codes.AlreadyExists)
	_, err = admin.databases.registry.Database(testDatabase)
	wantCode(t, err, codes.NotFound)
	creation.End()
	if _, err = c.create("db"); err != nil {
		t.Error(err)
	}
}

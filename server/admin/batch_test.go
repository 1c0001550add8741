package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/txn"
)

// TestBatchStops: a batch of DDL stops at the first statement that fails. This holds for all kinds of statements, and
// for each step at which they can fail. The statements before the failed one have taken effect and have commit
// timestamps. The failed statement has changed nothing, and the statements after it do not begin.
func TestBatchStops(t *testing.T) {
	admin, stop := served(t, vfs.NewMem(), time.Now)
	defer stop()
	c := client{t, admin}
	c.instance()
	if _, err := c.create("db", "CREATE TABLE T (K INT64, V INT64, S STRING(10)) PRIMARY KEY (K)", "CREATE INDEX ByV ON T(V)", "CREATE ROLE reader",
		"CREATE TABLE U (K INT64) PRIMARY KEY (K)"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.lockRowOf("T").Commit(t.Context(), nil, txn.CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	for i, bad := range []struct {
		sql  string
		code codes.Code
		text string
	}{
		{"CREATE TABLE T (K INT64) PRIMARY KEY (K)", codes.FailedPrecondition, "Duplicate name"},
		{"DROP TABLE T", codes.FailedPrecondition, "T"},
		{"DROP TABLE Missing", codes.NotFound, "Missing"},
		{"CREATE INDEX ByV ON T(V)", codes.FailedPrecondition, "ByV"},
		{"CREATE INDEX ByW ON T(W)", codes.InvalidArgument, "W"},
		{"ALTER TABLE T ALTER COLUMN S STRING(10) NOT NULL", codes.FailedPrecondition, "S"},
		{"ALTER TABLE T ADD CONSTRAINT Known FOREIGN KEY (K) REFERENCES U (K)", codes.FailedPrecondition, "Known"},
		{"ALTER TABLE T ADD CONSTRAINT Never CHECK (K < 0)", codes.FailedPrecondition, "Never"},
		{"ALTER TABLE T ADD COLUMN Bad INT64 AS (DIV(K, 0)) STORED", codes.OutOfRange, "division by zero"},
		{"ALTER TABLE T DROP COLUMN V", codes.FailedPrecondition, "V"},
		{"CREATE VIEW Seen SQL SECURITY INVOKER AS SELECT m.K FROM Missing AS m", codes.InvalidArgument, "Missing"},
		{"GRANT SELECT ON TABLE Missing TO ROLE reader", codes.NotFound, "Missing"},
		{"CREATE ROLE reader", codes.FailedPrecondition, "reader"},
		{"DROP SEQUENCE Missing", codes.NotFound, "Missing"},
		{"CREATE PROTO BUNDLE (`missing.Message`)", codes.InvalidArgument, "proto_descriptors"},
		{"CREATE CHANGE STREAM Watched FOR Missing", codes.FailedPrecondition, "Missing"},
	} {
		before, id := c.ddl(), fmt.Sprintf("batch_%d", i)
		first := fmt.Sprintf("CREATE TABLE Before%d (K INT64) PRIMARY KEY (K)", i)
		op, err := c.change(id, first, bad.sql, fmt.Sprintf("CREATE TABLE After%d (K INT64) PRIMARY KEY (K)", i))
		if err != nil || !op.Done || op.GetError().GetCode() != int32(bad.code) || !strings.Contains(op.GetError().GetMessage(), bad.text) {
			t.Errorf("%s: %v, %v", bad.sql, op, err)
			continue
		}
		checkMetadata(t, op, 1)
		if p := c.metadata(id).Progress; p[1].ProgressPercent == 100 || p[2].ProgressPercent != 0 || p[2].StartTime != nil {
			t.Errorf("%s: progress %v", bad.sql, p)
		}
		after := c.ddl()
		left := slices.DeleteFunc(slices.Clone(after), func(s string) bool { return strings.Contains(s, fmt.Sprintf("Before%d ", i)) })
		if len(after) != len(before)+1 || !slices.Equal(left, before) {
			t.Errorf("after %s the schema is %q", bad.sql, after)
		}
		_, err = c.change(id, first) // a second request with the same operation id
		wantCode(t, err, codes.AlreadyExists)
	}
}

// TestManyOperations: schema changes that wait for others end in the order in which they began. A change that is
// cancelled while it waits ends at once. Changes of different databases do not wait for each other.
func TestManyOperations(t *testing.T) {
	const databases, queued = 20, 50
	admin, stop := served(t, vfs.NewMem(), time.Now)
	defer stop()
	c := client{t, admin}
	c.instance()
	if _, err := c.create("db", "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"); err != nil {
		t.Fatal(err)
	}
	c.insertRow()
	held := c.lockRow()
	c.begin("first", "ALTER TABLE T ADD COLUMN D INT64 NOT NULL DEFAULT (4)")
	for i := range queued {
		c.begin(fmt.Sprintf("queued%d", i), fmt.Sprintf("CREATE TABLE Q%d (K INT64) PRIMARY KEY (K)", i))
	}
	for i := range databases {
		if op, err := c.create(fmt.Sprintf("other%d", i), "CREATE TABLE T (K INT64) PRIMARY KEY (K)"); err != nil || !op.Done {
			t.Fatal(op, err)
		}
	}
	others := make(chan error)
	for i := range databases {
		go func() {
			op, err := c.databases.updateDatabaseDDL(context.Background(), &databasepb.UpdateDatabaseDdlRequest{
				Database: fmt.Sprintf("%s/databases/other%d", testInstance, i), Statements: []string{"CREATE INDEX I ON T(K)", "DROP INDEX I"},
			})
			if err == nil && (!op.Done || op.GetError() != nil) {
				err = fmt.Errorf("%v", op)
			}
			others <- err
		}()
	}
	for range databases {
		if err := <-others; err != nil {
			t.Error(err)
		}
	}
	for i := 0; i < queued; i += 2 {
		name := fmt.Sprintf("%s/operations/queued%d", testDatabase, i)
		if _, err := c.operations.cancelOperation(t.Context(), &longrunningpb.CancelOperationRequest{Name: name}); err != nil {
			t.Fatal(err)
		}
		if op, err := c.ended(name); err != nil || op.GetError().GetCode() != int32(codes.Canceled) {
			t.Errorf("%v, %v", op, err)
		}
	}
	if err := held.Rollback(); err != nil {
		t.Fatal(err)
	}
	last := c.succeeds(testDatabase + "/operations/first")
	for i := 1; i < queued; i += 2 {
		op := c.succeeds(fmt.Sprintf("%s/operations/queued%d", testDatabase, i))
		if at, before := committed(t, op), committed(t, last); !at.After(before) {
			t.Errorf("operation %d took effect at %v, the one before it at %v", i, at, before)
		}
		last = op
	}
	if n := len(c.ddl()); n != 1+queued/2 {
		t.Errorf("%d statements in the schema", n)
	}
}

// committed returns the commit timestamp of an operation's only statement.
func committed(t *testing.T, op *longrunningpb.Operation) time.Time {
	t.Helper()
	m := new(databasepb.UpdateDatabaseDdlMetadata)
	if err := op.Metadata.UnmarshalTo(m); err != nil || len(m.CommitTimestamps) != 1 {
		t.Fatalf("%v, %v", m, err)
	}
	return m.CommitTimestamps[0].AsTime()
}

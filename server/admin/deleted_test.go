package admin

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/txn"
)

// deletedWhileItRuns begins the operation "change", deletes it while its second statement runs, and returns it. That
// statement waits for a lock that the caller holds.
func (c client) deletedWhileItRuns() *operation {
	c.Helper()
	c.begin("change", script...)
	for c.applied("change") != 1 {
		time.Sleep(time.Millisecond)
	}
	name := testDatabase + "/operations/change"
	op, _, err := c.operations.find(name)
	if err != nil {
		c.Fatal(err)
	}
	if _, err := c.operations.deleteOperation(c.Context(), &longrunningpb.DeleteOperationRequest{Name: name}); err != nil {
		c.Fatal(err)
	}
	return op
}

// stillApplied returns the commit timestamps that the store still has for an operation's statements.
func (c client) stillApplied(op *operation) []time.Time {
	c.Helper()
	list, err := c.databases.registry.Applied(&database.Operation{Name: op.name, Started: op.started})
	if err != nil {
		c.Fatal(err)
	}
	return list
}

// TestDeletedWhileItRuns: an operation that was deleted while it ran continues. A new operation with the same name does
// not take the progress of the deleted one for its own, even if the process ends and the next process resumes the new
// operation.
func TestDeletedWhileItRuns(t *testing.T) {
	fs := vfs.NewMem()
	admin, stop := served(t, fs, time.Now)
	c := client{t, admin}
	c.instance()
	if _, err := c.create("db", "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)", "CREATE TABLE U (K INT64, V INT64) PRIMARY KEY (K)"); err != nil {
		t.Fatal(err)
	}
	c.insertRow()
	if _, err := c.lockRowOf("U").Commit(t.Context(), nil, txn.CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	var applied []int
	deleted := func(meanwhile func()) {
		t.Helper()
		lock := c.lockRow()
		op := c.deletedWhileItRuns()
		meanwhile()
		if err := lock.Rollback(); err != nil {
			t.Fatal(err)
		}
		<-op.done
		if list := c.ddl(); len(list) != 4 {
			t.Errorf("the schema is %q", list)
		}
		applied = append(applied, len(c.stillApplied(op)))
	}
	deleted(func() {})
	_, err := c.operations.get(testDatabase + "/operations/change")
	wantCode(t, err, codes.NotFound)
	if _, err := c.change("", "DROP TABLE A", "ALTER TABLE T DROP COLUMN D", "DROP TABLE B"); err != nil {
		t.Fatal(err)
	}
	c.lockRowOf("U")
	deleted(func() { c.begin("change", "ALTER TABLE U ADD COLUMN D INT64 NOT NULL DEFAULT (4)") })
	// The store still has the progress of 2 statements of the second deleted operation, because the new operation
	// "change" has the same name. This progress stays until the new operation ends.
	if !slices.Equal(applied, []int{0, 2}) {
		t.Errorf("%v statements of the deleted operations are stored", applied)
	}
	stop()

	admin, stop = served(t, fs, time.Now)
	defer stop()
	c = client{t, admin}
	checkMetadata(t, c.succeeds(testDatabase+"/operations/change"), 1)
	if list := c.ddl(); !slices.ContainsFunc(list, func(s string) bool { return strings.HasPrefix(s, "CREATE TABLE U") && strings.Contains(s, "D INT64") }) {
		t.Errorf("the schema is %q", list)
	}
}

// TestEndIsStoredBeforeItIsTold: while the store refuses to store the end of an operation, clients see the operation as
// running.
func TestEndIsStoredBeforeItIsTold(t *testing.T) {
	fs := vfs.NewMem()
	disk, err := pebble.Open("data", fs)
	if err != nil {
		t.Fatal(err)
	}
	store := &disktest.Refusing{Store: disk}
	admin, stop := servedOn(t, store, time.Now, func(*database.Registry) {})
	c := client{t, admin}
	c.instance()
	if _, err := c.create("db", "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"); err != nil {
		t.Fatal(err)
	}
	c.insertRow()
	lock := c.lockRow()
	c.begin("change", script...)
	for c.applied("change") != 1 {
		time.Sleep(time.Millisecond)
	}
	var refused atomic.Int64
	store.When(func() bool { refused.Add(1); return true })
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	for refused.Load() < 6 {
		time.Sleep(time.Millisecond)
	}
	name := testDatabase + "/operations/change"
	if op, err := c.operations.get(name); err != nil || op.Done {
		t.Errorf("while the store refuses it: %v, %v", op, err)
	}
	store.When(nil)
	told, err := c.ended(name)
	if err != nil || !told.Done || told.GetError() == nil || told.GetError().GetCode() == int32(codes.Canceled) {
		t.Errorf("%v, %v", told, err)
	}
	stop()
	admin, stop = served(t, fs, time.Now)
	defer stop()
	if op, err := admin.operations.get(name); err != nil || !proto.Equal(op, told) {
		t.Errorf("the next process says %v, %v; it was told %v", op, err, told)
	}
}

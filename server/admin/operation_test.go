package admin

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/usererror"
)

const (
	testInstance = "projects/p/instances/test"
	testDatabase = testInstance + "/databases/db"
)

// served starts the administrative services with a store on a file system; stop stops the services and closes the
// store.
func served(t *testing.T, fs vfs.FS, clock func() time.Time) (s *Admin, stop func()) {
	t.Helper()
	return servedWith(t, fs, clock, func(*database.Registry) {})
}

// servedWith opens a store on a file system and starts the administrative services on it. Its last argument is a
// function that gets the registry before the services resume operations. stop ends the services and closes the store.
func servedWith(t *testing.T, fs vfs.FS, clock func() time.Time, before func(*database.Registry)) (s *Admin, stop func()) {
	t.Helper()
	store, err := pebble.Open("data", fs)
	if err != nil {
		t.Fatal(err)
	}
	return servedOn(t, store, clock, before)
}

// servedOn starts the administrative services on an open store. Its last argument is a function that gets the registry
// before the services resume operations. stop ends the services and closes the store.
func servedOn(t *testing.T, store kv.Store, clock func() time.Time, before func(*database.Registry)) (s *Admin, stop func()) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	registry, err := database.Open(store, database.Config{Clock: clock, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	before(registry)
	ctx, cancel := context.WithCancel(context.Background())
	if s, err = New(ctx, registry, clock, log); err != nil {
		t.Fatal(err)
	}
	return s, func() {
		t.Helper()
		cancel()
		s.Wait()
		for _, closing := range []func() error{registry.Close, store.Close} {
			if err := closing(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestOperationsSurvive: the next process returns finished operations just as the process that ran them does.
func TestOperationsSurvive(t *testing.T) {
	fs, ctx := vfs.NewMem(), context.Background()
	still := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return still }
	s, stop := served(t, fs, clock)
	must := func(op *longrunningpb.Operation, err error) *longrunningpb.Operation {
		t.Helper()
		if err != nil || !op.Done {
			t.Fatalf("%v, %v", op, err)
		}
		return op
	}
	change := func(id string, statements ...string) (*longrunningpb.Operation, error) {
		return s.databases.updateDatabaseDDL(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: testDatabase, OperationId: id, Statements: statements})
	}
	create := func() *longrunningpb.Operation {
		return must(s.databases.createDatabase(ctx, &databasepb.CreateDatabaseRequest{Parent: testInstance, CreateStatement: "CREATE DATABASE db"}))
	}
	table := "CREATE TABLE T (K INT64) PRIMARY KEY (K)"
	before := []*longrunningpb.Operation{
		must(s.instances.createInstance(ctx, &instancepb.CreateInstanceRequest{Parent: "projects/p", InstanceId: "test",
			Instance: &instancepb.Instance{Config: "projects/p/instanceConfigs/" + database.DefaultConfig}})),
		create(),
		must(change("good", table, "CREATE INDEX I ON T(K)")),
		must(change("bad", "CREATE TABLE U (K INT64) PRIMARY KEY (K)", table)),
		must(change("", "DROP INDEX I")),
	}
	if before[3].GetError().GetCode() != int32(codes.FailedPrecondition) || before[2].GetResponse() == nil {
		t.Fatalf("%v", before)
	}
	stop()

	s, stop = served(t, fs, clock)
	defer func() { stop() }()
	for _, want := range before {
		got, err := s.operations.getOperation(ctx, &longrunningpb.GetOperationRequest{Name: want.Name})
		if err != nil || !proto.Equal(got, want) {
			t.Errorf("after a restart %v, %v\nwas %v", got, err, want)
		}
		if got, err = s.operations.waitOperation(ctx, &longrunningpb.WaitOperationRequest{Name: want.Name}); err != nil || !got.Done {
			t.Errorf("waiting for %s: %v, %v", want.Name, got, err)
		}
		if _, err = s.operations.cancelOperation(ctx, &longrunningpb.CancelOperationRequest{Name: want.Name}); err != nil {
			t.Errorf("cancelling %s: %v", want.Name, err)
		}
	}
	if n := s.operationsOf(t, ""); n != 4 {
		t.Errorf("%d operations of databases", n)
	}
	if n := s.operationsOf(t, "error:*"); n != 1 {
		t.Errorf("%d operations with an error", n)
	}
	_, err := change("good", "DROP TABLE T")
	wantCode(t, err, codes.AlreadyExists)
	must(change("", "DROP TABLE U")) // the clock stands still, but the generated name must be new

	if _, err := s.operations.deleteOperation(ctx, &longrunningpb.DeleteOperationRequest{Name: testDatabase + "/operations/good"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.operations.getOperation(ctx, &longrunningpb.GetOperationRequest{Name: testDatabase + "/operations/good"})
	wantCode(t, err, codes.NotFound)
	_, err = s.operations.getOperation(ctx, &longrunningpb.GetOperationRequest{Name: testDatabase + "/operations/"})
	wantCode(t, err, codes.NotFound)
	_, err = s.operations.getOperation(ctx, &longrunningpb.GetOperationRequest{Name: testDatabase})
	wantCode(t, err, codes.InvalidArgument)

	// A new database with the same name has none of the old database's operations.
	if _, err := s.databases.dropDatabase(ctx, &databasepb.DropDatabaseRequest{Database: testDatabase}); err != nil {
		t.Fatal(err)
	}
	if n := s.operationsOf(t, ""); n != 0 {
		t.Errorf("%d operations of a dropped database", n)
	}
	create()
	must(change("bad", table))
	if _, err := s.instances.deleteInstance(ctx, &instancepb.DeleteInstanceRequest{Name: testInstance}); err != nil {
		t.Fatal(err)
	}
	_, err = s.operations.getOperation(ctx, &longrunningpb.GetOperationRequest{Name: before[0].Name})
	wantCode(t, err, codes.NotFound)
}

// operationsOf returns how many operations of the test instance's databases match a filter.
func (s *Admin) operationsOf(t *testing.T, filter string) int {
	t.Helper()
	list, err := s.databases.listDatabaseOperations(context.Background(), &databasepb.ListDatabaseOperationsRequest{Parent: testInstance, Filter: filter})
	if err != nil {
		t.Fatal(err)
	}
	return len(list.Operations)
}

// TestPagesOfOperations: pages of any size together list all operations once, sorted by name, both running and finished
// ones. If operations are large, a page has fewer of them.
func TestPagesOfOperations(t *testing.T) {
	s, stop := served(t, vfs.NewMem(), time.Now)
	defer stop()
	var want []string
	goOn := make(chan struct{})
	defer close(goOn)
	for i := range 30 {
		name := fmt.Sprintf("%s/operations/o%02d", testDatabase, i)
		want = append(want, name)
		if i%4 == 1 { // a running operation; every second one of them is also in the store
			op := &operation{name: name, metadata: &databasepb.UpdateDatabaseDdlMetadata{}}
			ts := task{resource: testDatabase, id: fmt.Sprintf("o%02d", i)}
			if i%8 == 1 {
				ts.request = &databasepb.UpdateDatabaseDdlRequest{}
			}
			if err := s.operations.add(op, ts); err != nil {
				t.Fatal(err)
			}
			continue
		}
		data, err := proto.Marshal(&longrunningpb.Operation{Name: name, Done: true})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.operations.kept.PutOperation(database.Operation{Name: name, Ended: time.Now(), Proto: data}); err != nil {
			t.Fatal(err)
		}
	}
	for _, size := range []int32{1, 4, 7, 30, 0} {
		if got, _ := s.operationNames(t, size); !slices.Equal(got, want) {
			t.Errorf("in pages of %d: %q", size, got)
		}
	}
	for _, name := range want[:5] {
		data, err := proto.Marshal(&longrunningpb.Operation{Name: name, Done: true, Metadata: &anypb.Any{Value: make([]byte, maxOperationsBytes/2-1000)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.operations.kept.PutOperation(database.Operation{Name: name, Ended: time.Now(), Proto: data}); err != nil {
			t.Fatal(err)
		}
	}
	if got, pages := s.operationNames(t, 0); !slices.Equal(got, want) || pages != 3 {
		t.Errorf("in %d pages: %q", pages, got)
	}
}

// operationNames lists all operations of the test database, in pages of a given size. It returns their names and the
// number of pages.
func (s *Admin) operationNames(t *testing.T, size int32) (names []string, pages int) {
	t.Helper()
	req := &longrunningpb.ListOperationsRequest{Name: testDatabase + "/operations", PageSize: size}
	for pages = 1; ; pages++ {
		reply, err := s.operations.listOperations(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range reply.Operations {
			names = append(names, op.Name)
		}
		if req.PageToken = reply.NextPageToken; req.PageToken == "" {
			return names, pages
		}
	}
}

// TestPollingIsCheap: the metadata of an operation with many statements is not encoded again until it changes.
func TestPollingIsCheap(t *testing.T) {
	req := &databasepb.UpdateDatabaseDdlRequest{Database: testDatabase}
	for i := range 5000 {
		req.Statements = append(req.Statements, fmt.Sprintf("CREATE TABLE T%d (K INT64) PRIMARY KEY (K)", i))
	}
	op := &operation{name: "o", metadata: ddlMetadata(req, time.Now())}
	poll := func() *longrunningpb.Operation {
		p, err := op.proto()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	poll()
	if n := testing.AllocsPerRun(10, func() { poll() }); n > 2 {
		t.Errorf("%v allocations", n)
	}
	op.update(func(m proto.Message) {
		noteProgress(m.(*databasepb.UpdateDatabaseDdlMetadata), schemachange.Progress{Percent: 100, Commit: time.Now()})
	})
	m := new(databasepb.UpdateDatabaseDdlMetadata)
	if err := poll().Metadata.UnmarshalTo(m); err != nil || len(m.CommitTimestamps) != 1 {
		t.Errorf("%v, %v", m.CommitTimestamps, err)
	}
}

// TestOperationDeletedWhileItRuns: an operation that was deleted while it ran is still deleted after its end.
func TestOperationDeletedWhileItRuns(t *testing.T) {
	s, stop := served(t, vfs.NewMem(), time.Now)
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	cancel() // so that start does not wait for the operation's end
	goOn := make(chan struct{})
	metadata, request := &databasepb.UpdateDatabaseDdlMetadata{}, &databasepb.UpdateDatabaseDdlRequest{}
	op, err := s.operations.start(ctx, task{resource: testDatabase, id: "long", metadata: metadata, request: request, work: func(context.Context, *operation) (proto.Message, error) {
		<-goOn
		return &databasepb.Database{}, nil
	}})
	if err != nil || op.Done {
		t.Fatalf("%v, %v", op, err)
	}
	running, _, err := s.operations.find(op.Name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.operations.deleteOperation(ctx, &longrunningpb.DeleteOperationRequest{Name: op.Name}); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	<-running.done
	_, err = s.operations.getOperation(ctx, &longrunningpb.GetOperationRequest{Name: op.Name})
	wantCode(t, err, codes.NotFound)
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := usererror.CodeOf(err); got != want {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
}

package server

import (
	"context"
	"io"
	"log/slog"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/database"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/stats/live"
)

const (
	testInstance = "projects/p/instances/test"
	testDatabase = testInstance + "/databases/db"
)

// A harness is a server on a memory file system, with one database, and clients of its raw API.
type harness struct {
	testing.TB
	ctx       context.Context
	server    *Server
	address   string        // address of the gRPC listener
	asked     *atomic.Int64 // number of requests that clients have begun since the server started
	data      spannerpb.SpannerClient
	databases databasepb.DatabaseAdminClient
	instances instancepb.InstanceAdminClient
	ops       longrunningpb.OperationsClient
	rest      string // base URL for REST: http://HOST:PORT
	conn      *grpc.ClientConn
	fs        vfs.FS
	dir       string // data directory in fs
	cfg       Config
	kept      *memory.Budget          // the registry's budget for sessions and statements, from the next start on
	wrap      func(kv.Store) kv.Store // wraps the registry's store, from the next start on; nil: no wrapper
	cache     int64                   // bytes of the store's cache, from the next start on; 0: the smallest cache
	stop      func()
	// closeStore closes the store; further calls do nothing.
	closeStore func()
}

// A local takes the place of a gRPC or REST transport for a request that is made without a connection. It passes the
// messages of a streamed reply to the function send. Locals are reused, as gRPC's transports are.
type local struct {
	send func(m any) error
	call rpc.Call
}

var locals = sync.Pool{New: func() any { return new(local) }}

func (*local) Metadata(string) []string { return nil }
func (*local) Peer() string             { return "" }
func (*local) WantsTiming() bool        { return false }
func (*local) SetHeader(_, _ string)    {}
func (*local) SetTrailer(_, _ string)   {}
func (l *local) Send(m any) error {
	return l.call.Cost.WaitForClient(func() error { return l.send(m) })
}

// beginCall makes the rpc.Call of a request, as a transport does when it has received the request. beginCall does not
// run the method; the caller does.
func (h *harness) beginCall(m *rpc.Method, req proto.Message, send func(any) error) *local {
	h.asked.Add(1)
	l := locals.Get().(*local)
	l.send = send
	h.server.dispatcher.Begin(&l.call, m, l)
	if req != nil {
		l.call.Request = req
	}
	l.call.Received(0)
	return l
}

// execute runs a method with a request and passes the messages of the reply to send. A nil req means an empty request.
func (h *harness) execute(m *rpc.Method, req proto.Message, send func(any) error) error {
	return h.executeIn(h.ctx, m, req, send)
}

func (h *harness) executeIn(ctx context.Context, m *rpc.Method, req proto.Message, send func(any) error) error {
	l := h.beginCall(m, req, send)
	_, err := l.call.Run(ctx)
	l.call.End(err)
	*l = local{}
	locals.Put(l)
	return err
}

// method returns a method of google.spanner.v1.Spanner.
func (h *harness) method(name string) *rpc.Method { return h.server.dispatcher.Services[0].Find(name) }

// stream runs a method of google.spanner.v1.Spanner with a request, and passes the messages of the reply to send.
func (h *harness) stream(name string, req proto.Message, send func(any) error) error {
	return h.execute(h.method(name), req, send)
}

var testSchema = []string{
	`CREATE TABLE Singers (SingerId INT64 NOT NULL, Name STRING(MAX), Data BYTES(MAX), Updated TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (SingerId)`,
	`CREATE INDEX SingersByName ON Singers(Name)`,
	`CREATE TABLE Wide (Id INT64 NOT NULL, A STRING(MAX), Tags ARRAY<STRING(MAX)>, B STRING(MAX)) PRIMARY KEY (Id)`,
}

func newHarness(t testing.TB) *harness { return newHarnessAt(t, time.Now) }

func newHarnessAt(t testing.TB, clock func() time.Time) *harness {
	return newHarnessOf(t, Config{Clock: clock, Log: slog.New(slog.DiscardHandler)})
}

func newHarnessOf(t testing.TB, cfg Config) *harness {
	t.Helper()
	return newHarnessWith(t, cfg, testSchema)
}

func newHarnessWith(t testing.TB, cfg Config, schema []string) *harness {
	t.Helper()
	return newHarnessOn(t, vfs.NewMem(), cfg, schema)
}

func newHarnessOn(t testing.TB, fs vfs.FS, cfg Config, schema []string) *harness {
	t.Helper()
	return newHarnessIn(t, fs, "data", cfg, schema)
}

func newHarnessIn(t testing.TB, fs vfs.FS, dir string, cfg Config, schema []string) *harness {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h := &harness{TB: t, ctx: ctx, asked: new(atomic.Int64), fs: fs, dir: dir, cfg: cfg}
	h.start()
	t.Cleanup(func() {
		cancel()
		h.stop()
	})
	registry := h.server.registry
	if _, err := registry.CreateInstance(database.Instance{Name: testInstance}); err != nil {
		t.Fatal(err)
	}
	if _, err := registry.CreateDatabase(ctx, testDatabase, schema); err != nil {
		t.Fatal(err)
	}
	return h
}

// start starts a server on the files in h.fs.
func (h *harness) start() {
	h.Helper()
	cache := h.cache
	if cache == 0 {
		cache = memory.Divide(memory.MinBytes).BlockCache
	}
	store, err := pebble.OpenWithCache(h.dir, h.fs, cache)
	h.ok(err)
	below := kv.Store(store)
	if h.wrap != nil {
		below = h.wrap(store)
	}
	registry, err := database.Open(below, database.Config{Clock: h.cfg.Clock, Log: h.cfg.Log, NoStatistics: h.cfg.NoStatistics, Kept: h.kept})
	h.ok(err)
	grpcListener, httpListener := listen(h), listen(h)
	h.server, err = Serve(registry, grpcListener, httpListener, h.cfg)
	h.ok(err)
	h.asked.Store(0)
	h.address, h.rest = grpcListener.Addr().String(), "http://"+httpListener.Addr().String()
	h.conn, err = grpc.NewClient(h.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithChainUnaryInterceptor(h.countCall), grpc.WithChainStreamInterceptor(h.countStream))
	h.ok(err)
	h.data = spannerpb.NewSpannerClient(h.conn)
	h.databases, h.instances = databasepb.NewDatabaseAdminClient(h.conn), instancepb.NewInstanceAdminClient(h.conn)
	h.ops = longrunningpb.NewOperationsClient(h.conn)
	h.stop = func() {
		h.conn.Close()
		h.server.Close()
		registry.Close()
		h.closeStore()
	}
	h.closeStore = sync.OnceFunc(func() { store.Close() })
}

// restart stops the server in the way SIGTERM does, and starts another one on the same files.
func (h *harness) restart() {
	h.Helper()
	h.stop()
	h.start()
}

// crash starts the server again with only the synced data, as after kill -9. The harness must have a file system that
// can crash.
func (h *harness) crash() {
	h.Helper()
	after := h.fs.(*vfs.MemFS).CrashClone(vfs.CrashCloneCfg{})
	h.stop()
	h.fs = after
	h.start()
}

// restarts lists the ways to restart a server.
var restarts = map[string]func(*harness){"SIGTERM": (*harness).restart, "kill -9": (*harness).crash}

// eventually waits until come returns true. Only the test's own timeout limits the wait. It calls come again and again,
// because nothing reports the states that tests wait for.
func eventually(come func() bool) {
	for !come() {
		time.Sleep(time.Millisecond)
	}
}

// database returns the test's database from the server's registry.
func (h *harness) database() *database.Database {
	h.Helper()
	db, err := h.server.registry.Database(testDatabase)
	h.ok(err)
	return db
}

// awaitLockWait waits until a request waits for a lock.
func (h *harness) awaitLockWait() {
	db := h.database()
	eventually(func() bool { return db.Transactions().Metrics().Waiting > 0 })
}

// awaitQuery waits until a query with this SQL runs.
func (h *harness) awaitQuery(sql string) {
	db := h.database()
	eventually(func() bool {
		return slices.ContainsFunc(db.Live().Oldest(), func(q live.Query) bool { return q.SQL == sql })
	})
}

// alter runs DDL statements in the test's database.
func (h *harness) alter(statements ...string) {
	h.Helper()
	h.ok(h.database().UpdateSchema(h.ctx, statements, nil))
}

func listen(t testing.TB) net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (h *harness) session(multiplexed bool) string {
	h.Helper()
	ses, err := h.data.CreateSession(h.ctx, &spannerpb.CreateSessionRequest{Database: testDatabase, Session: &spannerpb.Session{Multiplexed: multiplexed}})
	h.ok(err)
	return ses.Name
}

func (h *harness) ok(err error) {
	h.Helper()
	if err != nil {
		h.Fatal(err)
	}
}

// fails checks that err has the code want.
func (h *harness) fails(err error, want codes.Code) {
	h.Helper()
	if status.Code(err) != want {
		h.Fatalf("want %v, got %v", want, err)
	}
}

// insert commits rows of Singers with the values (SingerId, Name).
func (h *harness) insert(session string, rows ...*structpb.ListValue) *spannerpb.CommitResponse {
	h.Helper()
	reply, err := h.data.Commit(h.ctx, singleUse(session, insertSingers(rows...)))
	h.ok(err)
	return reply
}

func singleUse(session string, muts ...*spannerpb.Mutation) *spannerpb.CommitRequest {
	return &spannerpb.CommitRequest{
		Session: session,
		Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: &spannerpb.TransactionOptions{
			Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: &spannerpb.TransactionOptions_ReadWrite{}},
		}},
		Mutations: muts,
	}
}

func insertSingers(rows ...*structpb.ListValue) *spannerpb.Mutation {
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: &spannerpb.Mutation_Write{
		Table: "Singers", Columns: []string{"SingerId", "Name"}, Values: rows,
	}}}
}

func list(values ...any) *structpb.ListValue {
	l, err := structpb.NewList(values)
	if err != nil {
		panic(err)
	}
	return l
}

func allKeys() *spannerpb.KeySet { return &spannerpb.KeySet{All: true} }

func readWrite() *spannerpb.TransactionOptions {
	return &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: &spannerpb.TransactionOptions_ReadWrite{}}}
}

func readOnly() *spannerpb.TransactionOptions {
	return &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: &spannerpb.TransactionOptions_ReadOnly{ReturnReadTimestamp: true}}}
}

func begins(o *spannerpb.TransactionOptions) *spannerpb.TransactionSelector {
	return &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Begin{Begin: o}}
}

func byID(id []byte) *spannerpb.TransactionSelector {
	return &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Id{Id: id}}
}

// partial receives all messages of a stream.
func (h *harness) partial(stream grpc.ServerStreamingClient[spannerpb.PartialResultSet], err error) []*spannerpb.PartialResultSet {
	h.Helper()
	h.ok(err)
	var list []*spannerpb.PartialResultSet
	for {
		p, err := stream.Recv()
		if err == io.EOF {
			return list
		}
		h.ok(err)
		list = append(list, p)
	}
}

func structOf(name, text string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{name: structpb.NewStringValue(text)}}
}

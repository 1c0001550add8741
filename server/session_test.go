package server

import (
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/txn"
)

func TestSessions(t *testing.T) {
	h := newHarness(t)
	h.alter("CREATE ROLE reader")
	multiplexed, err := h.data.CreateSession(h.ctx, &spannerpb.CreateSessionRequest{Database: testDatabase, Session: &spannerpb.Session{Multiplexed: true, CreatorRole: "reader"}})
	h.ok(err)
	if !multiplexed.Multiplexed || multiplexed.CreatorRole != "reader" || multiplexed.CreateTime == nil {
		t.Errorf("bad session %v", multiplexed)
	}
	batch, err := h.data.BatchCreateSessions(h.ctx, &spannerpb.BatchCreateSessionsRequest{
		Database: testDatabase, SessionCount: 250, SessionTemplate: &spannerpb.Session{Labels: map[string]string{"env": "dev"}},
	})
	h.ok(err)
	if len(batch.Session) != maxSessionBatch {
		t.Errorf("want %d sessions, got %d", maxSessionBatch, len(batch.Session))
	}
	_, err = h.data.BatchCreateSessions(h.ctx, &spannerpb.BatchCreateSessionsRequest{Database: testDatabase, SessionCount: 1, SessionTemplate: &spannerpb.Session{Multiplexed: true}})
	h.fails(err, codes.InvalidArgument)
	_, err = h.data.BatchCreateSessions(h.ctx, &spannerpb.BatchCreateSessionsRequest{Database: testDatabase})
	h.fails(err, codes.InvalidArgument)
	_, err = h.data.DeleteSession(h.ctx, &spannerpb.DeleteSessionRequest{Name: multiplexed.Name})
	h.fails(err, codes.InvalidArgument)
	_, err = h.data.CreateSession(h.ctx, &spannerpb.CreateSessionRequest{Database: testDatabase, Session: &spannerpb.Session{Labels: map[string]string{"Bad": "x"}}})
	h.fails(err, codes.InvalidArgument)

	name := batch.Session[0].Name
	_, err = h.data.DeleteSession(h.ctx, &spannerpb.DeleteSessionRequest{Name: name})
	h.ok(err)
	_, err = h.data.GetSession(h.ctx, &spannerpb.GetSessionRequest{Name: name})
	h.fails(err, codes.NotFound)
	wantResource(t, err, "type.googleapis.com/google.spanner.v1.Session", "Session not found: ")
	for _, malformed := range []string{"", "x", testDatabase, testDatabase + "/sessions/", testDatabase + "/sessions/a/b"} {
		_, err = h.data.GetSession(h.ctx, &spannerpb.GetSessionRequest{Name: malformed})
		h.fails(err, codes.InvalidArgument)
	}
}

// wantResource checks that the message of err begins with text, and that err has a ResourceInfo of the type resource,
// by which clients recognise the kind of error.
func wantResource(t *testing.T, err error, resource, text string) {
	t.Helper()
	st := status.Convert(err)
	if !strings.HasPrefix(st.Message(), text) {
		t.Errorf("want %q..., got %q", text, st.Message())
	}
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ResourceInfo); ok && info.ResourceType == resource {
			return
		}
	}
	t.Errorf("want ResourceInfo of %s, got %v", resource, st.Details())
}

func TestListSessions(t *testing.T) {
	h := newHarness(t)
	for _, env := range []string{"dev", "dev", "prod"} {
		_, err := h.data.CreateSession(h.ctx, &spannerpb.CreateSessionRequest{Database: testDatabase, Session: &spannerpb.Session{Labels: map[string]string{"env": env}}})
		h.ok(err)
	}
	count := func(filter string) (n int) {
		req := &spannerpb.ListSessionsRequest{Database: testDatabase, Filter: filter, PageSize: 1}
		for {
			reply, err := h.data.ListSessions(h.ctx, req)
			h.ok(err)
			n += len(reply.Sessions)
			if req.PageToken = reply.NextPageToken; req.PageToken == "" {
				return n
			}
		}
	}
	for filter, want := range map[string]int{"": 3, "labels.env:dev": 2, "labels.env:*": 3, "labels.env=prod": 1, "labels.none:*": 0} {
		if got := count(filter); got != want {
			t.Errorf("filter %q: want %d, got %d", filter, want, got)
		}
	}
	_, err := h.data.ListSessions(h.ctx, &spannerpb.ListSessionsRequest{Database: testDatabase, Filter: "color:red"})
	h.fails(err, codes.InvalidArgument)
	_, err = h.data.ListSessions(h.ctx, &spannerpb.ListSessionsRequest{Database: testDatabase, PageSize: -1})
	h.fails(err, codes.InvalidArgument)
}

// TestSessionOfDroppedDatabase checks that a session cannot be used after its database was dropped, even after a new
// database got the same name.
func TestSessionOfDroppedDatabase(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	_, err := h.databases.DropDatabase(h.ctx, &databasepb.DropDatabaseRequest{Database: testDatabase})
	h.ok(err)
	_, err = h.data.GetSession(h.ctx, &spannerpb.GetSessionRequest{Name: ses})
	h.fails(err, codes.NotFound)
	wantResource(t, err, "type.googleapis.com/google.spanner.admin.database.v1.Database", "Database not found: ")
	_, err = h.databases.CreateDatabase(h.ctx, &databasepb.CreateDatabaseRequest{Parent: testInstance, CreateStatement: "CREATE DATABASE db"})
	h.ok(err)
	_, err = h.data.GetSession(h.ctx, &spannerpb.GetSessionRequest{Name: ses})
	h.fails(err, codes.NotFound)
	wantResource(t, err, "type.googleapis.com/google.spanner.v1.Session", "Session not found: ")
}

// TestSweep: the sweep ends sessions and transactions that have been idle for too long, and no others.
func TestSweep(t *testing.T) {
	h := newHarness(t)
	regular, multiplexed := h.session(false), h.session(true)
	left := h.begin(multiplexed, readWrite())
	_, err := h.sql(multiplexed, byID(left), 1, "INSERT INTO Singers (SingerId) VALUES (1)")
	h.ok(err)
	h.server.data.sessions.sweep(time.Now().Add(regularSessionIdle / 2))
	h.server.data.transactions.sweep(time.Now().Add(abandonedAfter / 2))
	_, err = h.data.GetSession(h.ctx, &spannerpb.GetSessionRequest{Name: regular})
	h.ok(err)
	_, err = h.sql(multiplexed, byID(left), 2, "SELECT 1")
	h.ok(err)

	h.server.data.sessions.sweep(time.Now().Add(2 * regularSessionIdle))
	h.server.data.transactions.sweep(time.Now().Add(2 * abandonedAfter))
	_, err = h.data.GetSession(h.ctx, &spannerpb.GetSessionRequest{Name: regular})
	h.fails(err, codes.NotFound)
	_, err = h.data.GetSession(h.ctx, &spannerpb.GetSessionRequest{Name: multiplexed})
	h.ok(err)
	_, err = h.sql(multiplexed, byID(left), 3, "SELECT 1")
	h.fails(err, codes.FailedPrecondition)
	h.insert(multiplexed, list("1", "free"))
}

// TestFinishedTransactionsAreForgotten checks that the server forgets the oldest finished transactions when more
// transactions have ended than it remembers.
func TestFinishedTransactionsAreForgotten(t *testing.T) {
	ts := new(transactions)
	key := func(i int) txn.ClientID { return txn.ClientID{Start: 1, Number: uint64(i)} }
	for i := range rememberedTransactions + 10 {
		tr := &transaction{key: key(i)}
		ts.add(tr)
		ts.finished(tr)
	}
	if ts.get(key(9)) != nil || ts.get(key(10)) == nil || ts.get(key(rememberedTransactions+9)) == nil {
		t.Error("not the oldest were forgotten")
	}
}

// TestDroppedDatabaseIsForgotten: the sweep forgets the open and the ended transactions of a dropped database.
// Otherwise they would keep the database in memory.
func TestDroppedDatabaseIsForgotten(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	h.begin(ses, readWrite())
	_, err := h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: h.begin(ses, readWrite())})
	h.ok(err)
	_, err = h.databases.DropDatabase(h.ctx, &databasepb.DropDatabaseRequest{Database: testDatabase})
	h.ok(err)
	h.server.data.transactions.sweep(time.Now())
	h.server.data.transactions.byKey.Range(func(_, v any) bool {
		t.Errorf("a transaction of %s is kept", v.(*transaction).session.db.Name())
		return true
	})
}

// TestSessionsAreCharged checks that the memory of sessions is charged to a budget. When the budget is used up, clients
// cannot create sessions until some are deleted. After a restart all sessions stay valid, even if the new budget is too
// small for them.
func TestSessionsAreCharged(t *testing.T) {
	h := newHarness(t)
	const limit = 16 << 20
	h.kept = memory.NewBudget(limit)
	h.restart()
	create := func() (*spannerpb.BatchCreateSessionsResponse, error) {
		return h.data.BatchCreateSessions(h.ctx, &spannerpb.BatchCreateSessionsRequest{
			Database: testDatabase, SessionCount: 100, SessionTemplate: &spannerpb.Session{Labels: map[string]string{"service": "billing", "env": "dev"}},
		})
	}
	var first *spannerpb.BatchCreateSessionsResponse
	before := heapBytes()
	n := 0
	var err error
	for {
		var batch *spannerpb.BatchCreateSessionsResponse
		if batch, err = create(); err != nil {
			break
		}
		if first == nil {
			first = batch
		}
		n += len(batch.Session)
	}
	h.fails(err, codes.ResourceExhausted)
	if !strings.Contains(err.Error(), "no memory for more sessions") {
		t.Errorf("%v", err)
	}
	charged := h.kept.Usage().Reserved
	if took := heapBytes() - before; took > charged*5/4 || charged > limit/2 {
		t.Errorf("%d sessions take %d bytes and are charged %d", n, took, charged)
	}
	for _, s := range first.Session {
		_, err := h.data.DeleteSession(h.ctx, &spannerpb.DeleteSessionRequest{Name: s.Name})
		h.ok(err)
	}
	last, err := create()
	h.ok(err)

	h.kept = memory.NewBudget(limit / 8)
	h.restart()
	for _, s := range last.Session {
		_, err := h.data.GetSession(h.ctx, &spannerpb.GetSessionRequest{Name: s.Name})
		h.ok(err)
	}
	_, err = create()
	h.fails(err, codes.ResourceExhausted)
	dropped, err := h.server.registry.DropDatabase(testDatabase)
	h.ok(err)
	dropped.Erase()
	h.server.data.sessions.sweep(time.Now())
	if n := h.kept.Usage().Reserved; n != 0 {
		t.Errorf("after the drop of their database %d bytes are taken", n)
	}
}

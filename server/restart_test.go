package server

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/txn"
)

// forRestarts runs a test once for each way to restart a server.
func forRestarts(t *testing.T, test func(h *harness, clock *testClock, restart func())) {
	for name, restart := range restarts {
		t.Run(name, func(t *testing.T) {
			clock := newTestClock()
			cfg := Config{Clock: clock.now, Log: slog.New(slog.DiscardHandler)}
			h := newHarnessOn(t, vfs.NewCrashableMem(), cfg, testSchema)
			test(h, clock, func() { restart(h) })
		})
	}
}

func (h *harness) createSession(template *spannerpb.Session) *spannerpb.Session {
	h.Helper()
	ses, err := h.data.CreateSession(h.ctx, &spannerpb.CreateSessionRequest{Database: testDatabase, Session: template})
	h.ok(err)
	return ses
}

func (h *harness) hasSession(name string) bool {
	h.Helper()
	_, err := h.data.GetSession(h.ctx, &spannerpb.GetSessionRequest{Name: name})
	if err != nil {
		h.fails(err, codes.NotFound)
	}
	return err == nil
}

// TestSessionsSurvive: sessions of every kind are the same after a restart, until they are deleted.
func TestSessionsSurvive(t *testing.T) {
	forRestarts(t, func(h *harness, clock *testClock, restart func()) {
		h.alter("CREATE ROLE reader")
		made := []*spannerpb.Session{
			h.createSession(&spannerpb.Session{Multiplexed: true}),
			h.createSession(&spannerpb.Session{CreatorRole: "reader", Labels: map[string]string{"env": "dev"}}),
		}
		batch, err := h.data.BatchCreateSessions(h.ctx, &spannerpb.BatchCreateSessionsRequest{Database: testDatabase, SessionCount: maxSessionBatch})
		h.ok(err)
		made = append(made, batch.Session...)
		deleted := h.session(false)
		_, err = h.data.DeleteSession(h.ctx, &spannerpb.DeleteSessionRequest{Name: deleted})
		h.ok(err)
		for range 2 {
			restart()
			for _, want := range made {
				got, err := h.data.GetSession(h.ctx, &spannerpb.GetSessionRequest{Name: want.Name})
				h.ok(err)
				if !proto.Equal(got, want) {
					h.Fatalf("got %v, want %v", got, want)
				}
				h.shows(want.Name, "SELECT 1", "1")
			}
			if h.hasSession(deleted) {
				h.Error("the deleted session is back")
			}
		}
	})
}

// TestSessionsOfDroppedDatabaseStayDropped: a new database with the name of a dropped one does not have the sessions of
// the dropped one.
func TestSessionsOfDroppedDatabaseStayDropped(t *testing.T) {
	forRestarts(t, func(h *harness, clock *testClock, restart func()) {
		ses := h.session(true)
		_, err := h.databases.DropDatabase(h.ctx, &databasepb.DropDatabaseRequest{Database: testDatabase})
		h.ok(err)
		restart()
		if h.hasSession(ses) {
			h.Error("the session is there without its database")
		}
		_, err = h.server.registry.CreateDatabase(h.ctx, testDatabase, nil)
		h.ok(err)
		restart()
		if h.hasSession(ses) {
			h.Error("the session is one of the new database")
		}
	})
}

// TestSessionsExpireOverRestarts: a restart interrupts neither the idle time of a session nor the lifetime of a
// multiplexed session. The idle time begins at the last use that the server has stored.
func TestSessionsExpireOverRestarts(t *testing.T) {
	forRestarts(t, func(h *harness, clock *testClock, restart func()) {
		used, unused, multiplexed := h.session(false), h.session(false), h.session(true)
		for range 6 {
			clock.forward(regularSessionIdle / 4)
			h.shows(used, "SELECT 1", "1")
			h.server.data.sessions.sweep(clock.now())
			restart()
		}
		if !h.hasSession(used) || h.hasSession(unused) || !h.hasSession(multiplexed) {
			h.Errorf("after an hour and a half: %v %v %v", h.hasSession(used), h.hasSession(unused), h.hasSession(multiplexed))
		}
		clock.forward(multiplexedSessionLife)
		h.shows(multiplexed, "SELECT 1", "1")
		restart()
		if h.hasSession(used) || h.hasSession(multiplexed) {
			h.Errorf("after 28 days: %v %v", h.hasSession(used), h.hasSession(multiplexed))
		}
	})
}

// TestRunningRequestKeepsSession: a session and a transaction are not idle while a request runs in them, even if the
// request runs for longer than the idle limit.
func TestRunningRequestKeepsSession(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	holder, ses := h.session(true), h.session(false)
	held, waits := h.begin(holder, readWrite()), h.begin(ses, readWrite())
	const insert = "INSERT INTO Singers (SingerId, Name) VALUES (1, '%s')"
	_, err := h.sql(holder, byID(held), 1, fmt.Sprintf(insert, "first"))
	h.ok(err)
	done := make(chan error)
	go func() {
		_, err := h.sql(ses, byID(waits), 1, fmt.Sprintf(insert, "second"))
		done <- err
	}()
	h.awaitLockWait()
	clock.forward(3 * regularSessionIdle)
	h.server.data.sessions.sweep(clock.now())
	h.server.data.transactions.sweep(clock.now()) // rolls back the idle transaction that holds the lock
	h.ok(<-done)
	_, err = h.data.Commit(h.ctx, commitOf(ses, waits))
	h.ok(err)
	h.shows(ses, "SELECT Name FROM Singers", "second")
}

// TestCommitOutcomes checks the answers to a Commit that is sent again. If the first Commit succeeded and wrote
// something, the client must get the same reply, even after a restart. After a restart, a Commit of any other
// transaction must get ABORTED.
func TestCommitOutcomes(t *testing.T) {
	forRestarts(t, func(h *harness, clock *testClock, restart func()) {
		ses, other := h.session(true), h.session(true)
		rows := 0
		write := func() (id []byte) {
			id = h.begin(ses, readWrite())
			rows++
			_, err := h.sql(ses, byID(id), 1, fmt.Sprintf("INSERT INTO Singers (SingerId, Name) VALUES (%d, 'a')", rows))
			h.ok(err)
			return id
		}
		commit := func(session string, id []byte) (*spannerpb.CommitResponse, error) {
			req := commitOf(session, id, insertSingers(list("1000", "b")))
			req.ReturnCommitStats = true
			return h.data.Commit(h.ctx, req)
		}
		committed, open, rolledBack, empty := write(), write(), write(), h.begin(ses, readWrite())
		_, err := h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: rolledBack})
		h.ok(err)
		first, err := commit(ses, committed)
		h.ok(err)
		_, err = h.data.Commit(h.ctx, commitOf(ses, empty))
		h.ok(err)

		for i := range 3 {
			if i > 0 {
				restart()
			}
			again, err := commit(ses, committed)
			h.ok(err)
			if !proto.Equal(again, first) || again.CommitStats.GetMutationCount() == 0 {
				h.Errorf("%d: the commit that was sent again is answered %v, first it was %v", i, again, first)
			}
			_, err = commit(other, committed)
			h.fails(err, codes.NotFound)
			_, err = h.sql(ses, byID(committed), 2, "SELECT 1")
			h.fails(err, codes.FailedPrecondition)
			_, err = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: committed})
			h.fails(err, codes.FailedPrecondition)
			for _, id := range [][]byte{forged(committed), forged(open), {readWriteID}, append([]byte{partitionedID}, committed[1:]...)} {
				_, err = commit(ses, id)
				h.fails(err, codes.NotFound)
			}
			if i == 0 {
				_, err = commit(ses, rolledBack)
				h.fails(err, codes.FailedPrecondition)
				continue
			}
			for _, id := range [][]byte{open, rolledBack, empty} { // three transactions that have committed no writes
				_, err = commit(ses, id)
				h.aborted(err)
				_, err = h.sql(ses, byID(id), 1, "SELECT 1")
				h.aborted(err)
				_, err = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: id})
				h.ok(err)
			}
		}
		clock.forward(txn.OutcomeLife + time.Minute)
		_, err = commit(ses, open) // the server no longer knows whether it was committed
		h.fails(err, codes.NotFound)
		h.shows(ses, "SELECT COUNT(*) FROM Singers", "2")
	})
}

// forged returns a transaction id with a changed number, whose checksum is therefore wrong.
func forged(id []byte) []byte {
	id = append([]byte(nil), id...)
	id[5+7]++
	return id
}

// aborted checks that err is ABORTED and tells the client when to retry its transaction.
func (h *harness) aborted(err error) {
	h.Helper()
	h.fails(err, codes.Aborted)
	for _, d := range status.Convert(err).Details() {
		if _, ok := d.(*errdetails.RetryInfo); ok {
			return
		}
	}
	h.Errorf("%v has no RetryInfo", err)
}

// TestReadsGoOn: after a restart, a read-only transaction, a stream and a partition continue where they were.
func TestReadsGoOn(t *testing.T) {
	forRestarts(t, func(h *harness, clock *testClock, restart func()) {
		ses := h.session(true)
		text := strings.Repeat("x", 200<<10)
		_, err := h.data.Commit(h.ctx, singleUse(ses, insertOf("Wide", "Id A", "1 "+text), insertOf("Wide", "Id A", "2 "+text), insertOf("Wide", "Id A", "3 "+text)))
		h.ok(err)
		begun, err := h.data.BeginTransaction(h.ctx, &spannerpb.BeginTransactionRequest{Session: ses, Options: readOnly()})
		h.ok(err)
		const query = "SELECT Id, A FROM Wide ORDER BY Id"
		request := func(resume []byte) *spannerpb.ExecuteSqlRequest {
			return &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: byID(begun.Id), Sql: query, ResumeToken: resume}
		}
		whole := h.partial(h.data.ExecuteStreamingSql(h.ctx, request(nil)))
		if len(whole) < 2 {
			h.Fatalf("%d messages", len(whole))
		}
		partitions, err := h.data.PartitionQuery(h.ctx, &spannerpb.PartitionQueryRequest{Session: ses, Transaction: byID(begun.Id), Sql: "SELECT Id FROM Wide"})
		h.ok(err)
		_, err = h.data.Commit(h.ctx, singleUse(ses, insertOf("Wide", "Id A", "4 new")))
		h.ok(err)
		restart()
		rest := h.partial(h.data.ExecuteStreamingSql(h.ctx, request(whole[0].ResumeToken)))
		if got, want := streamed(rest), streamed(whole[1:]); !proto.Equal(got, want) {
			h.Errorf("the stream goes on with %d values, want %d", len(got.Values), len(want.Values))
		}
		rows := 0
		for _, p := range partitions.Partitions {
			rs, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: byID(begun.Id), Sql: "SELECT Id FROM Wide", PartitionToken: p.PartitionToken})
			h.ok(err)
			rows += len(rs.Rows)
		}
		if rows != 3 {
			h.Errorf("the partitions have %d rows", rows)
		}
	})
}

func streamed(list []*spannerpb.PartialResultSet) *structpb.ListValue {
	all := new(structpb.ListValue)
	for _, p := range list {
		all.Values = append(all.Values, p.Values...)
	}
	return all
}

// TestPartitionedDMLSurvives checks that a client that sends a completed partitioned DML statement again after a
// restart gets the same answer, and that the server does not change the rows again.
func TestPartitionedDMLSurvives(t *testing.T) {
	forRestarts(t, func(h *harness, clock *testClock, restart func()) {
		ses := h.session(true)
		h.insert(ses, list("1", "a"), list("2", "b"))
		id := h.begin(ses, &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_PartitionedDml_{PartitionedDml: &spannerpb.TransactionOptions_PartitionedDml{}}})
		for range 3 {
			rs, err := h.sql(ses, byID(id), 1, "UPDATE Singers SET Name = Name || '+' WHERE true")
			h.ok(err)
			if n := rs.Stats.GetRowCountLowerBound(); n != 2 {
				h.Errorf("%d rows", n)
			}
			h.shows(ses, "SELECT COUNT(*) FROM Singers WHERE LENGTH(Name) = 2", "2")
			clock.forward(2 * txn.OutcomeLife)
			restart()
		}
		clock.forward(24 * time.Hour) // after this time the store has deleted the progress of the statement
		_, err := h.sql(ses, byID(id), 1, "UPDATE Singers SET Name = Name || '+' WHERE true")
		h.fails(err, codes.NotFound)
	})
}

// TestClockGoesBackBeforeRestart checks that a transaction that was open at a restart gets ABORTED at its Commit, even
// if it began after the clock had gone back by hours.
func TestClockGoesBackBeforeRestart(t *testing.T) {
	forRestarts(t, func(h *harness, clock *testClock, restart func()) {
		ses := h.session(true)
		h.insert(ses, list("1", "a"))
		clock.forward(-3 * time.Hour)
		open := h.begin(ses, readWrite())
		restart()
		_, err := h.data.Commit(h.ctx, commitOf(ses, open))
		h.aborted(err)
	})
}

package server

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// TestFailedDML checks what happens after a DML statement fails. If the statement breaks a constraint, its transaction
// ends, and requests in the transaction get the same error until it is rolled back. After another error the transaction
// continues, and the statement has changed nothing.
func TestFailedDML(t *testing.T) {
	h := newHarness(t)
	h.alter(
		`CREATE TABLE Parents (Id INT64 NOT NULL, Name STRING(5) NOT NULL, N INT64, Twice INT64 AS (N * 2) STORED, CONSTRAINT Small CHECK (N < 100)) PRIMARY KEY (Id)`,
		`CREATE UNIQUE INDEX ByName ON Parents(Name)`,
		`CREATE TABLE Children (Id INT64 NOT NULL, C INT64 NOT NULL) PRIMARY KEY (Id, C), INTERLEAVE IN PARENT Parents`,
		`CREATE TABLE Refs (Id INT64 NOT NULL, P INT64, FOREIGN KEY (P) REFERENCES Parents (Id)) PRIMARY KEY (Id)`,
		`CREATE TABLE Texts (Key STRING(MAX), Ts TIMESTAMP OPTIONS (allow_commit_timestamp = true)) PRIMARY KEY (Key)`,
	)
	ses := h.session(true)
	for _, c := range []struct {
		sql   string
		code  codes.Code
		fatal bool
	}{
		{"INSERT INTO Parents (Id, Name) VALUES (9, 'i'), (1, 'j')", codes.AlreadyExists, true},
		{"INSERT INTO Parents (Id, Name) VALUES (9, 'a')", codes.AlreadyExists, true},
		{"UPDATE Parents SET Name = 'b' WHERE Id = 1", codes.AlreadyExists, true},
		{"INSERT INTO Parents (Id, Name) VALUES (9, NULL)", codes.FailedPrecondition, true},
		{"INSERT INTO Parents (Id) VALUES (9)", codes.FailedPrecondition, true},
		{"UPDATE Parents SET Name = 'longer' WHERE Id = 1", codes.FailedPrecondition, true},
		{"UPDATE Parents SET N = 100 WHERE TRUE", codes.OutOfRange, true},
		{"INSERT INTO Children (Id, C) VALUES (7, 1)", codes.NotFound, true},
		{"DELETE FROM Parents WHERE Id = 2", codes.FailedPrecondition, true},
		{"INSERT INTO Refs (Id, P) VALUES (2, 7)", codes.FailedPrecondition, true},
		{"DELETE FROM Parents WHERE Id = 1", codes.FailedPrecondition, true},
		{"INSERT INTO Texts (Key) VALUES (REPEAT('x', 10000))", codes.InvalidArgument, true},
		{"INSERT INTO Texts (Key, Ts) VALUES ('a', TIMESTAMP '2999-01-01T00:00:00Z')", codes.FailedPrecondition, true},

		{"UPDATE Parents SET N = 1 / 0 WHERE TRUE", codes.InvalidArgument, false},
		{"UPDATE Parents SET N = DIV(1, Id - 2) WHERE TRUE", codes.OutOfRange, false},
		{"INSERT INTO Parents (Id, Name, N) VALUES (9, 'i', 9223372036854775807 + 1)", codes.OutOfRange, false},
		{"INSERT INTO Parents (Id, Name) VALUES (9, ERROR('no'))", codes.OutOfRange, false},
		{"INSERT INTO Parents (Id, Name) VALUES (9, 'i') ASSERT_ROWS_MODIFIED 2", codes.OutOfRange, false},
		{"INSERT OR UPDATE INTO Parents (Id, Name) VALUES (9, 'i'), (9, 'j')", codes.InvalidArgument, false},
		{"INSERT INTO Texts (Key, Ts) VALUES ('a', PENDING_COMMIT_TIMESTAMP()) THEN RETURN Ts", codes.InvalidArgument, false},
		{"UPDATE Parents SET Id = 9 WHERE TRUE", codes.InvalidArgument, false},
		{"UPDATE Parents SET Twice = 9 WHERE TRUE", codes.InvalidArgument, false},
		{"UPDATE Parents SET Name = 1 WHERE TRUE", codes.InvalidArgument, false},
		{"UPDATE Missing SET Name = 'x' WHERE TRUE", codes.InvalidArgument, false},
		{"UPDATE Parents SET", codes.InvalidArgument, false},
		{"UPDATE Parents SET Name = @p WHERE TRUE", codes.InvalidArgument, false},
	} {
		t.Run(c.sql, func(t *testing.T) {
			h.TB = t
			id := h.begin(ses, readWrite())
			for seqno, sql := range []string{
				"INSERT INTO Parents (Id, Name, N) VALUES (1, 'a', 1), (2, 'b', 2)",
				"INSERT INTO Children (Id, C) VALUES (2, 1)",
				"INSERT INTO Refs (Id, P) VALUES (1, 1)",
			} {
				_, err := h.sql(ses, byID(id), int64(seqno+1), sql)
				h.ok(err)
			}
			_, err := h.sql(ses, byID(id), 4, c.sql)
			h.fails(err, c.code)
			if c.fatal {
				h.isOver(ses, id, err)
				return
			}
			rs, err := h.sql(ses, byID(id), 5, "SELECT COUNT(*), SUM(N), (SELECT COUNT(*) FROM Texts) FROM Parents")
			h.ok(err)
			if got := rs.Rows[0].Values; got[0].GetStringValue()+got[1].GetStringValue()+got[2].GetStringValue() != "230" {
				t.Errorf("the transaction sees %v", got)
			}
			_, err = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: id})
			h.ok(err)
		})
	}
}

// isOver checks that requests in a transaction fail with the error in cause until the transaction is rolled back.
func (h *harness) isOver(ses string, id []byte, cause error) {
	h.Helper()
	for _, sql := range []string{"SELECT 1", "UPDATE Parents SET N = 3 WHERE TRUE"} {
		_, err := h.sql(ses, byID(id), 5, sql)
		h.same(err, cause)
	}
	_, err := h.data.ExecuteBatchDml(h.ctx, &spannerpb.ExecuteBatchDmlRequest{
		Session: ses, Transaction: byID(id), Seqno: 6,
		Statements: []*spannerpb.ExecuteBatchDmlRequest_Statement{{Sql: "UPDATE Parents SET N = 3 WHERE TRUE"}},
	})
	h.same(err, cause)
	_, err = h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: ses, Transaction: byID(id), Table: "Parents", Columns: []string{"Id"}, KeySet: allKeys()})
	h.same(err, cause)
	_, err = h.data.Commit(h.ctx, commitOf(ses, id))
	h.same(err, cause)
	_, err = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: id})
	h.ok(err)
	rs, err := h.sql(ses, nil, 0, "SELECT COUNT(*) FROM Parents")
	h.ok(err)
	if n := rs.Rows[0].Values[0].GetStringValue(); n != "0" {
		h.Errorf("%s rows are left", n)
	}
}

func (h *harness) same(err, want error) {
	h.Helper()
	if err == nil || err.Error() != want.Error() {
		h.Errorf("got %v, want %v", err, want)
	}
}

// TestFailedBatchDML: after a batch in which a statement fails, the effects of the statements before it remain. But if
// the failed statement broke a constraint, the transaction has ended.
func TestFailedBatchDML(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	for _, c := range []struct {
		sql   string
		code  codes.Code
		fatal bool
	}{
		{"INSERT INTO Singers (SingerId) VALUES (1)", codes.AlreadyExists, true},
		{"UPDATE Singers SET SingerId = 2 WHERE TRUE", codes.InvalidArgument, false},
		{"UPDATE Singers SET Name = ERROR('no') WHERE TRUE", codes.OutOfRange, false},
	} {
		id := h.begin(ses, readWrite())
		reply, err := h.data.ExecuteBatchDml(h.ctx, &spannerpb.ExecuteBatchDmlRequest{
			Session: ses, Transaction: byID(id), Seqno: 1,
			Statements: []*spannerpb.ExecuteBatchDmlRequest_Statement{
				{Sql: "INSERT INTO Singers (SingerId, Name) VALUES (1, 'a')"}, {Sql: c.sql}, {Sql: "DELETE FROM Singers WHERE TRUE"},
			},
		})
		h.ok(err)
		if codes.Code(reply.Status.GetCode()) != c.code || len(reply.ResultSets) != 1 {
			t.Fatalf("%s: %v", c.sql, reply)
		}
		_, err = h.data.Commit(h.ctx, commitOf(ses, id))
		if c.fatal {
			h.fails(err, c.code)
			continue
		}
		h.ok(err)
		rs, err := h.sql(ses, nil, 0, "SELECT COUNT(*) FROM Singers")
		h.ok(err)
		if n := rs.Rows[0].Values[0].GetStringValue(); n != "1" {
			t.Errorf("%s: %s rows are there", c.sql, n)
		}
		all := &spannerpb.Mutation_Delete{Table: "Singers", KeySet: allKeys()}
		_, err = h.data.Commit(h.ctx, singleUse(ses, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Delete_{Delete: all}}))
		h.ok(err)
	}
}

// TestLimitLocksWhatWasRead: in a transaction, a READ with a limit and a query with LIMIT do not lock rows after those
// that they return.
func TestLimitLocksWhatWasRead(t *testing.T) {
	for name, read := range map[string]func(h *harness, ses string, id []byte) error{
		"READ": func(h *harness, ses string, id []byte) error {
			_, err := h.data.Read(h.ctx, &spannerpb.ReadRequest{
				Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys(), Limit: 2,
			})
			return err
		},
		"SQL": func(h *harness, ses string, id []byte) error {
			_, err := h.sql(ses, byID(id), 1, "SELECT SingerId FROM Singers ORDER BY SingerId LIMIT 2")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			ses := h.session(true)
			h.insert(ses, list("1", "a"), list("3", "c"), list("5", "e"))
			id := h.begin(ses, readWrite())
			h.ok(read(h, ses, id))
			h.insert(ses, list("4", "d"), list("5", "e"), list("6", "f"))
			_, err := h.data.Commit(h.ctx, commitOf(ses, id, insertSingers(list("7", "g"))))
			h.ok(err)

			id = h.begin(ses, readWrite())
			h.ok(read(h, ses, id))
			for _, row := range []string{"0", "2", "3"} {
				ctx, cancel := context.WithCancel(h.ctx)
				ended := make(chan error, 1)
				go func() {
					_, err := h.data.Commit(ctx, singleUse(ses, insertSingers(list(row, "x"))))
					ended <- err
				}()
				metrics := h.database().Transactions().Metrics
				eventually(func() bool { return len(ended) > 0 || metrics().Waiting > 0 })
				cancel()
				if err := <-ended; status.Code(err) != codes.Canceled {
					t.Errorf("row %s, which was read or lies before one that was, could be written: %v", row, err)
				}
				eventually(func() bool { return metrics().Waiting == 0 })
			}
			_, err = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: id})
			h.ok(err)
		})
	}
}

// An endingContext is cancelled when its method Err has been called a given number of times.
type endingContext struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

func newEndingContext(parent context.Context, asked int64) *endingContext {
	c := new(endingContext)
	c.Context, c.cancel = context.WithCancel(parent)
	c.left.Store(asked)
	return c
}

func (c *endingContext) Err() error {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// TestAbandonedDML: a client may give up a writing request at any point and send it again; its statements take effect
// once.
func TestAbandonedDML(t *testing.T) {
	h := newHarness(t)
	h.alter("CREATE TABLE Counts (Id INT64 NOT NULL, N INT64) PRIMARY KEY (Id)")
	ses := h.session(true)
	_, err := h.data.Commit(h.ctx, singleUse(ses, insertOf("Counts", "Id N", "1 0")))
	h.ok(err)
	const add = "UPDATE Counts SET N = N + 1 WHERE Id = 1"
	for name, request := range map[string]func(id []byte) proto.Message{
		"ExecuteSql": func(id []byte) proto.Message {
			return &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: byID(id), Seqno: 1, Sql: add}
		},
		"ExecuteBatchDml": func(id []byte) proto.Message {
			return &spannerpb.ExecuteBatchDmlRequest{
				Session: ses, Transaction: byID(id), Seqno: 1, Statements: []*spannerpb.ExecuteBatchDmlRequest_Statement{{Sql: add}, {Sql: add}},
			}
		},
	} {
		want := map[string]string{"ExecuteSql": "1", "ExecuteBatchDml": "2"}[name]
		ended := true
		for asked := int64(1); ended; asked++ {
			id := h.begin(ses, readWrite())
			ctx := newEndingContext(h.ctx, asked)
			if err := h.executeIn(ctx, h.method(name), request(id), nil); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatalf("%s, given up at question %d: %v", name, asked, err)
			}
			ended = ctx.Context.Err() != nil
			ctx.cancel()
			h.ok(h.execute(h.method(name), request(id), nil))
			rs, err := h.sql(ses, byID(id), 2, "SELECT N FROM Counts")
			h.ok(err)
			if got := rs.Rows[0].Values[0].GetStringValue(); got != want {
				t.Errorf("%s, given up at question %d and sent again: N is %s, want %s", name, asked, got, want)
			}
			_, err = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: id})
			h.ok(err)
		}
	}
}

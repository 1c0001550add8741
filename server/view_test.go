package server

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// named holds the statements of a database with views, functions and synonyms, as GetDatabaseDdl prints them.
var named = []string{
	"CREATE SCHEMA S",
	"CREATE FUNCTION S.plus(x INT64, n INT64 DEFAULT 1) RETURNS INT64 SQL SECURITY INVOKER AS (x + n)",
	"CREATE TABLE T (\n  K INT64,\n  V INT64 DEFAULT (S.plus(40)),\n  G INT64 AS (S.plus(V, 2)),\n  SYNONYM(Other),\n) PRIMARY KEY(K)",
	"CREATE INDEX ByV ON T(V)",
	"CREATE VIEW Small SQL SECURITY INVOKER AS SELECT T.K, T.V FROM T WHERE T.K < 10",
	"CREATE VIEW S.Sums SQL SECURITY DEFINER AS SELECT S.plus(s.K) AS K, ARRAY_AGG(s.V) AS Vs, SUM(o.G) AS G FROM Small AS s JOIN Other AS o ON o.K = s.K GROUP BY s.K",
}

// TestNamedObjects reads and writes a table by its synonym. It checks that READ and mutations do not find a view, and
// that a query at a timestamp uses the definitions of that time. All this holds after a restart too, and the output of
// GetDatabaseDdl creates the same database again.
func TestNamedObjects(t *testing.T) {
	for name, restart := range restarts {
		t.Run(name, func(t *testing.T) {
			h := newHarnessOn(t, vfs.NewCrashableMem(), Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, named)
			ses := h.session(true)
			written, err := h.data.Commit(h.ctx, singleUse(ses, insertOf("Other", "K", "1"), insertOf("T", "K V", "2 7"), insertOf("oTHER", "K V", "11 8")))
			h.ok(err)
			h.wants(ses, "read Other K V G", "1 41 43 2 7 9 11 8 10")
			h.wants(ses, "SELECT * FROM S.Sums ORDER BY K", "2 [41] 43 3 [7] 9")
			h.alter("CREATE OR REPLACE VIEW Small SQL SECURITY INVOKER AS SELECT T.K, T.V FROM T WHERE T.K < 2", "DROP INDEX ByV")
			for range 2 {
				h.wants(ses, "SELECT * FROM S.Sums ORDER BY K", "2 [41] 43")
				old, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT COUNT(*) FROM Small", Transaction: readAt(written.CommitTimestamp)})
				h.ok(err)
				if got := valuesOf(old); got != "2" {
					t.Errorf("at the time of the commit the view has %s rows", got)
				}
				_, err = h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: "Small", Columns: []string{"K"}, KeySet: &spannerpb.KeySet{All: true}})
				h.fails(err, codes.NotFound)
				_, err = h.data.Commit(h.ctx, singleUse(ses, insertOf("Small", "K", "3")))
				h.fails(err, codes.NotFound)
				restart(h)
			}
			h.sameAgain()
		})
	}
}

// wants runs a query, or reads if the text is "read TABLE COLUMN...", and compares the values with want.
func (h *harness) wants(ses, text, want string) {
	h.Helper()
	var rs *spannerpb.ResultSet
	var err error
	if words := strings.Fields(text); words[0] == "read" {
		rs, err = h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: words[1], Columns: words[2:], KeySet: &spannerpb.KeySet{All: true}})
	} else {
		rs, err = h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: text})
	}
	h.ok(err)
	if got := valuesOf(rs); got != want {
		h.Errorf("%s: %s, want %s", text, got, want)
	}
}

// sameAgain creates a second database from the output of GetDatabaseDdl, and checks that GetDatabaseDdl returns the
// same output for the second database.
func (h *harness) sameAgain() {
	h.Helper()
	printed := h.ddl(testDatabase)
	_, err := h.server.registry.CreateDatabase(h.ctx, testInstance+"/databases/again", printed)
	h.ok(err)
	if again := h.ddl(testInstance + "/databases/again"); strings.Join(again, ";\n") != strings.Join(printed, ";\n") {
		h.Errorf("printed:\n%s\nof that:\n%s", strings.Join(printed, ";\n"), strings.Join(again, ";\n"))
	}
}

func (h *harness) ddl(db string) []string {
	h.Helper()
	reply, err := h.databases.GetDatabaseDdl(h.ctx, &databasepb.GetDatabaseDdlRequest{Database: db})
	h.ok(err)
	return reply.Statements
}

// readAt returns the transaction selector for a read at a timestamp.
func readAt(ts *timestamppb.Timestamp) *spannerpb.TransactionSelector {
	return &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_SingleUse{SingleUse: &spannerpb.TransactionOptions{
		Mode: &spannerpb.TransactionOptions_ReadOnly_{ReadOnly: &spannerpb.TransactionOptions_ReadOnly{
			TimestampBound: &spannerpb.TransactionOptions_ReadOnly_ReadTimestamp{ReadTimestamp: ts},
		}},
	}}}
}

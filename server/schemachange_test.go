package server

import (
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// modes are the isolation levels and lock modes of read-write transactions, by name.
var modes = map[string]*spannerpb.TransactionOptions{
	"serializable":            readWrite(),
	"serializable optimistic": withLockMode(readWrite(), spannerpb.TransactionOptions_ReadWrite_OPTIMISTIC),
	"repeatable read": {
		Mode:           &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: &spannerpb.TransactionOptions_ReadWrite{}},
		IsolationLevel: spannerpb.TransactionOptions_REPEATABLE_READ,
	},
}

func withLockMode(o *spannerpb.TransactionOptions, m spannerpb.TransactionOptions_ReadWrite_ReadLockMode) *spannerpb.TransactionOptions {
	o.GetReadWrite().ReadLockMode = m
	return o
}

// schemaChanges lists test cases. The steps of a case are the requests of one transaction, with schema changes between
// them. A step is "ddl STATEMENT", "fails STATEMENT" for DDL that must fail, "read TABLE COLUMN...", "mutate TABLE
// COLUMN=VALUE..." for a mutation of the commit, "commit", or SQL. The expected answer follows "=>"; a step without it
// must succeed. If a step ends in "aborted at a snapshot", the transaction must be aborted in the modes that read at a
// snapshot, because in these modes it cannot use objects that have changed since.
var schemaChanges = []struct{ name, steps string }{
	{"unused before", `
		ddl CREATE TABLE N (K INT64) PRIMARY KEY (K)
		INSERT INTO N (K) VALUES (1)
		SELECT K FROM N => 1
		commit`},
	{"unused before, with mutations", `
		ddl ALTER TABLE T ADD COLUMN N INT64
		mutate T K=9 N=3
		commit`},
	{"read of another table", `
		SELECT COUNT(*) FROM Version => 1
		ddl CREATE TABLE N (K INT64) PRIMARY KEY (K)
		ddl ALTER TABLE T ADD COLUMN N INT64 NOT NULL DEFAULT (5)
		UPDATE Version SET V = 2 WHERE TRUE
		ddl DROP TABLE N
		ddl CREATE INDEX ByW ON U(V)
		SELECT COUNT(*) FROM Version => 1
		commit`},
	{"changed table, used for the first time", `
		UPDATE Version SET V = 2 WHERE TRUE
		ddl ALTER TABLE T ADD COLUMN N INT64 NOT NULL DEFAULT (5)
		UPDATE T SET N = 6 WHERE K = 1 => aborted at a snapshot
		commit`},
	{"index made since, used for the first time", `
		UPDATE Version SET V = 2 WHERE TRUE
		ddl CREATE INDEX ByV ON T(V)
		SELECT K FROM T@{FORCE_INDEX=ByV} WHERE V = 1 ORDER BY K => 1 2, aborted at a snapshot
		commit`},
	{"write of another table", `
		UPDATE Version SET V = 2 WHERE TRUE
		ddl ALTER TABLE T ALTER COLUMN V INT64 NOT NULL
		commit`},
	{"failed change of another table", `
		UPDATE Version SET V = 2 WHERE TRUE
		fails CREATE UNIQUE INDEX UniqueV ON T(V)
		fails ALTER TABLE T ADD CONSTRAINT C CHECK (V > 10)
		commit`},
	{"index on a table that was read", `
		SELECT V FROM T WHERE K = 1 => 1
		ddl CREATE INDEX ByV ON T(V)
		SELECT V FROM T WHERE K = 2 => 1
		commit`},
	{"column of a table that was read", `
		read T K V => 1 1 2 1
		ddl ALTER TABLE T ADD COLUMN N INT64
		ddl ALTER TABLE T DROP COLUMN W
		read T K V => 1 1 2 1
		commit`},
	{"dropped column that was read", `
		read T K W => 1 1 2 2
		ddl ALTER TABLE T DROP COLUMN W
		read T K V => aborted`},
	{"dropped column that a query read", `
		SELECT K FROM T WHERE W = 2 => 2
		ddl ALTER TABLE T DROP COLUMN W
		commit => aborted`},
	{"dropped table that was read", `
		SELECT COUNT(*) FROM U => 0
		ddl DROP TABLE U
		commit => aborted`},
	{"table made again", `
		SELECT COUNT(*) FROM U => 0
		ddl DROP TABLE U
		ddl CREATE TABLE U (K INT64, V INT64) PRIMARY KEY (K)
		commit => aborted`},
	{"dropped index that was read", `
		SELECT K FROM T@{FORCE_INDEX=ByX} WHERE X = 2 => 2
		ddl DROP INDEX ByX
		commit => aborted`},
	{"dropped index that was not read", `
		SELECT K FROM T WHERE K = 2 => 2
		ddl DROP INDEX ByX
		commit`},
	{"index on a table that was written", `
		INSERT INTO T (K, V) VALUES (3, 3)
		ddl CREATE INDEX ByV ON T(V)
		commit => aborted`},
	{"column of a table that was written", `
		INSERT INTO T (K, V) VALUES (3, 3)
		ddl ALTER TABLE T ADD COLUMN N INT64 NOT NULL DEFAULT (5)
		SELECT 1 => aborted`},
	{"constraint on a table that was written", `
		INSERT INTO T (K, V) VALUES (3, -3)
		ddl ALTER TABLE T ADD CONSTRAINT Positive CHECK (V > 0)
		commit => aborted`},
	{"NOT NULL in a table that was written", `
		INSERT INTO T (K, V) VALUES (3, NULL)
		ddl ALTER TABLE T ALTER COLUMN V INT64 NOT NULL
		commit => aborted`},
	{"reference to a table of which a row was deleted", `
		DELETE FROM T WHERE K = 1
		ddl CREATE TABLE N (K INT64, FOREIGN KEY (K) REFERENCES T (K)) PRIMARY KEY (K)
		commit => aborted`},
	{"reference to a table into which a row was inserted", `
		INSERT INTO T (K, V) VALUES (3, 3)
		ddl CREATE TABLE N (K INT64, FOREIGN KEY (K) REFERENCES T (K)) PRIMARY KEY (K)
		commit`},
	{"failed change of a table that was written", `
		INSERT INTO T (K, V) VALUES (3, 3)
		fails CREATE UNIQUE INDEX UniqueV ON T(V)
		commit => aborted`},
	{"statement prepared before", `
		SELECT COUNT(*) FROM Version => 1
		ddl ALTER TABLE Version ADD COLUMN N INT64
		SELECT COUNT(*) FROM Version => 1
		UPDATE Version SET V = 2 WHERE TRUE => aborted at a snapshot
		commit`},
	{"view that was read", `
		ddl CREATE VIEW Vw SQL SECURITY INVOKER AS SELECT T.K FROM T
		SELECT COUNT(*) FROM Vw => 2
		ddl CREATE OR REPLACE VIEW Vw SQL SECURITY INVOKER AS SELECT T.K FROM T WHERE T.K > 1
		commit => aborted`},
	{"view below one that was read", `
		ddl CREATE VIEW Below SQL SECURITY INVOKER AS SELECT T.K FROM T
		ddl CREATE VIEW Vw SQL SECURITY INVOKER AS SELECT b.K FROM Below AS b
		UPDATE Version SET V = 2 WHERE EXISTS (SELECT 1 FROM Vw)
		ddl CREATE OR REPLACE VIEW Below SQL SECURITY INVOKER AS SELECT T.K FROM T WHERE T.K > 1
		commit => aborted`},
	{"view of a table that was read and written", `
		UPDATE T SET V = 2 WHERE K = 1
		ddl CREATE VIEW Vw SQL SECURITY INVOKER AS SELECT T.K FROM T
		ddl CREATE OR REPLACE VIEW Vw SQL SECURITY INVOKER AS SELECT T.V FROM T
		ddl DROP VIEW Vw
		commit`},
	{"function that was called", `
		ddl CREATE FUNCTION Less(a INT64) AS (a - 1)
		UPDATE Version SET V = Less(7) WHERE TRUE
		ddl CREATE OR REPLACE FUNCTION Less(a INT64) AS (a - 2)
		commit => aborted`},
	{"renamed table that was read", `
		SELECT COUNT(*) FROM U => 0
		ddl ALTER TABLE U RENAME TO Renamed, ADD SYNONYM U
		commit => aborted`},
	{"synonym of a table that was written", `
		INSERT INTO T (K, V) VALUES (3, 3)
		ddl ALTER TABLE T ADD SYNONYM S
		SELECT COUNT(*) FROM S => 3
		ddl ALTER TABLE T DROP SYNONYM S
		mutate T K=9 V=3
		commit`},
	{"change of no table", `
		INSERT INTO T (K, V) VALUES (3, 3)
		ddl ALTER DATABASE db SET OPTIONS (version_retention_period = '2h')
		commit`},
}

// TestSchemaChangeInTransaction: a schema change aborts those transactions that have read or written what it changes.
// Other transactions go on, and their next requests use the new schema. After a commit, all indexes have the committed
// rows.
func TestSchemaChangeInTransaction(t *testing.T) {
	for mode, options := range modes {
		for _, c := range schemaChanges {
			t.Run(mode+"/"+c.name, func(t *testing.T) {
				h := newHarness(t)
				h.alter("CREATE TABLE T (K INT64, V INT64, W INT64, X INT64) PRIMARY KEY (K)", "CREATE INDEX ByX ON T(X)",
					"CREATE TABLE U (K INT64, V INT64) PRIMARY KEY (K)", "CREATE TABLE Version (V INT64) PRIMARY KEY ()")
				_, err := h.data.Commit(h.ctx, singleUse(h.session(true), insertOf("T", "K V W X", "1 1 1 1"), insertOf("T", "K V W X", "2 1 2 2"), insertOf("Version", "V", "1")))
				h.ok(err)
				r := historyRun{harness: h, ses: h.session(true)}
				r.id = h.begin(r.ses, options)
				for _, step := range strings.Split(strings.TrimSpace(c.steps), "\n") {
					step, elsewhere := strings.CutSuffix(strings.TrimSpace(step), "aborted at a snapshot")
					if elsewhere && mode != "serializable" {
						step, _, _ = strings.Cut(step, " => ")
						r.step(step + " => aborted")
						break
					}
					r.step(strings.TrimRight(step, " ,=>"))
				}
			})
		}
	}
}

// historyRun runs one of schemaChanges.
type historyRun struct {
	*harness
	ses   string
	id    []byte
	seqno int64
	muts  []*spannerpb.Mutation
}

func (r *historyRun) step(step string) {
	r.Helper()
	text, want, _ := strings.Cut(step, " => ")
	verb, rest, _ := strings.Cut(text, " ")
	var got string
	var err error
	switch verb {
	case "ddl":
		r.alter(rest)
	case "fails":
		db, _ := r.server.registry.Database(testDatabase)
		if db.UpdateSchema(r.ctx, []string{rest}, nil) == nil {
			r.Errorf("%s: went well", step)
		}
	case "mutate":
		var names, values []string
		words := strings.Fields(rest)
		for _, w := range words[1:] {
			name, val, _ := strings.Cut(w, "=")
			names, values = append(names, name), append(values, val)
		}
		r.muts = append(r.muts, insertOf(words[0], strings.Join(names, " "), strings.Join(values, " ")))
	case "commit":
		_, err = r.data.Commit(r.ctx, commitOf(r.ses, r.id, r.muts...))
	case "read":
		words := strings.Fields(rest)
		var rs *spannerpb.ResultSet
		rs, err = r.data.Read(r.ctx, &spannerpb.ReadRequest{Session: r.ses, Transaction: byID(r.id), Table: words[0], Columns: words[1:], KeySet: &spannerpb.KeySet{All: true}})
		got = valuesOf(rs)
	default:
		r.seqno++
		var rs *spannerpb.ResultSet
		rs, err = r.sql(r.ses, byID(r.id), r.seqno, text)
		got = valuesOf(rs)
	}
	if want == "aborted" {
		r.schemaChanged(err)
		return
	}
	r.ok(err)
	if got != want {
		r.Errorf("%s: %s", step, got)
	}
}

// schemaChanged checks that err is the error by which a schema change aborts a transaction, and that it makes clients
// retry.
func (r *historyRun) schemaChanged(err error) {
	r.Helper()
	r.fails(err, codes.Aborted)
	if got := status.Convert(err).Message(); got != "Transaction aborted. Database schema probably changed during transaction, retry may succeed." {
		r.Errorf("the message is %q", got)
	}
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok && info.RetryDelay.AsDuration() > 0 {
			return
		}
	}
	r.Errorf("no RetryInfo in %v", err)
}

// valuesOf returns the values of all rows as text. A nil rs has no rows.
func valuesOf(rs *spannerpb.ResultSet) string {
	var list []string
	for _, row := range rs.GetRows() {
		for _, v := range row.Values {
			list = append(list, fmt.Sprint(v.AsInterface()))
		}
	}
	return strings.Join(list, " ")
}

// insertOf returns a mutation that inserts one row. Column names and values are separated by blanks.
func insertOf(table, columns, values string) *spannerpb.Mutation {
	row := new(structpb.ListValue)
	for _, v := range strings.Fields(values) {
		row.Values = append(row.Values, structpb.NewStringValue(v))
	}
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{Table: table, Columns: strings.Fields(columns), Values: []*structpb.ListValue{row}}}}
}

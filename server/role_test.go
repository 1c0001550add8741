package server

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/cockroachdb/datadriven"
	"google.golang.org/api/option"
	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// roleSession creates a session with a role.
func (h *harness) roleSession(role string) (string, error) {
	ses, err := h.data.CreateSession(h.ctx, &spannerpb.CreateSessionRequest{Database: testDatabase, Session: &spannerpb.Session{Multiplexed: true, CreatorRole: role}})
	return ses.GetName(), err
}

// TestRoles runs the scripts in testdata/role against a database and checks that each directive prints what its script
// says. The directives are:
//
//	ddl                                    run the statements, which blank lines separate
//	sql role=r                             run a statement; if it writes, in a transaction of its own
//	pdml role=r                            run a statement as partitioned DML
//	batch role=r                           run statements, one a line, as a batch of DML
//	read role=r of=T [index=i] columns=(a, b)   read the rows with the keys in the lines (no lines: all rows)
//	partition role=r                       make partitions of a query
//	insert, update, insert-or-update, replace, delete role=r of=T columns=(a, b)   commit a mutation of the rows or keys in the lines
//
// role=r selects a session with that role, which is created at first use. A directive without role=r runs in a session
// without a role.
func TestRoles(t *testing.T) {
	datadriven.Walk(t, "testdata/role", func(t *testing.T, path string) {
		h := newHarnessWith(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, nil)
		sessions := map[string]string{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			if d.Cmd == "ddl" {
				return errorLine(h.database().UpdateSchema(h.ctx, strings.Split(d.Input, "\n\n"), nil))
			}
			role := ""
			d.MaybeScanArgs(t, "role", &role)
			if sessions[role] == "" {
				name, err := h.roleSession(role)
				if err != nil {
					return errorLine(err)
				}
				sessions[role] = name
			}
			out, err := h.roleCommand(t, d, sessions[role])
			if err != nil {
				return errorLine(err)
			}
			return out
		})
	})
}

func errorLine(err error) string {
	if err == nil {
		return "ok\n"
	}
	if s, remote := grpcstatus.FromError(err); remote {
		return fmt.Sprintf("%v: %s\n", s.Code(), s.Message())
	}
	return err.Error() + "\n"
}

func (h *harness) roleCommand(t *testing.T, d *datadriven.TestData, ses string) (string, error) {
	var of, index string
	d.MaybeScanArgs(t, "of", &of)
	d.MaybeScanArgs(t, "index", &index)
	var columns []string
	if arg, ok := d.Arg("columns"); ok {
		columns = arg.Vals
	}
	var rows []*structpb.ListValue
	if d.Cmd != "sql" && d.Cmd != "pdml" {
		rows = rowsOfLines(d.Input)
	}
	switch d.Cmd {
	case "sql":
		return h.roleSQL(ses, d.Input)
	case "pdml":
		id, err := h.data.BeginTransaction(h.ctx, &spannerpb.BeginTransactionRequest{Session: ses, Options: &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_PartitionedDml_{}}})
		if err != nil {
			return "", err
		}
		rs, err := h.sql(ses, byID(id.Id), 1, d.Input)
		return fmt.Sprintf("%d rows\n", rs.GetStats().GetRowCountLowerBound()), err
	case "batch":
		req := &spannerpb.ExecuteBatchDmlRequest{Session: ses, Transaction: begins(readWrite()), Seqno: 1}
		for _, line := range strings.Split(d.Input, "\n") {
			req.Statements = append(req.Statements, &spannerpb.ExecuteBatchDmlRequest_Statement{Sql: line})
		}
		reply, err := h.data.ExecuteBatchDml(h.ctx, req)
		if err != nil {
			return "", err
		}
		if id := reply.GetResultSets(); len(id) > 0 {
			_, _ = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: id[0].Metadata.Transaction.Id})
		}
		return fmt.Sprintf("%d results, then %s\n", len(reply.ResultSets), reply.Status.Message), nil
	case "read":
		keys := &spannerpb.KeySet{Keys: rows, All: rows == nil}
		rs, err := h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: of, Index: index, Columns: columns, KeySet: keys})
		return textOfRows(rs), err
	case "partition":
		reply, err := h.data.PartitionQuery(h.ctx, &spannerpb.PartitionQueryRequest{Session: ses, Transaction: begins(readOnly()), Sql: d.Input})
		return fmt.Sprintf("%d partitions\n", len(reply.GetPartitions())), err
	}
	write := &spannerpb.Mutation_Write{Table: of, Columns: columns, Values: rows}
	m := new(spannerpb.Mutation)
	switch d.Cmd {
	case "insert":
		m.Operation = &spannerpb.Mutation_Insert{Insert: write}
	case "update":
		m.Operation = &spannerpb.Mutation_Update{Update: write}
	case "insert-or-update":
		m.Operation = &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: write}
	case "replace":
		m.Operation = &spannerpb.Mutation_Replace{Replace: write}
	case "delete":
		m.Operation = &spannerpb.Mutation_Delete_{Delete: &spannerpb.Mutation_Delete{Table: of, KeySet: &spannerpb.KeySet{Keys: rows}}}
	default:
		t.Fatalf("unknown command %s", d.Cmd)
	}
	_, err := h.data.Commit(h.ctx, singleUse(ses, m))
	return "ok\n", err
}

// roleSQL runs a statement and returns its rows. If the statement writes, roleSQL commits.
func (h *harness) roleSQL(ses, sql string) (string, error) {
	if strings.HasPrefix(sql, "SELECT") || strings.HasPrefix(sql, "WITH") || strings.HasPrefix(sql, "CALL") {
		rs, err := h.sql(ses, nil, 0, sql)
		return textOfRows(rs), err
	}
	rs, err := h.sql(ses, begins(readWrite()), 1, sql)
	if err != nil {
		return "", err
	}
	_, err = h.data.Commit(h.ctx, commitOf(ses, rs.Metadata.Transaction.Id))
	return fmt.Sprintf("%d rows\n", rs.Stats.GetRowCountExact()) + textOfRows(rs), err
}

// rowsOfLines parses one row per line, with values between commas. The word NULL stands for a NULL value.
func rowsOfLines(text string) (rows []*structpb.ListValue) {
	for _, line := range strings.FieldsFunc(text, func(r rune) bool { return r == '\n' }) {
		row := new(structpb.ListValue)
		for _, word := range strings.Split(line, ", ") {
			v := structpb.NewStringValue(word)
			if word == "NULL" {
				v = structpb.NewNullValue()
			}
			row.Values = append(row.Values, v)
		}
		rows = append(rows, row)
	}
	return rows
}

func textOfRows(rs *spannerpb.ResultSet) string {
	var out strings.Builder
	for _, row := range rs.GetRows() {
		for i, v := range row.Values {
			if i > 0 {
				out.WriteString(", ")
			}
			if _, null := v.Kind.(*structpb.Value_NullValue); null {
				out.WriteString("NULL")
			} else {
				fmt.Fprint(&out, v.AsInterface())
			}
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// TestRevokedInTransaction: a transaction cannot commit if its role has lost a privilege that the transaction used.
func TestRevokedInTransaction(t *testing.T) {
	h := newHarness(t)
	h.alter("CREATE ROLE r", "GRANT SELECT, INSERT, UPDATE ON TABLE Singers TO ROLE r", "GRANT SELECT ON TABLE Wide TO ROLE r")
	ses, err := h.roleSession("r")
	h.ok(err)
	update := "UPDATE Singers SET Name = 'x' WHERE SingerId = 1"
	transaction := h.begin(ses, readWrite())
	_, err = h.sql(ses, byID(transaction), 1, update)
	h.ok(err)
	h.alter("REVOKE SELECT ON TABLE Wide FROM ROLE r")
	_, err = h.data.Commit(h.ctx, commitOf(ses, transaction))
	h.ok(err) // the transaction has not used the privilege that was revoked

	transaction = h.begin(ses, readWrite())
	_, err = h.sql(ses, byID(transaction), 1, update)
	h.ok(err)
	h.alter("REVOKE UPDATE ON TABLE Singers FROM ROLE r")
	_, err = h.data.Commit(h.ctx, commitOf(ses, transaction))
	h.fails(err, codes.Aborted)
	_, err = h.sql(ses, begins(readWrite()), 1, update)
	h.fails(err, codes.PermissionDenied)

	_, err = h.data.Commit(h.ctx, singleUse(ses, insertSingers(list("1", "a"))))
	h.fails(err, codes.PermissionDenied)
	h.alter("GRANT UPDATE ON TABLE Singers TO ROLE r")
	_, err = h.data.Commit(h.ctx, singleUse(ses, insertSingers(list("1", "a"))))
	h.ok(err)
}

// TestSnapshotAfterRevoke checks that after a REVOKE the role cannot read the data at an earlier timestamp either. The
// server must refuse even a query whose plan it cached before the REVOKE.
func TestSnapshotAfterRevoke(t *testing.T) {
	h := newHarness(t)
	h.alter("CREATE ROLE r", "GRANT SELECT ON TABLE Singers TO ROLE r")
	ses, err := h.roleSession("r")
	h.ok(err)
	snapshot := h.begin(ses, readOnly())
	read := &spannerpb.ReadRequest{Session: ses, Transaction: byID(snapshot), Table: "Singers", Columns: []string{"Name"}, KeySet: allKeys()}
	for range 2 {
		_, err = h.sql(ses, byID(snapshot), 0, "SELECT Name FROM Singers")
		h.ok(err)
		_, err = h.data.Read(h.ctx, read)
		h.ok(err)
	}
	h.alter("REVOKE SELECT ON TABLE Singers FROM ROLE r")
	_, err = h.sql(ses, byID(snapshot), 0, "SELECT Name FROM Singers")
	h.fails(err, codes.PermissionDenied)
	_, err = h.data.Read(h.ctx, read)
	h.fails(err, codes.PermissionDenied)
}

func TestRoleSessions(t *testing.T) {
	h := newHarness(t)
	h.alter("CREATE ROLE r", "CREATE ROLE a")
	_, err := h.roleSession("missing")
	h.fails(err, codes.PermissionDenied)
	if text := errorLine(err); text != "PermissionDenied: Role not found: missing.\n" {
		t.Error(text)
	}
	_, err = h.data.BatchCreateSessions(h.ctx, &spannerpb.BatchCreateSessionsRequest{Database: testDatabase, SessionCount: 2, SessionTemplate: &spannerpb.Session{CreatorRole: "missing"}})
	h.fails(err, codes.PermissionDenied)
	batch, err := h.data.BatchCreateSessions(h.ctx, &spannerpb.BatchCreateSessionsRequest{Database: testDatabase, SessionCount: 2, SessionTemplate: &spannerpb.Session{CreatorRole: "r"}})
	h.ok(err)
	ses := batch.Session[1]
	if ses.CreatorRole != "r" {
		t.Errorf("the session is %v", ses)
	}
	_, err = h.sql(ses.Name, nil, 0, "SELECT 1")
	h.ok(err)
	h.restart()
	_, err = h.sql(ses.Name, nil, 0, "SELECT Name FROM Singers")
	h.fails(err, codes.PermissionDenied)
	h.alter("DROP ROLE r")
	_, err = h.sql(ses.Name, nil, 0, "SELECT 1")
	h.fails(err, codes.PermissionDenied)

	var names []string
	for token := ""; ; {
		page, err := h.databases.ListDatabaseRoles(context.Background(), &databasepb.ListDatabaseRolesRequest{Parent: testDatabase, PageSize: 2, PageToken: token})
		h.ok(err)
		for _, r := range page.DatabaseRoles {
			names = append(names, strings.TrimPrefix(r.Name, testDatabase+"/databaseRoles/"))
		}
		if token = page.NextPageToken; token == "" {
			break
		}
	}
	// Crowfoot has no IAM, so every permission is granted.
	permissions := []string{"spanner.databases.useRoleBasedAccess"}
	for name, want := range map[string]codes.Code{
		testDatabase: codes.OK, testDatabase + "/databaseRoles/public": codes.OK, testDatabase + "/databaseRoles/missing": codes.NotFound, testDatabase + "x": codes.NotFound,
	} {
		reply, err := h.databases.TestIamPermissions(h.ctx, &iampb.TestIamPermissionsRequest{Resource: name, Permissions: permissions})
		h.fails(err, want)
		if err == nil && !slices.Equal(reply.Permissions, permissions) {
			t.Errorf("%s: %v", name, reply)
		}
		_, err = h.databases.GetIamPolicy(h.ctx, &iampb.GetIamPolicyRequest{Resource: name})
		h.fails(err, want)
	}
	_, err = h.instances.TestIamPermissions(h.ctx, &iampb.TestIamPermissionsRequest{Resource: testInstance, Permissions: permissions})
	h.ok(err)
	if want := []string{"a", "public", "spanner_info_reader", "spanner_sys_reader"}; !slices.Equal(names, want) {
		t.Errorf("roles %v", names)
	}
}

func TestFlightRole(t *testing.T) {
	h := newHarness(t)
	h.insert(h.session(true), list("1", "Marc"))
	h.alter("CREATE ROLE r", "GRANT SELECT(Name), INSERT ON TABLE Singers TO ROLE r")
	all, restricted := h.newFlightClient(), h.newFlightClient("database-role", "r")
	for range 2 {
		_, err := all.rows("SELECT * FROM Singers")
		h.ok(err)
		rows, err := restricted.rows("SELECT Name FROM Singers")
		h.ok(err)
		if !slices.Equal(rows, []string{"Marc"}) {
			t.Errorf("rows %v", rows)
		}
		_, err = restricted.rows("SELECT * FROM Singers")
		h.fails(err, codes.PermissionDenied)
		h.restart()
		all, restricted = h.newFlightClient(), h.newFlightClient("database-role", "r")
	}
	_, err := restricted.ExecuteUpdate(restricted.ctx, "DELETE FROM Singers WHERE TRUE")
	h.fails(err, codes.PermissionDenied)
	n, err := restricted.ExecuteUpdate(restricted.ctx, "INSERT INTO Singers (SingerId, Name) VALUES (2, 'x')")
	h.ok(err)
	if n != 1 {
		t.Errorf("%d rows", n)
	}
	_, err = restricted.ExecuteUpdate(restricted.ctx, "CREATE TABLE T (K INT64) PRIMARY KEY (K)")
	h.fails(err, codes.PermissionDenied)
	_, err = h.newFlightClient("database-role", "missing").rows("SELECT 1")
	h.fails(err, codes.PermissionDenied)
	info, err := restricted.GetTables(restricted.ctx, &flightsql.GetTablesOpts{IncludeSchema: true})
	h.ok(err)
	tables, err := restricted.read(info)
	h.ok(err)
	if !slices.ContainsFunc(tables, func(row string) bool { return strings.HasPrefix(row, "||Singers|") }) || slices.ContainsFunc(tables, func(row string) bool { return strings.HasPrefix(row, "||Wide|") }) {
		t.Errorf("tables %v", tables)
	}
}

// TestFlightAfterRevoke checks that after a REVOKE a role cannot use anything that it received before: tickets of
// partitions and of metadata, prepared statements, transactions, and partition tokens. A role must not get the
// description of a statement that it may not run.
func TestFlightAfterRevoke(t *testing.T) {
	h := newHarness(t)
	h.dmlOnce(h.session(true), "INSERT INTO Singers (SingerId, Name) SELECT n, 'x' FROM UNNEST(GENERATE_ARRAY(1, 4000)) n")
	h.alter("CREATE VIEW Names SQL SECURITY DEFINER AS SELECT s.Name FROM Singers AS s", "CREATE CHANGE STREAM Everything FOR ALL", "CREATE ROLE r",
		"GRANT SELECT, INSERT, UPDATE ON TABLE Singers TO ROLE r", "GRANT SELECT ON VIEW Names TO ROLE r",
		"GRANT SELECT ON CHANGE STREAM Everything TO ROLE r", "GRANT EXECUTE ON TABLE FUNCTION READ_Everything TO ROLE r")
	f := h.newFlightClient("database-role", "r", "max-partitions", "3")
	_, err := f.GetExecuteSchema(f.ctx, "SELECT * FROM Wide")
	h.fails(err, codes.PermissionDenied)
	_, err = f.Prepare(f.ctx, "SELECT * FROM Wide")
	h.fails(err, codes.PermissionDenied)
	_, err = f.rows("SELECT * FROM READ_Everything(CURRENT_TIMESTAMP(), NULL, NULL, 1000)")
	h.fails(err, codes.InvalidArgument)

	const query = "SELECT Name FROM Singers WHERE SingerId > 0"
	parts, err := f.Execute(f.ctx, query)
	h.ok(err)
	view, err := f.Execute(f.ctx, "SELECT Name FROM Names LIMIT 1")
	h.ok(err)
	prepared, err := f.Prepare(f.ctx, "SELECT Name FROM Singers WHERE SingerId = 1")
	h.ok(err)
	update, err := f.Prepare(f.ctx, "UPDATE Singers SET Name = 'y' WHERE SingerId = 1")
	h.ok(err)
	tables, err := f.GetTables(f.ctx, &flightsql.GetTablesOpts{IncludeSchema: true})
	h.ok(err)
	transaction, err := f.BeginTransaction(f.ctx)
	h.ok(err)
	_, err = transaction.ExecuteUpdate(f.ctx, "UPDATE Singers SET Name = 'z' WHERE SingerId = 1")
	h.ok(err)
	ses, err := h.roleSession("r")
	h.ok(err)
	in := byID(h.begin(ses, readOnly()))
	tokens, err := h.data.PartitionQuery(h.ctx, &spannerpb.PartitionQueryRequest{Session: ses, Transaction: in, Sql: query})
	h.ok(err)
	if rows, err := f.read(parts); len(parts.Endpoint) != 3 || len(rows) != 4000 || err != nil {
		t.Fatalf("%d endpoints, %d rows, %v", len(parts.Endpoint), len(rows), err)
	}

	h.alter("REVOKE SELECT, INSERT, UPDATE ON TABLE Singers FROM ROLE r", "REVOKE SELECT ON VIEW Names FROM ROLE r", "REVOKE EXECUTE ON TABLE FUNCTION READ_Everything FROM ROLE r")
	for _, e := range append(parts.Endpoint, view.Endpoint...) {
		_, _, err = f.ticket(e.Ticket)
		h.fails(err, codes.PermissionDenied)
	}
	_, err = f.request(&spannerpb.ExecuteSqlRequest{Session: ses, Transaction: in, Sql: query, PartitionToken: tokens.Partitions[0].PartitionToken})
	h.fails(err, codes.PermissionDenied)
	_, err = h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: in, Sql: query, PartitionToken: tokens.Partitions[0].PartitionToken})
	h.fails(err, codes.PermissionDenied)
	_, err = f.request(&spannerpb.ReadRequest{Session: ses, Table: "Singers", Columns: []string{"Name"}, KeySet: allKeys()})
	h.fails(err, codes.PermissionDenied)
	_, err = prepared.Execute(f.ctx)
	h.fails(err, codes.PermissionDenied)
	_, err = prepared.GetSchema(f.ctx)
	h.fails(err, codes.PermissionDenied)
	_, err = update.ExecuteUpdate(f.ctx)
	h.fails(err, codes.PermissionDenied)
	h.fails(transaction.Commit(f.ctx), codes.Aborted)
	for _, mode := range []string{"insert", "replace", "insert-or-update"} {
		g := h.newFlightClient("database-role", "r", "ingest-mode", mode)
		rows, err := array.NewRecordReader(batch("SingerId", "Name", []int64{-1}, []string{"x"}).Schema(), []arrow.RecordBatch{batch("SingerId", "Name", []int64{-1}, []string{"x"})})
		h.ok(err)
		_, err = g.ExecuteIngest(g.ctx, rows, &flightsql.ExecuteIngestOpts{Table: "Singers", TableDefinitionOptions: ingestOptions(
			flightsql.TableDefinitionOptionsTableExistsOptionAppend, flightsql.TableDefinitionOptionsTableNotExistOptionFail)})
		h.fails(err, codes.PermissionDenied)
	}
	rows, err := f.read(tables)
	h.ok(err)
	key, err := f.GetPrimaryKeys(f.ctx, flightsql.TableRef{Table: "Singers"})
	h.ok(err)
	keys, err := f.read(key)
	h.ok(err)
	if listed := slices.ContainsFunc(append(rows, keys...), func(row string) bool { return strings.Contains(row, "|Singers|") || strings.Contains(row, "|Names|") }); listed {
		t.Errorf("what is listed: %q, %q", rows, keys)
	}
	stream := h.client("r").Single().Query(h.ctx, streamStatement(time.Now(), spanner.NullTime{}, spanner.NullString{}))
	h.fails(stream.Do(func(*spanner.Row) error { return nil }), codes.PermissionDenied)
}

// client returns an official client whose sessions have a role.
func (h *harness) client(role string) *spanner.Client {
	h.Helper()
	client, err := spanner.NewClientWithConfig(h.ctx, testDatabase, spanner.ClientConfig{DatabaseRole: role, DisableNativeMetrics: true}, option.WithGRPCConn(h.conn), option.WithoutAuthentication())
	h.ok(err)
	return client
}

// TestRevokedStream: if a role loses the right to read a change stream, its running query ends with an error at the
// next record.
func TestRevokedStream(t *testing.T) {
	h := newHarness(t)
	h.alter("CREATE CHANGE STREAM Everything FOR ALL", "CREATE ROLE r", "GRANT SELECT ON CHANGE STREAM Everything TO ROLE r")
	client, writer := h.client("r"), h.session(true)
	start := time.Now()
	read := func(token spanner.NullString, each func(*changeRecord)) error {
		return client.Single().Query(h.ctx, streamStatement(start, spanner.NullTime{}, token)).Do(func(row *spanner.Row) error {
			var list []*changeRecord
			h.ok(row.Column(0, &list))
			each(list[0])
			return nil
		})
	}
	h.fails(read(spanner.NullString{}, nil), codes.PermissionDenied)
	h.alter("GRANT EXECUTE ON TABLE FUNCTION READ_Everything TO ROLE r")
	var token string
	h.ok(read(spanner.NullString{}, func(r *changeRecord) { token = r.Children[0].Partitions[0].Token }))
	h.insert(writer, list("1", "a"))
	records := 0
	err := read(spanner.NullString{StringVal: token, Valid: true}, func(r *changeRecord) {
		if records++; records == 1 {
			h.alter("REVOKE SELECT ON CHANGE STREAM Everything FROM ROLE r")
			h.insert(writer, list("2", "b"))
		}
	})
	h.fails(err, codes.PermissionDenied)
	if records != 1 {
		t.Errorf("%d records", records)
	}
}

// TestRoleByClient checks two roles with the official client. A role with privileges on two columns of a table must be
// able to read only these columns, and a role that was dropped must get an error. The client's own tests expect the
// same errors from Cloud Spanner.
func TestRoleByClient(t *testing.T) {
	h := newHarness(t)
	h.insert(h.session(true), list("1", "Marc"))
	h.alter("CREATE ROLE reader", "CREATE ROLE dropped", "DROP ROLE dropped", "GRANT SELECT(SingerId, Name) ON TABLE Singers TO ROLE reader")
	query := func(role, sql string) error {
		return h.client(role).Single().Query(h.ctx, spanner.NewStatement(sql)).Do(func(*spanner.Row) error { return nil })
	}
	h.ok(query("", "SELECT * FROM Singers"))
	h.ok(query("reader", "SELECT SingerId, Name FROM Singers"))
	for role, want := range map[string]string{"reader": "Role reader does not have required privileges on table Singers.", "dropped": "Role not found: dropped."} {
		err := query(role, "SELECT * FROM Singers")
		if spanner.ErrCode(err) != codes.PermissionDenied || spanner.ErrDesc(err) != want {
			t.Errorf("%s: %v", role, err)
		}
	}
}

package server

import (
	"strings"
	"testing"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestQueryModes(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	h.insert(ses, list("1", "a"), list("2", "b"))
	req := &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT Name FROM Singers WHERE SingerId = @id"}
	req.QueryMode = spannerpb.ExecuteSqlRequest_PLAN
	rs, err := h.data.ExecuteSql(h.ctx, req)
	h.ok(err)
	undeclared := rs.Metadata.GetUndeclaredParameters().GetFields()
	if len(rs.Rows) != 0 || len(rs.Stats.GetQueryPlan().GetPlanNodes()) == 0 || len(undeclared) != 1 || undeclared[0].Name != "id" || undeclared[0].Type.Code != spannerpb.TypeCode_INT64 {
		t.Errorf("PLAN: %v", rs)
	}
	req.Params = structOf("ID", "1") // the case of a parameter's name does not matter
	for mode, want := range map[spannerpb.ExecuteSqlRequest_QueryMode]struct{ plan, stats, nodeStats bool }{
		spannerpb.ExecuteSqlRequest_NORMAL:              {},
		spannerpb.ExecuteSqlRequest_PROFILE:             {true, true, true},
		spannerpb.ExecuteSqlRequest_WITH_STATS:          {false, true, false},
		spannerpb.ExecuteSqlRequest_WITH_PLAN_AND_STATS: {true, true, false},
	} {
		req.QueryMode = mode
		rs, err := h.data.ExecuteSql(h.ctx, req)
		h.ok(err)
		nodeStats := false
		for _, n := range rs.Stats.GetQueryPlan().GetPlanNodes() {
			nodeStats = nodeStats || n.ExecutionStats != nil
		}
		if len(rs.Rows) != 1 || (rs.Stats.GetQueryPlan() != nil) != want.plan || (rs.Stats.GetQueryStats() != nil) != want.stats || nodeStats != want.nodeStats {
			t.Errorf("%v: %v", mode, rs)
		}
		if want.stats && rs.Stats.QueryStats.Fields["rows_returned"].GetStringValue() != "1" {
			t.Errorf("%v: %v", mode, rs.Stats.QueryStats)
		}
	}
}

// TestPlanOfDMLChangesNothing checks that a request for the plan of a DML statement changes no row, and that later
// requests can still use its transaction.
func TestPlanOfDMLChangesNothing(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	h.insert(ses, list("1", "a"))
	id := h.begin(ses, readWrite())
	rs, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{
		Session: ses, Transaction: byID(id), Sql: "DELETE FROM Singers WHERE SingerId = @id", QueryMode: spannerpb.ExecuteSqlRequest_PLAN,
	})
	h.ok(err)
	if len(rs.Stats.GetQueryPlan().GetPlanNodes()) == 0 {
		t.Errorf("no plan: %v", rs)
	}
	profile, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{
		Session: ses, Transaction: byID(id), Seqno: 1, Sql: "UPDATE Singers SET Name = 'b' WHERE SingerId = 1 THEN RETURN Name", QueryMode: spannerpb.ExecuteSqlRequest_PROFILE,
	})
	h.ok(err)
	if len(profile.Rows) != 1 || profile.Stats.GetRowCountExact() != 1 || profile.Stats.GetQueryPlan() == nil {
		t.Errorf("bad profile %v", profile)
	}
}

func TestParameters(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	for name, c := range map[string]struct {
		req  *spannerpb.ExecuteSqlRequest
		code codes.Code
	}{
		"unbound":       {&spannerpb.ExecuteSqlRequest{Sql: "SELECT @p + 1"}, codes.InvalidArgument},
		"bad value":     {&spannerpb.ExecuteSqlRequest{Sql: "SELECT @p + 1", Params: structOf("p", "x")}, codes.InvalidArgument},
		"bad type":      {&spannerpb.ExecuteSqlRequest{Sql: "SELECT @p", Params: structOf("p", "x"), ParamTypes: map[string]*spannerpb.Type{"p": {Code: 99}}}, codes.InvalidArgument},
		"array of none": {&spannerpb.ExecuteSqlRequest{Sql: "SELECT @p", Params: structOf("p", "x"), ParamTypes: map[string]*spannerpb.Type{"p": {Code: spannerpb.TypeCode_ARRAY}}}, codes.InvalidArgument},
		"typed NULL":    {&spannerpb.ExecuteSqlRequest{Sql: "SELECT @p", ParamTypes: map[string]*spannerpb.Type{"p": {Code: spannerpb.TypeCode_INT64}}}, codes.OK},
		"not used":      {&spannerpb.ExecuteSqlRequest{Sql: "SELECT 1", Params: structOf("p", "x")}, codes.OK},
		"empty":         {&spannerpb.ExecuteSqlRequest{Sql: " "}, codes.InvalidArgument},
		"mode":          {&spannerpb.ExecuteSqlRequest{Sql: "SELECT 1", QueryMode: 99}, codes.InvalidArgument},
		"read-only DML": {&spannerpb.ExecuteSqlRequest{Sql: "DELETE FROM Singers WHERE true"}, codes.InvalidArgument},
		"system in RW":  {&spannerpb.ExecuteSqlRequest{Sql: "SELECT table_name FROM information_schema.tables", Transaction: begins(readWrite())}, codes.InvalidArgument},
		"directed in RW": {&spannerpb.ExecuteSqlRequest{Sql: "SELECT 1", Transaction: begins(readWrite()),
			DirectedReadOptions: &spannerpb.DirectedReadOptions{}}, codes.InvalidArgument},
	} {
		c.req.Session = ses
		_, err := h.data.ExecuteSql(h.ctx, c.req)
		if status.Code(err) != c.code {
			t.Errorf("%s: want %v, got %v", name, c.code, err)
		}
	}
}

// TestOptimizerOptions: a query can ask for the optimizer versions in SUPPORTED_OPTIMIZER_VERSIONS, and for no others.
func TestOptimizerOptions(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	for _, c := range []struct {
		sql, version, pack string
		text               string // text of the error, or empty for success
	}{
		{"SELECT 1", "", "", ""},
		{"SELECT 1", "8", "", ""},
		{"SELECT 1", "latest", "latest", ""},
		{"SELECT 1", "99", "", "Query optimizer version: 99 is not supported"},
		{"SELECT 1", "abc", "", "Query optimizer version: abc is not supported"},
		{"SELECT 1", "-1", "", "Query optimizer version: -1 is not supported"},
		{"SELECT 1", "", "auto_20191128_14_47_22UTC", "Requested optimizer statistics package not found: auto_20191128_14_47_22UTC"},
		{"@{OPTIMIZER_VERSION=7} SELECT 1", "8", "", ""},
		{"@{OPTIMIZER_VERSION=99} SELECT 1", "8", "", "Query optimizer version: 99 is not supported"},
		{"@{OPTIMIZER_VERSION=8} SELECT 1", "", "", ""},
		{"@{OPTIMIZER_STATISTICS_PACKAGE=latest} SELECT 1", "", "", ""},
		{"@{OPTIMIZER_STATISTICS_PACKAGE=nope} SELECT 1", "", "", "Requested optimizer statistics package not found: nope"},
		{"@{PDML_MAX_PARALLELISM=1000} SELECT 1", "", "", ""},
		{"@{PDML_MAX_PARALLELISM=1001} SELECT 1", "", "", "Invalid hint value"},
	} {
		req := &spannerpb.ExecuteSqlRequest{Session: ses, Sql: c.sql,
			QueryOptions: &spannerpb.ExecuteSqlRequest_QueryOptions{OptimizerVersion: c.version, OptimizerStatisticsPackage: c.pack}}
		_, err := h.data.ExecuteSql(h.ctx, req)
		if want := c.text != ""; want != (status.Code(err) == codes.InvalidArgument) || want != (err != nil) || !strings.Contains(status.Convert(err).Message(), c.text) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestPinnedStatistics checks that a database option can name a statistics package that does not exist, because DDL
// that was copied from Cloud Spanner may name one. Queries can then name the same package, but no other missing one.
func TestPinnedStatistics(t *testing.T) {
	h := newHarness(t)
	_, err := h.databases.UpdateDatabaseDdl(h.ctx, &databasepb.UpdateDatabaseDdlRequest{Database: testDatabase,
		Statements: []string{"ALTER DATABASE db SET OPTIONS (optimizer_statistics_package = 'auto_1')"}})
	h.ok(err)
	for pack, code := range map[string]codes.Code{"auto_1": codes.OK, "auto_2": codes.InvalidArgument} {
		_, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: h.session(true), Sql: "@{OPTIMIZER_STATISTICS_PACKAGE=" + pack + "} SELECT 1",
			QueryOptions: &spannerpb.ExecuteSqlRequest_QueryOptions{OptimizerStatisticsPackage: pack}})
		if status.Code(err) != code {
			t.Errorf("%s: %v", pack, err)
		}
	}
}

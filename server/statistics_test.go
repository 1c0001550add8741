package server

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/sql/plan"
)

// testClock starts at the beginning of a minute. Each call of now moves it forward by a microsecond; otherwise only
// tests move it. So the speed of the machine does not change results.
type testClock struct{ passed atomic.Int64 }

func newTestClock() *testClock { return new(testClock) }

func (c *testClock) now() time.Time {
	begin := time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)
	return begin.Add(time.Duration(c.passed.Add(int64(time.Microsecond))))
}

func (c *testClock) forward(d time.Duration) { c.passed.Add(int64(d)) }

// query returns the rows of a query, each as one string with its columns separated by |.
func (h *harness) query(session, sql string) []string {
	h.Helper()
	rs, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: session, Sql: sql})
	h.ok(err)
	var rows []string
	for _, r := range rs.Rows {
		var cells []string
		for _, v := range r.Values {
			cells = append(cells, cellText(v))
		}
		rows = append(rows, strings.Join(cells, "|"))
	}
	return rows
}

func cellText(v *structpb.Value) string {
	if l := v.GetListValue(); l != nil {
		var parts []string
		for _, e := range l.Values {
			parts = append(parts, cellText(e))
		}
		return "[" + strings.Join(parts, ",") + "]"
	}
	if s, ok := v.Kind.(*structpb.Value_StringValue); ok {
		return s.StringValue
	}
	text, err := v.MarshalJSON()
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// shows checks that a query returns the rows in want, which have the form in which the method query returns rows.
func (h *harness) shows(session, sql string, want ...string) {
	h.Helper()
	got := h.query(session, sql)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		h.Errorf("%s\ngot  %s\nwant %s", sql, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
	}
}

// TestQueryStatistics checks that the statistics of queries show the right numbers after a known number of queries of
// known size.
func TestQueryStatistics(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	h.insert(ses, list("1", "a"), list("2", "bb"), list("3", "ccc"))
	const sql = "SELECT SingerId, Name FROM Singers"
	for range 3 {
		h.partial(h.data.ExecuteStreamingSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: sql}))
	}
	if rows := h.query(ses, sql); len(rows) != 3 {
		t.Fatal(rows)
	}
	_, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 1", RequestOptions: &spannerpb.RequestOptions{RequestTag: "app=x"}})
	h.ok(err)
	_, err = h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 1/(SingerId-1) FROM Singers"})
	h.fails(err, codes.OutOfRange)
	clock.forward(time.Minute)
	h.shows(ses, `SELECT TEXT, EXECUTION_COUNT, AVG_ROWS, AVG_ROWS_SCANNED, ALL_FAILED_EXECUTION_COUNT, REQUEST_TAG, QUERY_TYPE,
		AVG_BYTES > 0, TEXT_FINGERPRINT = FARM_FINGERPRINT(IF(REQUEST_TAG = '', TEXT, REQUEST_TAG)), RUN_IN_RW_TRANSACTION_EXECUTION_COUNT
		FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE ORDER BY TEXT`,
		"SELECT 1|1|1|0|0|app=x|QUERY|true|true|0",
		"SELECT 1/(SingerId-1) FROM Singers|1|0|0|1||QUERY|false|true|0",
		sql+"|4|3|3|0||QUERY|true|true|0")
	h.shows(ses, `SELECT EXECUTION_COUNT, ALL_FAILED_EXECUTION_COUNT, LATENCY_DISTRIBUTION[OFFSET(0)].COUNT, AVG_CPU_SECONDS > 0 FROM SPANNER_SYS.QUERY_STATS_TOTAL_MINUTE`, "6|1|5|true")
	h.shows(ses, `SELECT TABLE_NAME, READ_QUERY_COUNT, WRITE_COUNT, DELETE_COUNT FROM SPANNER_SYS.TABLE_OPERATIONS_STATS_MINUTE`, "SingersByName|5|1|0", "Singers|0|1|0")
	h.shows(ses, `SELECT TABLE_NAME, COLUMN_NAME, QUERY_COUNT, READ_COUNT, WRITE_COUNT FROM SPANNER_SYS.COLUMN_OPERATIONS_STATS_MINUTE ORDER BY 1, 2`,
		"Singers|Name|0|0|1", "Singers|SingerId|0|0|1", "SingersByName|Name|4|0|1", "SingersByName|SingerId|5|0|1")
	h.shows(ses, `SELECT INTERVAL_END FROM SPANNER_SYS.QUERY_STATS_TOTAL_MINUTE ORDER BY 1 LIMIT 1`, "2030-01-02T03:05:00Z")
}

// TestLiterals checks that statements that differ only in literals each have their own result, their own row of
// statistics and their own plan.
func TestLiterals(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	for i := range 9 {
		rs, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: begins(readWrite()), Seqno: 1,
			Sql: fmt.Sprintf("INSERT INTO Singers (SingerId, Name) VALUES (%d, 'name %d')", i, i)})
		h.ok(err)
		_, err = h.data.Commit(h.ctx, commitOf(ses, rs.Metadata.Transaction.Id))
		h.ok(err)
	}
	text := func(i int) string { return fmt.Sprintf("SELECT Name FROM Singers WHERE SingerId = %d", i) }
	for i := range 9 {
		h.shows(ses, text(i), fmt.Sprintf("name %d", i))
	}
	rs, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: text(77), QueryMode: spannerpb.ExecuteSqlRequest_PROFILE})
	h.ok(err)
	if plan := plan.Text(rs.Stats.QueryPlan); !strings.Contains(plan, "($SingerId = 77)") {
		t.Errorf("the plan is %s", plan)
	}
	_, err = h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: text(8) + " AND Nope = 1"})
	h.fails(err, codes.InvalidArgument)
	clock.forward(time.Minute)
	h.shows(ses, `SELECT COUNT(*), SUM(EXECUTION_COUNT), COUNTIF(TEXT_FINGERPRINT = FARM_FINGERPRINT(TEXT)), COUNTIF(STRPOS(TEXT, '$') > 0)
		FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE WHERE TEXT LIKE 'SELECT Name%' AND ALL_FAILED_EXECUTION_COUNT = 0`, "10|10|10|0")
	h.shows(ses, `SELECT COUNT(*) FROM SPANNER_SYS.QUERY_PROFILES_TOP_MINUTE WHERE STRPOS(QUERY_PROFILE, '@$') > 0`, "0")
}

// TestDistributionPercentile checks that the SQL in Spanner's documentation that computes percentiles of latencies
// works.
func TestDistributionPercentile(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	const sql = "SELECT SingerId FROM Singers"
	for range 5 {
		h.query(ses, sql)
	}
	h.insert(ses, list("1", "a"))
	clock.forward(time.Minute)
	h.shows(ses, `SELECT text, SPANNER_SYS.DISTRIBUTION_PERCENTILE(latency_distribution[OFFSET(0)], 99.0) BETWEEN 0 AND 60
		FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE ORDER BY interval_end, avg_latency_seconds`, sql+"|true")
	h.shows(ses, `SELECT spanner_sys.distribution_percentile(LATENCY_DISTRIBUTION[OFFSET(0)], 50) = SPANNER_SYS.DISTRIBUTION_PERCENTILE(LATENCY_DISTRIBUTION_JSON_STRING, 50),
		SPANNER_SYS.DISTRIBUTION_PERCENTILE(LATENCY_DISTRIBUTION[OFFSET(0)], 0) <= SPANNER_SYS.DISTRIBUTION_PERCENTILE(LATENCY_DISTRIBUTION[OFFSET(0)], 99.9)
		FROM SPANNER_SYS.QUERY_STATS_TOTAL_MINUTE ORDER BY INTERVAL_END LIMIT 1`, "true|true")
	h.shows(ses, `SELECT SPANNER_SYS.DISTRIBUTION_PERCENTILE(TOTAL_LATENCY_DISTRIBUTION[OFFSET(0)], 50) = SPANNER_SYS.DISTRIBUTION_PERCENTILE(TOTAL_LATENCY_DISTRIBUTION_JSON_STRING, 50)
		FROM SPANNER_SYS.TXN_STATS_TOTAL_MINUTE ORDER BY INTERVAL_END LIMIT 1`, "true")
	_, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses,
		Sql: "SELECT SPANNER_SYS.DISTRIBUTION_PERCENTILE(LATENCY_DISTRIBUTION[OFFSET(0)], 101) FROM SPANNER_SYS.QUERY_STATS_TOTAL_MINUTE"})
	h.fails(err, codes.OutOfRange)
}

// TestReadIsOneExecution: statistics count a read once, even if it has many key ranges or its reply has many messages.
func TestReadIsOneExecution(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	bigRows(h, ses)
	h.readWide(ses, nil)
	h.insert(ses, list("1", "a"), list("2", "b"), list("3", "c"), list("4", "d"), list("7", "e"))
	keys := &spannerpb.KeySet{Keys: []*structpb.ListValue{list("1"), list("3"), list("7"), list("9")}}
	for range 2 {
		h.partial(h.data.StreamingRead(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: "Singers", Columns: []string{"SingerId", "Name"}, KeySet: keys}))
	}
	_, err := h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: "Singers", Index: "SingersByName", Columns: []string{"Name"}, KeySet: allKeys(),
		Transaction: begins(readWrite())})
	h.ok(err)
	clock.forward(time.Minute)
	h.shows(ses, `SELECT ARRAY_TO_STRING(READ_COLUMNS, ','), EXECUTION_COUNT, AVG_ROWS, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT, READ_TYPE
		FROM SPANNER_SYS.READ_STATS_TOP_MINUTE WHERE READ_COLUMNS[OFFSET(0)] LIKE 'Singers%' ORDER BY 1`,
		"Singers.Name,Singers._exists|2|3|0|READ", "SingersByName.Name|1|5|1|READ")
	h.shows(ses, `SELECT EXECUTION_COUNT, AVG_CPU_SECONDS > 0, AVG_CLIENT_WAIT_SECONDS >= 0 FROM SPANNER_SYS.READ_STATS_TOTAL_MINUTE`, "4|true|true")
}

// TestTransactionStatistics checks the statistics of a transaction with DML, one with mutations, and one that is
// abandoned.
func TestTransactionStatistics(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	rs, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: begins(readWrite()), Seqno: 1,
		Sql: "INSERT INTO Singers (SingerId, Name) VALUES (1, 'a'), (2, 'b')", RequestOptions: &spannerpb.RequestOptions{TransactionTag: "dml"}})
	h.ok(err)
	_, err = h.data.Commit(h.ctx, commitOf(ses, rs.Metadata.Transaction.Id))
	h.ok(err)
	h.insert(ses, list("3", "c"))
	given := h.begin(ses, readWrite())
	_, err = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: given})
	h.ok(err)
	clock.forward(time.Minute)
	h.shows(ses, `SELECT TRANSACTION_TAG, ARRAY_TO_STRING(READ_COLUMNS, ','), ARRAY_TO_STRING(WRITE_CONSTRUCTIVE_COLUMNS, ','), ATTEMPT_COUNT, COMMIT_ATTEMPT_COUNT,
		COMMIT_ABORT_COUNT, AVG_PARTICIPANTS, AVG_BYTES > 0, SERIALIZABLE_PESSIMISTIC_TXN_COUNT,
		ARRAY(SELECT FORMAT('%s %d', o.TABLE_NAME, o.INSERT_OR_UPDATE_COUNT) FROM UNNEST(OPERATIONS_BY_TABLE) o)
		FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE ORDER BY 1, 3`,
		"|||1|0|0|0|false|1|[]",
		"||Singers.Name,Singers.SingerId|1|1|0|1|true|1|[Singers 1]",
		"dml|Singers._exists|Singers.Name,Singers.SingerId|1|1|0|1|true|1|[Singers 2]")
	h.shows(ses, `SELECT ATTEMPT_COUNT, COMMIT_ATTEMPT_COUNT FROM SPANNER_SYS.TXN_STATS_TOTAL_MINUTE`, "3|2")
	h.shows(ses, `SELECT AVG_ROWS_WRITTEN, AVG_BYTES_WRITTEN > 0, RUN_IN_RW_TRANSACTION_EXECUTION_COUNT FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE WHERE STARTS_WITH(TEXT, 'INSERT')`, "2|true|1")

	reply, err := http.Get(h.rest + "/debug/transactions?tag=dml&database=" + testDatabase)
	h.ok(err)
	defer reply.Body.Close()
	timeline, err := io.ReadAll(reply.Body)
	h.ok(err)
	if !strings.Contains(string(timeline), `"kind":"query"`) || !strings.Contains(string(timeline), `"kind":"commit"`) || !strings.Contains(string(timeline), `"outcome":"OK"`) {
		t.Errorf("timeline: %s", timeline)
	}
}

// TestBatchIsOneExecution: statistics count a batch of DML as one execution, whose text joins the statements.
func TestBatchIsOneExecution(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	insert := func(id string) *spannerpb.ExecuteBatchDmlRequest_Statement {
		return &spannerpb.ExecuteBatchDmlRequest_Statement{Sql: "INSERT INTO Singers (SingerId) VALUES (" + id + ")"}
	}
	_, err := h.data.ExecuteBatchDml(h.ctx, &spannerpb.ExecuteBatchDmlRequest{Session: ses, Transaction: begins(readWrite()), Seqno: 1,
		Statements: []*spannerpb.ExecuteBatchDmlRequest_Statement{insert("1"), insert("2")}})
	h.ok(err)
	clock.forward(time.Minute)
	h.shows(ses, `SELECT TEXT, EXECUTION_COUNT, STATEMENT_COUNT, AVG_ROWS_WRITTEN FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE`,
		"INSERT INTO Singers (SingerId) VALUES (1);INSERT INTO Singers (SingerId) VALUES (2)|1|2|2")
}

// TestCancelQuery cancels a long query with cancel_query, and checks that the query ends.
func TestCancelQuery(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	done := make(chan error, 1)
	go func() {
		_, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses,
			Sql: "SELECT COUNT(*) FROM UNNEST(GENERATE_ARRAY(1, 100000)) a, UNNEST(GENERATE_ARRAY(1, 1000000)) b -- long"})
		done <- err
	}()
	var ids []string
	for len(ids) == 0 {
		ids = h.query(ses, "SELECT QUERY_ID, TRANSACTION_TYPE FROM SPANNER_SYS.OLDEST_ACTIVE_QUERIES WHERE TEXT LIKE '%long' AND NOT TEXT LIKE '%OLDEST%'")
	}
	id, kind, _ := strings.Cut(ids[0], "|")
	if kind != "NONE" {
		t.Errorf("transaction type %s", kind)
	}
	h.query(ses, "CALL cancel_query('"+id+"')")
	h.fails(<-done, codes.Canceled)
	_, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "CALL cancel_query(@id)", Params: structOf("id", id),
		ParamTypes: map[string]*spannerpb.Type{"id": {Code: spannerpb.TypeCode_STRING}}})
	h.fails(err, codes.NotFound)
	_, err = h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "CALL cancel_query(@id)", Params: structOf("id", id)})
	h.fails(err, codes.NotFound)
}

// TestMetrics: metrics count every method that was called, and no other. They also show sessions, locks and background
// work.
func TestMetrics(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	h.query(ses, "SELECT 1")
	db, err := h.server.registry.Database(testDatabase)
	h.ok(err)
	h.ok(db.UpdateSchema(h.ctx, []string{"CREATE INDEX SingersByData ON Singers(Data)"}, nil))
	_, data := h.httpRaw("GET", "/metrics", "")
	for _, want := range []string{`crowfoot_requests_total{code="OK",method="ExecuteSql"} 1`, `crowfoot_request_seconds_count{method="CreateSession"} 1`, "process_cpu_seconds_total",
		`crowfoot_shared_cpu_seconds_total{method="ExecuteSql"}`, `crowfoot_build_info{commit=`, `crowfoot_sessions{kind="multiplexed"} 1`,
		`crowfoot_locks{database="` + testDatabase + `"} 0`, `crowfoot_lock_waits_total{database=`, `crowfoot_background_cpu_seconds_total{task="schema_change"}`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(string(data), `method="Rollback"`) {
		t.Error("a method is shown that was not called")
	}
	// Counters of events that have not yet happened must exist with the value 0, so that monitoring sees the first
	// event as an increase.
	for _, want := range []string{`crowfoot_aborts_total{database="` + testDatabase + `",reason="wounded"} 0`,
		`crowfoot_memory_refused_total{kind="statement"} 0`, `crowfoot_connections_refused_total{listener="grpc"} 0`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("no %s", want)
		}
	}
}

// TestProfiles: the server serves profiles of its CPU time, its memory and its waits.
func TestProfiles(t *testing.T) {
	h := newHarness(t)
	for _, path := range []string{"/debug/pprof/profile?seconds=1", "/debug/pprof/heap", "/debug/pprof/goroutine", "/debug/pprof/block?seconds=1", "/debug/pprof/mutex?seconds=1"} {
		if code, data := h.httpRaw("GET", path, ""); code != 200 || !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) { // a profile is gzip-compressed
			t.Errorf("%s: status %d, %d bytes", path, code, len(data))
		}
	}
}

// TestNoStatistics: a server without statistics answers requests as usual, and counts nothing.
func TestNoStatistics(t *testing.T) {
	clock := newTestClock()
	h := newHarnessOf(t, Config{Clock: clock.now, Log: slog.New(slog.DiscardHandler), NoStatistics: true})
	ses := h.session(true)
	h.insert(ses, list("1", "a"))
	h.shows(ses, "SELECT Name FROM Singers", "a")
	rs, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: begins(readWrite()), Seqno: 1,
		Sql: "UPDATE Singers SET Name = 'b' WHERE true", RequestOptions: &spannerpb.RequestOptions{TransactionTag: "tagged"}})
	h.ok(err)
	_, err = h.data.Commit(h.ctx, commitOf(ses, rs.Metadata.Transaction.Id))
	h.ok(err)
	_, err = h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: "Singers", Columns: []string{"Name"}, KeySet: allKeys()})
	h.ok(err)
	_, err = h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 1", QueryMode: spannerpb.ExecuteSqlRequest_PROFILE})
	h.ok(err)
	clock.forward(time.Minute)
	for _, table := range []string{"QUERY_STATS_TOP_MINUTE", "QUERY_STATS_TOTAL_MINUTE", "READ_STATS_TOTAL_MINUTE", "TXN_STATS_TOTAL_MINUTE",
		"TABLE_OPERATIONS_STATS_MINUTE", "QUERY_PROFILES_TOP_MINUTE", "OLDEST_ACTIVE_QUERIES"} {
		h.shows(ses, "SELECT COUNT(*) FROM SPANNER_SYS."+table, "0")
	}
	if _, data := h.httpRaw("GET", "/metrics", ""); strings.Contains(string(data), "crowfoot_") || !strings.Contains(string(data), "process_cpu_seconds_total") {
		t.Errorf("metrics: %s", data)
	}
	if _, data := h.httpRaw("GET", "/debug/transactions?database="+testDatabase, ""); strings.TrimSpace(string(data)) != "[]" {
		t.Errorf("timelines: %s", data)
	}
}

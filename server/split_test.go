package server

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/server/result/resulttest"
	"github.com/crowfoot-db/crowfoot/server/rpc"
)

// fourSplits writes a hundred rows to Singers, and divides the table into four splits, at the keys 25, 50 and 75.
func (h *harness) fourSplits(session string) {
	h.Helper()
	var rows []*structpb.ListValue
	for i := range 100 {
		rows = append(rows, list(fmt.Sprint(i), fmt.Sprintf("name %d", i)))
	}
	h.insert(session, rows...)
	h.ok(h.addSplits(splitAt("Singers", "", list("25")), splitAt("Singers", "", list("50")), splitAt("Singers", "", list("75"))))
}

// metric returns the value of a metric. line is the beginning of the metric's line in /metrics: its name and its
// labels. If /metrics has no such line, the result is "none".
func (h *harness) metric(line string) string {
	h.Helper()
	reply, err := http.Get(h.rest + "/metrics")
	h.ok(err)
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	h.ok(err)
	for text := range strings.Lines(string(data)) {
		if v, ok := strings.CutPrefix(text, line+" "); ok {
			return strings.TrimSpace(v)
		}
	}
	return "none"
}

// TestOneExecutionOverFourSplits checks that a READ or query of ten keys in four splits counts as one execution.
// Metrics and statistics also show the calls that Cloud Spanner would make if each split had a server of its own: four
// here, and none for a query of one split.
func TestOneExecutionOverFourSplits(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	h.fourSplits(ses)
	keys := &spannerpb.KeySet{}
	var ids []any
	for _, id := range []string{"1", "7", "26", "30", "31", "50", "60", "74", "75", "99"} {
		keys.Keys = append(keys.Keys, list(id))
		ids = append(ids, id)
	}
	read := func(keys *spannerpb.KeySet, limit int64) {
		h.Helper()
		h.partial(h.data.StreamingRead(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: "Singers", Columns: []string{"SingerId", "Name"}, KeySet: keys, Limit: limit}))
	}
	const sql = "SELECT SingerId, Name FROM Singers WHERE SingerId IN UNNEST(@ids)"
	query := &spannerpb.ExecuteSqlRequest{
		Session: ses, Sql: sql, QueryMode: spannerpb.ExecuteSqlRequest_PROFILE,
		Params:     &structpb.Struct{Fields: map[string]*structpb.Value{"ids": structpb.NewListValue(list(ids...))}},
		ParamTypes: map[string]*spannerpb.Type{"ids": {Code: spannerpb.TypeCode_ARRAY, ArrayElementType: &spannerpb.Type{Code: spannerpb.TypeCode_INT64}}},
	}
	read(keys, 0)
	if got := h.metric(`crowfoot_remote_calls_total{method="StreamingRead"}`); got != "4" {
		t.Errorf("calls of a read over four splits: %s", got)
	}
	rs, err := h.data.ExecuteSql(h.ctx, query)
	h.ok(err)
	if got := rs.Stats.QueryStats.Fields["remote_server_calls"].GetStringValue(); got != "4" || len(rs.Rows) != 10 {
		t.Errorf("calls of a query over four splits: %s, %d rows", got, len(rs.Rows))
	}
	query.QueryMode = spannerpb.ExecuteSqlRequest_NORMAL
	_, err = h.data.ExecuteSql(h.ctx, query)
	h.ok(err)

	for _, c := range []struct {
		sql   string
		calls string
	}{
		{"SELECT Name FROM Singers WHERE SingerId = 30", "0"},
		{"SELECT Name FROM Singers WHERE SingerId BETWEEN 30 AND 39", "0"},
		{"SELECT Name FROM Singers WHERE SingerId BETWEEN 30 AND 50", "2"},
		{"SELECT Name FROM Singers WHERE SingerId > 30 LIMIT 19", "0"},
		{"SELECT Name FROM Singers WHERE SingerId > 30 LIMIT 20", "2"},
		{"SELECT COUNT(*) FROM Singers@{FORCE_INDEX=_BASE_TABLE}", "4"},
		{"SELECT Name FROM Singers@{FORCE_INDEX=SingersByName} WHERE Name = 'name 3'", "0"},
		{"SELECT Data FROM Singers@{FORCE_INDEX=SingersByName} WHERE Name = 'name 3'", "2"},
		{"SELECT Id FROM Wide", "0"},
		{"SELECT 1", "0"},
	} {
		h.query(ses, c.sql)
		clock.forward(time.Minute)
		h.shows(ses, "SELECT EXECUTION_COUNT, AVG_REMOTE_SERVER_CALLS FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE WHERE TEXT = \""+c.sql+"\"", "1|"+c.calls)
	}
	h.shows(ses, "SELECT EXECUTION_COUNT, AVG_REMOTE_SERVER_CALLS FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE WHERE TEXT = '"+sql+"'", "2|4")
	h.shows(ses, "SELECT EXECUTION_COUNT, AVG_ROWS FROM SPANNER_SYS.READ_STATS_TOP_MINUTE", "1|10")

	// A write in several splits also counts as one execution.
	update, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{
		Session: ses, Sql: "UPDATE Singers SET Name = 'x' WHERE SingerId IN (10, 30, 60)", Transaction: begins(readWrite()), Seqno: 1, QueryMode: spannerpb.ExecuteSqlRequest_PROFILE,
	})
	h.ok(err)
	if got := update.Stats.QueryStats.Fields["remote_server_calls"].GetStringValue(); got != "3" {
		t.Errorf("calls of an update in three splits: %s", got)
	}
}

// TestParticipants checks the number of participants that the statistics show for a transaction. It must be the number
// of splits that the transaction has written to, or 1 if it has written nothing.
func TestParticipants(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	h.fourSplits(ses)
	clock.forward(time.Minute)
	_, err := h.data.Commit(h.ctx, singleUse(ses, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Update{Update: &spannerpb.Mutation_Write{
		Table: "Singers", Columns: []string{"SingerId", "Data"}, Values: []*structpb.ListValue{list("1", "eA=="), list("2", "eA=="), list("30", "eA==")}}}}))
	h.ok(err)
	_, err = h.data.Commit(h.ctx, singleUse(ses))
	h.ok(err)
	clock.forward(time.Minute)
	h.shows(ses, "SELECT WRITE_CONSTRUCTIVE_COLUMNS, AVG_PARTICIPANTS FROM SPANNER_SYS.TXN_STATS_TOP_MINUTE WHERE INTERVAL_END = '2030-01-02T03:06:00Z' ORDER BY 2",
		"[]|1", "[Singers.Data,Singers.SingerId]|2")
}

// TestSplitLoad checks that each kind of request that reads or writes a row charges its CPU time to the row's split. A
// split with much CPU time must count as hot.
func TestSplitLoad(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	h.fourSplits(ses)
	const update = "UPDATE Singers SET Data = b'x' WHERE SingerId = 30"
	mutation := &spannerpb.Mutation{Operation: &spannerpb.Mutation_Update{Update: &spannerpb.Mutation_Write{
		Table: "Singers", Columns: []string{"SingerId", "Data"}, Values: []*structpb.ListValue{list("30", "eA==")}}}}
	read := &spannerpb.ReadRequest{Session: ses, Table: "Singers", Columns: []string{"Name"}, KeySet: &spannerpb.KeySet{Keys: []*structpb.ListValue{list("30")}}}
	sql := func(text string, in *spannerpb.TransactionSelector) *spannerpb.ExecuteSqlRequest {
		return &spannerpb.ExecuteSqlRequest{Session: ses, Sql: text, Transaction: in, Seqno: 1}
	}
	written := h.begin(ses, readWrite())
	_, err := h.data.ExecuteSql(h.ctx, sql(update, byID(written)))
	h.ok(err)
	partitioned := h.begin(ses, &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_PartitionedDml_{PartitionedDml: &spannerpb.TransactionOptions_PartitionedDml{}}})
	db := h.database()
	clock.forward(time.Minute)
	for _, c := range []struct {
		method  string
		request proto.Message
	}{
		{"Read", read},
		{"StreamingRead", read},
		{"ExecuteSql", sql("SELECT Name FROM Singers WHERE SingerId = 30", nil)},
		{"ExecuteStreamingSql", sql("SELECT UPPER(Name) FROM Singers WHERE SingerId = 30", nil)},
		{"Commit", commitOf(ses, written)},
		{"Commit", singleUse(ses, mutation)},
		{"ExecuteSql", sql(update, byID(partitioned))},
		{"BatchWrite", &spannerpb.BatchWriteRequest{Session: ses, MutationGroups: []*spannerpb.BatchWriteRequest_MutationGroup{{Mutations: []*spannerpb.Mutation{mutation}}}}},
		{"ExecuteSql", sql(update, begins(readWrite()))},
		{"ExecuteBatchDml", &spannerpb.ExecuteBatchDmlRequest{Session: h.session(false), Transaction: begins(readWrite()), Seqno: 1,
			Statements: []*spannerpb.ExecuteBatchDmlRequest_Statement{{Sql: update}}}},
	} {
		clock.forward(time.Minute)
		begin := func() *rpc.Call {
			return &h.beginCall(h.method(c.method), c.request, func(any) error { return nil }).call
		}
		call := begin()
		for call.Cost.CPU.Weight() == 0 { // a busy server measures only some calls; the test needs one of these
			call.End(nil)
			call = begin()
		}
		_, err = call.Run(h.ctx)
		h.ok(err)
		db.Splits().Charge(&call.Cost.Splits, time.Hour, clock.now()) // far more than the call itself has used
		call.End(nil)
		clock.forward(time.Minute)
		t.Run(c.method, func(t *testing.T) {
			h := *h
			h.TB = t
			h.shows(ses, "SELECT SPLIT_START, SPLIT_LIMIT, AFFECTED_TABLES, CPU_USAGE_SCORE, UNSPLITTABLE_REASONS FROM SPANNER_SYS.SPLIT_STATS_TOP_MINUTE "+
				"WHERE INTERVAL_END = '"+clock.now().Truncate(time.Minute).Format(time.RFC3339)+"'",
				"Singers(25)|Singers(50)|[Singers]|100|[HOT_ROW]")
		})
	}
}

// TestPartitionsAtSplits: the partitions of a read or query begin and end at the bounds of splits.
func TestPartitionsAtSplits(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	h.fourSplits(ses)
	id := h.begin(ses, readOnly())
	first := func(answer *spannerpb.PartitionResponse, run func(token []byte) []*spannerpb.PartialResultSet) (list []string) {
		for _, p := range answer.Partitions {
			list = append(list, resulttest.Assemble(run(p.PartitionToken))[0].GetStringValue())
		}
		return list
	}
	reads, err := h.data.PartitionRead(h.ctx, &spannerpb.PartitionReadRequest{Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys()})
	h.ok(err)
	got := first(reads, func(token []byte) []*spannerpb.PartialResultSet {
		return h.partial(h.data.StreamingRead(h.ctx, &spannerpb.ReadRequest{Session: ses, Transaction: byID(id), Table: "Singers", Columns: []string{"SingerId"}, KeySet: allKeys(), PartitionToken: token}))
	})
	if fmt.Sprint(got) != "[0 25 50 75]" {
		t.Errorf("partitions of a read begin at %v", got)
	}
	const sql = "SELECT SingerId FROM Singers"
	queries, err := h.data.PartitionQuery(h.ctx, &spannerpb.PartitionQueryRequest{Session: ses, Transaction: byID(id), Sql: sql, PartitionOptions: &spannerpb.PartitionOptions{MaxPartitions: 2}})
	h.ok(err)
	got = first(queries, func(token []byte) []*spannerpb.PartialResultSet {
		return h.partial(h.data.ExecuteStreamingSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: byID(id), Sql: sql, PartitionToken: token}))
	})
	if fmt.Sprint(got) != "[0 50]" {
		t.Errorf("partitions of a query begin at %v", got)
	}
}

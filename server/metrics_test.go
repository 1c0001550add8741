package server

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// sizes are the numbers of bytes that a method has received and sent.
type sizes struct{ received, sent float64 }

func (h *harness) sizes(method string) sizes {
	h.Helper()
	return sizes{h.counted("crowfoot_received_bytes_total", method), h.counted("crowfoot_sent_bytes_total", method)}
}

// adds checks how many bytes a method has received and sent since the call of h.sizes that returned the parameter
// before.
func (h *harness) adds(method string, before sizes, received, sent int) {
	h.Helper()
	now := h.sizes(method)
	if got := (sizes{now.received - before.received, now.sent - before.sent}); got != (sizes{float64(received), float64(sent)}) {
		h.Errorf("%s received and sent %v, want {%d %d}", method, got, received, sent)
	}
}

// TestMethodMetrics checks the metrics of methods. They must count the bytes of the messages that each method has
// received and sent, a latency for each request, and some CPU time.
func TestMethodMetrics(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	bigRows(h, ses)
	var received, sent int
	stream := &spannerpb.ReadRequest{Session: ses, Table: "Wide", Columns: []string{"Id", "A"}, KeySet: allKeys()}
	for range 3 {
		received += proto.Size(stream)
		for _, p := range h.partial(h.data.StreamingRead(h.ctx, stream)) {
			sent += proto.Size(p)
		}
	}
	h.ended("StreamingRead", "OK", 3)
	h.adds("StreamingRead", sizes{}, received, sent)
	query := &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 'a' AS x"}
	rs, err := h.data.ExecuteSql(h.ctx, query)
	h.ok(err)
	h.ended("ExecuteSql", "OK", 1)
	h.adds("ExecuteSql", sizes{}, proto.Size(query), proto.Size(rs))
	bad := &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT nothing"}
	before := h.sizes("ExecuteSql")
	_, err = h.data.ExecuteSql(h.ctx, bad)
	h.fails(err, codes.InvalidArgument)
	h.ended("ExecuteSql", "InvalidArgument", 1)
	h.adds("ExecuteSql", before, proto.Size(bad), 0) // the reply is an error, for which no bytes are counted
	for _, method := range []string{"StreamingRead", "ExecuteSql"} {
		requests := map[string]float64{"StreamingRead": 3, "ExecuteSql": 2}[method]
		if n := h.counted("crowfoot_request_seconds", method); n != requests {
			t.Errorf("%g latencies of %s", n, method)
		}
		if cpu := h.counted("crowfoot_cpu_seconds_total", method); cpu <= 0 || cpu > 60 {
			t.Errorf("%g seconds of CPU of %s", cpu, method)
		}
	}
	h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: "nonsense"})
	h.ended("Read", "InvalidArgument", 1)
}

// post sends JSON to the REST API and returns the body of the reply.
func (h *harness) post(path, body string, want int) string {
	h.Helper()
	reply, err := http.Post(h.rest+"/v1/"+path, "application/json", strings.NewReader(body))
	h.ok(err)
	defer reply.Body.Close()
	data, err := io.ReadAll(reply.Body)
	h.ok(err)
	if reply.StatusCode != want {
		h.Fatalf("%s: %s", reply.Status, data)
	}
	return string(data)
}

// TestRESTMetrics: for requests over REST, metrics count the bytes of the JSON.
func TestRESTMetrics(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	bigRows(h, ses)
	const query = `{"sql": "SELECT 'a' AS x"}`
	h.adds("ExecuteSql", sizes{}, 0, 0)
	reply := h.post(ses+":executeSql", query, http.StatusOK)
	h.ended("ExecuteSql", "OK", 1)
	h.adds("ExecuteSql", sizes{}, len(query), len(reply))
	before := h.sizes("ExecuteSql")
	reply = h.post(ses+":executeSql", `{"sql": "SELECT nothing"}`, http.StatusBadRequest)
	h.adds("ExecuteSql", before, len(`{"sql": "SELECT nothing"}`), len(reply))
	before = h.sizes("ExecuteSql")
	reply = h.post(ses+":executeSql", `{"sql": 1, broken`, http.StatusBadRequest)
	h.adds("ExecuteSql", before, len(`{"sql": 1, broken`), len(reply))

	const read = `{"table": "Wide", "columns": ["Id", "A"], "keySet": {"all": true}}`
	reply = h.post(ses+":streamingRead", read, http.StatusOK)
	h.adds("StreamingRead", sizes{}, len(read), len(reply))
	before = h.sizes("StreamingRead")
	reply = h.post(ses+":streamingRead", `{}`, http.StatusBadRequest)
	h.adds("StreamingRead", before, 2, len(reply))
	before = h.sizes("ExecuteStreamingSql")
	reply = h.post(ses+":executeStreamingSql", `{"sql": "SELECT 1 / (2 - x) FROM UNNEST([1, 2]) x"}`, http.StatusBadRequest)
	h.adds("ExecuteStreamingSql", before, len(`{"sql": "SELECT 1 / (2 - x) FROM UNNEST([1, 2]) x"}`), len(reply))

	// This body comes in chunks, and its length is not announced.
	request, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.rest+"/v1/"+ses+":executeSql", io.MultiReader(bytes.NewReader([]byte(query)), strings.NewReader(" ")))
	h.ok(err)
	before = h.sizes("ExecuteSql")
	chunked, err := http.DefaultClient.Do(request)
	h.ok(err)
	defer chunked.Body.Close()
	data, err := io.ReadAll(chunked.Body)
	h.ok(err)
	h.adds("ExecuteSql", before, len(query)+1, len(data))
	if got, want := h.metric(`crowfoot_requests_total{code="OK",method="ExecuteSql"}`), fmt.Sprint(2); got != want {
		t.Errorf("%s requests, want %s", got, want)
	}
}

// TestCPUOfStatistics: the CPU time that statistics show for queries and reads is the same as in the metrics of their
// methods.
func TestCPUOfStatistics(t *testing.T) {
	x := newTraffic(t)
	x.plain(3)
	for range 5 {
		x.rows(3, x.client.Single().Query(x.ctx, spanner.NewStatement("SELECT K FROM Plain")))
		x.rows(3, x.client.Single().Read(x.ctx, "Plain", spanner.AllKeys(), []string{"K"}))
		x.ok(x.tagged("", func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			if _, err := tx.BatchUpdate(ctx, []spanner.Statement{spanner.NewStatement("UPDATE Plain SET V = '' WHERE K = 1")}); err != nil {
				return err
			}
			return statement("UPDATE Plain SET V = 'x' WHERE K = 1")(ctx, tx)
		}))
	}
	x.ended("ExecuteStreamingSql", "OK", 5)
	x.ended("StreamingRead", "OK", 5)
	x.ended("ExecuteSql", "OK", 5)
	x.ended("ExecuteBatchDml", "OK", 5)
	var queries, reads float64
	for _, method := range []string{"ExecuteStreamingSql", "ExecuteSql", "ExecuteBatchDml"} {
		queries += x.counted("crowfoot_cpu_seconds_total", method)
	}
	reads = x.counted("crowfoot_cpu_seconds_total", "StreamingRead")
	x.minute()
	equal := func(table string, seconds float64) string {
		return fmt.Sprintf("SELECT ABS(AVG_CPU_SECONDS * EXECUTION_COUNT - %g) < 1e-9 FROM SPANNER_SYS.%s_MINUTE ORDER BY INTERVAL_END LIMIT 1", seconds, table)
	}
	x.shows(equal("QUERY_STATS_TOTAL", queries), "true")
	x.shows(equal("READ_STATS_TOTAL", reads), "true")
	x.shows(`SELECT ABS(SUM(t.AVG_CPU_SECONDS * t.EXECUTION_COUNT) - MAX(a.AVG_CPU_SECONDS * a.EXECUTION_COUNT)) < 1e-9
		FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE t JOIN SPANNER_SYS.QUERY_STATS_TOTAL_MINUTE a USING (INTERVAL_END) WHERE INTERVAL_END = '2030-01-02T03:05:00Z'`, "true")
}

// TestColumnarMetrics: metrics show the size of a database's columnar copy.
func TestColumnarMetrics(t *testing.T) {
	h := newHarnessWith(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, []string{"CREATE TABLE T (K INT64) PRIMARY KEY (K), OPTIONS (columnar_policy = 'enabled')"})
	eventually(func() bool {
		return h.gauge("crowfoot_columnar_chunks") == 1 && h.gauge("crowfoot_columnar_missing_chunks") == 0
	})
	rs, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: h.session(true), Sql: "SELECT TABLE_NAME, INDEX_NAME, CHUNKS, MISSING_CHUNKS, COPIED_ROWS, " +
		"USED_BYTES, CHANGED_ROWS, OLDEST_CHUNK_TIMESTAMP < CURRENT_TIMESTAMP() FROM SPANNER_SYS.COLUMNAR_POLICIES"})
	h.ok(err)
	if got, want := fmt.Sprint(rs.Rows[0].AsSlice()), "[T <nil> 1 0 0 0 0 true]"; got != want {
		t.Errorf("COLUMNAR_POLICIES has %s, want %s", got, want)
	}
	if at := h.gauge("crowfoot_columnar_oldest_chunk_timestamp_seconds"); at < 1e9 {
		t.Errorf("the oldest chunk is of %g", at)
	}
}

// gauge returns the value of a gauge of the test's database, or NaN if there is no such gauge.
func (h *harness) gauge(name string) float64 {
	h.Helper()
	families, err := h.server.gatherer.Gather()
	h.ok(err)
	for _, f := range families {
		if f.GetName() == name && len(f.Metric) > 0 {
			return f.Metric[0].GetGauge().GetValue()
		}
	}
	return math.NaN()
}

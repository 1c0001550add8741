package server

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func heapBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestDistinctTexts checks that neither the plan cache nor the statistics hold the texts of all statements if clients
// send statements that are all different. The totals of the statistics must be exact. The statements are short ones,
// ones of a megabyte, and invalid ones, each of which has a different tag.
func TestDistinctTexts(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	short, long, bad := 3000, 200, 100
	if testing.Short() {
		short, long, bad = 300, 20, 10
	}
	padding := strings.Repeat("x", 990_000)
	run := func(sql, tag string, want codes.Code) {
		t.Helper()
		_, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: sql, RequestOptions: &spannerpb.RequestOptions{RequestTag: tag}})
		if status.Code(err) != want {
			t.Fatalf("%.60s: %v", sql, err)
		}
	}
	run("SELECT 1 AS x -- "+padding, "", codes.OK)
	before := heapBytes()
	for i := range short {
		run(fmt.Sprintf("SELECT 1 AS x%d", i), "", codes.OK)
	}
	for i := range long {
		run(fmt.Sprintf("SELECT 1 AS x%d -- %s", i, padding), "", codes.OK)
	}
	for i := range bad {
		run(fmt.Sprintf("SELEC %d -- %s", i, padding), fmt.Sprint(i, padding), codes.InvalidArgument)
	}
	const bound = 160 << 20 // limit for the growth of the heap in bytes; the statements together have 300 MB
	if grown := heapBytes() - before; grown > bound {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
	clock.forward(time.Minute)
	h.shows(ses, "SELECT EXECUTION_COUNT, ALL_FAILED_EXECUTION_COUNT FROM SPANNER_SYS.QUERY_STATS_TOTAL_MINUTE LIMIT 1", fmt.Sprintf("%d|%d", 1+short+long+bad, bad))
	h.shows(ses, "SELECT COUNT(*) <= 100, MAX(BYTE_LENGTH(TEXT)) <= 65536, MAX(BYTE_LENGTH(REQUEST_TAG)) <= 50 FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE", "true|true|true")
}

// TestHostileText checks that each request gets a reply even if it has control characters, NUL, or invalid UTF-8 in a
// statement, a tag or a name. Statistics must show statements unchanged, and tags without control characters.
func TestHostileText(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	const nul = "SELECT '\x00\x01\u202e' -- \x00"
	for _, tag := range []string{"a\x00b", "line\nbreak", "\x1b[31mred", strings.Repeat("\u202e", 1000), `"quoted\"`, "'; DROP TABLE Singers --"} {
		_, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 1",
			RequestOptions: &spannerpb.RequestOptions{RequestTag: tag, TransactionTag: tag}})
		h.ok(err)
	}
	_, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: nul})
	nulCode := status.Code(err)
	if nulCode != codes.OK && nulCode != codes.InvalidArgument {
		t.Errorf("NUL in a text: %v", err)
	}
	for _, name := range []string{"a\x00b", strings.Repeat("long", 1<<18), "\n", "\u202e"} {
		_, err := h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: name, Columns: []string{"x"}, KeySet: allKeys()})
		if status.Code(err) != codes.NotFound {
			t.Errorf("table %.20q: %.200v", name, err)
		}
		_, err = h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: "Singers", Columns: []string{name}, KeySet: allKeys()})
		if status.Code(err) != codes.NotFound {
			t.Errorf("column %.20q: %.200v", name, err)
		}
		_, err = h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: name, Sql: "SELECT 1"})
		if c := status.Code(err); c != codes.InvalidArgument && c != codes.NotFound {
			t.Errorf("session %.20q: %.200v", name, err)
		}
	}
	reply, err := http.Post(h.rest+"/v1/"+ses+":executeSql", "application/json", strings.NewReader("{\"sql\": \"SELECT '\xff'\"}"))
	h.ok(err)
	reply.Body.Close()
	if reply.StatusCode != http.StatusBadRequest {
		t.Errorf("JSON that is no UTF-8: %s", reply.Status)
	}
	clock.forward(time.Minute)
	h.shows(ses, "SELECT REQUEST_TAG FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE WHERE REQUEST_TAG != '' ORDER BY 1",
		`"quoted\"`, "'; DROP TABLE Singers --", "[31mred", "a_b", "line_break")
	rs, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT TEXT FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE WHERE STARTS_WITH(TEXT, \"SELECT '\")"})
	h.ok(err)
	if len(rs.Rows) != 1 || cellText(rs.Rows[0].Values[0]) != nul {
		t.Errorf("the text with NUL is shown as %v", rs.Rows)
	}
}

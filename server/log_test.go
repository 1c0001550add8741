package server

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/stats"
)

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) logger(level slog.Level) *slog.Logger {
	return slog.New(slog.NewJSONHandler(l, &slog.HandlerOptions{Level: level}))
}

// drain returns the log lines about a method so far, and removes the lines of all methods.
func (l *lines) drain(t *testing.T, method string) (list []map[string]any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		m := map[string]any{}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		if m["method"] == method {
			list = append(list, m)
		}
	}
	l.text.Reset()
	return list
}

// eventually waits until drain returns a line, because a reply can come before its log line is written.
func (l *lines) eventually(t *testing.T, method string) map[string]any {
	t.Helper()
	var list []map[string]any
	eventually(func() bool { list = l.drain(t, method); return len(list) > 0 })
	return list[0]
}

// says checks that a log line has the attributes in want. A nil value in want matches any value.
func says(t *testing.T, line, want map[string]any) {
	t.Helper()
	for k, v := range want {
		got, ok := line[k]
		if !ok || v != nil && got != v {
			t.Errorf("%s is %v, want %v, in %v", k, got, v, line)
		}
	}
}

// TestLogOfRequests: at level debug, the log has a line for each request.
func TestLogOfRequests(t *testing.T) {
	var log lines
	h := newHarnessOf(t, Config{Clock: time.Now, Log: log.logger(slog.LevelDebug)})
	ses := h.session(true)
	says(t, log.eventually(t, "CreateSession"), map[string]any{"level": "DEBUG", "msg": "request", "code": "OK", "resource": testDatabase})
	h.insert(ses, list("1", "a"), list("2", "b"))
	says(t, log.eventually(t, "Commit"), map[string]any{"level": "DEBUG", "database": testDatabase, "code": "OK"})

	ctx := metadata.AppendToOutgoingContext(h.ctx, "x-goog-spanner-request-id", "1.7.3.1.2.1")
	const sql = "SELECT Name FROM Singers"
	_, err := h.data.ExecuteSql(ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: sql, Transaction: begins(readWrite()),
		RequestOptions: &spannerpb.RequestOptions{RequestTag: "app=shop", TransactionTag: "checkout"}})
	h.ok(err)
	line := log.eventually(t, "ExecuteSql")
	says(t, line, map[string]any{
		"level": "DEBUG", "msg": "request", "database": testDatabase, "session": ses[strings.LastIndexByte(ses, '/')+1:], "request_tag": "app=shop", "transaction_tag": "checkout",
		"request_id": "1.7.3.1.2.1", "code": "OK", "rows": 2.0, "text_fingerprint": float64(stats.TextOf(sql).Fingerprint),
		"latency_ms": nil, "cpu_ms": nil, "lock_wait_ms": 0.0, "received_bytes": nil, "sent_bytes": nil,
	})
	if line["error"] != nil || line["stack"] != nil {
		t.Errorf("there was no error: %v", line)
	}
	_, err = h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: "Singers", Columns: []string{"Name"}, KeySet: allKeys()})
	h.ok(err)
	says(t, log.eventually(t, "Read"), map[string]any{"code": "OK", "table": "Singers", "rows": 2.0})
	_, err = h.data.Read(h.ctx, &spannerpb.ReadRequest{Session: ses, Table: "None", Columns: []string{"Name"}, KeySet: allKeys()})
	h.fails(err, codes.NotFound)
	says(t, log.eventually(t, "Read"), map[string]any{"level": "DEBUG", "code": "NotFound", "error": nil})
}

// TestLogOfSlowRequests: at level info, the log has only slow requests of the data API.
func TestLogOfSlowRequests(t *testing.T) {
	var step atomic.Int64
	still := newTestClock()
	clock := func() time.Time { still.forward(time.Duration(step.Load())); return still.now() }
	var log lines
	h := newHarnessOf(t, Config{Clock: clock, Log: log.logger(slog.LevelInfo)})
	ses := h.session(true)
	h.query(ses, "SELECT 'fast'")
	step.Store(int64(time.Second))
	h.session(true)
	_, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 'slow'", RequestOptions: &spannerpb.RequestOptions{RequestTag: "app=shop"}})
	h.ok(err)
	line := log.eventually(t, "ExecuteSql")
	says(t, line, map[string]any{"level": "INFO", "msg": "slow request", "request_tag": "app=shop", "text_fingerprint": float64(stats.TextOf("SELECT 'slow'").Fingerprint)})
	if took, _ := line["latency_ms"].(float64); took < 1000 {
		t.Errorf("took %v", took)
	}
	if list := log.drain(t, "CreateSession"); len(list) > 0 {
		t.Errorf("a session is not slow: %v", list)
	}
}

// TestPanicIsInternal: a panic ends only its request. The client does not see the text of the panic, but the log has
// it.
func TestPanicIsInternal(t *testing.T) {
	var log lines
	h := newHarnessOf(t, Config{Clock: time.Now, Log: log.logger(slog.LevelError)})
	m := rpc.Unary("GetSession", func(context.Context, *spannerpb.GetSessionRequest) (*spannerpb.Session, error) {
		var ses *session
		return ses.proto(), nil
	})
	st := status.Of(h.execute(&m, &spannerpb.GetSessionRequest{Name: "s"}, nil))
	if codes.Code(st.Code) != codes.Internal || strings.Contains(st.Message, "nil") {
		t.Errorf("bad status %v", st)
	}
	line := log.eventually(t, "GetSession")
	says(t, line, map[string]any{"level": "ERROR", "msg": "internal error in request", "resource": "s", "code": "Internal"})
	if text, stack := line["error"].(string), line["stack"].(string); !strings.Contains(text, "nil pointer") || !strings.Contains(stack, "log_test.go") {
		t.Errorf("the log does not tell what happened: %v", line)
	}
}

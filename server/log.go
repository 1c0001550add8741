package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/stats"
)

// slowAfter is from when on a request in a session is logged as slow: what SPANNER_SYS.ACTIVE_QUERIES_SUMMARY begins to
// count apart.
const slowAfter = time.Second

// A panicked is the error of a request that panicked.
type panicked struct {
	value any
	stack []byte
}

func (p *panicked) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// recovered turns a panic into an error.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = &panicked{p, debug.Stack()}
	}
}

// stackOf is where an error panicked, if it did.
func stackOf(err error) []slog.Attr {
	if p := (*panicked)(nil); errors.As(err, &p) {
		return []slog.Attr{slog.String("stack", string(p.stack))}
	}
	return nil
}

// log writes a line about the execution: as an error if it failed for a reason that the client is not told, as information if
// it was slow, else for who debugs. No line holds data, but for what errors say.
func (e *execution) log(took, cpu time.Duration, err error) {
	if err == nil {
		err = e.failure
	}
	level, what := slog.LevelDebug, "request"
	switch {
	case err != nil && !isForUser(err):
		level, what = slog.LevelError, "internal error in request"
	case took >= slowAfter && sessionOf(e.request) != "":
		level, what = slog.LevelInfo, "slow request"
	}
	if e.server.cfg.Log.Enabled(context.Background(), level) {
		e.server.cfg.Log.LogAttrs(context.Background(), level, what, e.attributes(took, cpu, err)...)
	}
}

// attributes are what a line says: who asked for what, how it ended, what it took.
func (e *execution) attributes(took, cpu time.Duration, err error) []slog.Attr {
	list := []slog.Attr{slog.String("method", e.method.name)}
	text := func(key, value string) {
		if value != "" {
			list = append(list, slog.String(key, value))
		}
	}
	database, session, _ := strings.Cut(sessionOf(e.request), "/sessions/")
	text("database", database)
	text("session", session)
	text("resource", resourceOf(e.request))
	if r, ok := e.request.(interface {
		GetRequestOptions() *spannerpb.RequestOptions
	}); ok {
		text("request_tag", stats.Tag(r.GetRequestOptions().GetRequestTag()))
		text("transaction_tag", stats.Tag(r.GetRequestOptions().GetTransactionTag()))
	}
	if e.ctx != nil {
		text("request_id", header(e.ctx, "x-goog-spanner-request-id"))
	}
	list = append(list, slog.String("code", codeOf(err).String()), millis("latency_ms", took), millis("cpu_ms", cpu),
		millis("lock_wait_ms", e.lockWait()), slog.Int64("received_bytes", e.received), slog.Int64("sent_bytes", e.sent))
	switch e.kind {
	case queryExecution:
		list = append(list, slog.Int64("text_fingerprint", e.query.Text.Fingerprint), slog.Int64("rows", e.query.Rows+e.query.RowsWritten))
	case readExecution:
		list = append(list, slog.String("table", e.read.Access.Target()), slog.Int64("rows", e.read.Rows))
	}
	if err != nil {
		list = append(append(list, slog.String("error", err.Error())), stackOf(err)...)
	}
	return list
}

func millis(key string, d time.Duration) slog.Attr {
	return slog.Float64(key, float64(d.Microseconds())/1e3)
}

// sessionOf is the session that a request runs in, "" if it is none of the data API's.
func sessionOf(request proto.Message) string {
	if r, ok := request.(interface{ GetSession() string }); ok {
		return r.GetSession()
	}
	return ""
}

// resourceOf is what a request is about that runs in no session.
func resourceOf(request proto.Message) string {
	switch r := request.(type) {
	case interface{ GetName() string }:
		return r.GetName()
	case interface{ GetDatabase() string }:
		return r.GetDatabase()
	case interface{ GetParent() string }:
		return r.GetParent()
	}
	return ""
}

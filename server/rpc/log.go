package rpc

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/server/cost"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/stats"
)

// slowAfter is the latency from which a request in a session is logged as slow. It is also the first threshold of
// SPANNER_SYS.ACTIVE_QUERIES_SUMMARY. Queries of change streams are never slow, because they wait for changes.
const slowAfter = time.Second

// log logs a call that has ended. The level is error if the call failed for an internal reason, which the client is not
// told; info if the call was slow; and debug otherwise. The line contains no user data, except what an error's text
// quotes.
func (c *Call) log(total cost.Cost, err error) {
	if err == nil {
		err = c.Failure
	}
	level, what := slog.LevelDebug, "request"
	switch {
	case err != nil && !status.IsForUser(err):
		level, what = slog.LevelError, "internal error in request"
	case total.Latency >= slowAfter && !total.ChangeStream && sessionOf(c.Request) != "":
		level, what = slog.LevelInfo, "slow request"
	}
	if log := c.dispatcher.log; log.Enabled(context.Background(), level) {
		log.LogAttrs(context.Background(), level, what, c.attributes(total, err)...)
	}
}

// attributes returns the attributes of the log line: the request, its session, its result, and its cost.
func (c *Call) attributes(total cost.Cost, err error) []slog.Attr {
	list := []slog.Attr{slog.String("method", c.Method.Name)}
	text := func(key, value string) {
		if value != "" {
			list = append(list, slog.String(key, value))
		}
	}
	database, session, _ := strings.Cut(sessionOf(c.Request), "/sessions/")
	text("database", database)
	text("session", session)
	text("resource", resourceOf(c.Request))
	if r, ok := c.Request.(interface {
		GetRequestOptions() *spannerpb.RequestOptions
	}); ok {
		text("request_tag", stats.Tag(r.GetRequestOptions().GetRequestTag()))
		text("transaction_tag", stats.Tag(r.GetRequestOptions().GetTransactionTag()))
	}
	text("request_id", c.Metadata(requestIDKey))
	list = append(list, slog.String("code", status.Code(err).String()), millis("latency_ms", total.Latency), millis("cpu_ms", total.CPU), millis("shared_cpu_ms", total.SharedCPU),
		millis("lock_wait_ms", total.LockWait), slog.Int64("received_bytes", c.Cost.Wire.Received), slog.Int64("sent_bytes", c.Cost.Wire.Sent))
	return append(append(list, c.Cost.Attributes()...), ErrorAttributes(err)...)
}

// ErrorAttributes returns the log attributes of an error: its text, and for a panic the stack.
func ErrorAttributes(err error) (list []slog.Attr) {
	if err != nil {
		list = append(list, slog.String("error", err.Error()))
	}
	if stack := stackOf(err); stack != nil {
		list = append(list, slog.String("stack", string(stack)))
	}
	return list
}

func millis(key string, d time.Duration) slog.Attr {
	return slog.Float64(key, float64(d.Microseconds())/1e3)
}

// sessionOf returns the name of the session that a request names, or "".
func sessionOf(request proto.Message) string {
	if r, ok := request.(interface{ GetSession() string }); ok {
		return r.GetSession()
	}
	return ""
}

// resourceOf returns the name of the resource of a request, which is in the field name, database or parent. It returns
// "" if the request has none of these.
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

package server

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/crowfoot-db/crowfoot/server/rpc"
)

const (
	frontEndsForm = `gfet4t7; dur=[1-9]\d*, afe; dur=[1-9]\d*`
	totalsForm    = `total; dur=\d+\.\d{3}, cpu; dur=\d+\.\d{3}, shared; dur=\d+\.\d{3}, lock; dur=\d+\.\d{3}`
)

// timed checks that server-timing in the header matches the regular expression headerForm, and in the trailer
// trailerForm. If the expression is "", there must be no server-timing in that place.
func (h *harness) timed(what string, header, trailer metadata.MD, headerForm, trailerForm string) {
	h.Helper()
	for place, got := range map[string][2]string{
		"header":  {strings.Join(header.Get(rpc.TimingKey), "|"), headerForm},
		"trailer": {strings.Join(trailer.Get(rpc.TimingKey), "|"), trailerForm},
	} {
		if ok, _ := regexp.MatchString("^(?:"+got[1]+")$", got[0]); !ok {
			h.Errorf("%s: the %s is %q, want the form %q", what, place, got[0], got[1])
		}
	}
}

// TestTimingOverGRPC: a client that asks for server-timing gets it in the header and in the trailer. If the request
// fails, the client gets it only in the trailer. A client that does not ask gets none.
func TestTimingOverGRPC(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	asking := metadata.AppendToOutgoingContext(h.ctx, rpc.AsksTimingKey, "true")
	sql := func(text string) *spannerpb.ExecuteSqlRequest {
		return &spannerpb.ExecuteSqlRequest{Session: ses, Sql: text}
	}

	var header, trailer metadata.MD
	_, err := h.data.ExecuteSql(h.ctx, sql("SELECT 1"), grpc.Header(&header), grpc.Trailer(&trailer))
	h.ok(err)
	h.timed("not asked", header, trailer, "", "")
	_, err = h.data.ExecuteSql(asking, sql("SELECT 1"), grpc.Header(&header), grpc.Trailer(&trailer))
	h.ok(err)
	h.timed("unary", header, trailer, frontEndsForm, totalsForm)
	_, err = h.data.ExecuteSql(asking, sql("SELECT 1/0"), grpc.Header(&header), grpc.Trailer(&trailer))
	h.fails(err, codes.OutOfRange)
	h.timed("unary that failed", header, trailer, "", totalsForm)

	read, err := h.data.StreamingRead(asking, &spannerpb.ReadRequest{Session: ses, Table: "Singers", Columns: []string{"Name"}, KeySet: allKeys()})
	h.partial(read, err)
	header, err = read.Header()
	h.ok(err)
	h.timed("stream", header, read.Trailer(), frontEndsForm, totalsForm)
	read, err = h.data.StreamingRead(asking, &spannerpb.ReadRequest{Session: ses, Table: "None", Columns: []string{"Name"}, KeySet: allKeys()})
	h.ok(err)
	_, err = read.Recv()
	h.fails(err, codes.NotFound)
	h.timed("stream that failed", nil, read.Trailer(), "", totalsForm)
}

// TestTimingOfLockWait: the trailer says how long the request waited for locks.
func TestTimingOfLockWait(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	h.insert(ses, list("2", "b"))
	update := func(opts ...grpc.CallOption) (*spannerpb.ResultSet, error) {
		ctx := metadata.AppendToOutgoingContext(h.ctx, rpc.AsksTimingKey, "true")
		return h.data.ExecuteSql(ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: begins(readWrite()), Seqno: 1,
			Sql: "UPDATE Singers SET Name = 'x' WHERE SingerId = 2"}, opts...)
	}
	first, err := update()
	h.ok(err)
	var header, trailer metadata.MD
	done := make(chan error, 1)
	go func() {
		_, err := update(grpc.Header(&header), grpc.Trailer(&trailer))
		done <- err
	}()
	h.awaitLockWait()
	clock.forward(lockedFor)
	_, err = h.data.Commit(h.ctx, commitOf(ses, first.Metadata.Transaction.Id))
	h.ok(err)
	h.ok(<-done)
	h.timed("waited", header, trailer, frontEndsForm, lockedForm)
}

// lockedForm is the form of the trailer of a request that waited for a lock for lockedFor or a little longer.
const (
	lockedFor  = 50 * time.Millisecond
	lockedForm = `total; dur=.*, lock; dur=5\d\.\d{3}`
)

// TestTimingOfCommit: the trailer of a Commit says how long the commit waited for locks.
func TestTimingOfCommit(t *testing.T) {
	clock := newTestClock()
	h := newHarnessAt(t, clock.now)
	ses := h.session(true)
	h.insert(ses, list("2", "b"))
	first, err := h.sql(ses, begins(readWrite()), 1, "UPDATE Singers SET Name = 'x' WHERE SingerId = 2")
	h.ok(err)
	var header, trailer metadata.MD
	done := make(chan error, 1)
	go func() {
		ctx := metadata.AppendToOutgoingContext(h.ctx, rpc.AsksTimingKey, "true")
		_, err := h.data.Commit(ctx, singleUse(ses, insertSingers(list("2", "c"))), grpc.Header(&header), grpc.Trailer(&trailer))
		done <- err
	}()
	h.awaitLockWait()
	clock.forward(lockedFor)
	_, err = h.data.Commit(h.ctx, commitOf(ses, first.Metadata.Transaction.Id))
	h.ok(err)
	h.ok(<-done)
	h.timed("commit", header, trailer, frontEndsForm, lockedForm)
}

// TestTimingOverREST: a unary reply has all times in its header. A streamed reply has a trailer with the times that are
// known only at its end.
func TestTimingOverREST(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	for _, c := range []struct{ call, body, header, trailer string }{
		{":executeSql", `{"sql":"SELECT 1"}`, frontEndsForm + `\|` + totalsForm, ""},
		{":executeSql", `{"sql":"SELECT 1/0"}`, totalsForm, ""},
		{":executeSql", `{`, totalsForm, ""},
		{":executeStreamingSql", `{"sql":"SELECT 1"}`, frontEndsForm, totalsForm},
		{":executeStreamingSql", `{"sql":"SELECT 1/0"}`, "", totalsForm},
	} {
		reply, err := http.Post(h.rest+"/v1/"+ses+c.call, "application/json", strings.NewReader(c.body))
		h.ok(err)
		_, err = io.Copy(io.Discard, reply.Body)
		h.ok(err)
		reply.Body.Close()
		trailer := metadata.Pairs(rpc.TimingKey, reply.Trailer.Get(rpc.TimingKey))
		h.timed("REST "+c.call+" "+c.body, metadata.MD{rpc.TimingKey: reply.Header.Values(rpc.TimingKey)}, trailer, c.header, c.trailer)
	}
}

package server

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/status"
)

// TestEveryMethodAnswers calls every method of every service with an empty request, and checks that each answers with a
// reply or an error for users.
func TestEveryMethodAnswers(t *testing.T) {
	h := newHarness(t)
	for _, sv := range h.server.dispatcher.Services {
		methods := sv.Descriptor().Methods()
		if len(sv.Methods) < methods.Len() {
			t.Errorf("%s: %d of %d methods", sv.Name, len(sv.Methods), methods.Len())
		}
		for i := range sv.Methods {
			m := &sv.Methods[i]
			err := h.execute(m, nil, new(discard).send)
			if code := status.Code(err); code == codes.Internal || code == codes.Unknown {
				t.Errorf("%s.%s: %v", sv.Name, m.Name, err)
			}
		}
	}
}

// encoded is a request as bytes, which need not be a valid message. passing is the gRPC codec that sends these bytes
// unchanged.
type encoded []byte

type passing struct{}

func (passing) Name() string { return "proto" }
func (passing) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(encoded))}, nil
}
func (passing) Unmarshal(_ mem.BufferSlice, _ any) error { return nil }

func TestRequestsAreDecodedOrRefused(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	_, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 1 -- " + strings.Repeat("x", rpc.MaxRequestBytes)})
	h.fails(err, codes.InvalidArgument)
	_, err = h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 1"}, grpc.UseCompressor(gzip.Name))
	h.ok(err)
	big := insertSingers()
	for i := range 24 {
		big.GetInsertOrUpdate().Values = append(big.GetInsertOrUpdate().Values, list(string(rune('a'+i)), strings.Repeat("x", 1<<20)))
	}
	_, err = h.data.Commit(h.ctx, singleUse(ses, big)) // not too large, but its keys are not numbers
	h.fails(err, codes.FailedPrecondition)

	// A streaming request that is too large or malformed gets the same error as a unary one. Without the server's own
	// check, gRPC's library would answer INTERNAL.
	rows, err := h.data.ExecuteStreamingSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: strings.Repeat("x", rpc.MaxRequestBytes+1)})
	h.ok(err)
	_, err = rows.Recv()
	h.fails(err, codes.InvalidArgument)

	bad, err := proto.Marshal(&spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT '?'"})
	h.ok(err)
	bad = bytes.ReplaceAll(bad, []byte("?"), []byte{0xff})
	err = h.conn.Invoke(h.ctx, "/google.spanner.v1.Spanner/ExecuteSql", encoded(bad), new(spannerpb.ResultSet), grpc.ForceCodecV2(passing{}))
	h.fails(err, codes.InvalidArgument)
}

// TestDeadlineInLockWait: a request that waits for a lock ends at its deadline, and its transaction can continue.
func TestDeadlineInLockWait(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	h.insert(ses, list("1", "a"))
	older, younger := h.begin(ses, readWrite()), h.begin(ses, readWrite())
	update := "UPDATE Singers SET Name = 'x' WHERE SingerId = 1"
	_, err := h.sql(ses, byID(older), 1, update)
	h.ok(err)
	waited := false
	for limit := 100 * time.Millisecond; !waited; limit *= 2 { // until the deadline leaves time to wait for the lock
		ctx, cancel := context.WithTimeout(h.ctx, limit)
		ended := make(chan error, 1)
		go func() {
			_, err := h.data.ExecuteSql(ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: byID(younger), Seqno: 1, Sql: update})
			ended <- err
		}()
		eventually(func() bool {
			waited = waited || h.database().Transactions().Metrics().Waiting > 0
			return waited || len(ended) > 0
		})
		h.fails(<-ended, codes.DeadlineExceeded)
		cancel()
	}
	_, err = h.data.Commit(h.ctx, commitOf(ses, older))
	h.ok(err)
	_, err = h.sql(ses, byID(younger), 1, update)
	h.ok(err)
	_, err = h.data.Commit(h.ctx, commitOf(ses, younger))
	h.ok(err)
}

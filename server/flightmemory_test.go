package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// TestFlightUploads: the messages of a bulk load are received one after the other, and a long one only if there is room for it.
func TestFlightUploads(t *testing.T) {
	h, budget := newBudgetHarness(t, 64*mib)
	f := h.flight()
	next := int64(0)
	load := func(batches int, size int) (int64, error) {
		var list []arrow.RecordBatch
		for range batches {
			list = append(list, batch("Id", "A", []int64{next, next + 1}, []string{strings.Repeat("x", size/2), strings.Repeat("y", size/2)}))
			next += 2
		}
		r, err := array.NewRecordReader(list[0].Schema(), list)
		h.ok(err)
		return f.ExecuteIngest(f.ctx, r, &flightsql.ExecuteIngestOpts{Table: "Wide", TableDefinitionOptions: ingestOptions(flightsql.TableDefinitionOptionsTableExistsOptionAppend, flightsql.TableDefinitionOptionsTableNotExistOptionFail)})
	}
	for _, c := range []struct{ batches, size int }{{1000, 10}, {30, 100_000}, {20, 3 << 19}} {
		n, err := load(c.batches, c.size)
		if n != int64(2*c.batches) || err != nil {
			t.Errorf("%d batches of %d bytes: %d, %v", c.batches, c.size, n, err)
		}
		returned(budget)
	}
	_, err := load(2, 40*mib)
	h.fails(err, codes.ResourceExhausted)
	returned(budget)
	got, err := f.rows("SELECT 1") // the connection goes on
	if h.ok(err); got[0] != "1" {
		t.Error(got)
	}
}

// TestFlightUnread: a stream whose client does not read takes little, what it takes is counted, and given back when the client goes or the query is
// cancelled.
func TestFlightUnread(t *testing.T) {
	h, budget := newBudgetHarness(t, 32*mib)
	f := h.flight()
	for i := range 10 {
		_, err := f.ExecuteUpdate(f.ctx, fmt.Sprintf("INSERT INTO Wide (Id, A) SELECT n, REPEAT('x', 50000) FROM UNNEST(GENERATE_ARRAY(%d, %d)) n", 20*i, 20*i+19))
		h.ok(err)
	}
	info, err := f.Execute(f.ctx, "SELECT A FROM Wide")
	h.ok(err)
	returned(budget)
	const window = 64 << 10 // so that the client takes no more than it reads
	conn, err := grpc.NewClient(h.address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window))
	h.ok(err)
	defer conn.Close()
	slow := arrowflight.NewClientFromConn(conn, nil)
	for name, end := range map[string]func(cancel func()){
		"gone": func(cancel func()) { cancel() },
		"cancelled": func(func()) {
			reply, err := f.CancelFlightInfo(f.ctx, &arrowflight.CancelFlightInfoRequest{Info: info})
			h.ok(err)
			if reply.Status != arrowflight.CancelStatusCancelled {
				t.Error(reply)
			}
		},
	} {
		ctx, cancel := context.WithCancel(h.ctx)
		stream, err := slow.DoGet(ctx, info.Endpoint[0].Ticket)
		h.ok(err)
		_, err = stream.Recv()
		h.ok(err)
		eventually(func() bool { return budget.Usage().Taken > 100_000 })
		if taken := budget.Usage().Taken; taken > 4*mib {
			t.Errorf("%s: %d bytes", name, taken)
		}
		end(cancel)
		for err == nil {
			_, err = stream.Recv()
		}
		if code := status.Code(err); code != codes.Canceled {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		returned(budget)
	}
}

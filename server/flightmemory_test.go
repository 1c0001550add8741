package server

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestFlightUploads checks that the server receives the messages of a bulk load one after the other. It must receive a
// long message only if the budget has memory for it.
func TestFlightUploads(t *testing.T) {
	h, budget := newBudgetHarness(t, 64*mib)
	f := h.newFlightClient()
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
	got, err := f.rows("SELECT 1") // checks that the connection still works
	if h.ok(err); got[0] != "1" {
		t.Error(got)
	}
}

// TestFlightUnread checks that a stream takes little memory if its client does not read. This memory is charged to the
// budget, and released when the client disconnects or the query is cancelled.
func TestFlightUnread(t *testing.T) {
	h, budget := newBudgetHarness(t, 32*mib)
	f := h.newFlightClient()
	for i := range 10 {
		_, err := f.ExecuteUpdate(f.ctx, fmt.Sprintf("INSERT INTO Wide (Id, A) SELECT n, REPEAT('x', 50000) FROM UNNEST(GENERATE_ARRAY(%d, %d)) n", 20*i, 20*i+19))
		h.ok(err)
	}
	info, err := f.Execute(f.ctx, "SELECT A FROM Wide")
	h.ok(err)
	returned(budget)
	const window = 64 << 10 // bytes; so small that most of a reply stays in the server until the client reads
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
		eventually(func() bool { return budget.Usage().Reserved > 100_000 })
		if reserved := budget.Usage().Reserved; reserved > 4*mib {
			t.Errorf("%s: %d bytes", name, reserved)
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

// TestFlightExpanded checks bulk loads whose data, once decoded, is much larger than the message. The server must write
// the data in chunks that fit into the budget, or refuse the load.
func TestFlightExpanded(t *testing.T) {
	h, budget := newBudgetHarness(t, 64*mib)
	f := h.newFlightClient()
	load := func(rows, size int) error {
		ids := array.NewInt64Builder(memory.DefaultAllocator)
		indices := array.NewInt32Builder(memory.DefaultAllocator)
		for i := range rows {
			ids.Append(int64(i))
			indices.Append(0)
		}
		values := array.NewStringBuilder(memory.DefaultAllocator)
		values.Append(strings.Repeat("x", size))
		of := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String}
		schema := arrow.NewSchema([]arrow.Field{{Name: "Id", Type: arrow.PrimitiveTypes.Int64}, {Name: "A", Type: of, Nullable: true}}, nil)
		b := array.NewRecordBatch(schema, []arrow.Array{ids.NewArray(), array.NewDictionaryArray(of, indices.NewArray(), values.NewArray())}, int64(rows))
		r, err := array.NewRecordReader(schema, []arrow.RecordBatch{b})
		h.ok(err)
		_, err = f.ExecuteIngest(f.ctx, r, &flightsql.ExecuteIngestOpts{Table: "Wide", TableDefinitionOptions: ingestOptions(flightsql.TableDefinitionOptionsTableExistsOptionAppend, flightsql.TableDefinitionOptionsTableNotExistOptionFail)})
		return err
	}
	h.ok(load(60, 1<<20)) // 60 MiB once decoded, so the server must write several chunks
	returned(budget)
	if err := load(10_000, 17<<20); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a row beyond the budget: %v", err)
	}
	returned(budget)
	list := &structpb.ListValue{}
	for range 500_000 {
		list.Values = append(list.Values, structpb.NewNullValue())
	}
	command := &spannerpb.ExecuteSqlRequest{Sql: "SELECT 1", Params: &structpb.Struct{Fields: map[string]*structpb.Value{"p": structpb.NewListValue(list)}}}
	wrapped, err := anypb.New(command)
	h.ok(err)
	body, err := proto.Marshal(wrapped)
	h.ok(err)
	_, err = f.Client.Client.GetFlightInfo(f.ctx, &arrowflight.FlightDescriptor{Type: arrowflight.DescriptorCMD, Cmd: body})
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a command of %d bytes: %v", len(body), err)
	}
	returned(budget)
}

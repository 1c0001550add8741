package server

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/kv"
)

// TestFlightServerDies: if the server dies, an open transaction has written nothing, and using its handle returns an
// error.
func TestFlightServerDies(t *testing.T) {
	h := newHarnessOn(t, vfs.NewCrashableMem(), Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, testSchema)
	f := h.newFlightClient()
	tx, err := f.BeginTransaction(f.ctx)
	h.ok(err)
	_, err = tx.ExecuteUpdate(f.ctx, "INSERT INTO Singers (SingerId) VALUES (1)")
	h.ok(err)
	id := tx.ID()
	h.crash()
	f = h.newFlightClient()
	got, err := f.rows("SELECT COUNT(*) FROM Singers")
	if h.ok(err); got[0] != "0" {
		t.Errorf("%s rows of a transaction that was not committed", got)
	}
	again, err := f.BeginTransaction(f.ctx)
	h.ok(err)
	end := &flightpb.ActionEndTransactionRequest{TransactionId: id, Action: flightpb.ActionEndTransactionRequest_END_TRANSACTION_COMMIT}
	command, err := anypb.New(end)
	h.ok(err)
	body, err := proto.Marshal(command)
	h.ok(err)
	done, err := f.Client.Client.DoAction(f.ctx, &arrowflight.Action{Type: "EndTransaction", Body: body})
	h.ok(err)
	_, err = done.Recv()
	h.aborted(err)
	h.ok(again.Rollback(f.ctx))
}

// TestDropWhileStalled checks what happens if a database is dropped while a stream waits for its client. The client
// must get an error that says that the database does not exist. It must not get a stream that ends without an error
// before the last row.
func TestDropWhileStalled(t *testing.T) {
	for _, stalls := range []bool{false, true} {
		h := newHarness(t)
		store := &countingStore{closed: make(chan struct{}, 1)}
		h.wrap = func(s kv.Store) kv.Store { store.Store = s; return store }
		h.restart()
		const rows = 8000
		for i := range 4 {
			h.dmlOnce(h.session(true), fmt.Sprintf("INSERT INTO Singers (SingerId, Name) SELECT n, REPEAT('x', 2000) FROM UNNEST(GENERATE_ARRAY(%d, %d)) n", 2000*i, 2000*i+1999))
		}
		f := h.newFlightClient("max-partitions", "1")
		info, err := f.Execute(f.ctx, "SELECT Name FROM Singers")
		h.ok(err)
		const window = 64 << 10 // bytes; so small that most of a reply stays in the server until the client reads
		conn, err := grpc.NewClient(h.address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window))
		h.ok(err)
		defer conn.Close()
		stream, err := arrowflight.NewClientFromConn(conn, nil).DoGet(h.ctx, info.Endpoint[0].Ticket)
		h.ok(err)
		reader, err := arrowflight.NewRecordReader(stream)
		h.ok(err)
		read := int64(0)
		for read == 0 && reader.Next() {
			read += reader.RecordBatch().NumRows()
		}
		read2, err := h.data.StreamingRead(h.ctx, &spannerpb.ReadRequest{Session: h.session(true), Table: "Singers", Columns: []string{"Name"}, KeySet: allKeys()})
		h.ok(err)
		for stalls && store.open.Load() > 0 {
			<-store.closed
		}
		_, err = h.databases.DropDatabase(h.ctx, &databasepb.DropDatabaseRequest{Database: testDatabase})
		h.ok(err)
		for reader.Next() {
			read += reader.RecordBatch().NumRows()
		}
		if stalls {
			h.fails(reader.Err(), codes.NotFound)
			for err == nil {
				_, err = read2.Recv()
			}
			h.fails(err, codes.NotFound)
		} else if err := reader.Err(); err != nil {
			// On a busy machine, the stream may have stalled before the drop, although the test did not wait for that.
			h.fails(err, codes.NotFound)
		} else if read != rows {
			t.Errorf("%d rows", read)
		}
		_, _, err = f.ticket(info.Endpoint[0].Ticket)
		h.fails(err, codes.NotFound)
	}
}

package endtoend_test

import (
	"encoding/base64"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot"
)

// heapObjects returns how many bytes the objects in Go's heap take, including garbage that has not been collected.
func heapObjects() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

// heapPeak returns by how many bytes the heap grows while f runs. Meanwhile the garbage collector runs so often that
// there is little garbage.
func heapPeak(f func()) int64 {
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	before := heapObjects()
	peak, stop, stopped := before, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				peak = max(peak, heapObjects())
			case <-stop:
				return
			}
		}
	}()
	f()
	close(stop)
	<-stopped
	return peak - before
}

// TestCommitMemory checks that a commit takes at most six times as much memory as its data. The rows have a BYTES
// column. BYTES are the worst case: a message encodes them in base64, so it is larger than the data.
func TestCommitMemory(t *testing.T) {
	const db = "projects/p/instances/i/databases/d"
	srv, err := crowfoot.Start(t.Context(), crowfoot.Options{Data: t.TempDir(), Databases: []string{db},
		DDL: []string{"CREATE TABLE Blobs (Id INT64 NOT NULL, B BYTES(MAX)) PRIMARY KEY (Id)"}})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	conn, err := grpc.NewClient(srv.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := spannerpb.NewSpannerClient(conn)
	ses, err := client.CreateSession(t.Context(), &spannerpb.CreateSessionRequest{Database: db})
	if err != nil {
		t.Fatal(err)
	}
	const rows, size, factor = 12, 1 << 20, 6
	text := base64.StdEncoding.EncodeToString(make([]byte, size))
	write := &spannerpb.Mutation_Write{Table: "Blobs", Columns: []string{"Id", "B"}}
	for i := range rows {
		write.Values = append(write.Values, &structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue(strconv.Itoa(i)), structpb.NewStringValue(text)}})
	}
	peak := heapPeak(func() {
		_, err = client.Commit(t.Context(), &spannerpb.CommitRequest{Session: ses.Name,
			Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: &spannerpb.TransactionOptions{
				Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: new(spannerpb.TransactionOptions_ReadWrite)}}},
			Mutations: []*spannerpb.Mutation{{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: write}}}})
	})
	if err != nil {
		t.Fatal(err)
	}
	peak -= rows * size / 3 * 4 // without the client's message, which is in this process too, in base64
	t.Logf("%d bytes of data take %d, %.1f times as much", rows*size, peak, float64(peak)/(rows*size))
	if peak > factor*rows*size {
		t.Errorf("%d bytes of data take %d", rows*size, peak)
	}
}

package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/memory"
)

const mib = 1 << 20

// newBudgetHarness returns a server whose requests share a memory budget of the given size in bytes.
func newBudgetHarness(t *testing.T, bytes int64) (*harness, *memory.Budget) {
	budget := memory.NewBudget(bytes)
	return newHarnessOf(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler), Memory: budget}), budget
}

// returned waits until requests have released all memory of the budget. It runs the garbage collector, which releases
// the frames that gRPC's library has dropped.
func returned(b *memory.Budget) {
	eventually(func() bool {
		runtime.GC()
		return b.Usage().Reserved == 0
	})
}

// TestUploads checks that the server receives a long message only if the budget has the memory that the server charges
// for it. The server must refuse other long messages, and answer later requests on the same connection.
func TestUploads(t *testing.T) {
	h, budget := newBudgetHarness(t, 64*mib)
	ses := h.session(true)
	const data = 6 * mib // 8 MiB in base64, for which 32 MiB of the budget are charged
	var answers sync.Map
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			_, err := h.data.Commit(h.ctx, singleUse(ses, insertData(1, data)))
			answers.Store(status.Code(err), true)
			if code := status.Code(err); code != codes.OK && code != codes.ResourceExhausted {
				t.Error(err)
			}
		})
	}
	group.Wait()
	_, err := h.data.Commit(h.ctx, singleUse(ses, insertData(1, data)))
	h.ok(err)
	_, err = h.data.Commit(h.ctx, singleUse(ses, insertData(2, 8*mib))) // would be charged 85 MiB, more than the budget
	h.fails(err, codes.ResourceExhausted)
	_, err = h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 1"})
	h.ok(err)
	returned(budget)
}

// TestCommitThatNeverFits checks that a commit fails at once if its message and its change records together need more
// memory than the whole budget has. The error must not blame other requests.
func TestCommitThatNeverFits(t *testing.T) {
	budget := memory.NewBudget(64 * mib)
	h := newHarnessWith(t, Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler), Memory: budget},
		append(slices.Clone(testSchema), "CREATE CHANGE STREAM Everything FOR ALL OPTIONS (value_capture_type = 'NEW_ROW_AND_OLD_VALUES')"))
	ses := h.session(true)
	_, err := h.data.Commit(h.ctx, singleUse(ses, insertData(6, mib)))
	h.ok(err)
	// Six of the seven rows exist already. So the change records of this commit also hold six old values of a megabyte,
	// and the commit needs more memory than the budget has.
	_, err = h.data.Commit(h.ctx, singleUse(ses, insertData(7, mib)))
	h.fails(err, codes.ResourceExhausted)
	if text := status.Convert(err).Message(); !strings.Contains(text, "needs at least") || len(status.Convert(err).Details()) > 0 {
		t.Errorf("it is told %q, %v", text, status.Convert(err).Details())
	}
	returned(budget)
}

// An uploader is a client that writes HTTP/2 frames itself, without a gRPC library.
type uploader struct {
	*harness
	net.Conn
	*http2.Framer
}

func (h *harness) uploader() uploader {
	conn, err := net.Dial("tcp", h.address)
	h.ok(err)
	w := uploader{h, conn, http2.NewFramer(conn, conn)}
	_, err = conn.Write([]byte(http2.ClientPreface))
	h.ok(err)
	h.ok(w.WriteSettings())
	return w
}

// upload begins a Commit: it sends the headers, and the beginning of the message with its length.
func (w uploader) upload(stream uint32, length int) {
	var fields bytes.Buffer
	e := hpack.NewEncoder(&fields)
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", spannerpb.Spanner_Commit_FullMethodName}, {":authority", "x"},
		{"content-type", "application/grpc"}, {"te", "trailers"}} {
		w.ok(e.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	w.ok(w.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: fields.Bytes(), EndHeaders: true}))
	w.ok(w.WriteData(stream, false, binary.BigEndian.AppendUint32([]byte{0}, uint32(length))))
}

// TestUploadsThatEnd checks that the memory charged for a message that has not fully arrived is released when its
// request ends, in each way in which a request can end.
func TestUploadsThatEnd(t *testing.T) {
	h, budget := newBudgetHarness(t, 64*mib)
	for _, end := range map[string]func(uploader){
		"taken back": func(w uploader) { w.ok(w.WriteRSTStream(1, http2.ErrCodeCancel)) },
		"cut off":    func(w uploader) { w.ok(w.Close()) },
		"malformed":  func(w uploader) { w.ok(w.WriteData(1, true, []byte("no message"))) },
	} {
		w := h.uploader()
		w.upload(1, 8*mib)
		eventually(func() bool { return budget.Usage().Reserved >= 31*mib })
		w.upload(3, 7*mib) // a second upload while the first is open
		eventually(func() bool { return budget.Usage().Reserved >= 59*mib })
		w.ok(w.WriteRSTStream(3, http2.ErrCodeCancel))
		eventually(func() bool { return budget.Usage().Reserved <= 33*mib })
		end(w)
		returned(budget)
		_ = w.Close()
	}
}

// zipped returns a gzip-compressed Commit request in JSON. It is small, and decompresses to a little more than size
// bytes.
func zipped(h *harness, size int) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := w.Write([]byte(strings.Repeat(" ", size) + "{}"))
	h.ok(err)
	h.ok(w.Close())
	return b.Bytes()
}

// TestInflated: for a compressed request, the decompressed size is charged to the budget, and compared with the
// method's size limit.
func TestInflated(t *testing.T) {
	h, budget := newBudgetHarness(t, 128*mib)
	ses := h.session(true)
	for size, want := range map[int]int{40 * mib: http.StatusTooManyRequests, mib: http.StatusBadRequest} {
		request, err := http.NewRequestWithContext(h.ctx, http.MethodPost, h.rest+"/v1/"+ses+":commit", bytes.NewReader(zipped(h, size)))
		h.ok(err)
		request.Header.Set("Content-Encoding", "gzip")
		reply, err := http.DefaultClient.Do(request)
		h.ok(err)
		reply.Body.Close()
		if reply.StatusCode != want {
			t.Errorf("%d bytes over REST: %s", size, reply.Status)
		}
	}
	_, err := h.data.Commit(h.ctx, singleUse(ses, insertData(3, 10*mib)), grpc.UseCompressor(grpcgzip.Name))
	h.fails(err, codes.ResourceExhausted)
	_, err = h.data.Commit(h.ctx, singleUse(ses, insertData(1, mib)), grpc.UseCompressor(grpcgzip.Name))
	h.ok(err)
	_, err = h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT 1 -- " + strings.Repeat(" ", 20*mib)}, grpc.UseCompressor(grpcgzip.Name))
	h.fails(err, codes.InvalidArgument)
	returned(budget)
}

// TestUnreadStreams: streams whose client does not read take little memory, and that memory is charged to the budget.
func TestUnreadStreams(t *testing.T) {
	h, budget := newBudgetHarness(t, 8*mib)
	ses := h.session(true)
	_, err := h.data.Commit(h.ctx, singleUse(ses, insertData(10, 100_000)))
	h.ok(err)
	returned(budget)
	const window = 64 << 10 // bytes; so small that most of a reply stays in the server until the client reads
	conn, err := grpc.NewClient(h.address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithInitialWindowSize(window), grpc.WithInitialConnWindowSize(window))
	h.ok(err)
	defer conn.Close()
	slow := spannerpb.NewSpannerClient(conn)
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	for range 30 {
		stream, err := slow.StreamingRead(ctx, &spannerpb.ReadRequest{Session: ses, Table: "Singers", Columns: []string{"Data"}, KeySet: allKeys()})
		h.ok(err)
		// Recv returns the first message, or an error if the stream was refused because other streams have used up the
		// budget.
		go func() { _, _ = stream.Recv() }()
	}
	eventually(func() bool { return budget.Usage().Reserved > 4*mib && budget.Usage().Waiting > 0 })
	cancel()
	returned(budget)
}

// TestTransactionMemory: the memory for the writes of a transaction's statements is charged until the transaction ends.
// A statement that is refused for lack of memory can be sent again.
func TestTransactionMemory(t *testing.T) {
	h, budget := newBudgetHarness(t, 16*mib)
	ses := h.session(false)
	begun, err := h.data.BeginTransaction(h.ctx, &spannerpb.BeginTransactionRequest{Session: ses, Options: readWrite()})
	h.ok(err)
	insert := func(id, seqno int) error {
		_, err := h.data.ExecuteSql(h.ctx, &spannerpb.ExecuteSqlRequest{Session: ses, Transaction: byID(begun.Id), Seqno: int64(seqno),
			Sql: "INSERT INTO Singers (SingerId, Data) VALUES (" + string(rune('0'+id)) + ", CAST(REPEAT('x', 1000000) AS BYTES))"})
		return err
	}
	n := 0
	for ; n < 9; n++ {
		if err = insert(n, n+1); err != nil {
			break
		}
	}
	h.fails(err, codes.ResourceExhausted)
	if n < 2 || budget.Usage().Reserved < int64(n)*2_000_000 {
		t.Errorf("after %d statements %d bytes are taken", n, budget.Usage().Reserved)
	}
	// The server runs the statement again, because it has not stored the first error as the answer to this request.
	h.fails(insert(n, n+1), codes.ResourceExhausted)
	if refused := budget.Usage().Refused[memory.Transaction]; refused != 2 {
		t.Errorf("%d statements were refused", refused)
	}
	_, err = h.data.Rollback(h.ctx, &spannerpb.RollbackRequest{Session: ses, TransactionId: begun.Id})
	h.ok(err)
	returned(budget)
}

// TestBatchResults: the results of a batch of DML are charged to the budget. A batch that is refused for lack of memory
// can be sent again.
func TestBatchResults(t *testing.T) {
	h, budget := newBudgetHarness(t, 4*mib)
	ses := h.session(false)
	for statements, want := range map[int]codes.Code{1000: codes.OK, 8000: codes.ResourceExhausted} {
		req := &spannerpb.ExecuteBatchDmlRequest{Session: ses, Seqno: 1,
			Transaction: &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Begin{Begin: readWrite()}}}
		for range statements {
			req.Statements = append(req.Statements, &spannerpb.ExecuteBatchDmlRequest_Statement{Sql: "DELETE FROM Singers WHERE FALSE"})
		}
		if _, err := h.data.ExecuteBatchDml(h.ctx, req); status.Code(err) != want {
			t.Errorf("%d statements: %v", statements, err)
		}
	}
	returned(budget)
}

// TestLongValues: a value that is longer than the budget is refused before it is encoded, in a streamed reply and in a
// single message.
func TestLongValues(t *testing.T) {
	h, budget := newBudgetHarness(t, 4*mib)
	ses := h.session(true)
	query := func(n int) *spannerpb.ExecuteSqlRequest {
		return &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT [@s" + strings.Repeat(", @s", n-1) + "]",
			Params: structOf("s", strings.Repeat("x", 100_000)), ParamTypes: map[string]*spannerpb.Type{"s": {Code: spannerpb.TypeCode_STRING}}}
	}
	for name, run := range map[string]func(n int) error{
		"message": func(n int) error {
			_, err := h.data.ExecuteSql(h.ctx, query(n))
			return err
		},
		"stream": func(n int) error {
			stream, err := h.data.ExecuteStreamingSql(h.ctx, query(n))
			for h.ok(err); err == nil; {
				_, err = stream.Recv()
			}
			if err == io.EOF {
				return nil
			}
			return err
		},
	} {
		h.ok(run(10))
		h.fails(run(60), codes.ResourceExhausted) // also prepares the statement, so that the next run need not
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		h.fails(run(60), codes.ResourceExhausted)
		runtime.ReadMemStats(&after)
		if made := after.TotalAlloc - before.TotalAlloc; made > 4*mib {
			t.Errorf("%s: %d bytes were allocated for a value that was refused", name, made)
		}
	}
	returned(budget)
}

package soak

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	grpcgzip "google.golang.org/grpc/encoding/gzip"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/bench/harness"
)

const (
	memoryDatabase = "projects/p/instances/i/databases/memory"
	memoryDDL      = `CREATE TABLE Blobs (Id INT64 NOT NULL, B BYTES(MAX)) PRIMARY KEY (Id);
CREATE TABLE Big (Id INT64 NOT NULL, Part INT64, Text STRING(MAX)) PRIMARY KEY (Id);
CREATE TABLE Small (Id INT64 NOT NULL, N INT64) PRIMARY KEY (Id);
`
	bigRows  = 200_000 // rows of the table Big
	bigText  = 1000    // bytes of padding in the text of each row of the table Big
	blobRows = 90      // rows of 1 MiB in a heavy commit

	slowReading    = 3 * time.Second // the time for which a slow reader keeps its streams open
	slowStreams    = 30              // streams that a slow reader opens
	batchedDML     = 1000            // statements in a batch
	dmlText        = 10_000          // bytes that each statement writes
	sessionsAtOnce = 100
)

// memorySchema writes the DDL of the schema to a file in dir and returns the name of the file.
func memorySchema(dir string) string {
	file := filepath.Join(dir, "schema.sql")
	_ = os.WriteFile(file, []byte(memoryDDL), 0o600) // if the file is missing, the server reports it
	return file
}

// memoryLoad sends heavy requests of each kind in turn. It builds the large messages only once, so that this program
// itself needs little memory.
type memoryLoad struct {
	outcomes outcomes
	conns    []*grpc.ClientConn
	heavy    spannerpb.SpannerClient
	light    spannerpb.SpannerClient
	rest     string
	session  string
	serial   atomic.Int64 // makes query texts unique

	commit, restCommit []byte
	bomb               []byte
	batch              *spannerpb.ExecuteBatchDmlRequest
}

// heavyKind is a kind of heavy request. The field run is a function that sends one request, or several, and returns the
// first error.
type heavyKind struct {
	name      string
	run       func(context.Context) error
	permitted []codes.Code // codes that an answer may have besides OK and RESOURCE_EXHAUSTED
}

func (l *memoryLoad) kinds() []heavyKind {
	conflict := []codes.Code{codes.Aborted} // the commits write the same rows
	return []heavyKind{
		{"commit", l.largeCommit(), conflict},
		{"commit gzip", l.largeCommit(grpc.UseCompressor(grpcgzip.Name)), conflict},
		{"commit REST", l.largeRESTCommit, conflict},
		// The server refuses the decompressed request as too large for its method.
		{"gzip bomb", l.gzipBomb, []codes.Code{codes.InvalidArgument}},
		{"sort", l.query("SELECT b.Text FROM Big b ORDER BY b.Text DESC, b.Id LIMIT 1000000"), nil},
		{"join", l.query("SELECT COUNT(*) FROM Big a JOIN@{JOIN_METHOD=HASH_JOIN} Big b ON a.Text = b.Text"), nil},
		{"aggregation", l.query("SELECT b.Text, ANY_VALUE(b.Text), COUNT(*) FROM Big b GROUP BY b.Text, b.Id"), nil},
		{"large result", l.unaryQuery("SELECT b.Id, b.Text FROM Big b LIMIT 9000"), nil},
		{"slow reader", l.slowReader, nil},
		{"IN list", l.inList, nil},
		{"new texts", l.newTexts, nil},
		{"sessions", l.sessions, nil},
		{"batch DML", l.batchDML, nil},
	}
}

func newMemoryLoad(ctx context.Context, p *harness.Process, s MemorySettings) (l *memoryLoad, err error) {
	l = &memoryLoad{outcomes: outcomes{byKind: map[string]*outcome{}}, rest: "http://" + p.HTTP}
	dial := func() spannerpb.SpannerClient {
		var conn *grpc.ClientConn
		conn, err = grpc.NewClient(p.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithDefaultCallOptions(grpc.ForceCodecV2(encodedCodec{encoding.GetCodecV2(protocodec.Name)}), grpc.MaxCallRecvMsgSize(64<<20)))
		if err == nil {
			l.conns = append(l.conns, conn)
		}
		return spannerpb.NewSpannerClient(conn)
	}
	l.heavy, l.light = dial(), dial()
	if err != nil {
		return nil, err
	}
	ses, err := l.light.CreateSession(ctx, &spannerpb.CreateSessionRequest{Database: memoryDatabase, Session: &spannerpb.Session{Multiplexed: true}})
	if err != nil {
		return nil, err
	}
	l.session = ses.Name
	if err := l.messages(); err != nil {
		return nil, err
	}
	return l, l.fill(ctx)
}

func (l *memoryLoad) close() {
	for _, c := range l.conns {
		c.Close()
	}
}

// messages builds the large messages.
func (l *memoryLoad) messages() (err error) {
	text := base64.StdEncoding.EncodeToString(make([]byte, 1<<20))
	commit := l.write("Blobs", []string{"Id", "B"}, blobRows, func(i int) []string { return []string{strconv.Itoa(i), text} })
	if l.commit, err = proto.Marshal(commit); err != nil {
		return err
	}
	if l.restCommit, err = protojson.Marshal(commit); err != nil {
		return err
	}
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	zeros := make([]byte, 1<<20)
	for range 500 {
		if _, err := w.Write(zeros); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	l.bomb = zipped.Bytes()
	l.batch = &spannerpb.ExecuteBatchDmlRequest{Session: l.session, Seqno: 1, Transaction: &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Begin{Begin: readWrite()}}}
	large := strings.Repeat("x", dmlText)
	for i := range batchedDML {
		l.batch.Statements = append(l.batch.Statements, &spannerpb.ExecuteBatchDmlRequest_Statement{Sql: "INSERT OR UPDATE INTO Big (Id, Text) VALUES (@id, @text)",
			Params:     &structpb.Struct{Fields: map[string]*structpb.Value{"id": structpb.NewStringValue(strconv.Itoa(-1 - i)), "text": structpb.NewStringValue(large)}},
			ParamTypes: map[string]*spannerpb.Type{"id": {Code: spannerpb.TypeCode_INT64}, "text": {Code: spannerpb.TypeCode_STRING}}})
	}
	return nil
}

func readWrite() *spannerpb.TransactionOptions {
	return &spannerpb.TransactionOptions{Mode: &spannerpb.TransactionOptions_ReadWrite_{ReadWrite: new(spannerpb.TransactionOptions_ReadWrite)}}
}

// write returns a commit request that writes rows. A call of row(i) returns the values of row i as texts, one for each
// column.
func (l *memoryLoad) write(table string, columns []string, rows int, row func(int) []string) *spannerpb.CommitRequest {
	w := &spannerpb.Mutation_Write{Table: table, Columns: columns}
	for i := range rows {
		list := new(structpb.ListValue)
		for _, text := range row(i) {
			list.Values = append(list.Values, structpb.NewStringValue(text))
		}
		w.Values = append(w.Values, list)
	}
	return &spannerpb.CommitRequest{Session: l.session, Transaction: &spannerpb.CommitRequest_SingleUseTransaction{SingleUseTransaction: readWrite()},
		Mutations: []*spannerpb.Mutation{{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: w}}}}
}

// fill fills the tables that the queries read.
func (l *memoryLoad) fill(ctx context.Context) error {
	const each = 10_000
	padding := strings.Repeat("x", bigText)
	for first := 0; first < bigRows; first += each {
		_, err := l.light.Commit(ctx, l.write("Big", []string{"Id", "Part", "Text"}, each, func(i int) []string {
			id := strconv.Itoa(first + i)
			return []string{id, strconv.Itoa((first + i) % 10), id + padding}
		}))
		if err != nil {
			return fmt.Errorf("fill Big: %w", err)
		}
	}
	_, err := l.light.Commit(ctx, l.write("Small", []string{"Id", "N"}, 1000, func(i int) []string { return []string{strconv.Itoa(i), "0"} }))
	return err
}

// run sends requests for the duration s.For. It then waits for the requests in progress.
func (l *memoryLoad) run(ctx context.Context, s MemorySettings) {
	over, cancel := context.WithTimeout(ctx, s.For)
	defer cancel()
	request, cut := context.WithTimeout(ctx, s.For+drainLimit)
	defer cut()
	kinds := slices.DeleteFunc(l.kinds(), func(k heavyKind) bool { return len(s.Kinds) > 0 && !slices.Contains(s.Kinds, k.name) })
	var group sync.WaitGroup
	for i := range s.Heavy {
		group.Go(func() {
			for n := i; over.Err() == nil; n++ {
				k := kinds[n%len(kinds)]
				began := time.Now()
				err := k.run(request)
				l.outcomes.add(k.name, false, time.Since(began), err, k.permitted...)
				if status.Code(err) == codes.Unavailable {
					time.Sleep(time.Second) // the server has ended, so all further requests would fail at once
				}
			}
		})
	}
	for i := range lightClients {
		group.Go(func() { l.small(over, request, i) })
	}
	group.Wait()
}

// small sends small requests of each kind in turn. An application would send such requests at the same time as the
// heavy ones.
func (l *memoryLoad) small(over, request context.Context, client int) {
	for n := 0; over.Err() == nil; n++ {
		id := strconv.Itoa((n*lightClients + client) % 1000)
		for _, k := range []heavyKind{{name: "small read", run: func(ctx context.Context) error { return l.pointRead(ctx, id) }},
			{name: "small query", run: func(ctx context.Context) error {
				_, err := l.light.ExecuteSql(ctx, &spannerpb.ExecuteSqlRequest{Session: l.session, Sql: "SELECT N FROM Small WHERE Id = @id", Params: parameters("id", id),
					ParamTypes: map[string]*spannerpb.Type{"id": {Code: spannerpb.TypeCode_INT64}}})
				return err
			}},
			{name: "small commit", run: func(ctx context.Context) error {
				_, err := l.light.Commit(ctx, l.write("Small", []string{"Id", "N"}, 1, func(int) []string { return []string{id, strconv.Itoa(n)} }))
				return err
			}}} {
			began := time.Now()
			err := k.run(request)
			l.outcomes.add(k.name, true, time.Since(began), err)
		}
		time.Sleep(10 * time.Millisecond) // the pause leaves the server's capacity to the heavy requests
	}
}

func (l *memoryLoad) pointRead(ctx context.Context, id string) error {
	_, err := l.light.Read(ctx, &spannerpb.ReadRequest{Session: l.session, Table: "Small", Columns: []string{"Id", "N"},
		KeySet: &spannerpb.KeySet{Keys: []*structpb.ListValue{{Values: []*structpb.Value{structpb.NewStringValue(id)}}}}})
	return err
}

func parameters(name, text string) *structpb.Struct {
	return &structpb.Struct{Fields: map[string]*structpb.Value{name: structpb.NewStringValue(text)}}
}

// encoded is a request that is already encoded.
type encoded []byte

// encodedCodec sends an encoded request unchanged.
type encodedCodec struct{ encoding.CodecV2 }

func (c encodedCodec) Marshal(v any) (mem.BufferSlice, error) {
	if b, ok := v.(encoded); ok {
		return mem.BufferSlice{mem.SliceBuffer(b)}, nil
	}
	return c.CodecV2.Marshal(v)
}

func (l *memoryLoad) largeCommit(opts ...grpc.CallOption) func(context.Context) error {
	return func(ctx context.Context) error {
		return l.conns[0].Invoke(ctx, spannerpb.Spanner_Commit_FullMethodName, encoded(l.commit), new(spannerpb.CommitResponse), opts...)
	}
}

// gzipBomb sends a compressed REST request that decompresses to a thousand times its size.
func (l *memoryLoad) gzipBomb(ctx context.Context) error { return l.post(ctx, l.bomb, "gzip") }

func (l *memoryLoad) largeRESTCommit(ctx context.Context) error {
	return l.post(ctx, l.restCommit, "identity")
}

// post sends a commit by REST.
func (l *memoryLoad) post(ctx context.Context, body []byte, coding string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, l.rest+"/v1/"+l.session+":commit", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Encoding", coding)
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	switch reply.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusTooManyRequests:
		return status.Error(codes.ResourceExhausted, reply.Status)
	case http.StatusConflict:
		return status.Error(codes.Aborted, reply.Status)
	case http.StatusBadRequest:
		return status.Error(codes.InvalidArgument, reply.Status)
	}
	return status.Error(codes.Unknown, reply.Status)
}

// query returns a function that runs a query and reads all rows of the result.
func (l *memoryLoad) query(sql string) func(context.Context) error {
	return func(ctx context.Context) error {
		stream, err := l.heavy.ExecuteStreamingSql(ctx, &spannerpb.ExecuteSqlRequest{Session: l.session, Sql: sql})
		for err == nil {
			_, err = stream.Recv()
		}
		return atEnd(err)
	}
}

func (l *memoryLoad) unaryQuery(sql string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := l.heavy.ExecuteSql(ctx, &spannerpb.ExecuteSqlRequest{Session: l.session, Sql: sql})
		return err
	}
}

// slowReader opens streams and reads only the first message of each.
func (l *memoryLoad) slowReader(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for range slowStreams {
		stream, err := l.heavy.StreamingRead(ctx, &spannerpb.ReadRequest{Session: l.session, Table: "Big", Columns: []string{"Id", "Text"}, KeySet: &spannerpb.KeySet{All: true}})
		if err == nil {
			_, err = stream.Recv()
		}
		if err != nil {
			return err
		}
	}
	select {
	case <-time.After(slowReading):
	case <-ctx.Done():
	}
	return nil
}

// inList sends a query with an IN list of 10,000 values, which is Spanner's limit. The values are literals, so that
// each text is new to the server, which must parse and plan it.
func (l *memoryLoad) inList(ctx context.Context) error {
	var text strings.Builder
	text.WriteString("SELECT COUNT(*) FROM Big WHERE Id IN (")
	first := int(l.serial.Add(1))
	for i := range 9_999 {
		fmt.Fprintf(&text, "%d, ", first+i)
	}
	text.WriteString("0)")
	_, err := l.heavy.ExecuteSql(ctx, &spannerpb.ExecuteSqlRequest{Session: l.session, Sql: text.String()})
	return err
}

// newTexts sends queries with long texts that were never sent before. The server prepares each of them and keeps the
// plan in its cache.
func (l *memoryLoad) newTexts(ctx context.Context) error {
	for range 10 {
		sql := fmt.Sprintf("SELECT N AS n%d FROM Small WHERE Id = 1 -- %s", l.serial.Add(1), strings.Repeat("x", 500_000))
		if _, err := l.heavy.ExecuteSql(ctx, &spannerpb.ExecuteSqlRequest{Session: l.session, Sql: sql}); err != nil {
			return err
		}
	}
	return nil
}

// sessions sends a request that creates sessions. It never deletes the sessions.
func (l *memoryLoad) sessions(ctx context.Context) error {
	_, err := l.heavy.BatchCreateSessions(ctx, &spannerpb.BatchCreateSessionsRequest{Database: memoryDatabase, SessionCount: sessionsAtOnce})
	return err
}

// batchDML writes many rows with one ExecuteBatchDml. It then deletes the session, which rolls the transaction back.
func (l *memoryLoad) batchDML(ctx context.Context) error {
	ses, err := l.heavy.CreateSession(ctx, &spannerpb.CreateSessionRequest{Database: memoryDatabase})
	if err != nil {
		return err
	}
	defer l.heavy.DeleteSession(ctx, &spannerpb.DeleteSessionRequest{Name: ses.Name})
	batch := &spannerpb.ExecuteBatchDmlRequest{Session: ses.Name, Seqno: 1, Transaction: l.batch.Transaction, Statements: l.batch.Statements}
	reply, err := l.heavy.ExecuteBatchDml(ctx, batch)
	if err == nil {
		err = status.ErrorProto(reply.Status)
	}
	if status.Code(err) == codes.Aborted {
		return nil // another batch writes the same rows, so the abort is correct
	}
	return err
}

// atEnd returns nil if err is the end of a stream, else err.
func atEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

package server

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/txn"
)

// discard releases the frames of a stream, as gRPC does after it has written them, and counts their bytes.
type discard struct{ bytes int }

func (d *discard) send(m any) error {
	f, ok := m.(*rpc.Frame)
	if !ok {
		return nil // gRPC would encode this message itself, so there is no frame to release
	}
	d.bytes += len(f.Data)
	f.Release()
	return nil
}

// benchHarness returns a server whose table Wide has one row of 1 kB, and a session.
func benchHarness(b *testing.B) (*harness, string) { return benchHarnessOf(b, Config{}) }

func benchHarnessOf(b *testing.B, cfg Config) (*harness, string) {
	cfg.Clock, cfg.Log = time.Now, slog.New(slog.DiscardHandler)
	h := newHarnessOf(b, cfg)
	ses := h.session(true)
	_, err := h.data.Commit(h.ctx, singleUse(ses, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{
		Table: "Wide", Columns: []string{"Id", "A", "B"}, Values: []*structpb.ListValue{list("1", strings.Repeat("a", 500), strings.Repeat("b", 500))},
	}}}))
	if err != nil {
		b.Fatal(err)
	}
	return h, ses
}

// BenchmarkPointRead measures a READ of one row in the server, from the decoding of the request to the sending of the
// reply, without gRPC's network code.
func BenchmarkPointRead(b *testing.B) {
	for _, c := range []struct {
		name string
		cfg  Config
	}{{"statistics", Config{}}, {"none", Config{NoStatistics: true}}} {
		b.Run(c.name, func(b *testing.B) {
			h, ses := benchHarnessOf(b, c.cfg)
			pointRead(b, h, ses)
		})
	}
}

func pointRead(b *testing.B, h *harness, ses string) {
	req := &spannerpb.ReadRequest{
		Session: ses, Table: "Wide", Columns: []string{"Id", "A", "B"}, KeySet: &spannerpb.KeySet{Keys: []*structpb.ListValue{list("1")}},
	}
	run(b, func(send func(any) error) error { return h.stream("StreamingRead", req, send) })
}

// BenchmarkPointQuery measures, without gRPC's network code, a SELECT of one row by its key, which is a parameter.
func BenchmarkPointQuery(b *testing.B) {
	h, ses := benchHarness(b)
	req := &spannerpb.ExecuteSqlRequest{
		Session: ses, Sql: "SELECT Id, A, B FROM Wide WHERE Id = @id", Params: structOf("id", "1"),
		ParamTypes: map[string]*spannerpb.Type{"id": {Code: spannerpb.TypeCode_INT64}},
	}
	run(b, func(send func(any) error) error { return h.stream("ExecuteStreamingSql", req, send) })
}

func run(b *testing.B, call func(send func(any) error) error) {
	out := new(discard)
	send := out.send
	b.ReportAllocs()
	for b.Loop() {
		if err := call(send); err != nil {
			b.Fatal(err)
		}
	}
	if out.bytes < b.N*1000 {
		b.Fatalf("only %d bytes for %d rows", out.bytes, b.N)
	}
}

// BenchmarkCommit measures a commit of one row without gRPC and without a disk.
func BenchmarkCommit(b *testing.B) {
	h, ses := benchHarness(b)
	mutation := &spannerpb.Mutation{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: &spannerpb.Mutation_Write{
		Table: "Wide", Columns: []string{"Id", "A", "B"}, Values: []*structpb.ListValue{list("1", strings.Repeat("a", 500), strings.Repeat("b", 500))},
	}}}
	b.ReportAllocs()
	for b.Loop() { // a new request each time, because the server removes the mutations from it
		if err := h.stream("Commit", singleUse(ses, mutation), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWrite compares transactions that insert or update by DML with a commit of mutations, without gRPC and
// without a disk.
func BenchmarkWrite(b *testing.B) {
	for _, c := range []struct {
		name string
		dml  func(h *harness, ses string, i int)
		muts int
	}{
		{"mutation", nil, 1},
		{"insert", func(h *harness, ses string, i int) { h.dml(ses, insertWide, i, 1) }, 0},
		{"update", func(h *harness, ses string, i int) { h.dml(ses, updateWide, 1, 1) }, 0},
		{"mutations of 4", nil, 4},
		{"4 inserts", func(h *harness, ses string, i int) { h.dml(ses, insertWide, i, 4) }, 0},
		{"4 updates", func(h *harness, ses string, i int) { h.dml(ses, updateWide, 1, 4) }, 0},
		{"batch of 4 inserts", func(h *harness, ses string, i int) { h.batchDML(ses, i, 4) }, 0},
	} {
		b.Run(c.name, func(b *testing.B) {
			h, ses := benchHarness(b)
			b.ReportAllocs()
			for i := 2; b.Loop(); i += 4 {
				if c.dml == nil {
					h.ok(h.stream("BeginTransaction", &spannerpb.BeginTransactionRequest{Session: ses, Options: readWrite()}, nil))
				} else {
					c.dml(h, ses, i)
				}
				var muts []*spannerpb.Mutation
				for n := range c.muts {
					muts = append(muts, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: &spannerpb.Mutation_Write{
						Table: "Wide", Columns: []string{"Id", "A", "B"}, Values: []*structpb.ListValue{list(fmt.Sprint(i+n), someText, someText)},
					}}})
				}
				h.ok(h.stream("Commit", commitOf(ses, h.newest(ses), muts...), nil))
			}
		})
	}
}

const (
	insertWide = "INSERT INTO Wide (Id, A, B) VALUES (@id, @text, @text)"
	updateWide = "UPDATE Wide SET A = @text WHERE Id = @id"
)

var someText = strings.Repeat("a", 100)

// newest returns the id of the newest transaction of the server, encoded as an id for the session ses.
func (h *harness) newest(ses string) []byte {
	ts := &h.server.data.transactions
	return newReadWriteID(ts.tokens, readWriteID, ses, txn.ClientID{Start: ts.start, Number: ts.last.Load()})
}

// dml runs a statement once for each of the given number of rows, whose keys begin at id. The first execution begins a
// transaction, and the others run in the same transaction. The caller commits it.
func (h *harness) dml(ses, sql string, id, rows int) {
	sel := begins(readWrite())
	for n := range rows {
		h.ok(h.stream("ExecuteSql", &spannerpb.ExecuteSqlRequest{
			Session: ses, Transaction: sel, Seqno: int64(n + 1), Sql: sql, Params: wideRow(id + n), ParamTypes: wideTypes,
		}, nil))
		sel = byID(h.newest(ses))
	}
}

func (h *harness) batchDML(ses string, id, rows int) {
	req := &spannerpb.ExecuteBatchDmlRequest{Session: ses, Transaction: begins(readWrite()), Seqno: 1}
	for n := range rows {
		req.Statements = append(req.Statements, &spannerpb.ExecuteBatchDmlRequest_Statement{Sql: insertWide, Params: wideRow(id + n), ParamTypes: wideTypes})
	}
	h.ok(h.stream("ExecuteBatchDml", req, nil))
}

var wideTypes = map[string]*spannerpb.Type{"id": {Code: spannerpb.TypeCode_INT64}, "text": {Code: spannerpb.TypeCode_STRING}}

func wideRow(id int) *structpb.Struct {
	s := structOf("id", fmt.Sprint(id))
	s.Fields["text"] = structpb.NewStringValue(someText)
	return s
}

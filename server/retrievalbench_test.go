package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// customerTable is TPC-H's table customer. The account balance is a NUMERIC, because the specification says decimal.
const customerTable = `CREATE TABLE customer (c_custkey INT64 NOT NULL, c_name STRING(25), c_address STRING(40), c_nationkey INT64, c_phone STRING(15),
	c_acctbal NUMERIC, c_mktsegment STRING(10), c_comment STRING(117)) PRIMARY KEY (c_custkey)`

var customerColumns = []string{"c_custkey", "c_name", "c_address", "c_nationkey", "c_phone", "c_acctbal", "c_mktsegment", "c_comment"}

const (
	customerRows = 300_000
	// retrievalClient is an environment variable. It is set for the process that runs the client of BenchmarkRetrieval.
	retrievalClient = "CROWFOOT_RETRIEVAL_CLIENT"
)

// BenchmarkRetrieval measures the streaming of all 300,000 rows of TPC-H's table customer, which are on disk, to one
// client in another process. The client has a hand-written decoder, which either makes an object of each row, or looks
// at every value and makes nothing. Runs of the server alternate with runs of a second server that sends the same
// messages, recorded beforehand. The store's cache holds the whole table, or a small part of it. cpu-us/row is the CPU
// time of the server's process, including gRPC's library. ratio is the median of the server's rows per second divided
// by those of the second server.
func BenchmarkRetrieval(b *testing.B) {
	if os.Getenv(retrievalClient) != "" {
		if err := retrieve(os.Stdin, os.Stdout); err != nil {
			b.Fatal(err)
		}
		return
	}
	h := newHarnessIn(b, vfs.Default, b.TempDir(), Config{Clock: time.Now, Log: slog.New(slog.DiscardHandler)}, []string{customerTable})
	h.fillCustomer(h.session(true))
	for _, cache := range []struct {
		name  string
		bytes int64
	}{{"cached", 256 << 20}, {"uncached", 8 << 20}} {
		h.cache = cache.bytes
		h.restart()
		b.Run(cache.name, func(b *testing.B) { h.benchRetrieval(b, h.startClient(b)) })
	}
}

func (h *harness) benchRetrieval(b *testing.B, client *clientProcess) {
	ses := h.session(true)
	read := &spannerpb.ReadRequest{Session: ses, Table: "customer", Columns: customerColumns, KeySet: allKeys()}
	for _, c := range []struct {
		name, method string
		request      proto.Message
		keep         bool
	}{
		{"READ", "StreamingRead", read, true},
		{"SQL", "ExecuteStreamingSql", &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT * FROM customer"}, true},
		{"filter", "ExecuteStreamingSql", &spannerpb.ExecuteSqlRequest{Session: ses, Sql: "SELECT * FROM customer WHERE c_nationkey >= 0"}, true},
		{"READ to nowhere", "StreamingRead", read, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			request, err := proto.Marshal(c.request)
			h.ok(err)
			method := "/google.spanner.v1.Spanner/" + c.method
			canned := h.serveCanned(b, method, request)
			var ours, theirs []float64
			var cpu time.Duration
			for b.Loop() {
				began := processTime(b)
				got := client.ask(b, retrieval{h.address, method, request, c.keep})
				cpu += processTime(b) - began
				ours = append(ours, got.rate())
				theirs = append(theirs, client.ask(b, retrieval{canned, method, request, c.keep}).rate())
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/1000/float64(b.N)/customerRows, "cpu-us/row")
			b.ReportMetric(median(ours), "rows/s")
			b.ReportMetric(median(theirs), "canned-rows/s")
			b.ReportMetric(median(ours)/median(theirs), "ratio")
		})
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// fillCustomer writes rows of customer with random values, of the types and lengths that TPC-H specifies.
func (h *harness) fillCustomer(ses string) {
	random := rand.New(rand.NewPCG(1, 1))
	text := func(least, most int) string {
		const letters = "abcdefghijklmnopqrstuvwxyz ,. ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789"
		b := make([]byte, least+random.IntN(most-least+1))
		for i := range b {
			b[i] = letters[random.IntN(len(letters))]
		}
		return string(b)
	}
	segments := []string{"AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY"}
	const perCommit = 2000
	for key := 1; key <= customerRows; {
		write := &spannerpb.Mutation_Write{Table: "customer", Columns: customerColumns}
		for range perCommit {
			write.Values = append(write.Values, &structpb.ListValue{Values: []*structpb.Value{
				structpb.NewStringValue(fmt.Sprint(key)), structpb.NewStringValue(fmt.Sprintf("Customer#%09d", key)), structpb.NewStringValue(text(10, 40)),
				structpb.NewStringValue(fmt.Sprint(random.IntN(25))), structpb.NewStringValue(fmt.Sprintf("%d-%d-%d-%d", 10+random.IntN(25), 100+random.IntN(900), 100+random.IntN(900), 1000+random.IntN(9000))),
				structpb.NewStringValue(fmt.Sprintf("%.2f", random.Float64()*10998.98-999.99)), structpb.NewStringValue(segments[random.IntN(5)]), structpb.NewStringValue(text(29, 116)),
			}})
			key++
		}
		h.ok(h.stream("Commit", singleUse(ses, &spannerpb.Mutation{Operation: &spannerpb.Mutation_Insert{Insert: write}}), nil))
	}
}

// A retrieval is a request to the client process: get all rows of customer from the server at Address.
type retrieval struct {
	Address, Method string
	Request         []byte
	Keep            bool // whether the client makes an object of each row
}

// A retrieved is the client process's answer to a retrieval.
type retrieved struct {
	Values, Bytes int64
	Took          time.Duration
}

func (r retrieved) rate() float64 { return customerRows / r.Took.Seconds() }

// A clientProcess is the process that runs the client for the benchmark.
type clientProcess struct {
	in  *json.Encoder
	out *json.Decoder
}

func (h *harness) startClient(b *testing.B) *clientProcess {
	c := exec.Command(os.Args[0], "-test.run=^$", "-test.bench=^BenchmarkRetrieval$", "-test.benchtime=1x")
	c.Env, c.Stderr = append(os.Environ(), retrievalClient+"=1"), os.Stderr
	in, err := c.StdinPipe()
	h.ok(err)
	out, err := c.StdoutPipe()
	h.ok(err)
	h.ok(c.Start())
	b.Cleanup(func() {
		in.Close()
		c.Wait()
	})
	lines := bufio.NewReader(out)
	for line := ""; line != "ready\n"; { // skips the output of package testing
		line, err = lines.ReadString('\n')
		h.ok(err)
	}
	return &clientProcess{json.NewEncoder(in), json.NewDecoder(lines)}
}

func (c *clientProcess) ask(t testing.TB, r retrieval) (got retrieved) {
	if err := errors.Join(c.in.Encode(r), c.out.Decode(&got)); err != nil {
		t.Fatal(err)
	}
	if want := int64(customerRows * len(customerColumns)); got.Values != want {
		t.Fatalf("%s sent %d values, want %d", r.Address, got.Values, want)
	}
	return got
}

// retrieve is the main function of the client process: it answers retrievals until the input ends.
func retrieve(in io.Reader, out io.Writer) error {
	fmt.Fprintln(out, "\nready")
	requests, replies := json.NewDecoder(in), json.NewEncoder(out)
	conns := map[string]*grpc.ClientConn{}
	for {
		var r retrieval
		if err := requests.Decode(&r); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if conns[r.Address] == nil {
			conn, err := grpc.NewClient(r.Address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
			if err != nil {
				return err
			}
			conns[r.Address] = conn
		}
		got, err := r.run(conns[r.Address])
		if err = errors.Join(err, replies.Encode(got)); err != nil {
			return err
		}
	}
}

func (r *retrieval) run(conn *grpc.ClientConn) (got retrieved, err error) {
	began := time.Now()
	stream, err := conn.NewStream(context.Background(), &grpc.StreamDesc{ServerStreams: true}, r.Method)
	if err == nil {
		err = errors.Join(stream.SendMsg(r.Request), stream.CloseSend())
	}
	for err == nil {
		reply := decodedMessage{keep: r.Keep}
		if err = stream.RecvMsg(&reply); err == nil {
			got.Values, got.Bytes = got.Values+reply.values, got.Bytes+reply.bytes
		}
	}
	if err == io.EOF {
		err = nil
	}
	got.Took = time.Since(began)
	return got, err
}

// A customer is a row of the table customer as an object.
type customer struct {
	key, nation                                     int64
	name, address, phone, balance, segment, comment string
}

// A decodedMessage is the decoded content of a PartialResultSet with rows of customer. Each message ends with a
// complete row.
type decodedMessage struct {
	keep   bool // whether to make an object of each row
	rows   []customer
	values int64
	bytes  int64 // total length of the values as text, in bytes
}

// decode decodes a message. It looks at every value, so that no value is skipped even if no objects are made.
func (m *decodedMessage) decode(b []byte) error {
	all := ""
	if m.keep {
		all = string(b) // the strings of the rows are substrings of this copy
		m.rows = make([]customer, 0, len(b)/150)
	}
	for at := 0; at < len(b); {
		num, kind, n := protowire.ConsumeTag(b[at:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		at += n
		if num != 2 {
			if n = protowire.ConsumeFieldValue(num, kind, b[at:]); n < 0 {
				return protowire.ParseError(n)
			}
			at += n
			continue
		}
		body, n := protowire.ConsumeBytes(b[at:])
		if n < 0 || len(body) < 2 || body[0] != 3<<3|2 { // the value must be a google.protobuf.Value with a string
			return io.ErrUnexpectedEOF
		}
		at += n
		text, n := protowire.ConsumeBytes(body[1:])
		if n < 0 {
			return protowire.ParseError(n)
		}
		m.bytes += int64(len(text))
		if m.keep {
			if err := m.set(all[at-len(text) : at]); err != nil {
				return err
			}
		}
		m.values++
	}
	return nil
}

// set stores text as the next value of the rows. After the last column of a row it begins a new row.
func (m *decodedMessage) set(text string) (err error) {
	column := m.values % 8
	if column == 0 {
		m.rows = append(m.rows, customer{})
	}
	row := &m.rows[len(m.rows)-1]
	switch column {
	case 0:
		row.key, err = strconv.ParseInt(text, 10, 64)
	case 1:
		row.name = text
	case 2:
		row.address = text
	case 3:
		row.nation, err = strconv.ParseInt(text, 10, 64)
	case 4:
		row.phone = text
	case 5:
		row.balance = text
	case 6:
		row.segment = text
	case 7:
		row.comment = text
	}
	return err
}

// rawCodec is a gRPC codec that sends and receives encoded messages as bytes, and decodes into a decodedMessage.
type rawCodec struct{}

// Name implements encoding.CodecV2.
func (rawCodec) Name() string { return "proto" }

// Marshal implements encoding.CodecV2.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

// Unmarshal implements encoding.CodecV2.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	switch v := v.(type) {
	case *decodedMessage:
		whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
		defer whole.Free()
		return v.decode(whole.ReadOnlyData())
	case *[]byte:
		*v = data.Materialize()
	}
	return nil
}

// serveCanned sends the given request to the server of h and records the messages of the reply. It then starts a second
// server that answers every request with these messages, and returns the second server's address.
func (h *harness) serveCanned(b *testing.B, method string, request []byte) string {
	conn, err := grpc.NewClient(h.address, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{})))
	h.ok(err)
	defer conn.Close()
	stream, err := conn.NewStream(h.ctx, &grpc.StreamDesc{ServerStreams: true}, method)
	h.ok(err)
	h.ok(errors.Join(stream.SendMsg(request), stream.CloseSend()))
	var messages [][]byte
	for {
		var message []byte
		if err := stream.RecvMsg(&message); err == io.EOF {
			break
		} else if err != nil {
			h.Fatal(err)
		}
		messages = append(messages, message)
	}
	s := grpc.NewServer(grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		for _, m := range messages {
			if err := stream.SendMsg(m); err != nil {
				return err
			}
		}
		return nil
	}))
	b.Cleanup(s.Stop)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	h.ok(err)
	go s.Serve(l)
	return l.Addr().String()
}

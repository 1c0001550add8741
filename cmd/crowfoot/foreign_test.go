package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/extensions"
	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/compress"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk"
	"github.com/crowfoot-db/crowfoot/bulk/file"
)

// The tests in this file send data with changed bytes: streams, parameters, tickets and actions of Flight SQL to a
// server in a process of its own, and files to import. Each stream or file has a seed, which determines the data and
// the changes, so that a failure can be repeated. CROWFOOT_TEST_FOREIGN_SEEDS=17-18 runs only the seed 17.

const (
	foreignSeedsName = "CROWFOOT_TEST_FOREIGN_SEEDS"
	foreignSeeds     = 2000
	// foreignMemory is the memory limit of the server, in MiB.
	foreignMemory = 768
)

// seedsOf returns the range of seeds that an environment variable gives as FROM-TO.
func seedsOf(t *testing.T, name string, byDefault uint64) (from, to uint64) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return 0, byDefault
	}
	if _, err := fmt.Sscanf(text, "%d-%d", &from, &to); err != nil {
		t.Fatalf("%s=%s: %v", name, text, err)
	}
	return from, to
}

const foreignDDL = `CREATE TABLE Every (K INT64 NOT NULL, Flag BOOL, Whole INT64, Single FLOAT32, Double FLOAT64, Price NUMERIC, Text STRING(MAX), Data BYTES(MAX), Day DATE,
	Stamp TIMESTAMP, Doc JSON, Uid UUID, Wholes ARRAY<INT64>, Texts ARRAY<STRING(MAX)>, Flags ARRAY<BOOL>, Prices ARRAY<NUMERIC>) PRIMARY KEY (K)`

// TestForeignStreams checks that streams, tickets and actions with changed bytes do no harm. None may end the server,
// get an answer that blames the server (such as INTERNAL), or make the server use more memory than its limit.
func TestForeignStreams(t *testing.T) {
	server, address := startServer(t, "--data", filepath.Join(t.TempDir(), "data"), "--memory", fmt.Sprint(foreignMemory, "MiB"), "--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", foreignDDL))
	f := newForeign(t, address)
	from, to := seedsOf(t, foreignSeedsName, foreignSeeds)
	var next atomic.Uint64
	next.Store(from)
	var mu sync.Mutex
	found := map[codes.Code]int{}
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for seed := next.Add(1) - 1; seed < to && !t.Failed(); seed = next.Add(1) - 1 {
				r := rand.New(rand.NewPCG(seed, 18))
				x := &f.exchanges[r.IntN(len(f.exchanges))]
				err := f.within(x, func(x *exchange) error { return f.send(x, x.changed(r)) })
				code := grpcstatus.Code(err)
				mu.Lock()
				found[code]++
				mu.Unlock()
				switch code {
				case codes.Internal, codes.Unknown, codes.Unavailable, codes.DataLoss, codes.DeadlineExceeded, codes.Canceled:
					t.Errorf("seed %d, %s: %v", seed, x.name, err)
				}
			}
		})
	}
	workers.Wait()
	for i := range f.exchanges {
		if x := &f.exchanges[i]; !t.Failed() {
			if err := f.within(x, func(x *exchange) error { return f.send(x, x.bytes()) }); err != nil {
				t.Errorf("%s, unchanged: %v", x.name, err)
			}
		}
	}
	peak, err := peakOf(server.Process.Pid)
	if err != nil {
		t.Error(err)
	}
	if peak > foreignMemory<<20 {
		t.Errorf("the server took %d MiB", peak>>20)
	}
	t.Logf("%d streams of %d kinds: %v; at most %d MiB", to-from, len(f.exchanges), found, peak>>20)
}

// peakOf returns the most bytes of RAM that a process has used, or 0 if the system does not report that.
func peakOf(pid int) (n int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	_, err = fmt.Sscanf(after, "%d kB", &n)
	return n << 10, err
}

// exchange is a call: its method, its headers, and the messages that the client sends.
type exchange struct {
	name, method string
	headers      []string
	messages     []proto.Message
	ingest       *flightpb.CommandStatementIngest // command of messages[0] if the call needs a transaction, else nil
}

// foreign sends exchanges to a server.
type foreign struct {
	*testing.T
	conn      *grpc.ClientConn
	client    *flightsql.Client
	exchanges []exchange
}

func newForeign(t *testing.T, address string) *foreign {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	client := &flightsql.Client{Client: flight.NewClientFromConn(conn, nil), Alloc: memory.DefaultAllocator}
	f := &foreign{T: t, conn: conn, client: client}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "database", crashDatabase)
	columns, err := foreignColumns()
	f.ok(err)
	for _, s := range columns {
		insert, err := client.Prepare(ctx, "INSERT OR UPDATE INTO Every (K, "+s.column+") VALUES (?, ?)")
		f.ok(err)
		for codec, options := range map[string][]ipc.Option{"": nil, " lz4": {ipc.WithLZ4()}, " zstd": {ipc.WithZstd()}} {
			name := s.array.DataType().String() + codec
			ingest := &flightpb.CommandStatementIngest{Table: "Every", TableDefinitionOptions: &flightpb.CommandStatementIngest_TableDefinitionOptions{
				IfNotExist: flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_NOT_EXIST_OPTION_CREATE,
				IfExists:   flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_EXISTS_OPTION_APPEND,
			}}
			f.upload("ingest of "+name, ingest, s, options, "ingest-mode", "insert-or-update")
			f.upload("one commit of "+name, ingest, s, options, "ingest-mode", "insert-or-update", "ingest-commits", "one")
			f.upload("ingest in a transaction of "+name, ingest, s, options, "ingest-mode", "insert-or-update")
			f.exchanges[len(f.exchanges)-1].ingest = ingest
			f.upload("parameters "+name, &flightpb.CommandPreparedStatementUpdate{PreparedStatementHandle: insert.Handle()}, s, options)
		}
		if s.column == "Text" {
			query, err := client.Prepare(ctx, "SELECT K FROM Every WHERE K = ? AND Text = ?")
			f.ok(err)
			f.upload("parameters of a query "+s.array.DataType().String(), &flightpb.CommandPreparedStatementQuery{PreparedStatementHandle: query.Handle()}, column{s.column, array.NewSlice(s.array, 0, 1)}, nil)
		}
	}
	// The loop over the map of codecs has added the exchanges in random order. They are sorted, so that a seed chooses
	// the same exchange in every run.
	slices.SortFunc(f.exchanges, func(a, b exchange) int { return strings.Compare(a.name, b.name) })
	for _, sql := range []string{"SELECT * FROM Every", "SELECT 1", "SELECT COUNT(*) FROM Every", "INSERT OR UPDATE INTO Every (K) VALUES (1) THEN RETURN K"} {
		f.add("GetFlightInfo of "+sql, "GetFlightInfo", descriptor(t, &flightpb.CommandStatementQuery{Query: sql}))
		f.add("GetSchema of "+sql, "GetSchema", descriptor(t, &flightpb.CommandStatementQuery{Query: sql}))
		info, err := client.Execute(ctx, sql)
		f.ok(err)
		for _, e := range info.Endpoint {
			f.add("ticket of "+sql, "DoGet", e.Ticket)
		}
		cancel, err := proto.Marshal(&flightpb.CancelFlightInfoRequest{Info: info})
		f.ok(err)
		f.add("CancelFlightInfo of "+sql, "DoAction", &flightpb.Action{Type: "CancelFlightInfo", Body: cancel})
		f.add("prepare "+sql, "DoAction", &flightpb.Action{Type: "CreatePreparedStatement", Body: packed(t, &flightpb.ActionCreatePreparedStatementRequest{Query: sql})})
		p, err := client.Prepare(ctx, sql)
		f.ok(err)
		f.add("GetFlightInfo prepared "+sql, "GetFlightInfo", descriptor(t, &flightpb.CommandPreparedStatementQuery{PreparedStatementHandle: p.Handle()}))
	}
	tables := &flightpb.CommandGetTables{IncludeSchema: true, TableTypes: []string{"BASE TABLE"}}
	f.add("GetFlightInfo of tables", "GetFlightInfo", descriptor(t, tables))
	f.add("update", "DoPut", &flightpb.FlightData{FlightDescriptor: descriptor(t, &flightpb.CommandStatementUpdate{Query: "UPDATE Every SET Flag = NOT Flag WHERE K = 1"})})
	return f
}

func (f *foreign) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *foreign) add(name, method string, m ...proto.Message) {
	f.exchanges = append(f.exchanges, exchange{name: name, method: method, headers: []string{"database", crashDatabase}, messages: m})
}

func packed(t *testing.T, command proto.Message) []byte {
	t.Helper()
	wrapped, err := anypb.New(command)
	if err != nil {
		t.Fatal(err)
	}
	body, err := proto.Marshal(wrapped)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func descriptor(t *testing.T, command proto.Message) *flightpb.FlightDescriptor {
	t.Helper()
	return &flightpb.FlightDescriptor{Type: flightpb.FlightDescriptor_CMD, Cmd: packed(t, command)}
}

// uploaded collects the messages that a client using Arrow's library would send.
type uploaded struct{ messages []proto.Message }

func (u *uploaded) Send(m *flight.FlightData) error {
	u.messages = append(u.messages, proto.Clone(m))
	return nil
}

// upload adds an exchange that sends keys and the values of one column. It sends them twice, in two batches, or once if
// there is only one value.
func (f *foreign) upload(name string, command proto.Message, s column, options []ipc.Option, headers ...string) {
	f.Helper()
	batch := s.withKeys()
	to := &uploaded{}
	w := flight.NewRecordWriter(to, append(options, ipc.WithSchema(batch.Schema()))...)
	w.SetFlightDescriptor(descriptor(f.T, command))
	f.ok(w.Write(batch))
	if s.array.Len() > 1 {
		f.ok(w.Write(batch))
	}
	f.ok(w.Close())
	f.exchanges = append(f.exchanges, exchange{name: name, method: "DoPut", headers: append([]string{"database", crashDatabase}, headers...), messages: to.messages})
}

// column has values for one column of the test's table.
type column struct {
	column string
	array  arrow.Array
}

// withKeys returns a batch with a key for each value, and the values.
func (c column) withKeys() arrow.RecordBatch {
	keys := array.NewInt64Builder(memory.DefaultAllocator)
	for i := range c.array.Len() {
		keys.Append(int64(i))
	}
	schema := arrow.NewSchema([]arrow.Field{{Name: "K", Type: arrow.PrimitiveTypes.Int64}, {Name: c.column, Type: c.array.DataType(), Nullable: true}}, nil)
	return array.NewRecordBatch(schema, []arrow.Array{keys.NewArray(), c.array}, int64(c.array.Len()))
}

// foreignColumns returns columns with values of every Arrow type that the server accepts.
func foreignColumns() (list []column, err error) {
	document, err := extensions.NewJSONType(arrow.BinaryTypes.String)
	if err != nil {
		return nil, err
	}
	dictionary := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
	for _, s := range []struct {
		column, json string
		types        []arrow.DataType
	}{
		{"Flag", `[true, null, false]`, []arrow.DataType{arrow.FixedWidthTypes.Boolean}},
		{"Whole", `[1, null, 3]`, []arrow.DataType{arrow.PrimitiveTypes.Int64, arrow.PrimitiveTypes.Int8, arrow.PrimitiveTypes.Uint16, arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Uint64}},
		{"Double", `[1.5, null]`, []arrow.DataType{arrow.PrimitiveTypes.Float64, arrow.FixedWidthTypes.Float16}},
		{"Single", `[1.5, null]`, []arrow.DataType{arrow.PrimitiveTypes.Float32}},
		{"Price", `["1.25", "-3", null]`, []arrow.DataType{&arrow.Decimal128Type{Precision: 38, Scale: 9}, &arrow.Decimal256Type{Precision: 76, Scale: 12}, &arrow.Decimal64Type{Precision: 18, Scale: 2}, &arrow.Decimal32Type{Precision: 9, Scale: 2}}},
		{"Text", `["a", null, "longer than twelve bytes", "a"]`, []arrow.DataType{arrow.BinaryTypes.String, arrow.BinaryTypes.LargeString, arrow.BinaryTypes.StringView, dictionary}},
		{"Data", `["AA==", null, ""]`, []arrow.DataType{arrow.BinaryTypes.Binary, arrow.BinaryTypes.BinaryView, arrow.BinaryTypes.LargeBinary}},
		{"Data", `["AAA=", null]`, []arrow.DataType{&arrow.FixedSizeBinaryType{ByteWidth: 2}}},
		{"Day", `["2020-02-29", null]`, []arrow.DataType{arrow.FixedWidthTypes.Date32, arrow.FixedWidthTypes.Date64}},
		{"Stamp", `["2020-02-29T01:02:03Z", null]`, []arrow.DataType{arrow.FixedWidthTypes.Timestamp_ns, arrow.FixedWidthTypes.Timestamp_us}},
		{"Doc", `["{}", null, "[1, 2]"]`, []arrow.DataType{document, arrow.BinaryTypes.String}},
		{"Uid", `["00112233-4455-6677-8899-aabbccddeeff", null]`, []arrow.DataType{extensions.NewUUIDType()}},
		{"Wholes", `[[1, null], [], null, [3]]`, []arrow.DataType{arrow.ListOf(arrow.PrimitiveTypes.Int64), arrow.LargeListOf(arrow.PrimitiveTypes.Int64), arrow.ListViewOf(arrow.PrimitiveTypes.Int32)}},
		{"Wholes", `[[1, 2], null]`, []arrow.DataType{arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int64)}},
		{"Texts", `[["a", null], [], null, ["b", "c"]]`, []arrow.DataType{arrow.ListOf(arrow.BinaryTypes.String), arrow.ListOf(arrow.BinaryTypes.StringView), arrow.ListOf(dictionary)}},
		{"Flags", `[[true, null], [], null]`, []arrow.DataType{arrow.ListOf(arrow.FixedWidthTypes.Boolean)}},
		{"Flags", `[[null, null], []]`, []arrow.DataType{arrow.ListOf(arrow.Null)}},
		{"Prices", `[["1.5", null], []]`, []arrow.DataType{arrow.ListOf(&arrow.Decimal128Type{Precision: 38, Scale: 9})}},
		{"Text", `[null, null]`, []arrow.DataType{arrow.Null}},
	} {
		for _, of := range s.types {
			values, _, err := array.FromJSON(memory.DefaultAllocator, of, strings.NewReader(s.json))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", of, err)
			}
			list = append(list, column{s.column, values})
		}
	}
	return list, nil
}

func (x *exchange) bytes() (list [][]byte) {
	for _, m := range x.messages {
		b, _ := proto.Marshal(m)
		list = append(list, b)
	}
	return list
}

// changed returns the messages of the exchange with random changes: one to five bytes changed, an integer replaced, two
// messages swapped and one repeated, a message left out, or several of these.
func (x *exchange) changed(r *rand.Rand) [][]byte {
	list := slices.Clone(x.messages)
	at := r.IntN(len(list))
	if m, ok := list[at].(*flightpb.FlightData); ok && r.IntN(8) > 0 {
		m = proto.Clone(m).(*flightpb.FlightData)
		switch part := r.IntN(10); {
		case part < 7:
			change(r, m.DataHeader)
		case part < 9:
			change(r, m.DataBody)
		default:
			change(r, m.GetFlightDescriptor().GetCmd())
		}
		list[at] = m
	} else if r.IntN(4) == 0 {
		other := r.IntN(len(list))
		list[at], list[other] = list[other], list[at]
		list = slices.Insert(list, at, list[r.IntN(len(list))])
	}
	all := (&exchange{messages: list}).bytes()
	if r.IntN(8) == 0 || len(x.messages) == 1 {
		change(r, all[at])
	}
	if r.IntN(50) == 0 && len(all) > 1 {
		all = slices.Delete(all, at, at+1)
	}
	return all
}

// change corrupts b: it alters random bytes, or overwrites one integer at an offset that is a multiple of the integer's
// size.
func change(r *rand.Rand, b []byte) {
	if len(b) < 8 {
		return
	}
	numbers := []uint64{0, 1, 7, 0x7f, 0xff, 1 << 16, 1 << 24, 1 << 30, 0x7fffffff, 0xffffffff, 0xfffffff0, 1 << 40, 1 << 62, 1<<64 - 1, r.Uint64(), uint64(r.IntN(len(b)))}
	n := numbers[r.IntN(len(numbers))]
	switch r.IntN(4) {
	case 0:
		binary.LittleEndian.PutUint32(b[r.IntN(len(b)/4)*4:], uint32(n))
	case 1:
		binary.LittleEndian.PutUint64(b[r.IntN(len(b)/8)*8:], n)
	default:
		for range 1 + r.IntN(5) {
			b[r.IntN(len(b))] = byte(numbers[r.IntN(len(numbers))])
		}
	}
}

// within calls the function send with the exchange. If the exchange must run in a transaction, the call happens inside
// a new transaction, which is then committed if the call succeeds.
func (f *foreign) within(x *exchange, send func(*exchange) error) error {
	if x.ingest == nil {
		return send(x)
	}
	ctx := metadata.AppendToOutgoingContext(f.Context(), "database", crashDatabase)
	t, err := f.client.BeginTransaction(ctx)
	if err != nil {
		return err
	}
	command := proto.Clone(x.ingest).(*flightpb.CommandStatementIngest)
	command.TransactionId = t.ID()
	first := proto.Clone(x.messages[0]).(*flightpb.FlightData)
	first.FlightDescriptor = descriptor(f.T, command)
	in := *x
	in.messages = append([]proto.Message{first}, x.messages[1:]...)
	if err := send(&in); err != nil {
		_ = t.Rollback(ctx) // an error here adds nothing, because send has returned the reason
		return err
	}
	return t.Commit(ctx)
}

// rawCodec is a gRPC codec that sends messages that are already encoded. It ignores the content of received messages.
type rawCodec struct{}

func (rawCodec) Name() string                       { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error)      { return v.([]byte), nil }
func (rawCodec) Unmarshal(data []byte, v any) error { return nil }

// send sends messages as the exchange's call, and reads the reply to its end.
func (f *foreign) send(x *exchange, messages [][]byte) error {
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(f.Context(), x.headers...))
	defer cancel()
	stream, err := f.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/arrow.flight.protocol.FlightService/"+x.method, grpc.ForceCodec(rawCodec{}))
	if err != nil {
		return err
	}
	for _, m := range messages {
		if err := stream.SendMsg(m); err != nil {
			break // the reply has the reason
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	for {
		if err := stream.RecvMsg(nil); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

const (
	// runFiles is an environment variable. It makes the test binary read changed files; its value is the range of
	// seeds.
	runFiles = "CROWFOOT_TEST_READ_FILES"
	// runFilesDoing is an environment variable with the name of a file. The reader writes there which seed it reads.
	runFilesDoing = "CROWFOOT_TEST_READ_FILES_DOING"
	// fileMemory is the memory limit for reading a damaged file, in MiB. It is high because Arrow's library may
	// allocate buffers of 1 GiB.
	fileMemory = 2048
	// importEvery says that one of every importEvery files is also imported by the command import.
	importEvery = 500
)

// TestForeignFiles checks that files with changed bytes do no harm. No reader may panic or use more memory than
// fileMemory. The command import must end with success or an error message.
func TestForeignFiles(t *testing.T) {
	from, to := seedsOf(t, foreignSeedsName, foreignSeeds)
	ctx := t.Context()
	if deadline, ok := t.Deadline(); ok {
		var cancel context.CancelFunc
		// A reader that hangs is killed one minute before the test binary would end itself.
		ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Minute))
		defer cancel()
	}
	reader := exec.CommandContext(ctx, os.Args[0])
	doing := filepath.Join(t.TempDir(), "doing")
	reader.Env = append(os.Environ(), fmt.Sprintf("%s=%d-%d", runFiles, from, to), runFilesDoing+"="+doing)
	out, err := reader.CombinedOutput()
	if err != nil {
		seed, _ := os.ReadFile(doing)
		t.Fatalf("%s: %v\n%.3000s", seed, err, out)
	}
	t.Logf("%s", out)
	_, address := startServer(t, "--in-memory", "--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", foreignDDL))
	files, err := foreignFiles()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for seed := from; seed < to; seed += importEvery {
		name, _, err := writeChanged(files, dir, seed)
		if err != nil {
			t.Fatal(err)
		}
		out, err := runIn(t, dir, "import", name, "--table", "Every", "--database", crashDatabase, "--endpoint", address)
		if err != nil && (!strings.Contains(out, "crowfoot: ") || strings.Contains(out, "goroutine ")) {
			t.Errorf("seed %d: %v\n%.3000s", seed, err, out)
		}
	}
}

// TestImportNoColumns checks that importing a file without columns fails with a clear error.
func TestImportNoColumns(t *testing.T) {
	_, address := startServer(t, "--in-memory", "--database", crashDatabase, "--ddl", writeFile(t, "schema.sql", foreignDDL))
	schema := arrow.NewSchema(nil, nil)
	for _, format := range []file.Format{file.Arrow, file.Parquet, file.Avro} {
		content := &bytes.Buffer{}
		w, err := file.NewWriter(content, format, schema)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(array.NewRecordBatch(schema, nil, 3)), w.Close()); err != nil {
			t.Logf("%s: %v", format, err)
			continue
		}
		out, err := runIn(t, t.TempDir(), "import", writeFile(t, "none."+string(format), content.String()), "--table", "Every", "--database", crashDatabase, "--endpoint", address)
		if err == nil || !strings.Contains(out, "it has no columns") {
			t.Errorf("%s: %v\n%.2000s", format, err, out)
		}
	}
}

// foreignFile is a file, not yet changed, that import can read.
type foreignFile struct {
	name    string
	schema  *arrow.Schema
	content []byte
}

// foreignFiles returns files of every format. Each has keys and one column; together the columns have every type that
// the format supports.
func foreignFiles() (files []foreignFile, err error) {
	columns, err := foreignColumns()
	if err != nil {
		return nil, err
	}
	for i, c := range columns {
		batch := c.withKeys()
		schema := batch.Schema()
		for _, format := range []file.Format{file.Arrow, file.Parquet, file.Avro, file.CSV, file.JSONLines} {
			if content, err := formatted(format, batch); err == nil {
				files = append(files, foreignFile{fmt.Sprintf("%d.%s", i, format), asInTable(schema), content})
			}
		}
		// The Arrow files of the loop above are compressed with LZ4. These are compressed with ZSTD, or not at all.
		for _, option := range []ipc.Option{ipc.WithZstd(), ipc.WithDictionaryDeltas(false)} {
			content := &bytes.Buffer{}
			w, err := ipc.NewFileWriter(content, ipc.WithSchema(schema), option)
			if err != nil {
				return nil, err
			}
			if err := errors.Join(w.Write(batch), w.Close()); err != nil {
				return nil, err
			}
			files = append(files, foreignFile{fmt.Sprintf("%d.arrow", i), asInTable(schema), content.Bytes()})
		}
		for n, properties := range foreignParquet() {
			if content, err := parquetWith(properties, batch); err == nil {
				files = append(files, foreignFile{fmt.Sprintf("%d-%d.parquet", i, n), asInTable(schema), content})
			}
		}
	}
	return files, nil
}

// foreignParquet returns options for writing Parquet files in ways that exports do not use. Some files have
// uncompressed pages: there, a changed byte changes a value or a level, and does not just break a compressed block.
// Some have delta encodings, or other compressions than exports. The list has each of these options twice, once for
// each version of Parquet's data pages.
func foreignParquet() (ways [][]parquet.WriterProperty) {
	for _, way := range [][]parquet.WriterProperty{
		{parquet.WithCompression(compress.Codecs.Uncompressed)},
		{parquet.WithCompression(compress.Codecs.Uncompressed), parquet.WithDictionaryDefault(false)},
		{parquet.WithCompression(compress.Codecs.Uncompressed), parquet.WithDictionaryDefault(false), parquet.WithEncoding(parquet.Encodings.DeltaBinaryPacked)},
		{parquet.WithCompression(compress.Codecs.Uncompressed), parquet.WithDictionaryDefault(false), parquet.WithEncoding(parquet.Encodings.DeltaByteArray)},
		{parquet.WithCompression(compress.Codecs.Snappy)},
		{parquet.WithCompression(compress.Codecs.Gzip), parquet.WithDictionaryDefault(false), parquet.WithEncoding(parquet.Encodings.DeltaLengthByteArray)},
	} {
		for _, version := range []parquet.DataPageVersion{parquet.DataPageV1, parquet.DataPageV2} {
			ways = append(ways, append([]parquet.WriterProperty{parquet.WithDataPageVersion(version)}, way...))
		}
	}
	return ways
}

// parquetWith encodes a batch as a Parquet file with these options. It returns an error if the library fails or panics.
func parquetWith(properties []parquet.WriterProperty, batch arrow.RecordBatch) (_ []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	content := &bytes.Buffer{}
	w, err := pqarrow.NewFileWriter(batch.Schema(), content, parquet.NewWriterProperties(properties...), pqarrow.DefaultWriterProps())
	if err != nil {
		return nil, err
	}
	err = errors.Join(w.Write(batch), w.Close())
	return content.Bytes(), err
}

// asInTable returns the schema that import gives to the readers of text files: the schema of a table with these
// columns.
func asInTable(schema *arrow.Schema) *arrow.Schema {
	fields := schema.Fields()
	for i, f := range fields {
		if ddl, t, err := arrowtype.SpannerType(f); err == nil {
			if own, err := arrowtype.Field(f.Name, t, ddl, true, arrowtype.Nanoseconds); err == nil {
				fields[i] = own
			}
		}
	}
	return arrow.NewSchema(fields, nil)
}

// formatted encodes a batch as a file. It returns an error if the format does not support a type of the batch, or if
// the writer panics.
func formatted(format file.Format, batch arrow.RecordBatch) (_ []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
	}()
	content := &bytes.Buffer{}
	w, err := file.NewWriter(content, format, batch.Schema())
	if err != nil {
		return nil, err
	}
	err = errors.Join(w.Write(batch), w.Close())
	return content.Bytes(), err
}

// writeChanged takes one of the files, changes it at random, and writes it to a folder. The seed determines the file
// and the changes. The results are the name of the written file, and the file before the change.
func writeChanged(files []foreignFile, dir string, seed uint64) (path string, of foreignFile, err error) {
	r := rand.New(rand.NewPCG(seed, 19))
	of = files[r.IntN(len(files))]
	content := bytes.Clone(of.content)
	part := content
	switch r.IntN(4) {
	case 0: // change the footer of the file
		part = content[max(0, len(content)-300):]
	case 1:
		part = content[:min(300, len(content))]
	}
	if change(r, part); r.IntN(10) == 0 {
		content = content[:r.IntN(len(content))]
	}
	path = filepath.Join(dir, of.name)
	return path, of, os.WriteFile(path, content, 0o600)
}

// readChanged writes and reads the changed files of a range of seeds. It runs in a process of its own.
func readChanged(seeds string) error {
	var from, to uint64
	if _, err := fmt.Sscanf(seeds, "%d-%d", &from, &to); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "foreign")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	files, err := foreignFiles()
	if err != nil {
		return err
	}
	refused, rows := 0, int64(0)
	for seed := from; seed < to; seed++ {
		path, of, err := writeChanged(files, dir, seed)
		if err != nil {
			return err
		}
		doing := fmt.Sprintf("seed %d, %s", seed, of.name)
		if err := os.WriteFile(os.Getenv(runFilesDoing), []byte(doing), 0o600); err != nil {
			return err
		}
		n, err := readRows(path, of.schema)
		if rows += n; err != nil {
			refused++
		}
		if err := os.Remove(path); err != nil {
			return err
		}
		if peak, err := peakOf(os.Getpid()); err != nil || peak > fileMemory<<20 {
			return fmt.Errorf("%s: %d MiB of memory, %w", doing, peak>>20, err)
		}
	}
	peak, err := peakOf(os.Getpid())
	fmt.Printf("%d files of %d kinds, %d refused, %d rows; at most %d MiB\n", to-from, len(files), refused, rows, peak>>20)
	return err
}

// readRows reads a file as import does.
func readRows(path string, schema *arrow.Schema) (rows int64, err error) {
	source, err := file.Open([]string{path}, file.Options{Schema: schema})
	if err != nil {
		return 0, err
	}
	defer source.Close()
	err = bulk.Each(context.Background(), source, 2, func(_ context.Context, _ int, batch arrow.RecordBatch) error {
		atomic.AddInt64(&rows, batch.NumRows())
		return nil
	})
	return rows, err
}

package flight

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"testing"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/token"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

const testSession = "projects/p/instances/i/databases/d/sessions/s"

var testKey = token.NewKey([token.SecretSize]byte{1, 2, 3})

// A fakeAPI records requests and answers them with the results that a test sets.
type fakeAPI struct {
	API         // nil, so that calling a method that fakeAPI does not define panics
	description Description
	describe    func(*spannerpb.ExecuteSqlRequest) (*Description, error) // replaces description unless nil
	rows        int64                                                    // number of rows of every result
	changed     int64                                                    // rows that each statement changes
	states      map[string]TransactionState                              // by transaction id; a missing id is TransactionLost
	loadLimit   int
	partitions  int
	fail        func(request any) error

	requests []any
	schema   []string // statements that UpdateSchema got
	begun    int
}

func (a *fakeAPI) record(request any) error {
	a.requests = append(a.requests, request)
	if a.fail != nil {
		return a.fail(request)
	}
	return nil
}

func (a *fakeAPI) Session(database, role string) (string, error) { return testSession, nil }

func (a *fakeAPI) Describe(_ context.Context, req *spannerpb.ExecuteSqlRequest, _ *rpc.Call) (*Description, error) {
	if a.describe != nil {
		return a.describe(req)
	}
	d := a.description
	return &d, nil
}

func (a *fakeAPI) Announce(ctx context.Context, req *spannerpb.ExecuteSqlRequest, c *rpc.Call) (*Description, error) {
	return a.Describe(ctx, req, c)
}

func (a *fakeAPI) AnnounceRead(context.Context, *spannerpb.ReadRequest, *rpc.Call) ([]plan.Column, error) {
	return a.description.Columns, nil
}

func (a *fakeAPI) Query(_ context.Context, req *spannerpb.ExecuteSqlRequest, _ *rpc.Call, answer func(*result.Result) error) error {
	if err := a.record(proto.Clone(req)); err != nil {
		return err
	}
	return a.answer(answer)
}

func (a *fakeAPI) Fetch(_ context.Context, f Fetch, _ *rpc.Call, answer func(*result.Result) error) error {
	if err := a.record(f); err != nil {
		return err
	}
	return a.answer(answer)
}

func (a *fakeAPI) FetchRead(_ context.Context, req *spannerpb.ReadRequest, _ *rpc.Call, answer func(*result.Result) error) error {
	if err := a.record(req); err != nil {
		return err
	}
	return a.answer(answer)
}

func (a *fakeAPI) answer(answer func(*result.Result) error) error {
	return answer(&result.Result{Columns: a.description.Columns, Rows: &numbers{left: a.rows}, RowCount: a.changed})
}

func (a *fakeAPI) PartitionQuery(_ context.Context, req *spannerpb.PartitionQueryRequest, _ *rpc.Call) (*spannerpb.PartitionResponse, error) {
	reply := new(spannerpb.PartitionResponse)
	for i := range a.partitions {
		reply.Partitions = append(reply.Partitions, &spannerpb.Partition{PartitionToken: []byte{byte(i)}})
	}
	return reply, a.record(req)
}

func (a *fakeAPI) ExecuteBatchDML(_ context.Context, req *spannerpb.ExecuteBatchDmlRequest, _ *rpc.Call) (*spannerpb.ExecuteBatchDmlResponse, error) {
	reply := new(spannerpb.ExecuteBatchDmlResponse)
	for range req.Statements {
		reply.ResultSets = append(reply.ResultSets, &spannerpb.ResultSet{Stats: &spannerpb.ResultSetStats{RowCount: &spannerpb.ResultSetStats_RowCountExact{RowCountExact: a.changed}}})
	}
	return reply, a.record(req)
}

func (a *fakeAPI) BeginTransaction(_ context.Context, req *spannerpb.BeginTransactionRequest, _ *rpc.Call) (*spannerpb.Transaction, error) {
	a.begun++
	return &spannerpb.Transaction{Id: []byte{'t', byte('0' + a.begun)}}, a.record(req)
}

func (a *fakeAPI) Commit(_ context.Context, req *spannerpb.CommitRequest, _ *rpc.Call) (*spannerpb.CommitResponse, error) {
	return new(spannerpb.CommitResponse), a.record(req)
}

func (a *fakeAPI) Rollback(_ context.Context, req *spannerpb.RollbackRequest) error {
	return a.record(req)
}

func (a *fakeAPI) TransactionState(session string, id []byte) TransactionState {
	if state, ok := a.states[string(id)]; ok && session == testSession {
		return state
	}
	return TransactionLost
}

func (a *fakeAPI) Load(_ context.Context, l *Load, _ *rpc.Call) error { return a.record(l) }
func (a *fakeAPI) LoadLimit(*Load) (int, error)                       { return a.loadLimit, nil }

func (a *fakeAPI) UpdateSchema(_ context.Context, _ string, statements ...string) error {
	a.schema = append(a.schema, statements...)
	return nil
}

// numbers are the rows 1, 2, 3, … of a result; every column holds the number of the row.
type numbers struct {
	result.Rows
	left, sent int64
}

func (n *numbers) Fill(columns []value.Column, size int) (rows int, err error) {
	for ; n.left > 0 && size > 0; size -= 8 {
		n.left--
		n.sent++
		rows++
		for _, c := range columns {
			if err := c.AppendValue(value.OfInt64(n.sent)); err != nil {
				return rows, err
			}
		}
	}
	return rows, nil
}

func (n *numbers) DataSize() int64 { return 8 * n.sent }

// A client is a transport that keeps the server's replies, and that gives the server the messages in the field upload.
type client struct {
	headers map[string]string
	peer    string
	upload  []*flightpb.FlightData // the messages of the client's stream after the first one
	budget  *memory.Budget

	replies []proto.Message
	frames  int
}

func (c *client) Metadata(name string) []string {
	if v, ok := c.headers[name]; ok {
		return []string{v}
	}
	return nil
}
func (c *client) Peer() string           { return c.peer }
func (c *client) WantsTiming() bool      { return false }
func (c *client) SetHeader(_, _ string)  {}
func (c *client) SetTrailer(_, _ string) {}
func (c *client) Send(m any) error {
	if f, ok := m.(*rpc.Frame); ok {
		c.frames++
		data := new(flightpb.FlightData)
		if err := f.Decode(data); err != nil {
			return err
		}
		m = data
	}
	c.replies = append(c.replies, m.(proto.Message))
	return nil
}

func (c *client) Receive(m proto.Message, _ *memory.Account) error {
	if len(c.upload) == 0 {
		return io.EOF
	}
	proto.Merge(m, c.upload[0])
	c.upload = c.upload[1:]
	return nil
}

// call sends a request to a method of a service and returns the reply. If the method streams, the reply is nil.
func (c *client) call(t testing.TB, s *Service, method string, request proto.Message) (proto.Message, error) {
	t.Helper()
	return c.callFor(t.Context(), s, method, request)
}

func (c *client) callFor(ctx context.Context, s *Service, method string, request proto.Message) (proto.Message, error) {
	budget := c.budget
	if budget == nil {
		budget = memory.NewBudget(memory.NoLimit)
	}
	d := rpc.NewDispatcher([]rpc.Service{s.Table()}, time.Now, slog.New(slog.DiscardHandler), cpu.NoAccount(), budget, nil)
	var call rpc.Call
	d.Begin(&call, d.Services[0].Find(method), c)
	call.Request = request
	call.Received(proto.Size(request))
	reply, err := call.Run(ctx)
	call.End(err)
	if used := budget.Usage(); used.Reserved != 0 {
		return nil, errors.Join(err, errors.New("memory stays charged after the call"))
	}
	m, _ := reply.(proto.Message)
	return m, err
}

// testHeaders returns a header that names a database, and the headers in its arguments, which are the name and the
// value of each header in turn.
func testHeaders(more ...string) map[string]string {
	h := map[string]string{databaseHeader: "projects/p/instances/i/databases/d"}
	for i := 0; i < len(more); i += 2 {
		h[more[i]] = more[i+1]
	}
	return h
}

func newTestClient(headers ...string) *client { return &client{headers: testHeaders(headers...)} }

// packed returns the bytes of a message as Flight SQL sends commands and the bodies of actions: in an Any.
func packed(m proto.Message) []byte {
	wrapped, err := anypb.New(m)
	if err != nil {
		panic(err)
	}
	data, err := proto.Marshal(wrapped)
	if err != nil {
		panic(err)
	}
	return data
}

func descriptor(command proto.Message) *flightpb.FlightDescriptor {
	return &flightpb.FlightDescriptor{Type: flightpb.FlightDescriptor_CMD, Cmd: packed(command)}
}

// act sends an action and decodes the reply into reply, unless reply is nil.
func (c *client) act(t testing.TB, s *Service, name string, body []byte, reply proto.Message) error {
	t.Helper()
	if _, err := c.call(t, s, "DoAction", &flightpb.Action{Type: name, Body: body}); err != nil || reply == nil {
		return err
	}
	last := c.replies[len(c.replies)-1].(*flightpb.Result)
	var wrapped anypb.Any
	if err := proto.Unmarshal(last.Body, &wrapped); err != nil {
		return err
	}
	return wrapped.UnmarshalTo(reply)
}

// put calls DoPut with a command and batches of rows.
func (c *client) put(t testing.TB, s *Service, command proto.Message, batches ...arrow.RecordBatch) error {
	t.Helper()
	c.upload = uploadOf(t, command, batches...)
	first := c.upload[0]
	c.upload = c.upload[1:]
	_, err := c.call(t, s, "DoPut", first)
	return err
}

// uploadOf returns the messages of a DoPut stream with a command and batches. Without batches, the stream is one
// message, which has the command.
func uploadOf(t testing.TB, command proto.Message, batches ...arrow.RecordBatch) []*flightpb.FlightData {
	t.Helper()
	if len(batches) == 0 {
		return []*flightpb.FlightData{{FlightDescriptor: descriptor(command)}}
	}
	var sent sentData
	w := arrowflight.NewRecordWriter(&sent, ipc.WithSchema(batches[0].Schema()))
	w.SetFlightDescriptor(descriptor(command))
	for _, b := range batches {
		if err := w.Write(b); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return sent
}

type sentData []*flightpb.FlightData

func (s *sentData) Send(m *flightpb.FlightData) error {
	*s = append(*s, proto.Clone(m).(*flightpb.FlightData))
	return nil
}

// integers returns a batch of INT64 columns. Each column holds the values first, first+1, ….
func integers(first, rows int, names ...string) arrow.RecordBatch {
	fields := make([]arrow.Field, len(names))
	columns := make([]arrow.Array, len(names))
	for i, name := range names {
		fields[i] = arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64, Nullable: true}
		b := array.NewInt64Builder(arrowmemory.DefaultAllocator)
		for row := range rows {
			b.Append(int64(first + row))
		}
		columns[i] = b.NewArray()
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, int64(rows))
}

// recordCount returns the number of changed rows that the last reply of DoPut reports.
func (c *client) recordCount(t testing.TB) int64 {
	t.Helper()
	count := new(flightpb.DoPutUpdateResult)
	if err := unmarshalMetadata(c, count); err != nil {
		t.Fatal(err)
	}
	return count.RecordCount
}

var errAborted = usererror.Wounded(0)

// columnsNamed returns INT64 columns with the given names.
func columnsNamed(names ...string) (list []plan.Column) {
	for _, n := range names {
		list = append(list, plan.Column{Name: n, Type: value.Int64Type})
	}
	return list
}

// unmarshalMetadata decodes the application metadata of the last reply of DoPut into m.
func unmarshalMetadata(c *client, m proto.Message) error {
	return proto.Unmarshal(c.replies[len(c.replies)-1].(*flightpb.PutResult).AppMetadata, m)
}

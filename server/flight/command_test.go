package flight

import (
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	arrowflight "github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql/schema_ref"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestHostileCommands checks the canonical code of the error for an invalid or unknown command, descriptor or action.
func TestHostileCommands(t *testing.T) {
	s := New(&fakeAPI{description: Description{Columns: columnsNamed("a")}}, testKey, 1)
	wrapped := func(url string, value []byte) []byte {
		data, err := proto.Marshal(&anypb.Any{TypeUrl: url, Value: value})
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	const prefix = "type.googleapis.com/arrow.flight.protocol.sql."
	for _, test := range []struct {
		name string
		data []byte
		code codes.Code
	}{
		{"nothing", nil, codes.InvalidArgument},
		{"text", []byte("SELECT 1"), codes.InvalidArgument},
		{"an unfinished message", []byte{0x0a, 0x7f, 'a'}, codes.InvalidArgument},
		{"no type", wrapped("", []byte("x")), codes.InvalidArgument},
		{"a type that is none", wrapped("type.googleapis.com/no.such.Message", nil), codes.Unimplemented},
		{"a type without a slash", wrapped("CommandStatementQuery", nil), codes.Unimplemented},
		{"a very long type", wrapped(strings.Repeat("x", 1<<20), nil), codes.Unimplemented},
		{"a type that is no command", wrapped("type.googleapis.com/google.spanner.v1.Session", nil), codes.Unimplemented},
		{"Substrait", wrapped(prefix+"CommandStatementSubstraitPlan", nil), codes.Unimplemented},
		{"a command that is not its type", wrapped(prefix+"CommandStatementQuery", []byte{0xff}), codes.Unimplemented},
		{"text that is not UTF-8", wrapped(prefix+"CommandStatementQuery", []byte{0x0a, 1, 0xff}), codes.Unimplemented},
	} {
		for where, send := range commandTakers(t, s) {
			err := send(test.data)
			if got := usererror.CodeOf(err); got != test.code || len(err.Error()) > 2000 {
				t.Errorf("%s in %s: %v, %.200v; want %v", test.name, where, got, err, test.code)
			}
		}
	}
	for _, kind := range []flightpb.FlightDescriptor_DescriptorType{flightpb.FlightDescriptor_UNKNOWN, flightpb.FlightDescriptor_PATH, 99} {
		d := &flightpb.FlightDescriptor{Type: kind, Cmd: packed(&flightpb.CommandStatementQuery{Query: "SELECT 1"})}
		if _, err := newTestClient().call(t, s, "GetFlightInfo", d); usererror.CodeOf(err) != codes.InvalidArgument {
			t.Errorf("a descriptor of type %v: %v", kind, err)
		}
	}
	if err := newTestClient().act(t, s, "DropEverything", nil, nil); usererror.CodeOf(err) != codes.Unimplemented {
		t.Errorf("an action that is none: %v", err)
	}
	if err := newTestClient().act(t, s, "BeginTransaction", packed(&flightpb.ActionEndTransactionRequest{}), nil); usererror.CodeOf(err) != codes.Unimplemented {
		t.Errorf("an action with the body of another: %v", err)
	}
	for _, name := range []string{"CancelFlightInfo", "RenewFlightEndpoint", "CloseSession"} {
		if err := newTestClient().act(t, s, name, []byte{0x0a, 0x7f}, nil); usererror.CodeOf(err) != codes.InvalidArgument {
			t.Errorf("%s with a body that is no message: %v", name, err)
		}
	}
}

// commandTakers returns, by name, a function for each method and action that takes a command. The function sends data
// as the command.
func commandTakers(t *testing.T, s *Service) map[string]func([]byte) error {
	d := func(data []byte) *flightpb.FlightDescriptor {
		return &flightpb.FlightDescriptor{Type: flightpb.FlightDescriptor_CMD, Cmd: data}
	}
	return map[string]func([]byte) error{
		"GetFlightInfo": func(data []byte) error {
			_, err := newTestClient().call(t, s, "GetFlightInfo", d(data))
			return err
		},
		"GetSchema": func(data []byte) error {
			_, err := newTestClient().call(t, s, "GetSchema", d(data))
			return err
		},
		"DoPut": func(data []byte) error {
			_, err := newTestClient().call(t, s, "DoPut", &flightpb.FlightData{FlightDescriptor: d(data)})
			return err
		},
		"an action": func(data []byte) error { return newTestClient().act(t, s, "CreatePreparedStatement", data, nil) },
	}
}

// TestMissingDescriptor checks that a request without a descriptor or a ticket is refused.
func TestMissingDescriptor(t *testing.T) {
	s := New(new(fakeAPI), testKey, 1)
	for method, request := range map[string]proto.Message{
		"GetFlightInfo": new(flightpb.FlightDescriptor), "GetSchema": new(flightpb.FlightDescriptor), "DoPut": new(flightpb.FlightData), "DoGet": new(flightpb.Ticket),
	} {
		if _, err := newTestClient().call(t, s, method, request); usererror.CodeOf(err) != codes.InvalidArgument {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// TestCommandsTakeMemory checks that the memory of a command is charged to the budget of requests: a command that is
// larger than the budget is refused.
func TestCommandsTakeMemory(t *testing.T) {
	s := New(&fakeAPI{description: Description{Columns: columnsNamed("a")}}, testKey, 1)
	large := descriptor(&flightpb.CommandStatementQuery{Query: strings.Repeat("x", 1<<20)})
	c := newTestClient()
	c.budget = memory.NewBudget(64 << 10)
	if _, err := c.call(t, s, "GetFlightInfo", large); usererror.CodeOf(err) != codes.ResourceExhausted {
		t.Errorf("a command larger than the budget: %v", err)
	}
	if _, err := newTestClient().call(t, s, "GetFlightInfo", large); err != nil {
		t.Error(err)
	}
}

// TestHeaders checks that a request is refused if a header has an invalid value, or if no header names a database. The
// error must name the header.
func TestHeaders(t *testing.T) {
	query := &flightpb.CommandStatementQuery{Query: "SELECT 1"}
	ingest := &flightpb.CommandStatementIngest{Table: "t"}
	in := sealed(t, &ticket{kind: ticketTransaction, request: testRequest()})
	for _, test := range []struct {
		name, header, value string
		command             proto.Message
		ok                  bool
	}{
		{"no database", databaseHeader, "", query, false},
		{"no database for metadata", databaseHeader, "", new(flightpb.CommandGetSqlInfo), false},
		{"no database for rows", databaseHeader, "", ingest, false},
		{"unit", unitHeader, "us", query, true},
		{"unit", unitHeader, "ns", query, true},
		{"another unit", unitHeader, "ms", query, false},
		{"another unit for metadata", unitHeader, "ms", new(flightpb.CommandGetTables), false},
		{"another unit of a read", unitHeader, "ms", new(spannerpb.ReadRequest), false},
		{"another unit of the API's query", unitHeader, "ms", new(spannerpb.ExecuteSqlRequest), false},
		{"partitions", partitionsHeader, "1", query, true},
		{"no partitions", partitionsHeader, "0", query, false},
		{"negative partitions", partitionsHeader, "-1", query, false},
		{"words for partitions", partitionsHeader, "many", query, false},
		{"too many partitions", partitionsHeader, "9223372036854775808", query, false},
		{"mode", ingestHeader, "insert", ingest, true},
		{"mode", ingestHeader, "insert-or-update", ingest, true},
		{"mode", ingestHeader, "replace", ingest, true},
		{"replace in a transaction", ingestHeader, "replace", &flightpb.CommandStatementIngest{Table: "t", TransactionId: in}, false},
		{"another mode", ingestHeader, "Insert", ingest, false},
		{"commits", commitsHeader, "one", ingest, true},
		{"other commits", commitsHeader, "two", ingest, false},
	} {
		s := New(&fakeAPI{description: Description{Columns: columnsNamed("a"), Transaction: []byte("t")}, loadLimit: 10}, testKey, 1)
		c := newTestClient(test.header, test.value)
		var err error
		if test.command == ingest || strings.Contains(test.name, "replace") {
			err = c.put(t, s, test.command)
		} else {
			_, err = c.call(t, s, "GetFlightInfo", descriptor(test.command))
		}
		want := codes.InvalidArgument
		if test.ok {
			want = codes.OK
		}
		if usererror.CodeOf(err) != want || !test.ok && !strings.Contains(err.Error(), test.header) {
			t.Errorf("%s: %s: %s: %v; want %v and the header's name", test.name, test.header, test.value, err, want)
		}
	}
}

// TestPartitions checks that a large query gets one endpoint for each partition into which the server divides it. A
// query that cannot be divided gets one endpoint.
func TestPartitions(t *testing.T) {
	read := []byte("read")
	for _, test := range []struct {
		name     string
		d        Description
		parallel int
		header   string
		found    int // partitions that PartitionQuery returns
		asked    int64
		want     int
	}{
		{"divided", Description{IsPartitionable: true, Transaction: read}, 4, "", 3, 4, 3},
		{"as many as the client asks for", Description{IsPartitionable: true, Transaction: read}, 4, "9", 9, 9, 9},
		{"not asked for", Description{IsPartitionable: true, Transaction: read}, 4, "1", 3, 0, 1},
		{"too small", Description{IsPartitionable: true, Transaction: read}, 4, "", 1, 4, 1},
		{"not partitionable", Description{Transaction: read}, 4, "", 3, 0, 1},
		{"in a transaction of the client", Description{IsPartitionable: true}, 4, "", 3, 0, 1},
		{"not parallel", Description{IsPartitionable: true, Transaction: read}, 1, "", 3, 0, 1},
	} {
		test.d.Columns = columnsNamed("a")
		api := &fakeAPI{description: test.d, partitions: test.found}
		s := New(api, testKey, test.parallel)
		c := newTestClient()
		if test.header != "" {
			c.headers[partitionsHeader] = test.header
		}
		reply, err := c.call(t, s, "GetFlightInfo", descriptor(&flightpb.CommandStatementQuery{Query: "SELECT a FROM t"}))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		endpoints := reply.(*flightpb.FlightInfo).Endpoint
		asked := int64(0)
		for _, r := range api.requests {
			asked = r.(*spannerpb.PartitionQueryRequest).PartitionOptions.MaxPartitions
		}
		if len(endpoints) != test.want || asked != test.asked {
			t.Errorf("%s: %d endpoints, %d asked for; want %d, %d", test.name, len(endpoints), asked, test.want, test.asked)
		}
		for i, e := range endpoints {
			got, err := openTicket(testKey, nil, e.Ticket.Ticket, "ticket", ticketQuery)
			if err != nil {
				t.Fatal(err)
			}
			if divided := test.want > 1; got.divided != divided || divided && !slices.Equal(got.request.PartitionToken, []byte{byte(i)}) {
				t.Errorf("%s: endpoint %d has partition %v, divided %t", test.name, i, got.request.PartitionToken, got.divided)
			}
		}
	}
}

// TestReturnedRows checks that DML with THEN RETURN runs once, in GetFlightInfo, and that its ticket holds the
// returned rows. If the rows exceed maxReturned bytes, the transaction must be rolled back.
func TestReturnedRows(t *testing.T) {
	api := &fakeAPI{description: Description{Columns: columnsNamed("a"), IsDML: true}, rows: 5, changed: 5}
	s := New(api, testKey, 4)
	reply, err := newTestClient().call(t, s, "GetFlightInfo", descriptor(&flightpb.CommandStatementQuery{Query: "DELETE FROM t WHERE TRUE THEN RETURN a"}))
	if err != nil {
		t.Fatal(err)
	}
	info := reply.(*flightpb.FlightInfo)
	ran := len(api.requests)
	for range 2 {
		c := new(client)
		if _, err := c.call(t, s, "DoGet", info.Endpoint[0].Ticket); err != nil || c.frames != 2 {
			t.Errorf("%d messages, %v; want the schema and one batch", c.frames, err)
		}
	}
	if info.TotalRecords != 5 || len(info.Endpoint) != 1 || len(api.requests) != ran {
		t.Errorf("%d rows, %d endpoints; %d requests while the rows were read", info.TotalRecords, len(info.Endpoint), len(api.requests)-ran)
	}
	api.rows = maxReturned/8 + 1
	_, err = newTestClient().call(t, s, "GetFlightInfo", descriptor(&flightpb.CommandStatementQuery{Query: "DELETE FROM t WHERE TRUE THEN RETURN a"}))
	if usererror.CodeOf(err) != codes.InvalidArgument {
		t.Errorf("%d rows returned: %v", api.rows, err)
	}
	if last, ok := api.requests[len(api.requests)-1].(*spannerpb.RollbackRequest); !ok {
		t.Errorf("after too many rows the last request is %v, no rollback", last)
	}
}

// TestUpdates checks CommandStatementUpdate: a query is refused before anything is committed, DDL runs as a schema
// change, and DML returns the number of changed rows.
func TestUpdates(t *testing.T) {
	update := &flightpb.CommandStatementUpdate{Query: "UPDATE"}
	api := &fakeAPI{description: Description{Columns: columnsNamed("a")}}
	if err := newTestClient().put(t, New(api, testKey, 1), update); usererror.CodeOf(err) != codes.InvalidArgument || len(api.requests) > 0 {
		t.Errorf("a query as an update: %v, after %v", err, api.requests)
	}
	api = &fakeAPI{description: Description{IsDDL: true}}
	c := newTestClient()
	if err := c.put(t, New(api, testKey, 1), update); err != nil || !slices.Equal(api.schema, []string{"UPDATE"}) || c.recordCount(t) != 0 {
		t.Errorf("DDL: %v, %q", err, api.schema)
	}
	api = &fakeAPI{description: Description{IsDML: true}, changed: 7}
	c = newTestClient()
	if err := c.put(t, New(api, testKey, 1), update); err != nil || c.recordCount(t) != 7 {
		t.Errorf("DML: %v", err)
	}
}

// TestSqlInfo checks that a client gets the values whose ids it lists, as far as the server has them. Without a list
// it gets all values, in ascending order of their ids.
func TestSqlInfo(t *testing.T) {
	for _, test := range []struct {
		asked []uint32
		want  int
	}{
		{nil, len(serverInfo())},
		{[]uint32{0}, 1},
		{[]uint32{0, 0}, 2},
		{[]uint32{4_000_000_000, 3}, 1},
		{[]uint32{4_000_000_000}, 0},
	} {
		r := sqlInfo(test.asked)
		ids := r.Column(0).(*array.Uint32)
		if int(r.NumRows()) != test.want || !r.Schema().Equal(schema_ref.SqlInfo) {
			t.Errorf("asked for %d: %d rows of %s; want %d", test.asked, r.NumRows(), r.Schema(), test.want)
		}
		if test.asked == nil && !slices.IsSorted(ids.Uint32Values()) {
			t.Errorf("not in order: %d", ids.Uint32Values())
		}
		if union := r.Column(1).(*array.DenseUnion); union.Len() != test.want {
			t.Errorf("asked for %d: %d values; want %d", test.asked, union.Len(), test.want)
		}
	}
}

// TestTypeInfo checks that a client gets all types in ascending order of their XdbcDataType, or only the types with the
// XdbcDataType that it asks for.
func TestTypeInfo(t *testing.T) {
	all := typeInfo(nil)
	kinds := all.Column(1).(*array.Int32).Int32Values()
	if len(kinds) != len(typeRows) || !slices.IsSorted(kinds) || !all.Schema().Equal(schema_ref.XdbcTypeInfo) {
		t.Errorf("types %d of %s", kinds, all.Schema())
	}
	for _, kind := range kinds {
		if got := typeInfo(&kind); got.NumRows() != 1 {
			t.Errorf("type %d: %d rows", kind, got.NumRows())
		}
	}
	if got := typeInfo(proto.Int32(12345)); got.NumRows() != 0 {
		t.Errorf("no type: %d rows", got.NumRows())
	}
}

// TestSchemas checks that GetSchema returns the schema that the result of a command will have, and that it runs
// nothing.
func TestSchemas(t *testing.T) {
	api := &fakeAPI{description: Description{Columns: columnsNamed("a", "b")}}
	for _, test := range []struct {
		command proto.Message
		want    *arrow.Schema
	}{
		{&flightpb.CommandStatementQuery{Query: "SELECT a, b FROM t"}, integers(0, 0, "a", "b").Schema()},
		{&flightpb.CommandPreparedStatementQuery{PreparedStatementHandle: sealed(t, &ticket{kind: ticketStatement, request: testRequest()})}, integers(0, 0, "a", "b").Schema()},
		{new(flightpb.CommandGetTables), schema_ref.Tables},
		{&flightpb.CommandGetTables{IncludeSchema: true}, schema_ref.TablesWithIncludedSchema},
		{new(flightpb.CommandGetSqlInfo), schema_ref.SqlInfo},
	} {
		reply, err := newTestClient().call(t, New(api, testKey, 1), "GetSchema", descriptor(test.command))
		if err != nil {
			t.Errorf("%T: %v", test.command, err)
			continue
		}
		got, err := arrowflight.DeserializeSchema(reply.(*flightpb.SchemaResult).Schema, nil)
		if err != nil || len(got.Fields()) != len(test.want.Fields()) {
			t.Errorf("%T: %v, %s; want %s", test.command, err, got, test.want)
			continue
		}
		for i, f := range got.Fields() {
			if want := test.want.Field(i); f.Name != want.Name || !arrow.TypeEqual(f.Type, want.Type) {
				t.Errorf("%T: column %s; want %s", test.command, f, want)
			}
		}
	}
	if len(api.requests) > 0 {
		t.Errorf("GetSchema sent %v", api.requests)
	}
}

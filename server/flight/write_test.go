package flight

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	arrowmemory "github.com/apache/arrow-go/v18/arrow/memory"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestOwnTransaction checks that a statement without a transaction runs in a transaction of its own. If the transaction
// is aborted, the statement must run again in a new transaction, which names the one before. There must be at most
// commitAttempts transactions. After any other error the statement must not run again. A transaction that was not
// committed must be rolled back.
func TestOwnTransaction(t *testing.T) {
	other := usererror.TableNotFound("t")
	for _, test := range []struct {
		name    string
		aborts  int   // how many runs of the statement fail with ABORTED
		err     error // the error of every commit
		want    codes.Code
		tries   int
		commits int
	}{
		{"committed", 0, nil, codes.OK, 1, 1},
		{"aborted twice", 2, nil, codes.OK, 3, 1},
		{"aborted again and again", 1000, nil, codes.Aborted, commitAttempts, 0},
		{"commit aborted again and again", 0, errAborted, codes.Aborted, commitAttempts, commitAttempts},
		{"commit refused", 0, other, codes.NotFound, 1, 1},
	} {
		var ran, commits, rollbacks int
		var begun []*spannerpb.BeginTransactionRequest
		var seqnos []int64
		api := &fakeAPI{description: Description{IsDML: true}, changed: 1}
		api.fail = func(request any) error {
			switch r := request.(type) {
			case *spannerpb.BeginTransactionRequest:
				begun = append(begun, r)
			case *spannerpb.ExecuteSqlRequest:
				seqnos = append(seqnos, r.Seqno)
				if ran++; ran <= test.aborts {
					return errAborted
				}
			case *spannerpb.CommitRequest:
				commits++
				return test.err
			case *spannerpb.RollbackRequest:
				rollbacks++
			}
			return nil
		}
		err := newTestClient().put(t, New(api, testKey, 1), &flightpb.CommandStatementUpdate{Query: "UPDATE"})
		wantRollbacks := test.tries
		if test.want == codes.OK {
			wantRollbacks--
		}
		if usererror.CodeOf(err) != test.want || ran != test.tries || commits != test.commits || rollbacks != wantRollbacks {
			t.Errorf("%s: %v; ran %d times, %d commits, %d rollbacks", test.name, err, ran, commits, rollbacks)
		}
		for i, b := range begun {
			previous := ""
			if i > 0 {
				previous = fmt.Sprintf("t%d", i)
			}
			if got := string(b.Options.GetReadWrite().MultiplexedSessionPreviousTransactionId); got != previous {
				t.Errorf("%s: transaction %d repeats %q; want %q", test.name, i+1, got, previous)
			}
		}
		if !slices.IsSorted(seqnos) || len(slices.Compact(slices.Clone(seqnos))) != len(seqnos) {
			t.Errorf("%s: sequence numbers %d do not ascend", test.name, seqnos)
		}
	}
}

// TestCancelledTransaction checks that an aborted statement is not repeated if the client has cancelled its call.
func TestCancelledTransaction(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ran := 0
	api := &fakeAPI{description: Description{IsDML: true}}
	api.fail = func(request any) error {
		if _, ok := request.(*spannerpb.ExecuteSqlRequest); ok {
			ran++
			cancel()
			return errAborted
		}
		return nil
	}
	_, err := newTestClient().callFor(ctx, New(api, testKey, 1), "DoPut", uploadOf(t, &flightpb.CommandStatementUpdate{Query: "UPDATE"})[0])
	if usererror.CodeOf(err) != codes.Aborted || ran != 1 {
		t.Errorf("%v after %d runs", err, ran)
	}
}

// TestTransactions checks that a statement with a transaction's handle runs in that transaction, and that
// EndTransaction commits it or rolls it back.
func TestTransactions(t *testing.T) {
	for action, want := range map[flightpb.ActionEndTransactionRequest_EndTransaction]codes.Code{
		flightpb.ActionEndTransactionRequest_END_TRANSACTION_COMMIT:      codes.OK,
		flightpb.ActionEndTransactionRequest_END_TRANSACTION_ROLLBACK:    codes.OK,
		flightpb.ActionEndTransactionRequest_END_TRANSACTION_UNSPECIFIED: codes.InvalidArgument,
		99: codes.InvalidArgument,
	} {
		api := &fakeAPI{description: Description{IsDML: true}, changed: 1}
		s := New(api, testKey, 1)
		begun := new(flightpb.ActionBeginTransactionResult)
		if err := newTestClient().act(t, s, "BeginTransaction", packed(new(flightpb.ActionBeginTransactionRequest)), begun); err != nil {
			t.Fatal(err)
		}
		if err := newTestClient().put(t, s, &flightpb.CommandStatementUpdate{Query: "UPDATE", TransactionId: begun.TransactionId}); err != nil {
			t.Fatal(err)
		}
		err := newTestClient().act(t, s, "EndTransaction", packed(&flightpb.ActionEndTransactionRequest{TransactionId: begun.TransactionId, Action: action}), nil)
		if usererror.CodeOf(err) != want || api.begun != 1 {
			t.Errorf("action %v: %v, %d transactions", action, err, api.begun)
		}
		var got []string
		for _, r := range api.requests {
			switch r := r.(type) {
			case *spannerpb.ExecuteSqlRequest:
				got = append(got, "run "+string(r.Transaction.GetId()))
			case *spannerpb.CommitRequest:
				got = append(got, "commit "+string(r.GetTransactionId()))
			case *spannerpb.RollbackRequest:
				got = append(got, "rollback "+string(r.TransactionId))
			}
		}
		wanted := map[flightpb.ActionEndTransactionRequest_EndTransaction]string{1: "run t1, commit t1", 2: "run t1, rollback t1", 0: "run t1", 99: "run t1"}[action]
		if strings.Join(got, ", ") != wanted {
			t.Errorf("action %v: %q; want %q", action, got, wanted)
		}
	}
}

// TestPreparedStatementsFollow checks in which transaction a prepared statement runs after its own has ended: in the
// newest transaction of its connection, or in a new one if the newest has ended too. If the server cannot know the
// newest transaction, the statement must run in the transaction in which it was prepared.
func TestPreparedStatementsFollow(t *testing.T) {
	const here, there = "10.0.0.1:1000", "10.0.0.1:2000"
	for _, test := range []struct {
		name   string
		began  []string // addresses of the connections that began the transactions t1 and t2
		states map[string]TransactionState
		from   string // the address of the connection that sends the statement
		want   string
	}{
		{"its own is open", []string{here}, map[string]TransactionState{"t1": TransactionOpen}, here, "t1"},
		{"its own has ended", []string{here}, map[string]TransactionState{"t1": TransactionEnded}, here, ""},
		{"its own is lost", []string{here}, nil, here, "t1"},
		{"the next is open", []string{here, here}, map[string]TransactionState{"t1": TransactionEnded, "t2": TransactionOpen}, here, "t2"},
		{"the next has ended", []string{here, here}, map[string]TransactionState{"t1": TransactionEnded, "t2": TransactionEnded}, here, ""},
		{"over another connection", []string{here, here}, map[string]TransactionState{"t1": TransactionEnded, "t2": TransactionOpen}, there, "t1"},
		{"the next is of another connection", []string{here, there}, map[string]TransactionState{"t1": TransactionEnded, "t2": TransactionOpen}, there, "t1"},
		{"without an address", []string{"", ""}, map[string]TransactionState{"t1": TransactionEnded, "t2": TransactionOpen}, "", "t1"},
	} {
		api := &fakeAPI{description: Description{IsDML: true}, states: map[string]TransactionState{}}
		s := New(api, testKey, 1)
		var handle []byte
		for i, peer := range test.began {
			c := newTestClient()
			c.peer = peer
			begun := new(flightpb.ActionBeginTransactionResult)
			if err := c.act(t, s, "BeginTransaction", packed(new(flightpb.ActionBeginTransactionRequest)), begun); err != nil {
				t.Fatal(err)
			}
			if i == 0 {
				handle = prepared(t, c, s, begun.TransactionId)
			}
		}
		api.states = test.states
		c := newTestClient()
		c.peer = test.from
		if err := c.put(t, s, &flightpb.CommandPreparedStatementUpdate{PreparedStatementHandle: handle}); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := transactionOfLastRun(api); got != test.want && !(test.want == "" && !slices.Contains([]string{"t1", "t2"}[:len(test.began)], got)) {
			t.Errorf("%s: it ran in %q; want %q, or a new one if that is \"\"", test.name, got, test.want)
		}
	}
}

// TestSharedConnection checks a prepared statement after two transactions were open at once over one connection. The
// statement must stay in the transaction in which it was prepared, because the server cannot know which of the two
// transactions the client means.
func TestSharedConnection(t *testing.T) {
	api := &fakeAPI{description: Description{IsDML: true}, states: map[string]TransactionState{}}
	s := New(api, testKey, 1)
	c := newTestClient()
	c.peer = "10.0.0.1:1000"
	begun := new(flightpb.ActionBeginTransactionResult)
	if err := c.act(t, s, "BeginTransaction", packed(new(flightpb.ActionBeginTransactionRequest)), begun); err != nil {
		t.Fatal(err)
	}
	handle := prepared(t, c, s, begun.TransactionId)
	api.states["t1"] = TransactionOpen
	if err := c.act(t, s, "BeginTransaction", packed(new(flightpb.ActionBeginTransactionRequest)), nil); err != nil {
		t.Fatal(err)
	}
	api.states = map[string]TransactionState{"t1": TransactionEnded, "t2": TransactionOpen}
	if err := c.put(t, s, &flightpb.CommandPreparedStatementUpdate{PreparedStatementHandle: handle}); err != nil {
		t.Fatal(err)
	}
	if got := transactionOfLastRun(api); got != "t1" {
		t.Errorf("the statement ran in %q", got)
	}
}

// TestConnectionsAreForgotten checks that when the server remembers keptConnections connections, it forgets those
// without an open transaction.
func TestConnectionsAreForgotten(t *testing.T) {
	api := &fakeAPI{states: map[string]TransactionState{"t1": TransactionOpen}}
	s := New(api, testKey, 1)
	s.connections.of = map[string]*connection{"open": {newest: &spannerpb.ExecuteSqlRequest{Session: testSession, Transaction: byID([]byte("t1"))}}}
	for i := range keptConnections - 1 {
		s.connections.of[fmt.Sprint(i)] = &connection{newest: &spannerpb.ExecuteSqlRequest{Session: testSession, Transaction: byID([]byte("gone"))}}
	}
	c := newTestClient()
	c.peer = "10.0.0.1:1000"
	if err := c.act(t, s, "BeginTransaction", packed(new(flightpb.ActionBeginTransactionRequest)), nil); err != nil {
		t.Fatal(err)
	}
	if n := len(s.connections.of); n != 2 || s.connections.of["open"] == nil || s.connections.of[c.peer] == nil {
		t.Errorf("%d connections are kept; want the new one and the one whose transaction is open", n)
	}
}

// prepared prepares a statement in a transaction and returns its handle.
func prepared(t *testing.T, c *client, s *Service, transaction []byte) []byte {
	t.Helper()
	reply := new(flightpb.ActionCreatePreparedStatementResult)
	if err := c.act(t, s, "CreatePreparedStatement", packed(&flightpb.ActionCreatePreparedStatementRequest{Query: "UPDATE", TransactionId: transaction}), reply); err != nil {
		t.Fatal(err)
	}
	return reply.PreparedStatementHandle
}

func transactionOfLastRun(api *fakeAPI) (id string) {
	for _, r := range api.requests {
		if r, ok := r.(*spannerpb.ExecuteSqlRequest); ok {
			id = string(r.Transaction.GetId())
		}
	}
	return id
}

// TestParameters checks that the columns of a row are bound to parameters by name if every column has the name of a
// different parameter, and otherwise by position. If the number of columns differs from the number of parameters, the
// row must be refused.
func TestParameters(t *testing.T) {
	d := Description{IsDML: true, Parameters: []plan.Param{{Name: "a", Type: value.Int64Type}, {Name: "b", Type: value.Int64Type}}}
	handle := sealed(t, &ticket{kind: ticketStatement, request: &spannerpb.ExecuteSqlRequest{Session: testSession, Sql: "UPDATE @a @b"}})
	oneAndTwo := func(names ...string) arrow.RecordBatch {
		first, second := integers(1, 1, names[0]), integers(2, 1, names[1])
		return array.NewRecordBatch(integers(0, 0, names...).Schema(), []arrow.Array{first.Column(0), second.Column(0)}, 1)
	}
	for _, test := range []struct {
		name string
		rows arrow.RecordBatch
		want string // the values of a and b, one after the other
		code codes.Code
	}{
		{"in order", oneAndTwo("x", "y"), "12", codes.OK},
		{"by name", oneAndTwo("b", "a"), "21", codes.OK},
		{"by name in another case, with @", oneAndTwo("@B", "A"), "21", codes.OK},
		{"one name alone", oneAndTwo("b", "x"), "12", codes.OK},
		{"a name twice", oneAndTwo("b", "b"), "12", codes.OK},
		{"too few", integers(0, 1, "a"), "", codes.InvalidArgument},
		{"too many", integers(0, 1, "a", "b", "c"), "", codes.InvalidArgument},
		{"none", integers(0, 1), "", codes.InvalidArgument},
	} {
		api := &fakeAPI{description: d, changed: 1}
		c := newTestClient()
		err := c.put(t, New(api, testKey, 1), &flightpb.CommandPreparedStatementUpdate{PreparedStatementHandle: handle}, test.rows)
		if usererror.CodeOf(err) != test.code {
			t.Errorf("%s: %v; want %v", test.name, err, test.code)
		}
		var got string
		for _, r := range api.requests {
			if r, ok := r.(*spannerpb.ExecuteBatchDmlRequest); ok {
				got += r.Statements[0].Params.Fields["a"].GetStringValue() + r.Statements[0].Params.Fields["b"].GetStringValue()
			}
		}
		if got != test.want {
			t.Errorf("%s: bound %q; want %q", test.name, got, test.want)
		}
		if test.code != codes.OK && len(api.requests) > 0 {
			t.Errorf("%s: %v was sent", test.name, api.requests)
		}
	}
}

// TestManyParameters checks that a statement runs for all rows of parameters in one transaction, in batches of
// batchStatements. The client must get the sum of the changed rows.
func TestManyParameters(t *testing.T) {
	api := &fakeAPI{description: Description{IsDML: true, Parameters: []plan.Param{{Name: "a", Type: value.Int64Type}}}, changed: 2}
	handle := sealed(t, &ticket{kind: ticketStatement, request: &spannerpb.ExecuteSqlRequest{Session: testSession, Sql: "UPDATE @a"}})
	c := newTestClient()
	if err := c.put(t, New(api, testKey, 1), &flightpb.CommandPreparedStatementUpdate{PreparedStatementHandle: handle}, integers(0, batchStatements+1, "a")); err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for _, r := range api.requests {
		if r, ok := r.(*spannerpb.ExecuteBatchDmlRequest); ok {
			sizes = append(sizes, len(r.Statements))
		}
	}
	if !slices.Equal(sizes, []int{batchStatements, 1}) || api.begun != 1 || c.recordCount(t) != 2*(batchStatements+1) {
		t.Errorf("batches of %d statements, %d transactions, %d rows changed", sizes, api.begun, c.recordCount(t))
	}
}

// TestBoundQuery checks that a query takes one row of parameters, and that DoPut returns a handle with the row's
// values, in the transaction of the old handle.
func TestBoundQuery(t *testing.T) {
	api := &fakeAPI{description: Description{Columns: columnsNamed("a"), Parameters: []plan.Param{{Name: "a", Type: value.Int64Type}}}}
	s := New(api, testKey, 1)
	in := testRequest()
	command := &flightpb.CommandPreparedStatementQuery{PreparedStatementHandle: sealed(t, &ticket{kind: ticketStatement, request: in})}
	if err := newTestClient().put(t, s, command, integers(0, 2, "a")); usererror.CodeOf(err) != codes.InvalidArgument {
		t.Errorf("two rows: %v", err)
	}
	c := newTestClient()
	if err := c.put(t, s, command, integers(7, 1, "a")); err != nil {
		t.Fatal(err)
	}
	reply := new(flightpb.DoPutPreparedStatementResult)
	if err := unmarshalMetadata(c, reply); err != nil {
		t.Fatal(err)
	}
	bound, err := openTicket(testKey, nil, reply.PreparedStatementHandle, "handle", ticketStatement)
	if err != nil {
		t.Fatal(err)
	}
	if got := bound.request; got.Params.Fields["a"].GetStringValue() != "7" || got.Sql != in.Sql || string(got.Transaction.GetId()) != "t1" {
		t.Errorf("the new handle has %v", got)
	}
}

// TestIngestedChunks checks that rows without a transaction are committed in chunks, which have at most the rows of one
// commit, and at most chunkBytes bytes or a single row. With the header for one commit, all rows must be written
// together.
func TestIngestedChunks(t *testing.T) {
	wide := func(rows, size int) arrow.RecordBatch {
		b := array.NewStringBuilder(arrowmemory.DefaultAllocator)
		for range rows {
			b.Append(strings.Repeat("x", size))
		}
		return array.NewRecordBatch(arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.BinaryTypes.String}}, nil), []arrow.Array{b.NewArray()}, int64(rows))
	}
	for _, test := range []struct {
		name    string
		limit   int
		commits string
		batches []arrow.RecordBatch
		want    []int
	}{
		{"nothing", 10, "", nil, nil},
		{"no rows", 10, "", []arrow.RecordBatch{integers(0, 0, "a")}, nil},
		{"one chunk of small batches", 10, "", []arrow.RecordBatch{integers(0, 3, "a"), integers(3, 3, "a")}, []int{6}},
		{"limited by rows", 10, "", []arrow.RecordBatch{integers(0, 7, "a"), integers(7, 7, "a"), integers(14, 11, "a")}, []int{10, 10, 5}},
		{"limited by bytes", 10, "", []arrow.RecordBatch{wide(5, chunkBytes/2-100)}, []int{2, 2, 1}},
		{"a row larger than a chunk", 10, "", []arrow.RecordBatch{wide(2, chunkBytes+1)}, []int{1, 1}},
		{"one commit", 10, "one", []arrow.RecordBatch{integers(0, 25, "a"), integers(25, 5, "a")}, []int{30}},
	} {
		api := &fakeAPI{description: Description{Columns: columnsNamed("a")}, loadLimit: test.limit}
		c := newTestClient(commitsHeader, test.commits)
		if err := c.put(t, New(api, testKey, 1), &flightpb.CommandStatementIngest{Table: "t"}, test.batches...); err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		var got []int
		sum := int64(0)
		for _, r := range api.requests {
			got = append(got, r.(*Load).Rows)
			sum += int64(r.(*Load).Rows)
		}
		if !slices.Equal(got, test.want) || c.recordCount(t) != sum {
			t.Errorf("%s: chunks of %d rows, %d counted; want %d", test.name, got, c.recordCount(t), test.want)
		}
	}
}

// TestFailedIngest checks that the error of a chunk says how many rows were committed before that chunk, also if the
// error comes from the store or from the memory budget. If the commit of a chunk is aborted, the server must try again,
// with at most commitAttempts attempts in all.
func TestFailedIngest(t *testing.T) {
	api := &fakeAPI{description: Description{Columns: columnsNamed("a")}, loadLimit: 10}
	loads := 0
	for _, c := range []struct {
		err  error
		code codes.Code
	}{
		{usererror.TableNotFound("t"), codes.NotFound},
		{&kv.DiskFullError{Dir: "data"}, codes.ResourceExhausted},
		{&memory.TooMuchError{}, codes.ResourceExhausted},
	} {
		loads = 0
		api.fail = func(any) error {
			if loads++; loads == 3 {
				return c.err
			}
			return nil
		}
		err := newTestClient().put(t, New(api, testKey, 1), &flightpb.CommandStatementIngest{Table: "t"}, integers(0, 50, "a"))
		if usererror.CodeOf(err) != c.code || !strings.Contains(err.Error(), "The 20 rows before were committed") || loads != 3 {
			t.Errorf("%v, after %d chunks", err, loads)
		}
	}
	loads = 0
	api.fail = func(any) error { loads++; return errAborted }
	err := newTestClient().put(t, New(api, testKey, 1), &flightpb.CommandStatementIngest{Table: "t"}, integers(0, 5, "a"))
	if usererror.CodeOf(err) != codes.Aborted || loads != commitAttempts {
		t.Errorf("aborted again and again: %v after %d attempts", err, loads)
	}
}

// TestIngestInTransaction checks that an ingest into a transaction runs INSERT statements in that transaction, with
// the names of the table and its columns quoted.
func TestIngestInTransaction(t *testing.T) {
	in := sealed(t, &ticket{kind: ticketTransaction, request: testRequest()})
	api := &fakeAPI{description: Description{Columns: columnsNamed("a`b")}, changed: 1}
	c := newTestClient(ingestHeader, "insert-or-update")
	if err := c.put(t, New(api, testKey, 1), &flightpb.CommandStatementIngest{Table: "t", TransactionId: in}, integers(5, 1, "a`b")); err != nil {
		t.Fatal(err)
	}
	r := api.requests[0].(*spannerpb.ExecuteBatchDmlRequest)
	if got, want := r.Statements[0].Sql, "INSERT OR UPDATE INTO `t` (`a\\`b`) VALUES (@p1)"; got != want || r.Statements[0].Params.Fields["p1"].GetStringValue() != "5" || string(r.Transaction.GetId()) != "t1" {
		t.Errorf("%s with %v in %v; want %s", got, r.Statements[0].Params, r.Transaction, want)
	}
	if c.recordCount(t) != 1 || api.begun != 0 {
		t.Errorf("%d rows, %d transactions were begun", c.recordCount(t), api.begun)
	}
}

// TestHostileUploads checks that a stream of invalid record batches is refused, and that none of its rows is written.
func TestHostileUploads(t *testing.T) {
	ingest := &flightpb.CommandStatementIngest{Table: "t"}
	whole := func() []*flightpb.FlightData { return uploadOf(t, ingest, integers(0, 100, "a")) }
	for name, change := range map[string]func(list []*flightpb.FlightData) []*flightpb.FlightData{
		"a schema that is text":       func(l []*flightpb.FlightData) []*flightpb.FlightData { l[0].DataHeader = []byte("schema"); return l },
		"a schema of zeros":           func(l []*flightpb.FlightData) []*flightpb.FlightData { l[0].DataHeader = make([]byte, 100); return l },
		"a batch in place of schemas": func(l []*flightpb.FlightData) []*flightpb.FlightData { l[0].DataHeader = l[1].DataHeader; return l },
		"two schemas":                 func(l []*flightpb.FlightData) []*flightpb.FlightData { l[1].DataHeader = l[0].DataHeader; return l },
		"half a header": func(l []*flightpb.FlightData) []*flightpb.FlightData {
			l[1].DataHeader = l[1].DataHeader[:len(l[1].DataHeader)/2]
			return l
		},
		"half a body": func(l []*flightpb.FlightData) []*flightpb.FlightData {
			l[1].DataBody = l[1].DataBody[:len(l[1].DataBody)/2]
			return l
		},
		"no body": func(l []*flightpb.FlightData) []*flightpb.FlightData { l[1].DataBody = nil; return l },
	} {
		list := change(whole())
		c := newTestClient()
		c.upload = list[1:]
		api := &fakeAPI{description: Description{Columns: columnsNamed("a")}, loadLimit: 1000}
		_, err := c.call(t, New(api, testKey, 1), "DoPut", list[0])
		if usererror.CodeOf(err) != codes.InvalidArgument || len(api.requests) > 0 {
			t.Errorf("%s: %v, %d chunks written", name, err, len(api.requests))
		}
	}
}

// TestIngestTables checks when an ingest creates or replaces its table, and when it is refused, for each option of the
// command.
func TestIngestTables(t *testing.T) {
	const (
		create  = flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_NOT_EXIST_OPTION_CREATE
		fails   = flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_NOT_EXIST_OPTION_FAIL
		appends = flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_EXISTS_OPTION_APPEND
		refuses = flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_EXISTS_OPTION_FAIL
		replace = flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_EXISTS_OPTION_REPLACE
	)
	const made = "CREATE TABLE `s`.`t` (`a` INT64, flight_row_id STRING(36) NOT NULL DEFAULT (GENERATE_UUID()) HIDDEN) PRIMARY KEY (flight_row_id)"
	schema, catalog := "s", "c"
	for _, test := range []struct {
		name    string
		exists  bool
		options *flightpb.CommandStatementIngest_TableDefinitionOptions
		command *flightpb.CommandStatementIngest
		want    []string
		code    codes.Code
	}{
		{"it exists", true, nil, &flightpb.CommandStatementIngest{}, nil, codes.OK},
		{"it is missing", false, nil, &flightpb.CommandStatementIngest{}, nil, codes.NotFound},
		{"append", true, &flightpb.CommandStatementIngest_TableDefinitionOptions{IfExists: appends, IfNotExist: create}, &flightpb.CommandStatementIngest{}, nil, codes.OK},
		{"create", false, &flightpb.CommandStatementIngest_TableDefinitionOptions{IfExists: appends, IfNotExist: create}, &flightpb.CommandStatementIngest{}, []string{made}, codes.OK},
		{"not to be created", false, &flightpb.CommandStatementIngest_TableDefinitionOptions{IfNotExist: fails}, &flightpb.CommandStatementIngest{}, nil, codes.NotFound},
		{"to be new", true, &flightpb.CommandStatementIngest_TableDefinitionOptions{IfExists: refuses, IfNotExist: create}, &flightpb.CommandStatementIngest{}, nil, codes.AlreadyExists},
		{"replace", true, &flightpb.CommandStatementIngest_TableDefinitionOptions{IfExists: replace, IfNotExist: create}, &flightpb.CommandStatementIngest{}, []string{"DROP TABLE `s`.`t`", made}, codes.OK},
		{"temporary", true, nil, &flightpb.CommandStatementIngest{Temporary: true}, nil, codes.Unimplemented},
		{"another catalog", true, nil, &flightpb.CommandStatementIngest{Catalog: &catalog}, nil, codes.Unimplemented},
	} {
		api := &fakeAPI{loadLimit: 10}
		api.describe = func(*spannerpb.ExecuteSqlRequest) (*Description, error) {
			if !test.exists && len(api.schema) == 0 {
				return nil, usererror.TableNotFound("t")
			}
			return &Description{Columns: columnsNamed("a")}, nil
		}
		test.command.Table, test.command.Schema, test.command.TableDefinitionOptions = "t", &schema, test.options
		err := newTestClient().put(t, New(api, testKey, 1), test.command, integers(0, 1, "a"))
		if usererror.CodeOf(err) != test.code || !slices.Equal(api.schema, test.want) {
			t.Errorf("%s: %v, schema changes %q; want %v, %q", test.name, err, api.schema, test.code, test.want)
		}
		if written := len(api.requests) > 0; written != (test.code == codes.OK) {
			t.Errorf("%s: rows written: %t", test.name, written)
		}
		for _, r := range api.requests {
			if l := r.(*Load); l.Table != "s.t" || l.Op != table.Insert || !slices.Equal(l.Columns, []string{"a"}) {
				t.Errorf("%s: wrote %+v", test.name, l)
			}
		}
	}
}

// TestQuoted checks that quoted turns a name from a client into one identifier, even if the name contains quotes,
// backslashes or spaces. A dot separates the schema from the table.
func TestQuoted(t *testing.T) {
	for name, want := range map[string]string{
		"t":                   "`t`",
		"s.t":                 "`s`.`t`",
		"":                    "``",
		"a b":                 "`a b`",
		"a`; DROP TABLE t":    "`a\\`; DROP TABLE t`",
		"a\\":                 "`a\\\\`",
		"a\\`":                "`a\\\\\\``",
		"t` (a) VALUES (1)--": "`t\\` (a) VALUES (1)--`",
	} {
		if got := quoted(name); got != want {
			t.Errorf("%q: %s; want %s", name, got, want)
		}
	}
}

// TestCreateTable checks that a created table has columns of the types of the ingested rows, and the key columns that
// the client's header lists.
func TestCreateTable(t *testing.T) {
	fields := []arrow.Field{
		{Name: "a", Type: arrow.PrimitiveTypes.Int64},
		{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true},
		{Name: "c", Type: arrow.ListOf(arrow.BinaryTypes.Binary), Nullable: true},
	}
	for _, test := range []struct {
		key, want string
		fields    []arrow.Field
		code      codes.Code
	}{
		{"a", "CREATE TABLE `t` (`a` INT64 NOT NULL, `b` STRING(MAX), `c` ARRAY<BYTES(MAX)>) PRIMARY KEY (`a`)", fields, codes.OK},
		{" b , a", "CREATE TABLE `t` (`a` INT64 NOT NULL, `b` STRING(MAX), `c` ARRAY<BYTES(MAX)>) PRIMARY KEY (`b`, `a`)", fields, codes.OK},
		{"a)--", "CREATE TABLE `t` (`a` INT64 NOT NULL) PRIMARY KEY (`a)--`)", fields[:1], codes.OK},
		{"a", "", []arrow.Field{{Name: "a", Type: arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.PrimitiveTypes.Int64)}}, codes.InvalidArgument},
	} {
		api := &fakeAPI{loadLimit: 10}
		api.describe = func(*spannerpb.ExecuteSqlRequest) (*Description, error) {
			if len(api.schema) == 0 {
				return nil, usererror.TableNotFound("t")
			}
			return new(Description), nil
		}
		columns := make([]arrow.Array, len(test.fields))
		for i, f := range test.fields {
			columns[i] = array.MakeArrayOfNull(arrowmemory.DefaultAllocator, f.Type, 0)
		}
		command := &flightpb.CommandStatementIngest{Table: "t", TableDefinitionOptions: &flightpb.CommandStatementIngest_TableDefinitionOptions{
			IfNotExist: flightpb.CommandStatementIngest_TableDefinitionOptions_TABLE_NOT_EXIST_OPTION_CREATE}}
		err := newTestClient(primaryKeyHeader, test.key).put(t, New(api, testKey, 1), command, array.NewRecordBatch(arrow.NewSchema(test.fields, nil), columns, 0))
		if got := strings.Join(api.schema, ";"); usererror.CodeOf(err) != test.code || got != test.want {
			t.Errorf("key %q: %v, %s; want %v, %s", test.key, err, got, test.code, test.want)
		}
	}
}

package flight

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/token"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

var allKinds = []ticketKind{ticketQuery, ticketCommand, ticketRows, ticketStatement, ticketTransaction, ticketRead}

// sealed returns the bytes of a ticket, signed with testKey.
func sealed(t testing.TB, of *ticket) []byte {
	t.Helper()
	data, err := of.seal(testKey)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func testRequest() *spannerpb.ExecuteSqlRequest {
	return &spannerpb.ExecuteSqlRequest{Session: testSession, Sql: "SELECT @p", Transaction: byID([]byte("t1"))}
}

// TestTickets checks that an opened ticket equals the ticket that was sealed, and that sealing a ticket twice gives
// the same bytes.
func TestTickets(t *testing.T) {
	for _, kind := range allKinds {
		for bits := range 4 {
			in := &ticket{kind: kind, options: columnar.Options{Microseconds: bits&1 != 0}, divided: bits&2 != 0, request: testRequest(), data: []byte("data")}
			data := sealed(t, in)
			if !bytes.Equal(data, sealed(t, in)) {
				t.Errorf("kind %d: sealed twice, the bytes differ", kind)
			}
			out, err := openTicket(testKey, nil, data, "ticket", kind)
			if err != nil {
				t.Errorf("kind %d, flags %d: %v", kind, bits, err)
				continue
			}
			if out.kind != kind || out.options != in.options || out.divided != in.divided || !proto.Equal(out.request, in.request) || string(out.data) != "data" {
				t.Errorf("opened %+v; want %+v", out, in)
			}
		}
	}
}

// TestHostileTickets checks that damaged, invalid and foreign tickets are refused by every method and action that
// takes a ticket or a handle.
func TestHostileTickets(t *testing.T) {
	good := sealed(t, &ticket{kind: ticketQuery, request: testRequest()})
	body := good[:len(good)-token.ChecksumSize]
	reseal := func(body []byte) []byte { return testKey.Seal(slices.Clone(body), 0) }
	head := []byte{ticketVersion, byte(ticketQuery), 0}
	cases := map[string][]byte{
		"nothing":                    nil,
		"text":                       []byte("SELECT 1"),
		"a checksum alone":           reseal(nil),
		"a short head":               reseal(head[:2]),
		"no length":                  reseal(head),
		"an unfinished length":       reseal(append(slices.Clone(head), 0x80)),
		"an endless length":          reseal(append(slices.Clone(head), bytes.Repeat([]byte{0xff}, 11)...)),
		"a length beyond the end":    reseal(append(slices.Clone(head), 5, 1)),
		"the greatest length":        reseal(binary.AppendUvarint(slices.Clone(head), 1<<64-1)),
		"a request that is none":     reseal(append(slices.Clone(head), 1, 0x0a)),
		"a later version":            reseal(append([]byte{ticketVersion + 1}, body[1:]...)),
		"kind 0":                     reseal(append([]byte{ticketVersion, 0}, body[2:]...)),
		"a kind that is none":        reseal(append([]byte{ticketVersion, 99}, body[2:]...)),
		"more after it":              append(slices.Clone(good), 0),
		"a ticket of another server": token.NewKey([token.SecretSize]byte{9}).Seal(slices.Clone(body), 0),
	}
	for i := range good {
		changed := slices.Clone(good)
		changed[i] ^= 1
		cases[fmt.Sprintf("with byte %d changed", i)] = changed
		cases[fmt.Sprintf("its first %d bytes", i)] = good[:i]
	}
	s := New(new(fakeAPI), testKey, 1)
	for name, data := range cases {
		for where, send := range ticketTakers(t, s) {
			if where == "transaction" && len(data) == 0 { // because a statement without a transaction is valid
				continue
			}
			if err := send(data); usererror.CodeOf(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "not given out by this server") {
				t.Errorf("%s as %s: %v", name, where, err)
			}
		}
	}
}

// ticketTakers returns, by name, a function for each method and action that takes a ticket or a handle. The function
// sends data as the ticket or handle.
func ticketTakers(t *testing.T, s *Service) map[string]func([]byte) error {
	endpoint := func(data []byte) *flightpb.FlightEndpoint {
		return &flightpb.FlightEndpoint{Ticket: &flightpb.Ticket{Ticket: data}}
	}
	plain := func(m proto.Message) []byte {
		body, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		return body
	}
	return map[string]func([]byte) error{
		"ticket": func(data []byte) error {
			_, err := newTestClient().call(t, s, "DoGet", &flightpb.Ticket{Ticket: data})
			return err
		},
		"cancelled": func(data []byte) error {
			info := &flightpb.FlightInfo{Endpoint: []*flightpb.FlightEndpoint{endpoint(data)}}
			return newTestClient().act(t, s, "CancelFlightInfo", plain(&flightpb.CancelFlightInfoRequest{Info: info}), nil)
		},
		"renewed": func(data []byte) error {
			return newTestClient().act(t, s, "RenewFlightEndpoint", plain(&flightpb.RenewFlightEndpointRequest{Endpoint: endpoint(data)}), nil)
		},
		"statement": func(data []byte) error {
			_, err := newTestClient().call(t, s, "GetFlightInfo", descriptor(&flightpb.CommandPreparedStatementQuery{PreparedStatementHandle: data}))
			return err
		},
		"closed": func(data []byte) error {
			return newTestClient().act(t, s, "ClosePreparedStatement", packed(&flightpb.ActionClosePreparedStatementRequest{PreparedStatementHandle: data}), nil)
		},
		"update": func(data []byte) error {
			return newTestClient().put(t, s, &flightpb.CommandPreparedStatementUpdate{PreparedStatementHandle: data})
		},
		"parameters": func(data []byte) error {
			return newTestClient().put(t, s, &flightpb.CommandPreparedStatementQuery{PreparedStatementHandle: data})
		},
		"ended": func(data []byte) error {
			return newTestClient().act(t, s, "EndTransaction", packed(&flightpb.ActionEndTransactionRequest{TransactionId: data, Action: 1}), nil)
		},
		"transaction": func(data []byte) error {
			_, err := newTestClient().call(t, s, "GetFlightInfo", descriptor(&flightpb.CommandStatementQuery{Query: "SELECT 1", TransactionId: data}))
			return err
		},
	}
}

// TestKindsAreNotInterchangeable checks that a method refuses tickets of the kinds that it does not take. For example,
// the handle of a transaction reads nothing, and the ticket of a query ends no transaction.
func TestKindsAreNotInterchangeable(t *testing.T) {
	takes := map[string][]ticketKind{
		"ticket": endpointKinds, "cancelled": endpointKinds, "renewed": endpointKinds,
		"statement": {ticketStatement}, "closed": {ticketStatement}, "update": {ticketStatement}, "parameters": {ticketStatement},
		"ended": {ticketTransaction}, "transaction": {ticketTransaction},
	}
	s := New(&fakeAPI{description: Description{Columns: columnsNamed("a"), IsDML: true}}, testKey, 1)
	for where, send := range ticketTakers(t, s) {
		for _, kind := range allKinds {
			data := sealed(t, &ticket{kind: kind, request: testRequest()})
			err := send(data)
			refused := err != nil && strings.Contains(err.Error(), "not given out by this server")
			if refused == slices.Contains(takes[where], kind) {
				t.Errorf("a ticket of kind %d as %s: %v", kind, where, err)
			}
		}
	}
}

// TestTicketsTakeMemory checks that the memory of a ticket is charged to the budget of requests: a ticket that is
// larger than the budget is refused.
func TestTicketsTakeMemory(t *testing.T) {
	request := testRequest()
	request.Sql = strings.Repeat("x", 1<<20)
	data := sealed(t, &ticket{kind: ticketQuery, request: request})
	c := newTestClient()
	c.budget = memory.NewBudget(64 << 10)
	_, err := c.call(t, New(&fakeAPI{description: Description{Columns: columnsNamed("a")}}, testKey, 1), "DoGet", &flightpb.Ticket{Ticket: data})
	if usererror.CodeOf(err) != codes.ResourceExhausted {
		t.Errorf("a ticket larger than the budget: %v", err)
	}
}

// TestTicketsOutliveTheServer checks that another server with the same secret accepts a ticket, and that a server with
// another secret refuses it.
func TestTicketsOutliveTheServer(t *testing.T) {
	api := &fakeAPI{description: Description{Columns: columnsNamed("a"), Transaction: []byte("read")}, rows: 3}
	reply, err := newTestClient().call(t, New(api, testKey, 1), "GetFlightInfo", descriptor(&flightpb.CommandStatementQuery{Query: "SELECT a FROM t"}))
	if err != nil {
		t.Fatal(err)
	}
	endpoint := reply.(*flightpb.FlightInfo).Endpoint[0].Ticket
	later := &fakeAPI{description: api.description, rows: 3}
	for range 2 { // a ticket can be read several times
		c := &client{} // without headers, because the ticket names the database
		if _, err := c.call(t, New(later, testKey, 1), "DoGet", endpoint); err != nil || c.frames != 2 {
			t.Errorf("%d messages, %v; want the schema and one batch", c.frames, err)
		}
	}
	f := later.requests[0].(Fetch)
	if f.Sql != "SELECT a FROM t" || f.Session != testSession || string(f.Transaction.GetId()) != "read" || f.Divided {
		t.Errorf("the ticket became %v", f)
	}
	if _, err := new(client).call(t, New(later, token.NewKey([token.SecretSize]byte{}), 1), "DoGet", endpoint); usererror.CodeOf(err) != codes.InvalidArgument {
		t.Errorf("another server: %v", err)
	}
}

// TestCancel checks that CancelFlightInfo cancels all queries that are running for the given ticket, and no queries of
// other tickets. When no query is running for the ticket, it must return NOT_CANCELLABLE.
func TestCancel(t *testing.T) {
	one, other := sealed(t, &ticket{kind: ticketQuery, request: testRequest()}), sealed(t, &ticket{kind: ticketRead, request: testRequest()})
	s := New(new(fakeAPI), testKey, 1)
	first, firstDone := s.running.start(context.Background(), one)
	second, secondDone := s.running.start(context.Background(), one)
	third, thirdDone := s.running.start(context.Background(), other)
	cancel := func() flightpb.CancelStatus {
		info := &flightpb.FlightInfo{Endpoint: []*flightpb.FlightEndpoint{{Ticket: &flightpb.Ticket{Ticket: one}}}}
		body, err := proto.Marshal(&flightpb.CancelFlightInfoRequest{Info: info})
		if err != nil {
			t.Fatal(err)
		}
		c := newTestClient()
		if err := c.act(t, s, "CancelFlightInfo", body, nil); err != nil {
			t.Fatal(err)
		}
		reply := new(flightpb.CancelFlightInfoResult)
		if err := proto.Unmarshal(c.replies[0].(*flightpb.Result).Body, reply); err != nil {
			t.Fatal(err)
		}
		return reply.Status
	}
	if got := cancel(); got != flightpb.CancelStatus_CANCEL_STATUS_CANCELLED || first.Err() == nil || second.Err() == nil || third.Err() != nil {
		t.Errorf("%v; the readers: %v, %v, another: %v", got, first.Err(), second.Err(), third.Err())
	}
	firstDone()
	secondDone()
	if got := cancel(); got != flightpb.CancelStatus_CANCEL_STATUS_NOT_CANCELLABLE {
		t.Errorf("without a reader: %v", got)
	}
	thirdDone()
	if len(s.running.of) != 0 {
		t.Errorf("%d tickets are kept of which no query is running", len(s.running.of))
	}
}

// FuzzTicket looks for a signed body for which openTicket panics or returns an error with a wrong code. It also looks
// for a body whose ticket changes when the ticket is sealed and opened again.
func FuzzTicket(f *testing.F) {
	for _, kind := range allKinds {
		data := sealed(f, &ticket{kind: kind, request: testRequest(), data: []byte("data")})
		f.Add(data[:len(data)-token.ChecksumSize])
	}
	f.Add([]byte{ticketVersion, 1, 0, 0x80})
	f.Fuzz(func(t *testing.T, body []byte) {
		if len(body) > 4<<10 { // openTicket charges larger tickets to a call, and this test has none
			return
		}
		got, err := openTicket(testKey, nil, testKey.Seal(slices.Clone(body), 0), "ticket", allKinds...)
		if err != nil {
			if usererror.CodeOf(err) != codes.InvalidArgument {
				t.Error(err)
			}
			return
		}
		again, err := openTicket(testKey, nil, sealed(t, got), "ticket", got.kind)
		if err != nil || !proto.Equal(got.request, again.request) || !bytes.Equal(got.data, again.data) {
			t.Errorf("%+v, sealed again: %+v, %v", got, again, err)
		}
	})
}

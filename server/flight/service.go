package flight

import (
	"context"
	"sync/atomic"
	"time"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/token"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// An API runs requests of google.spanner.v1.Spanner. The cost of a request is added to the given call.
type API interface {
	// Session returns the name of a session for a database and a role; the role "" means none. The session stays valid
	// as long as the tickets that are made in it.
	Session(database, role string) (string, error)
	// Describe returns the description of a statement, which it does not run. With query mode PLAN, the request need
	// not have values for parameters.
	Describe(context.Context, *spannerpb.ExecuteSqlRequest, *rpc.Call) (*Description, error)
	// Query runs a statement and calls answer with its result, which is valid until answer returns.
	Query(ctx context.Context, req *spannerpb.ExecuteSqlRequest, c *rpc.Call, answer func(*result.Result) error) error
	// Announce returns the description of a statement that will run. If the statement is a query, statistics count this
	// call as its execution. Fetch then runs the query or a partition of it, calls answer as Query does, and adds its
	// cost to that execution.
	Announce(context.Context, *spannerpb.ExecuteSqlRequest, *rpc.Call) (*Description, error)
	Fetch(ctx context.Context, f Fetch, c *rpc.Call, answer func(*result.Result) error) error
	// AnnounceRead returns the columns of a read. Statistics count this call as an execution of the read. FetchRead
	// then reads the rows, calls answer with the result, and adds its cost to that execution.
	AnnounceRead(context.Context, *spannerpb.ReadRequest, *rpc.Call) ([]plan.Column, error)
	FetchRead(ctx context.Context, req *spannerpb.ReadRequest, c *rpc.Call, answer func(*result.Result) error) error
	PartitionQuery(context.Context, *spannerpb.PartitionQueryRequest, *rpc.Call) (*spannerpb.PartitionResponse, error)
	ExecuteBatchDML(context.Context, *spannerpb.ExecuteBatchDmlRequest, *rpc.Call) (*spannerpb.ExecuteBatchDmlResponse, error)
	BeginTransaction(context.Context, *spannerpb.BeginTransactionRequest, *rpc.Call) (*spannerpb.Transaction, error)
	Commit(context.Context, *spannerpb.CommitRequest, *rpc.Call) (*spannerpb.CommitResponse, error)
	Rollback(context.Context, *spannerpb.RollbackRequest) error
	// TransactionState returns the state of a transaction of a session.
	TransactionState(session string, id []byte) TransactionState
	// Load writes rows that are given as columns. It writes all of them in one transaction, or none. LoadLimit returns
	// how many rows one Load with the same table and columns can have at most.
	Load(context.Context, *Load, *rpc.Call) error
	LoadLimit(*Load) (rows int, err error)
	// UpdateSchema runs DDL statements in the database of a session. If one of them is not valid in the schema, none
	// runs.
	UpdateSchema(ctx context.Context, session string, statements ...string) error
}

// TransactionState is the state of a transaction.
type TransactionState int

const (
	TransactionOpen TransactionState = iota
	// TransactionEnded means that the client has committed the transaction or rolled it back.
	TransactionEnded
	// TransactionLost means that the transaction was aborted, or that it does not exist.
	TransactionLost
)

// A Fetch is a request for rows of an announced query.
type Fetch struct {
	*spannerpb.ExecuteSqlRequest
	// Divided says that the service has divided the query itself. If it is false, a partition token in the request
	// comes from the client.
	Divided bool
}

// A Load is a group of rows, given as columns, that are written together.
type Load struct {
	Session string
	Table   string // TABLE, or SCHEMA.TABLE for a table in a named schema
	Op      table.Op
	Columns []string
	Rows    int
	// Source returns the values of the column with the given index in Columns, converted to type t.
	Source func(column int, t *value.Type) (value.Source, error)
}

// A Description says what a statement is, needs and returns, before it runs.
type Description struct {
	Columns []plan.Column
	// Parameters are in the order of their first use in the SQL.
	Parameters []plan.Param
	// IsDDL says that the statement changes the schema. Then all other fields are empty.
	IsDDL bool
	// IsDML says that the statement writes.
	IsDML bool
	// IsPartitionable says that PartitionQuery accepts the statement.
	IsPartitionable bool
	// Transaction is the id of a read-only transaction in which a query can run later, until Expires. The transaction
	// reads at the timestamp at which the query was described. Transaction is nil if the request named one itself.
	Transaction []byte
	Expires     time.Time
}

// A Service implements arrow.flight.protocol.FlightService.
type Service struct {
	api    API
	tokens token.Key
	// parallel is the maximum number of endpoints of a result, unless the client asks for another number.
	parallel int
	// seqno is the last seqno that was given to a writing request; all transactions share it. It starts with the time
	// in microseconds, so it is above the numbers of the previous process.
	seqno   atomic.Int64
	running running
	// connections holds the connections over which transactions were begun.
	connections connections
}

// New returns the service. tokens is the key that seals its tickets. parallel is the maximum number of endpoints of a
// result, unless the client asks for another number.
func New(api API, tokens token.Key, parallel int) *Service {
	s := &Service{api: api, tokens: tokens, parallel: parallel}
	s.seqno.Store(time.Now().UnixMicro())
	s.connections.last.Store(uint64(time.Now().UnixMicro()))
	return s
}

// Table returns the table of the service's methods.
func (s *Service) Table() rpc.Service {
	return rpc.Service{Name: "arrow.flight.protocol.FlightService", Methods: []rpc.Method{
		rpc.MeterByKind(rpc.UnaryCall("GetFlightInfo", s.getFlightInfo)),
		rpc.MeterByKind(rpc.UnaryCall("GetSchema", s.getSchema)),
		rpc.MeterByKind(rpc.Streaming("DoGet", s.doGet)),
		rpc.MeterByKind(rpc.Uploading("DoPut", s.doPut)),
		rpc.MeterByKind(rpc.Streaming("DoAction", s.doAction)),
		rpc.Streaming("ListActions", s.listActions),
		rpc.Uploading("Handshake", s.handshake),
	}}
}

// Headers of requests. A JDBC driver sends the parameters of its URL as headers, and an ADBC driver its options
// adbc.flight.sql.rpc.call_header.NAME.
const (
	// databaseHeader names the database of a request, such as projects/P/instances/I/databases/D.
	databaseHeader = "database"
	// roleHeader names the database role of a request. A request without this header has all privileges.
	roleHeader = "database-role"
	// partitionsHeader is the number of endpoints that a query's FlightInfo has at most.
	partitionsHeader = "max-partitions"
	// ingestHeader says how a bulk load writes a row whose key already exists: see ingestModes.
	ingestHeader = "ingest-mode"
	// commitsHeader with the value oneCommit makes a bulk load without a transaction write all rows in one commit. The
	// load is refused if its rows exceed the limits of a commit.
	commitsHeader = "ingest-commits"
	oneCommit     = "one"
	// unitHeader is the unit of timestamps in the reply: ns, the default, or us.
	unitHeader = "timestamp-unit"
)

// session returns the name of the session for the database and the role in a request's headers. A request with a handle
// needs no headers, because the handle names the session.
func (s *Service) session(c *rpc.Call) (string, error) {
	database := c.Metadata(databaseHeader)
	if database == "" {
		return "", usererror.FlightDatabaseMissing(databaseHeader)
	}
	return s.api.Session(database, c.Metadata(roleHeader))
}

// optionsOf returns the options for Arrow types that the request's headers ask for.
func optionsOf(c *rpc.Call) (o columnar.Options, err error) {
	switch unit := c.Metadata(unitHeader); unit {
	case "", "ns":
	case "us":
		o.Microseconds = true
	default:
		err = usererror.InvalidFlightHeader(unitHeader, unit, "ns or us")
	}
	return o, err
}

// commandOf decodes the command of Flight SQL that a descriptor or an action contains.
func commandOf(data []byte, c *rpc.Call) (proto.Message, error) {
	var wrapped anypb.Any
	if err := proto.Unmarshal(data, &wrapped); err != nil || wrapped.TypeUrl == "" {
		return nil, usererror.InvalidFlightDescriptor("it has no command of Flight SQL")
	}
	kind, err := protoregistry.GlobalTypes.FindMessageByURL(wrapped.TypeUrl)
	if err != nil {
		return nil, usererror.UnknownFlightCommand(wrapped.TypeUrl)
	}
	command := kind.New().Interface()
	if err := c.ChargeDecoded(command, wrapped.Value); err != nil {
		return nil, err
	}
	if proto.Unmarshal(wrapped.Value, command) != nil {
		return nil, usererror.UnknownFlightCommand(wrapped.TypeUrl)
	}
	return command, nil
}

// descriptorCommand returns the command of a descriptor.
func descriptorCommand(d *flightpb.FlightDescriptor, c *rpc.Call) (proto.Message, error) {
	if d.GetType() != flightpb.FlightDescriptor_CMD {
		return nil, usererror.InvalidFlightDescriptor("its type is not CMD")
	}
	return commandOf(d.Cmd, c)
}

// getFlightInfo answers GetFlightInfo for any command that has a result.
func (s *Service) getFlightInfo(ctx context.Context, d *flightpb.FlightDescriptor, c *rpc.Call) (*flightpb.FlightInfo, error) {
	command, err := descriptorCommand(d, c)
	if err != nil {
		return nil, err
	}
	info, err := s.infoOf(ctx, command, c)
	if err != nil {
		return nil, err
	}
	info.FlightDescriptor = d
	return info, nil
}

// infoOf returns the FlightInfo of a command that has a result.
func (s *Service) infoOf(ctx context.Context, command proto.Message, c *rpc.Call) (*flightpb.FlightInfo, error) {
	if schema := metadataSchema(command); schema != nil {
		return s.metadataInfo(command, schema, c)
	}
	if read, ok := command.(*spannerpb.ReadRequest); ok {
		return s.readInfo(ctx, read, c)
	}
	q, err := s.queryOf(command, c)
	if err != nil {
		return nil, err
	}
	return s.queryInfo(ctx, q, c)
}

// queryOf returns the ticket of a command that runs a statement.
func (s *Service) queryOf(command proto.Message, c *rpc.Call) (q *ticket, err error) {
	switch command := command.(type) {
	case *flightpb.CommandStatementQuery:
		return s.statement(command.Query, command.TransactionId, c)
	case *flightpb.CommandPreparedStatementQuery:
		if q, err = s.openPrepared(command.PreparedStatementHandle, c); err != nil {
			return nil, err
		}
		s.follow(q, c)
		q.kind, c.Request = ticketQuery, q.request
		return q, nil
	case *spannerpb.ExecuteSqlRequest:
		o, err := optionsOf(c)
		c.Request = command
		return &ticket{kind: ticketQuery, options: o, request: command}, err
	}
	return nil, usererror.UnknownFlightCommand(string(command.ProtoReflect().Descriptor().FullName()))
}

// getSchema answers GetSchema. It does not run the statement.
func (s *Service) getSchema(ctx context.Context, descriptor *flightpb.FlightDescriptor, c *rpc.Call) (*flightpb.SchemaResult, error) {
	command, err := descriptorCommand(descriptor, c)
	if err != nil {
		return nil, err
	}
	schema := metadataSchema(command)
	if schema == nil {
		q, err := s.queryOf(command, c)
		if err != nil {
			return nil, err
		}
		d, err := s.api.Describe(ctx, q.request, c)
		if err != nil {
			return nil, err
		}
		schema = columnar.Schema(columnsOf(d.Columns), q.options)
	}
	data, err := schemaBytes(schema)
	return &flightpb.SchemaResult{Schema: data}, err
}

// doGet answers DoGet.
func (s *Service) doGet(ctx context.Context, t *flightpb.Ticket, c *rpc.Call) error {
	ticket, err := openTicket(s.tokens, c, t.Ticket, "ticket", endpointKinds...)
	if err != nil {
		return err
	}
	c.Request = ticket.request // so that the log names the session and the tags in this request
	switch ticket.kind {
	case ticketRows:
		return sendStored(ctx, c, ticket.data)
	case ticketCommand:
		return s.getMetadata(ctx, ticket, c)
	}
	ctx, done := s.running.start(ctx, t.Ticket)
	answer := func(r *result.Result) error { return stream(ctx, c, r, ticket.options) }
	if ticket.kind == ticketRead {
		err = s.getRead(ctx, ticket, c, answer)
	} else {
		err = s.api.Fetch(ctx, Fetch{ticket.request, ticket.divided}, c, answer)
	}
	done()
	return err
}

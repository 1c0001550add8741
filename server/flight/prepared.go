package flight

import (
	"context"
	"slices"
	"strings"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// A prepared statement consists of its handle: the server keeps no state for it beyond what it caches for every
// statement. Its parameters are in the order of their first use in the SQL. When the client binds values to them, the
// client gets a new handle, which contains the values. The statement outlives the transaction in which it was prepared
// (see connection.go).

// createPrepared prepares a statement.
func (s *Service) createPrepared(ctx context.Context, req *flightpb.ActionCreatePreparedStatementRequest, c *rpc.Call) (proto.Message, error) {
	t, err := s.statement(req.Query, req.TransactionId, c)
	if err != nil {
		return nil, err
	}
	t.kind, t.request.QueryMode = ticketStatement, spannerpb.ExecuteSqlRequest_PLAN
	d, err := s.api.Describe(ctx, t.request, c)
	if err != nil {
		return nil, err
	}
	t.request.QueryMode = spannerpb.ExecuteSqlRequest_NORMAL
	reply := &flightpb.ActionCreatePreparedStatementResult{IsUpdate: proto.Bool(!d.returnsRows())}
	if reply.PreparedStatementHandle, err = t.seal(s.tokens); err != nil {
		return nil, err
	}
	if d.returnsRows() {
		if reply.DatasetSchema, err = schemaBytes(columnar.Schema(columnsOf(d.Columns), t.options)); err != nil {
			return nil, err
		}
	}
	if len(d.Parameters) > 0 {
		reply.ParameterSchema, err = schemaBytes(columnar.Schema(parametersOf(d), t.options))
	}
	return reply, err
}

// returnsRows reports whether the statement has a result that clients read: it is a query, or DML with THEN RETURN.
func (d *Description) returnsRows() bool { return !d.IsDDL && (!d.IsDML || len(d.Columns) > 0) }

func parametersOf(d *Description) []columnar.Column {
	columns := make([]columnar.Column, len(d.Parameters))
	for i, p := range d.Parameters {
		columns[i] = columnar.Column{Name: p.Name, Type: p.Type}
	}
	return columns
}

func (s *Service) closePrepared(_ context.Context, req *flightpb.ActionClosePreparedStatementRequest, c *rpc.Call) (proto.Message, error) {
	_, err := s.openPrepared(req.PreparedStatementHandle, c)
	return nil, err
}

func (s *Service) openPrepared(handle []byte, c *rpc.Call) (*ticket, error) {
	return openTicket(s.tokens, c, handle, "prepared_statement_handle", ticketStatement)
}

// A binding says, for each column of a batch, which parameter of a statement gets the column's values, and which type
// the parameter has.
type binding struct {
	names []string // names of the statement's parameters, by column of the batch
	types []*value.Type
}

// bindingOf matches the columns of a batch with the parameters of a statement. It matches by name if every column has
// the name of a parameter, else by order.
func bindingOf(d *Description, schema *arrow.Schema) (*binding, error) {
	if schema.NumFields() != len(d.Parameters) {
		return nil, usererror.FlightParameterCount(len(d.Parameters), schema.NumFields())
	}
	b := &binding{names: make([]string, len(d.Parameters)), types: make([]*value.Type, len(d.Parameters))}
	byName := make([]int, schema.NumFields())
	named := true
	for i, f := range schema.Fields() {
		byName[i] = slices.IndexFunc(d.Parameters, func(p plan.Param) bool { return strings.EqualFold(p.Name, strings.TrimPrefix(f.Name, "@")) })
		named = named && byName[i] >= 0 && !slices.Contains(byName[:i], byName[i])
	}
	for i := range d.Parameters {
		p := d.Parameters[i]
		if named {
			p = d.Parameters[byName[i]]
		}
		b.names[i], b.types[i] = p.Name, p.Type
	}
	return b, nil
}

// A boundRow holds the values of a statement's parameters for one execution, from one row of a batch.
type boundRow struct {
	params *structpb.Struct
	types  map[string]*spannerpb.Type
}

// boundRowBytes is the approximate memory of a boundRow in bytes, without its values.
const boundRowBytes = 512

// bind returns the parameters that one row of a batch gives. If a value cannot be converted to its parameter's type,
// bind sends the value with the type of its column, and the statement is analyzed with that type.
func (b *binding) bind(batch arrow.RecordBatch, row int) (r boundRow, err error) {
	r = boundRow{&structpb.Struct{Fields: map[string]*structpb.Value{}}, map[string]*spannerpb.Type{}}
	for i, col := range batch.Columns() {
		name, t := b.names[i], b.types[i]
		v, err := columnar.ValueAt(col, row, t)
		if err != nil {
			other, typeErr := columnar.TypeOf(batch.Schema().Field(i))
			if typeErr != nil || other.Equal(t) {
				return r, usererror.UnparsableParam(name, t.String(), err)
			}
			if v, err = columnar.ValueAt(col, row, other); err != nil {
				return r, usererror.UnparsableParam(name, other.String(), err)
			}
			t = other
		}
		if r.params.Fields[name], err = wireValue(v, t); err != nil {
			return r, err
		}
		r.types[name] = t.Proto()
	}
	return r, nil
}

// wireValue returns a value in the form in which requests of Spanner's API carry it.
func wireValue(v value.Value, t *value.Type) (*structpb.Value, error) {
	p := new(structpb.Value)
	return p, proto.Unmarshal(v.AppendWire(nil, t), p)
}

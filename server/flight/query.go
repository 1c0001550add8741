package flight

import (
	"bytes"
	"context"
	"strconv"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// partitionBytes is the minimum size in bytes of a partition of a result. It does not apply if the client asks for a
// number of partitions. Smaller partitions are not worth a stream of their own.
const partitionBytes = 16 << 20

// unknown is the value for a count that is unknown.
const unknown = -1

// statement returns the ticket of a statement that a client sends as SQL. transaction is the handle of the transaction
// in which the statement runs, or empty if it runs in none.
func (s *Service) statement(sql string, transaction []byte, c *rpc.Call) (*ticket, error) {
	o, err := optionsOf(c)
	if err != nil {
		return nil, err
	}
	named, _ := analyze.Parameters(sql)
	t := &ticket{kind: ticketQuery, options: o, request: &spannerpb.ExecuteSqlRequest{Sql: named}}
	if len(transaction) > 0 {
		in, err := s.openTransaction(transaction, c)
		if err != nil {
			return nil, err
		}
		t.request.Session, t.request.Transaction, t.data = in.request.Session, in.request.Transaction, in.data
	} else if t.request.Session, err = s.session(c); err != nil {
		return nil, err
	}
	c.Request = t.request
	return t, nil
}

// queryInfo returns the FlightInfo of a query. It fixes the query's read timestamp. Statistics count this request as
// the execution of the query, and not the later requests that fetch its rows.
func (s *Service) queryInfo(ctx context.Context, q *ticket, c *rpc.Call) (*flightpb.FlightInfo, error) {
	d, err := s.api.Announce(ctx, q.request, c)
	if err != nil {
		return nil, err
	}
	if d.IsDDL || d.IsDML {
		return s.updateInfo(ctx, q, d, c)
	}
	schema, err := schemaBytes(columnar.Schema(columnsOf(d.Columns), q.options))
	if err != nil {
		return nil, err
	}
	if d.Transaction != nil {
		q.request.Transaction = &spannerpb.TransactionSelector{Selector: &spannerpb.TransactionSelector_Id{Id: d.Transaction}}
	}
	parts, err := s.partition(ctx, q.request, d, c)
	if err != nil {
		return nil, err
	}
	info := &flightpb.FlightInfo{Schema: schema, TotalRecords: unknown, TotalBytes: unknown}
	q.divided = len(parts) > 1
	for _, p := range parts {
		q.request.PartitionToken = p
		sealed, err := q.seal(s.tokens)
		if err != nil {
			return nil, err
		}
		endpoint := &flightpb.FlightEndpoint{Ticket: &flightpb.Ticket{Ticket: sealed}}
		if d.Transaction != nil {
			endpoint.ExpirationTime = timestamppb.New(d.Expires)
		}
		info.Endpoint = append(info.Endpoint, endpoint)
	}
	return info, nil
}

// maxReturned is how many bytes of rows a statement that writes can return at most, because these rows go into the
// ticket.
const maxReturned = 4 << 20

// updateInfo runs a statement that writes, and returns a FlightInfo whose ticket contains the rows of THEN RETURN. So
// clients can read the rows several times, and the statement runs only once.
func (s *Service) updateInfo(ctx context.Context, q *ticket, d *Description, c *rpc.Call) (*flightpb.FlightInfo, error) {
	columns := columnsOf(d.Columns)
	schema, err := schemaBytes(columnar.Schema(columns, q.options))
	if err != nil {
		return nil, err
	}
	var rows bytes.Buffer
	n, err := s.update(ctx, q.request, d, c, func(r *result.Result) error {
		rows.Reset()
		return store(&rows, r, columns, q.options)
	})
	if err != nil {
		return nil, err
	}
	info := &flightpb.FlightInfo{Schema: schema, TotalRecords: n, TotalBytes: unknown}
	if len(columns) == 0 {
		return info, nil
	}
	t := &ticket{kind: ticketRows, request: &spannerpb.ExecuteSqlRequest{Session: q.request.Session}, data: rows.Bytes()}
	sealed, err := t.seal(s.tokens)
	info.Endpoint = []*flightpb.FlightEndpoint{{Ticket: &flightpb.Ticket{Ticket: sealed}}}
	return info, err
}

// partition divides a query and returns the partition tokens for requests that read its partitions. For a query that is
// not divided it returns one token, nil.
func (s *Service) partition(ctx context.Context, q *spannerpb.ExecuteSqlRequest, d *Description, c *rpc.Call) ([][]byte, error) {
	whole := [][]byte{nil}
	o := &spannerpb.PartitionOptions{PartitionSizeBytes: partitionBytes, MaxPartitions: int64(s.parallel)}
	if text := c.Metadata(partitionsHeader); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 1 {
			return nil, usererror.InvalidFlightHeader(partitionsHeader, text, "a number above 0")
		}
		o = &spannerpb.PartitionOptions{MaxPartitions: n}
	}
	if len(q.PartitionToken) > 0 {
		return [][]byte{q.PartitionToken}, nil
	}
	if o.MaxPartitions == 1 || d.Transaction == nil || !d.IsPartitionable {
		return whole, nil
	}
	reply, err := s.api.PartitionQuery(ctx, &spannerpb.PartitionQueryRequest{
		Session: q.Session, Transaction: q.Transaction, Sql: q.Sql, Params: q.Params, ParamTypes: q.ParamTypes, PartitionOptions: o,
	}, c)
	if err != nil || len(reply.Partitions) < 2 {
		return whole, err
	}
	tokens := make([][]byte, len(reply.Partitions))
	for i, p := range reply.Partitions {
		tokens[i] = p.PartitionToken
	}
	return tokens, nil
}

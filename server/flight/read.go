package flight

import (
	"context"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/server/result"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value/columnar"
)

// Two requests of google.spanner.v1 are also commands: ReadRequest and ExecuteSqlRequest (see queryOf). With these
// commands a client of Spanner's API gets the rows of a read or a query as Arrow columns. The read or query runs in the
// client's own session and transaction, and can be a partition of PartitionRead or PartitionQuery.

// readInfo returns the FlightInfo of a ReadRequest.
func (s *Service) readInfo(ctx context.Context, req *spannerpb.ReadRequest, c *rpc.Call) (*flightpb.FlightInfo, error) {
	o, err := optionsOf(c)
	if err != nil {
		return nil, err
	}
	c.Request = req
	columns, err := s.api.AnnounceRead(ctx, req, c)
	if err != nil {
		return nil, err
	}
	schema, err := schemaBytes(columnar.Schema(columnsOf(columns), o))
	if err != nil {
		return nil, err
	}
	data, err := proto.Marshal(req)
	if err != nil {
		return nil, err
	}
	t := &ticket{kind: ticketRead, options: o, request: &spannerpb.ExecuteSqlRequest{Session: req.Session}, data: data}
	sealed, err := t.seal(s.tokens)
	return &flightpb.FlightInfo{Schema: schema, TotalRecords: unknown, TotalBytes: unknown, Endpoint: []*flightpb.FlightEndpoint{{Ticket: &flightpb.Ticket{Ticket: sealed}}}}, err
}

// getRead answers DoGet for a ticket that contains a ReadRequest.
func (s *Service) getRead(ctx context.Context, t *ticket, c *rpc.Call, answer func(*result.Result) error) error {
	req := new(spannerpb.ReadRequest)
	if err := proto.Unmarshal(t.data, req); err != nil {
		return usererror.InvalidTicket("ticket")
	}
	c.Request = req
	return s.api.FetchRead(ctx, req, c, answer)
}

package retrieval

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	gproto "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// flightCeiling answers every query of Flight SQL with the same record batches, which are already encoded. The header
// max-partitions of the request sets the number of streams.
type flightCeiling struct {
	flight.BaseFlightServer
	schema  []byte         // the schema as FlightInfo needs it: an encapsulated IPC message
	first   *cannedFrame   // the message with the schema, which begins each stream
	batches []*cannedFrame // the record batches, each as one message
}

// recordFlight runs a query and writes the answer to w in the form that readFlight reads: first the schema, then the
// messages of the query's stream. Each message is preceded by its length (uvarint).
func (c *flightClient) recordFlight(ctx context.Context, query string, w io.Writer) error {
	ctx = metadata.AppendToOutgoingContext(ctx, "database", c.database, maxPartitions, "1")
	info, err := c.Execute(ctx, query)
	if err != nil {
		return err
	}
	if _, err := w.Write(withLength(info.Schema)); err != nil {
		return err
	}
	for _, e := range info.Endpoint {
		stream, err := c.Client.Client.DoGet(ctx, e.Ticket)
		if err != nil {
			return err
		}
		for {
			m, err := stream.Recv()
			if err == io.EOF {
				break
			} else if err != nil {
				return err
			}
			b, err := gproto.Marshal(m)
			if err == nil {
				_, err = w.Write(withLength(b))
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func withLength(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }

// readFlight reads a file that recordFlight has written.
func readFlight(name string) (*flightCeiling, error) {
	frames, err := readFrames(name)
	if err != nil {
		return nil, err
	}
	if len(frames) < 2 {
		return nil, errors.New(name + " has no schema")
	}
	return &flightCeiling{schema: frames[0].ready, first: frames[1], batches: frames[2:]}, nil
}

// maxPartitions is the name of the header in which a client sends the number of endpoints that it wants.
const maxPartitions = "max-partitions"

// cannedPartitions is the number of endpoints that a client gets if it does not send the header max-partitions.
const cannedPartitions = 16

// GetFlightInfo answers every command in the same way: with the number of endpoints that the client wants, or with
// cannedPartitions endpoints. The ticket of each endpoint names a part of the batches.
func (c *flightCeiling) GetFlightInfo(ctx context.Context, d *flight.FlightDescriptor) (*flight.FlightInfo, error) {
	parts := cannedPartitions
	if md, _ := metadata.FromIncomingContext(ctx); len(md.Get(maxPartitions)) > 0 {
		var err error
		if parts, err = strconv.Atoi(md.Get(maxPartitions)[0]); err != nil {
			return nil, err
		}
	}
	info := &flight.FlightInfo{Schema: c.schema, FlightDescriptor: d, TotalRecords: -1, TotalBytes: -1}
	for i := range parts {
		info.Endpoint = append(info.Endpoint, &flight.FlightEndpoint{Ticket: &flight.Ticket{Ticket: fmt.Appendf(nil, "%d %d", i, parts)}})
	}
	return info, nil
}

func (c *flightCeiling) DoGet(t *flight.Ticket, s flight.FlightService_DoGetServer) error {
	var part, parts int
	if _, err := fmt.Sscanf(string(t.Ticket), "%d %d", &part, &parts); err != nil {
		return err
	}
	if err := s.SendMsg(c.first); err != nil {
		return err
	}
	n := len(c.batches)
	for _, f := range c.batches[n*part/parts : n*(part+1)/parts] {
		if err := s.SendMsg(f); err != nil {
			return err
		}
	}
	return nil
}

// DoAction creates and closes prepared statements, because the JDBC driver uses them for every query.
func (c *flightCeiling) DoAction(a *flight.Action, s flight.FlightService_DoActionServer) error {
	switch a.Type {
	case flightsql.CreatePreparedStatementActionType:
		reply, err := anypb.New(&flightpb.ActionCreatePreparedStatementResult{PreparedStatementHandle: []byte("canned"), DatasetSchema: c.schema})
		if err != nil {
			return err
		}
		body, err := gproto.Marshal(reply)
		if err != nil {
			return err
		}
		return s.Send(&flight.Result{Body: body})
	case flightsql.ClosePreparedStatementActionType:
		return nil
	}
	return status.Errorf(codes.Unimplemented, "canned batches have no action %s", a.Type)
}

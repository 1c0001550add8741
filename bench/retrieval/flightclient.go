package retrieval

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/flight/flightsql"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
)

// flightClient reads rows over Arrow Flight SQL, with Arrow's own client library.
type flightClient struct {
	*flightsql.Client
	database string
}

// maxFlightBatch is the largest message that the client accepts, in bytes. No server sends a larger one.
const maxFlightBatch = 1 << 30

func dialFlight(address, database string) (*flightClient, error) {
	c, err := flightsql.NewClient("passthrough:///"+address, nil, nil, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxFlightBatch)))
	if err != nil {
		return nil, err
	}
	return &flightClient{c, database}, nil
}

func (c *flightClient) close() error {
	if c == nil {
		return nil
	}
	return c.Close()
}

// count runs a query and counts its rows. n readers share the endpoints of the result.
func (c *flightClient) count(ctx context.Context, query string, n int) (int64, error) {
	var rows atomic.Int64
	err := c.each(ctx, query, n, func(batch arrow.RecordBatch) error {
		rows.Add(batch.NumRows())
		return nil
	})
	return rows.Load(), err
}

// each runs a query and calls visit with each batch of its result. n readers share the endpoints of the result, so
// visit must be safe for concurrent calls.
func (c *flightClient) each(ctx context.Context, query string, n int, visit func(arrow.RecordBatch) error) error {
	headers := []string{"database", c.database}
	if n == 1 {
		headers = append(headers, maxPartitions, strconv.Itoa(n))
	}
	ctx = metadata.AppendToOutgoingContext(ctx, headers...)
	info, err := c.Execute(ctx, query)
	if err != nil {
		return err
	}
	_, err = shared(ctx, n, len(info.Endpoint), func(ctx context.Context, i int) (int64, error) {
		r, err := c.DoGet(ctx, info.Endpoint[i].Ticket)
		if err != nil {
			return 0, err
		}
		defer r.Release()
		for r.Next() {
			if err := visit(r.RecordBatch()); err != nil {
				return 0, err
			}
		}
		if err := r.Err(); err != nil {
			return 0, errors.Join(fmt.Errorf("endpoint %d", i), err)
		}
		return 0, nil
	})
	return err
}

package flight

import (
	"context"
	"sync"

	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/server/rpc"
)

// running holds the queries that are running because a client has sent their tickets to DoGet.
type running struct {
	mu   sync.Mutex
	last int64
	of   map[string]map[int64]context.CancelFunc // cancels a query; by ticket and number of the query
}

// start registers a query that DoGet runs for a ticket. The caller runs the query under the returned context, and then
// calls the returned function.
func (r *running) start(ctx context.Context, ticket []byte) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last++
	key, number := string(ticket), r.last
	if r.of == nil {
		r.of = map[string]map[int64]context.CancelFunc{}
	}
	if r.of[key] == nil {
		r.of[key] = map[int64]context.CancelFunc{}
	}
	r.of[key][number] = cancel
	return ctx, func() {
		cancel()
		r.mu.Lock()
		defer r.mu.Unlock()
		if delete(r.of[key], number); len(r.of[key]) == 0 {
			delete(r.of, key)
		}
	}
}

// cancel cancels the queries that DoGet is running for a ticket, and reports whether there were any.
func (r *running) cancel(ticket []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.of[string(ticket)]
	for _, cancel := range list {
		cancel()
	}
	return len(list) > 0
}

// cancelInfo cancels the queries that DoGet is running for the tickets of a FlightInfo. The tickets stay valid.
func (s *Service) cancelInfo(_ context.Context, req *flightpb.CancelFlightInfoRequest, c *rpc.Call) (proto.Message, error) {
	reply := &flightpb.CancelFlightInfoResult{Status: flightpb.CancelStatus_CANCEL_STATUS_NOT_CANCELLABLE}
	for _, e := range req.GetInfo().GetEndpoint() {
		ticket := e.GetTicket().GetTicket()
		if _, err := openTicket(s.tokens, c, ticket, "ticket", endpointKinds...); err != nil {
			return nil, err
		}
		if s.running.cancel(ticket) {
			reply.Status = flightpb.CancelStatus_CANCEL_STATUS_CANCELLED
		}
	}
	return reply, nil
}

// renewEndpoint answers RenewFlightEndpoint with the same endpoint: its expiration cannot change, because the retention
// of versions decides until when the endpoint can be read.
func (s *Service) renewEndpoint(_ context.Context, req *flightpb.RenewFlightEndpointRequest, c *rpc.Call) (proto.Message, error) {
	_, err := openTicket(s.tokens, c, req.GetEndpoint().GetTicket().GetTicket(), "ticket", endpointKinds...)
	return req.GetEndpoint(), err
}

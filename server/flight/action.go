package flight

import (
	"context"

	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// An action is one of the actions that DoAction runs, with its name and its description for ListActions.
type action struct {
	name, about string
	// do runs the action and returns the reply, or nil for an empty reply.
	do func(s *Service, ctx context.Context, body []byte, c *rpc.Call) (proto.Message, error)
}

// actions holds all actions, in the order in which ListActions returns them.
var actions = []action{
	{"CreatePreparedStatement", "Prepares a statement: ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult.", sqlAction((*Service).createPrepared)},
	{"ClosePreparedStatement", "Ends a prepared statement, of which the server keeps nothing: ActionClosePreparedStatementRequest.", sqlAction((*Service).closePrepared)},
	{"BeginTransaction", "Begins a read-write transaction: ActionBeginTransactionRequest, ActionBeginTransactionResult.", sqlAction((*Service).beginTransaction)},
	{"EndTransaction", "Commits a transaction or rolls it back: ActionEndTransactionRequest.", sqlAction((*Service).endTransaction)},
	{"CancelFlightInfo", "Cancels the queries that read the tickets of a FlightInfo: CancelFlightInfoRequest, CancelFlightInfoResult.", plainAction((*Service).cancelInfo)},
	{"RenewFlightEndpoint", "Says until when an endpoint can be read: RenewFlightEndpointRequest, FlightEndpoint.", plainAction((*Service).renewEndpoint)},
	{"CloseSession", "Does nothing, since tickets outlive connections: CloseSessionRequest, CloseSessionResult.", plainAction((*Service).closeSession)},
}

// sqlAction returns the do function of an action of Flight SQL, whose messages are wrapped in google.protobuf.Any.
func sqlAction[Q proto.Message](do func(*Service, context.Context, Q, *rpc.Call) (proto.Message, error)) func(*Service, context.Context, []byte, *rpc.Call) (proto.Message, error) {
	return func(s *Service, ctx context.Context, body []byte, c *rpc.Call) (proto.Message, error) {
		command, err := commandOf(body, c)
		if err != nil {
			return nil, err
		}
		req, ok := command.(Q)
		if !ok {
			return nil, usererror.UnknownFlightCommand(string(command.ProtoReflect().Descriptor().FullName()))
		}
		reply, err := do(s, ctx, req, c)
		if err != nil || reply == nil {
			return nil, err
		}
		return anypb.New(reply)
	}
}

// plainAction returns the do function of an action of Flight itself, whose messages are not wrapped.
func plainAction[Q any, P interface {
	*Q
	proto.Message
}](do func(*Service, context.Context, P, *rpc.Call) (proto.Message, error)) func(*Service, context.Context, []byte, *rpc.Call) (proto.Message, error) {
	return func(s *Service, ctx context.Context, body []byte, c *rpc.Call) (proto.Message, error) {
		req := P(new(Q))
		if err := c.ChargeDecoded(req, body); err != nil {
			return nil, err
		}
		if err := proto.Unmarshal(body, req); err != nil {
			return nil, usererror.InvalidFlightDescriptor("the body of the action is not a valid " + string(req.ProtoReflect().Descriptor().Name()))
		}
		return do(s, ctx, req, c)
	}
}

// doAction answers DoAction: it runs the action that the request names.
func (s *Service) doAction(ctx context.Context, req *flightpb.Action, c *rpc.Call) error {
	for _, a := range actions {
		if a.name != req.Type {
			continue
		}
		reply, err := a.do(s, ctx, req.Body, c)
		if err != nil || reply == nil {
			return err
		}
		body, err := proto.Marshal(reply)
		if err != nil {
			return err
		}
		return c.Send(&flightpb.Result{Body: body})
	}
	return usererror.UnknownFlightAction(req.Type)
}

// listActions answers ListActions.
func (s *Service) listActions(_ context.Context, _ *flightpb.Empty, c *rpc.Call) error {
	for _, a := range actions {
		if err := c.Send(&flightpb.ActionType{Type: a.name, Description: a.about}); err != nil {
			return err
		}
	}
	return nil
}

// handshake answers Handshake. The server does not authenticate clients, so it accepts any credentials.
func (s *Service) handshake(_ context.Context, req *flightpb.HandshakeRequest, c *rpc.Call) error {
	c.SetHeader("authorization", "Bearer anonymous")
	return c.Send(&flightpb.HandshakeResponse{ProtocolVersion: req.ProtocolVersion, Payload: req.Payload})
}

func (s *Service) closeSession(context.Context, *flightpb.CloseSessionRequest, *rpc.Call) (proto.Message, error) {
	return &flightpb.CloseSessionResult{Status: flightpb.CloseSessionResult_CLOSED}, nil
}

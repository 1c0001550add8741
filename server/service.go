package server

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/stats/metrics"
)

// A service is a gRPC service as a table of its methods; gRPC and REST both
// dispatch through it. A method of the proto service that is not in the table
// answers UNIMPLEMENTED.
type service struct {
	name    string // google.spanner.v1.Spanner
	methods []method
}

// A method is one RPC. Exactly one of unary and stream is set. Replies are
// proto messages or frames that hold the encoded message.
type method struct {
	name    string
	request func() proto.Message
	unary   func(ctx context.Context, e *execution) (any, error)
	stream  func(ctx context.Context, e *execution) error

	metrics  *metrics.Method
	typical  *cpu.Typical // CPU time of its requests, if they are of one kind
	varied   bool         // they say of which kind they are
	measured bool         // each is measured
}

// sender takes the messages of a streamed reply, in order; grpc.ServerStream
// is one. A frame belongs to the sender once it was sent.
type sender interface {
	SendMsg(m any) error
}

// message is the constraint of request types: a pointer to Q that is a proto message.
type message[Q any] interface {
	*Q
	proto.Message
}

// unary makes a method that answers one request with one message.
func unary[Q any, P message[Q], R any](name string, handle func(context.Context, P) (R, error)) method {
	return method{
		name:    name,
		request: func() proto.Message { return P(new(Q)) },
		unary: func(ctx context.Context, e *execution) (any, error) {
			return handle(ctx, e.request.(P))
		},
	}
}

// executed is unary for a method that says more about its execution.
func executed[Q any, P message[Q], R any](name string, handle func(context.Context, P, *execution) (R, error)) method {
	return method{
		name:    name,
		request: func() proto.Message { return P(new(Q)) },
		unary: func(ctx context.Context, e *execution) (any, error) {
			return handle(ctx, e.request.(P), e)
		},
	}
}

// streaming makes a method that answers one request with a stream.
func streaming[Q any, P message[Q]](name string, handle func(context.Context, P, *execution) error) method {
	return method{
		name:    name,
		request: func() proto.Message { return P(new(Q)) },
		stream: func(ctx context.Context, e *execution) error {
			return handle(ctx, e.request.(P), e)
		},
	}
}

// varied is a method whose requests say which kind of execution they are.
func varied(m method) method {
	m.varied = true
	return m
}

// measured is a method whose requests are too unlike to be of a kind, and few.
func measured(m method) method {
	m.measured = true
	return m
}

// call runs a unary method. Whatever goes wrong in it, a panic too, is the error of this request alone.
func (s *Server) call(ctx context.Context, e *execution) (reply any, err error) {
	defer recovered(&err)
	e.ctx = ctx
	reply, err = e.method.unary(ctx, e)
	if err == nil {
		e.count(reply)
	}
	return reply, err
}

// serve runs a streaming method, as call does a unary one.
func (s *Server) serve(ctx context.Context, e *execution, out sender) (err error) {
	defer recovered(&err)
	e.ctx, e.out = ctx, out
	return e.method.stream(ctx, e)
}

// describe makes the gRPC description of a service.
func (s *Server) describe(sv service) *grpc.ServiceDesc {
	desc := &grpc.ServiceDesc{ServiceName: sv.name, HandlerType: (*any)(nil)}
	for i := range sv.methods {
		m := &sv.methods[i]
		if m.stream != nil {
			desc.Streams = append(desc.Streams, grpc.StreamDesc{StreamName: m.name, ServerStreams: true, Handler: s.grpcStream(m)})
		} else {
			desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: m.name, Handler: s.grpcUnary(m)})
		}
	}
	return desc
}

func (s *Server) grpcUnary(m *method) func(any, context.Context, func(any) error, grpc.UnaryServerInterceptor) (any, error) {
	return func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		e := s.newExecution(m)
		e.timing = timingOf(ctx)
		if err := e.receive(decode); err != nil {
			e.end(err)
			return nil, err
		}
		reply, err := s.call(ctx, e)
		e.end(err)
		if err != nil {
			st, trailer := statusOf(err)
			if trailer != nil {
				grpc.SetTrailer(ctx, trailer)
			}
			return nil, st.Err()
		}
		return reply, nil
	}
}

func (s *Server) grpcStream(m *method) grpc.StreamHandler {
	return func(_ any, stream grpc.ServerStream) error {
		e := s.newExecution(m)
		e.timing = timingOf(stream.Context())
		if err := e.receive(stream.RecvMsg); err != nil {
			e.end(err)
			return err
		}
		err := s.serve(stream.Context(), e, stream)
		e.end(err)
		if err != nil {
			st, trailer := statusOf(err)
			if trailer != nil {
				stream.SetTrailer(trailer)
			}
			return st.Err()
		}
		return nil
	}
}

// receive takes the request. Its error is a status.
func (e *execution) receive(decode func(any) error) error {
	if err := decode(e); err != nil {
		return err
	}
	if e.refusal != nil {
		st, _ := statusOf(e.refusal)
		return st.Err()
	}
	return nil
}

// find returns the method called name, or nil.
func (sv *service) find(name string) *method {
	for i := range sv.methods {
		if sv.methods[i].name == name {
			return &sv.methods[i]
		}
	}
	return nil
}

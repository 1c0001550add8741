package grpc

import (
	"context"

	"google.golang.org/grpc"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// describe returns gRPC's description of a service.
func describe(d *rpc.Dispatcher, s *rpc.Service) *grpc.ServiceDesc {
	desc := &grpc.ServiceDesc{ServiceName: s.Name, HandlerType: (*any)(nil)}
	for i := range s.Methods {
		m := &s.Methods[i]
		if m.Streaming || m.Uploading {
			desc.Streams = append(desc.Streams, grpc.StreamDesc{StreamName: m.Name, ServerStreams: true, ClientStreams: m.Uploading, Handler: streamHandler(d, m)})
		} else {
			desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: m.Name, Handler: unaryHandler(d, m)})
		}
	}
	return desc
}

func unaryHandler(d *rpc.Dispatcher, m *rpc.Method) grpc.MethodHandler {
	return func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		return newTransport(ctx, nil).handle(d, m, decode)
	}
}

func streamHandler(d *rpc.Dispatcher, m *rpc.Method) grpc.StreamHandler {
	return func(_ any, stream grpc.ServerStream) error {
		_, err := newTransport(stream.Context(), stream).handle(d, m, stream.RecvMsg)
		return err
	}
}

// handle runs the request, from its receipt to its end. The reply is the transport itself, which the codec later
// releases. If there is no reply, the function handle itself releases the transport. The error is a gRPC status.
func (t *transport) handle(d *rpc.Dispatcher, m *rpc.Method, decode func(any) error) (reply any, err error) {
	d.Begin(&t.call, m, t)
	if err = t.receive(decode); err == nil {
		reply, err = t.call.Run(t.ctx)
	}
	if err == nil && reply != nil {
		err = t.hold(reply)
	}
	t.call.End(err)
	if err == nil && reply != nil {
		return t, nil // the codec releases the transport
	}
	if err != nil {
		err = t.fail(err)
	}
	t.release()
	return nil, err
}

// receive lets gRPC's library read the request; the codec decodes it into the call.
func (t *transport) receive(decode func(any) error) error {
	err := decode(t)
	if refusal := t.receipt.received(); refusal != nil {
		return refusal
	}
	if err != nil {
		return transportError(err)
	}
	return t.refusal
}

// fail converts the error of the call to a gRPC status, and sets the trailers that carry its details.
func (t *transport) fail(err error) error {
	st := grpcstatus.FromProto(status.Of(err))
	for _, detail := range st.Details() {
		t.setDetail(detail)
	}
	return st.Err()
}

// transportError converts an error of gRPC's library, such as that of a disconnected client, to an error for users.
func transportError(err error) error {
	if err == nil {
		return nil
	}
	st := grpcstatus.Convert(err)
	return usererror.Transport(st.Code(), st.Message())
}

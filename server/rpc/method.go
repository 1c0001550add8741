package rpc

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/stats/metrics"
)

// A Service is a gRPC service as a table of its methods. Every transport finds methods in it.
type Service struct {
	Name    string // such as google.spanner.v1.Spanner
	Methods []Method
}

// A Method is one RPC. The client sends one request, or a stream of requests; the reply is one message, or a stream of
// messages.
type Method struct {
	Name      string
	Streaming bool
	Uploading bool // the client sends a stream of requests
	request   func() proto.Message
	handle    handler

	varied  bool            // its requests are of several kinds: see MeterByKind
	typical *cpu.Typical    // typical CPU time of its requests; unused if varied is set
	metrics *metrics.Method // nil if the server keeps no metrics
}

// A handler answers a call. It returns the only message of the reply, or nil if it has sent a stream of messages.
type handler func(context.Context, *Call) (reply any, err error)

// message is the constraint of request types: a pointer to Q that implements proto.Message.
type message[Q any] interface {
	*Q
	proto.Message
}

func requestOf[Q any, P message[Q]]() proto.Message { return P(new(Q)) }

// Unary returns a method that answers a request with one message.
func Unary[Q any, P message[Q], R any](name string, handle func(context.Context, P) (R, error)) Method {
	return Method{Name: name, request: requestOf[Q, P], handle: func(ctx context.Context, c *Call) (any, error) {
		return handle(ctx, c.Request.(P))
	}}
}

// UnaryCall returns a method that answers a request with one message; its handler also gets the Call.
func UnaryCall[Q any, P message[Q], R any](name string, handle func(context.Context, P, *Call) (R, error)) Method {
	return Method{Name: name, request: requestOf[Q, P], handle: func(ctx context.Context, c *Call) (any, error) {
		return handle(ctx, c.Request.(P), c)
	}}
}

// Streaming returns a method that answers a request with a stream of messages, which the handler passes to Call.Send.
func Streaming[Q any, P message[Q]](name string, handle func(context.Context, P, *Call) error) Method {
	return Method{Name: name, Streaming: true, request: requestOf[Q, P], handle: func(ctx context.Context, c *Call) (any, error) {
		return nil, handle(ctx, c.Request.(P), c)
	}}
}

// Uploading returns a method that answers a stream of requests with a stream of messages. The handler gets the first
// request as an argument, and the others from Call.Receive. Only gRPC supports such methods.
func Uploading[Q any, P message[Q]](name string, handle func(context.Context, P, *Call) error) Method {
	m := Streaming(name, handle)
	m.Uploading = true
	return m
}

// MeterByKind marks m as a method whose requests are of several kinds, such as different statements, and returns it.
// The code that handles a request calls Recorder.CPU.Is with its kind as soon as the kind is known. Without such a call
// the CPU time of the request is always measured.
func MeterByKind(m Method) Method {
	m.varied = true
	return m
}

// Find returns the method called name, or nil.
func (s *Service) Find(name string) *Method {
	for i := range s.Methods {
		if s.Methods[i].Name == name {
			return &s.Methods[i]
		}
	}
	return nil
}

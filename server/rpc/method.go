package rpc

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/stats/cpu"
	"github.com/crowfoot-db/crowfoot/stats/metrics"
)

// A Service is a gRPC service as a table of its methods. Every transport dispatches through it.
type Service struct {
	Name    string // google.spanner.v1.Spanner
	Methods []Method
}

// A Method is one RPC. Each takes one request, or a stream of requests; the reply is one message, or a stream of messages.
type Method struct {
	Name      string
	Streaming bool
	Uploading bool // it takes a stream of requests
	request   func() proto.Message
	handle    handler

	varied  bool            // see MeterByKind
	typical *cpu.Typical    // CPU time of its requests, unless they are varied
	metrics *metrics.Method // nil if nothing is counted
}

// A handler answers a call: with the one message of the reply, or nil if it has sent a stream.
type handler func(context.Context, *Call) (reply any, err error)

// message is the constraint of request types: a pointer to Q that is a proto message.
type message[Q any] interface {
	*Q
	proto.Message
}

func requestOf[Q any, P message[Q]]() proto.Message { return P(new(Q)) }

// Unary makes a method that answers a request with one message.
func Unary[Q any, P message[Q], R any](name string, handle func(context.Context, P) (R, error)) Method {
	return Method{Name: name, request: requestOf[Q, P], handle: func(ctx context.Context, c *Call) (any, error) {
		return handle(ctx, c.Request.(P))
	}}
}

// UnaryCall is Unary for a handler that records what the call cost.
func UnaryCall[Q any, P message[Q], R any](name string, handle func(context.Context, P, *Call) (R, error)) Method {
	return Method{Name: name, request: requestOf[Q, P], handle: func(ctx context.Context, c *Call) (any, error) {
		return handle(ctx, c.Request.(P), c)
	}}
}

// Streaming makes a method that answers a request with a stream of messages, which the handler gives to Call.Send.
func Streaming[Q any, P message[Q]](name string, handle func(context.Context, P, *Call) error) Method {
	return Method{Name: name, Streaming: true, request: requestOf[Q, P], handle: func(ctx context.Context, c *Call) (any, error) {
		return nil, handle(ctx, c.Request.(P), c)
	}}
}

// Uploading makes a method that answers a stream of requests with a stream of messages. The call begins with the first request, and the handler gets those
// that follow from Call.Receive. Only gRPC has such methods.
func Uploading[Q any, P message[Q]](name string, handle func(context.Context, P, *Call) error) Method {
	m := Streaming(name, handle)
	m.Uploading = true
	return m
}

// MeterByKind is m with requests of several kinds, such as statements. Each tells its kind to Recorder.CPU once that is known, and one
// that tells none is measured.
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

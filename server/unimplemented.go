package server

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// complete adds the methods of the proto service that sv does not have: they
// answer UNIMPLEMENTED and say which they are, over gRPC and REST.
func (sv service) complete() service {
	methods := serviceDescriptor(sv.name).Methods()
	for i := range methods.Len() {
		d := methods.Get(i)
		if sv.find(string(d.Name())) != nil || d.IsStreamingClient() {
			continue
		}
		request, err := protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName())
		if err != nil {
			continue // gRPC itself answers for it
		}
		sv.methods = append(sv.methods, unimplemented(d, request))
	}
	return sv
}

func unimplemented(d protoreflect.MethodDescriptor, request protoreflect.MessageType) method {
	failure := usererror.Unimplemented(string(d.FullName()))
	m := method{name: string(d.Name()), request: func() proto.Message { return request.New().Interface() }}
	if d.IsStreamingServer() {
		m.stream = func(context.Context, *execution) error { return failure }
	} else {
		m.unary = func(context.Context, *execution) (any, error) { return nil, failure }
	}
	return m
}

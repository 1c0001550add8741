package rpc

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// complete returns s with an added method for each method of the proto service that has no handler in s. The added
// methods answer UNIMPLEMENTED with their name, over every transport.
func (s Service) complete() Service {
	methods := s.Descriptor().Methods()
	for i := range methods.Len() {
		d := methods.Get(i)
		if s.Find(string(d.Name())) != nil {
			continue
		}
		request, err := protoregistry.GlobalTypes.FindMessageByName(d.Input().FullName())
		if err != nil {
			continue // without an entry in the table, gRPC's library answers UNIMPLEMENTED
		}
		s.Methods = append(s.Methods, unimplemented(d, request))
	}
	return s
}

// Descriptor returns the descriptor of the proto service. It panics if the program does not contain the service's
// generated code.
func (s *Service) Descriptor() protoreflect.ServiceDescriptor {
	d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(s.Name))
	if err != nil {
		panic("service " + s.Name + " is not linked in: " + err.Error())
	}
	return d.(protoreflect.ServiceDescriptor)
}

func unimplemented(d protoreflect.MethodDescriptor, request protoreflect.MessageType) Method {
	failure := usererror.Unimplemented(string(d.FullName()))
	return Method{
		Name:      string(d.Name()),
		Streaming: d.IsStreamingServer(),
		Uploading: d.IsStreamingClient(),
		request:   func() proto.Message { return request.New().Interface() },
		handle:    func(context.Context, *Call) (any, error) { return nil, failure },
	}
}

package grpc

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// codec is gRPC's proto codec that also takes frames: messages encoded already.
type codec struct{ messages encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Name is that of the proto codec, whose bytes these are.
func (codec) Name() string { return protocodec.Name }

// Marshal hands over a frame's bytes, which go back to their pool once gRPC has written them, and encodes any other message.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*rpc.Frame); ok {
		return mem.BufferSlice{mem.NewBuffer(f.Detach(), rpc.Buffers)}, nil
	}
	return c.messages.Marshal(v)
}

// Unmarshal decodes the request of a transport's call. A request that is too large or malformed is
// not an error of the codec; it becomes the transport's refusal.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	t := v.(*transport)
	t.call.Received(data.Len())
	request := t.call.Request
	if limit := rpc.MaxBytes(request); data.Len() > limit {
		t.refusal = usererror.RequestTooLarge(limit)
		return nil
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	if err := proto.Unmarshal(buf.ReadOnlyData(), request); err != nil {
		t.refusal = usererror.UndecodableRequest(fmt.Sprintf("The request is not a valid %s: %v.", request.ProtoReflect().Descriptor().Name(), err))
	}
	return nil
}

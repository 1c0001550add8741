// Package resultset makes the official Go client faster at receiving rows. It decodes the messages of a result
// (google.spanner.v1.PartialResultSet) into the same Go values as package proto of protobuf, with a thirtieth of the
// allocations. Pass ClientOption to the client:
//
//	client, err := spanner.NewClientWithConfig(ctx, database, spanner.ClientConfig{}, resultset.ClientOption())
//
// This works with any Spanner endpoint. Package proto still encodes and decodes all other messages. It also decodes a
// result that is malformed or contains something that this package does not know. So results and errors are always the
// same as those of package proto.
//
// Values that arrive together share memory. The memory stays in use as long as one of these values does (see
// Unmarshal).
//
// Imports of this module: protovalue.
package resultset

import (
	"slices"
	"sync"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
)

// ClientOption returns an option that makes a client decode results with this package.
func ClientOption() option.ClientOption {
	return option.WithGRPCDialOption(grpc.WithDefaultCallOptions(grpc.ForceCodecV2(NewCodec())))
}

// Codec is a gRPC codec for protobuf. It uses gRPC's own codec for all messages except received results. Its zero value
// is not ready for use.
type Codec struct{ messages encoding.CodecV2 }

// NewCodec makes a codec for gRPC connections of programs that do not use the official client.
func NewCodec() *Codec { return &Codec{encoding.GetCodecV2(proto.Name)} }

// Name returns "", so that requests have the content type application/grpc, like those of the official clients. The
// name "proto" would give the content type application/grpc+proto. The protocol permits this content type
// (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md), but Google's servers answer such requests with 404
// (https://github.com/googleapis/googleapis.github.io/issues/27).
func (*Codec) Name() string { return "" }

// Marshal encodes a message with gRPC's own codec.
func (c *Codec) Marshal(v any) (mem.BufferSlice, error) { return c.messages.Marshal(v) }

// Unmarshal decodes a message.
func (c *Codec) Unmarshal(data mem.BufferSlice, v any) error {
	m, ok := v.(*spannerpb.PartialResultSet)
	if !ok {
		return c.messages.Unmarshal(data, v)
	}
	if len(data) == 1 {
		return Unmarshal(data[0].ReadOnlyData(), m)
	}
	buf := buffers.Get().(*[]byte)
	*buf = slices.Grow((*buf)[:0], data.Len())[:data.Len()]
	data.CopyTo(*buf)
	err := Unmarshal(*buf, m)
	if cap(*buf) <= maxBuffer {
		buffers.Put(buf)
	}
	return err
}

// buffers holds buffers for messages that come in several pieces. gRPC's own pool has buffers of a megabyte for
// messages of more than 32 KiB. Allocating and clearing such a buffer costs more than decoding the message, so this
// pool has buffers of the needed size.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxBuffer is the largest size, in bytes, of a buffer that is kept for reuse.
const maxBuffer = 1 << 20

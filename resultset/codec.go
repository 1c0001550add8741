// Package resultset makes the official Go client faster where it receives rows: it decodes the messages of a result
// (google.spanner.v1.PartialResultSet) into the same Go values as package proto of protobuf, with a thirtieth of the allocations. A client is made
// with ClientOption:
//
//	client, err := spanner.NewClientWithConfig(ctx, database, spanner.ClientConfig{}, resultset.ClientOption())
//
// It works with any Spanner endpoint. Nothing else changes: package proto encodes and decodes all other messages, and those results in which this
// package finds something that it does not know or that is malformed, so that results and errors are those of package proto.
//
// Values that arrive together share memory, which stays in use as long as one of them does: see Unmarshal.
//
// Imports of this module: nothing.
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

// ClientOption has a client decode results with this package.
func ClientOption() option.ClientOption {
	return option.WithGRPCDialOption(grpc.WithDefaultCallOptions(grpc.ForceCodecV2(NewCodec())))
}

// Codec is gRPC's codec for protobuf, but for results that it receives. Its zero value is not ready for use.
type Codec struct{ messages encoding.CodecV2 }

// NewCodec makes a codec, for connections that are made without the official client.
func NewCodec() *Codec { return &Codec{encoding.GetCodecV2(proto.Name)} }

// Name is empty, so that requests have the content type application/grpc, as those of the official clients have. With the name "proto" it would be
// application/grpc+proto, which the protocol allows (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md) but Google's servers
// answer with 404 (https://github.com/googleapis/googleapis.github.io/issues/27).
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

// buffers are for messages that come in several pieces. Those of gRPC have a megabyte for a message of more than 32 KiB, which costs more to allocate and
// clear than such a message to decode.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// maxBuffer is how large an unused buffer may be.
const maxBuffer = 1 << 20

package grpc

import (
	"bytes"
	"io"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip" // requests may come compressed
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// codec extends gRPC's proto codec to transports. It decodes their requests, and passes on messages of their replies, which are
// already encoded.
type codec struct{ messages encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Name returns the name of the proto codec, because the wire format is the same.
func (codec) Name() string { return protocodec.Name }

// Marshal passes on the bytes of a transport's message, and encodes messages of gRPC's own services. The connection counts the
// bytes as held until gRPC has written them. Marshal releases the transport of a unary method.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	t, ok := v.(*transport)
	if !ok {
		return c.messages.Marshal(v)
	}
	message := mem.NewBuffer(t.reply, t.receipt.conn.held.poolOf(cap(*t.reply)))
	if t.reply = nil; t.stream == nil {
		t.release()
	}
	return mem.BufferSlice{message}, nil
}

// Unmarshal decodes the request of a transport's call, and messages of gRPC's own services. A request that is too large,
// malformed, or without room in memory is no error of the codec; it sets the transport's refusal.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	switch t := v.(type) {
	case *transport:
		t.call.Received(data.Len())
		t.refusal = t.decode(data)
	case *further:
		t.call.Cost.Wire.Received += int64(data.Len())
		t.refusal = t.decode(data)
	default:
		return c.messages.Unmarshal(data, v)
	}
	return nil
}

// decode decodes the request, which may be compressed.
func (t *transport) decode(data mem.BufferSlice) error {
	call, size := &t.call, data.Len()
	limit := rpc.MaxBytes(call.Request)
	if size > limit {
		return usererror.RequestTooLarge(limit)
	}
	if charged := t.receipt.detachAccount(); charged != nil {
		call.Memory.Add(charged)
	} else if err := call.Charge(t.ctx, size); err != nil {
		return err
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	message := buf.ReadOnlyData()
	if rpc.IsGzip(message) {
		var err error
		if message, err = call.Inflate(t.ctx, bytes.NewReader(message), limit); err != nil {
			return err
		}
	}
	return call.Decode(t.ctx, message)
}

// handOver takes the place of the decompressor of gRPC's library. It passes a compressed message on unchanged, so that the codec
// inflates it under the limit of its method. The library itself would inflate up to maxMessage.
type handOver struct{}

func (handOver) Do(r io.Reader) ([]byte, error) { return io.ReadAll(r) }
func (handOver) Type() string                   { return gzip.Name }

package grpc

import (
	"bytes"
	"io"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/gzip" // for the name of the compression that clients may use
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"

	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// codec extends gRPC's proto codec to values of type *transport: it decodes a request into the transport's call, and
// passes on reply messages, which are already encoded.
type codec struct{ messages encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Name returns the name of the proto codec, because codec has the same wire format.
func (codec) Name() string { return protocodec.Name }

// Marshal passes on the bytes of a transport's reply message, and encodes messages of gRPC's own services. The
// connection counts the bytes as held until gRPC has written them. Marshal releases the transport of a unary method,
// because the reply is its last use.
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

// Unmarshal decodes the request of a transport's call, and messages of gRPC's own services. If a request is too large
// or malformed, or there is no memory for it, Unmarshal returns no error but sets the transport's refusal.
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

// decode decodes the request from a message, which may be compressed, and charges for it.
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

// handOver replaces the decompressor of gRPC's library. It passes a compressed message on unchanged, so that the codec
// can decompress it under the limit of its method. The library would decompress up to maxMessage.
type handOver struct{}

func (handOver) Do(r io.Reader) ([]byte, error) { return io.ReadAll(r) }
func (handOver) Type() string                   { return gzip.Name }

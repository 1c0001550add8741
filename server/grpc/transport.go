package grpc

import (
	"context"
	"sync"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/server/rpc"
)

// A transport is one request over gRPC, with its call. Transports are reused, so that a request allocates neither a
// transport nor a call.
type transport struct {
	ctx     context.Context
	receipt *receipt
	stream  grpc.ServerStream // nil for a unary method
	timing  bool              // the client asked for server-timing
	// refusal says why the codec did not decode the request. The codec does not return this error, because gRPC's
	// library answers every error of a codec with INTERNAL.
	refusal error
	reply   *[]byte // an encoded reply message for the codec; the connection counts its bytes
	call    rpc.Call
}

var transports = sync.Pool{New: func() any { return new(transport) }}

// newTransport returns a transport for a request that has not been received yet. The caller must release the transport.
func newTransport(ctx context.Context, stream grpc.ServerStream) *transport {
	t := transports.Get().(*transport)
	t.ctx, t.receipt, t.stream = ctx, receiptOf(ctx), stream
	t.timing = asksTiming(ctx)
	t.replyPlainly()
	return t
}

// replyPlainly stops gRPC's library from compressing the reply, which it does if the request was compressed. The
// reason: nobody would charge for the compressed copy.
func (t *transport) replyPlainly() {
	s, ok := grpc.ServerTransportStreamFromContext(t.ctx).(interface{ RecvCompress() string })
	if ok && s.RecvCompress() != "" {
		_ = grpc.SetSendCompressor(t.ctx, encoding.Identity) // fails if the client has disconnected
	}
}

func (t *transport) release() {
	*t = transport{}
	transports.Put(t)
}

// asksTiming reports whether the client asked for server-timing.
func asksTiming(ctx context.Context) bool {
	return len(metadata.ValueFromIncomingContext(ctx, rpc.AsksTimingKey)) > 0
}

// Metadata implements rpc.Transport.
func (t *transport) Metadata(name string) []string {
	return metadata.ValueFromIncomingContext(t.ctx, name)
}

// Peer implements rpc.Transport.
func (t *transport) Peer() string {
	if p, ok := peer.FromContext(t.ctx); ok {
		return p.Addr.String()
	}
	return ""
}

// WantsTiming implements rpc.Transport.
func (t *transport) WantsTiming() bool { return t.timing }

// SetHeader implements rpc.Transport.
func (t *transport) SetHeader(name, value string) {
	_ = grpc.SetHeader(t.ctx, metadata.MD{name: {value}}) // fails if the client has disconnected
}

// SetTrailer implements rpc.Transport.
func (t *transport) SetTrailer(name, value string) {
	_ = grpc.SetTrailer(t.ctx, metadata.MD{name: {value}}) // fails if the client has disconnected
}

// Send implements rpc.Transport.
func (t *transport) Send(m any) error {
	return t.call.Cost.WaitForClient(func() error {
		if err := t.hold(m); err != nil {
			return err
		}
		return transportError(t.stream.SendMsg(t))
	})
}

// hold encodes a reply message, and counts its bytes as held by the connection. If there is no memory for them, hold
// waits as memory.Account.Grow does.
func (t *transport) hold(m any) error {
	f, ok := m.(*rpc.Frame)
	if !ok {
		f = rpc.NewFrame()
		var err error
		if f.Data, err = (proto.MarshalOptions{}).MarshalAppend(f.Data, m.(proto.Message)); err != nil {
			return err
		}
	}
	message, charged := f.Detach()
	if err := t.receipt.conn.held.reserve(t.ctx, int64(cap(*message)), charged); err != nil {
		rpc.Buffers.Put(message)
		return err
	}
	t.reply = message
	return nil
}

// Trailers with details of an error. Older clients read the details from these trailers, newer ones from the status.
// Java up to 6.87 reads ResourceInfo only from the trailer.
const (
	retryInfoTrailer    = "google.rpc.retryinfo-bin"
	resourceInfoTrailer = "google.rpc.resourceinfo-bin"
)

// setDetail copies a detail of the status to the trailer for details of its type, if there is such a trailer.
func (t *transport) setDetail(detail any) {
	var trailer string
	switch detail.(type) {
	case *errdetails.RetryInfo:
		trailer = retryInfoTrailer
	case *errdetails.ResourceInfo:
		trailer = resourceInfoTrailer
	default:
		return
	}
	if b, err := proto.Marshal(detail.(proto.Message)); err == nil {
		t.SetTrailer(trailer, string(b))
	}
}

package grpc

import (
	"errors"
	"io"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/rpc"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// A further is a request of a stream of requests, other than the first one. The codec decodes it into the field
// message, and charges its memory to the account in the field charge.
type further struct {
	*transport
	message proto.Message
	charge  *memory.Account
}

// Receive implements rpc.Uploader.
func (t *transport) Receive(m proto.Message, charge *memory.Account) error {
	return t.call.Cost.WaitForClient(func() error {
		t.refusal = nil
		err := t.stream.RecvMsg(&further{t, m, charge})
		switch refusal := t.receipt.received(); {
		case refusal != nil:
			return refusal
		case errors.Is(err, io.EOF):
			return io.EOF
		case err != nil:
			return transportError(err)
		}
		return t.refusal
	})
}

// decode decodes the request from a message, and charges for it. It refuses a compressed message.
func (f *further) decode(data mem.BufferSlice) error {
	size, limit := data.Len(), rpc.MaxBytes(f.message)
	if charged := f.receipt.detachAccount(); charged != nil {
		f.charge.Add(charged)
	} else if err := f.charge.Grow(f.ctx, int64(size)*rpc.UploadFactor); err != nil {
		return err
	}
	if size > limit {
		return usererror.RequestTooLarge(limit)
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	message := buf.ReadOnlyData()
	if rpc.IsGzip(message) {
		return usererror.UndecodableRequest("Requests of a stream must not be compressed by gzip.")
	}
	return rpc.DecodeUpload(message, f.message)
}

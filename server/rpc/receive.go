package rpc

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/server/status"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// smallRequest is the size in bytes of requests whose message is not charged: it cannot take more than memory.FreeBytes allow.
const smallRequest = 4 << 10

// Read reads a message from r, of at most limit bytes, and charges the call for it as Charge does: for size bytes at once, so that it holds no memory
// while it waits, if that is how many the client says that there are; else as they come. Errors of r are returned as they are.
func (c *Call) Read(ctx context.Context, r io.Reader, size int64, limit int) ([]byte, error) {
	if size > int64(limit) {
		return nil, usererror.RequestTooLarge(limit)
	}
	charged := &chargedReader{Reader: io.LimitReader(r, int64(limit)+1), ctx: ctx, account: &c.Memory, prepaid: max(int(size), 0)}
	if err := c.Charge(ctx, charged.prepaid); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(charged)
	if err == nil && len(data) > limit {
		err = usererror.RequestTooLarge(limit)
	}
	return data, err
}

// unknownSize is the size of a message of which the client does not say it, as http.Request.ContentLength.
const unknownSize = -1

// A chargedReader charges an account for what is read from it.
type chargedReader struct {
	io.Reader
	ctx     context.Context
	account *memory.Account
	prepaid int // bytes that were charged before
}

func (r *chargedReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.prepaid >= n {
		r.prepaid -= n
		return n, err
	}
	if grown := r.account.Grow(r.ctx, int64(n)*MessageFactor); grown != nil {
		return n, grown
	}
	return n, err
}

// Inflate is the content of a request that came compressed. The method's limit holds while it is inflated, not only then.
func (c *Call) Inflate(ctx context.Context, compressed io.Reader, limit int) ([]byte, error) {
	unzipped, err := gzip.NewReader(compressed)
	if err != nil {
		return nil, notGzip(err)
	}
	data, err := c.Read(ctx, unzipped, unknownSize, limit)
	if err != nil {
		return nil, notGzip(err)
	}
	return data, nil
}

// notGzip is what the client is told if inflating ended with err.
func notGzip(err error) error {
	if status.IsForUser(err) {
		return err
	}
	return usererror.UndecodableRequest("The request body is not valid gzip.")
}

// IsGzip says whether data begins as gzip does (https://www.rfc-editor.org/rfc/rfc1952#section-2.3.1). No protobuf message begins so: its first
// field would have a wire type that does not exist.
func IsGzip(data []byte) bool { return bytes.HasPrefix(data, []byte{0x1f, 0x8b}) }

// MessageFactor is how many bytes a request takes for each byte of its message. While it is decoded it is there three times: as received, as
// a whole, and decoded. A commit then has it as values, as what is written to each key, and as a batch.
const MessageFactor = 4

// Charge charges the call for a message of size bytes.
func (c *Call) Charge(ctx context.Context, size int) error {
	if size <= smallRequest {
		return nil
	}
	return c.Memory.Grow(ctx, int64(size)*MessageFactor)
}

// Decode decodes the request's message, for which the call was charged. It is charged further for what the message takes if it has many
// small parts. What the call no longer needs it gives back.
func (c *Call) Decode(ctx context.Context, data []byte) error {
	if len(data) > smallRequest {
		if more := DecodedBytes(c.Request.ProtoReflect().Descriptor(), data) - int64(len(data)); more > 0 {
			if err := c.Memory.Grow(ctx, more); err != nil {
				return err
			}
		}
	}
	if err := unmarshal(data, c.Request); err != nil {
		return usererror.UndecodableRequest(fmt.Sprintf("The request is not a valid %s: %v.", c.Request.ProtoReflect().Descriptor().Name(), err))
	}
	if _, ok := c.Request.(*spannerpb.CommitRequest); !ok && len(data) > smallRequest {
		c.Memory.Shrink(int64(len(data)) * (MessageFactor / 2))
	}
	return nil
}

// UploadFactor is how many bytes a request of a stream takes for each byte of its message: as received, as a whole, and decoded.
const UploadFactor = 3

// DecodeUpload decodes a request of a stream, for which the call was charged. It has few parts: those of Arrow's data are one.
func DecodeUpload(data []byte, m proto.Message) error {
	if err := proto.Unmarshal(data, m); err != nil {
		return usererror.UndecodableRequest(fmt.Sprintf("The request is not a valid %s: %v.", m.ProtoReflect().Descriptor().Name(), err))
	}
	return nil
}

// ChargeDecoded charges a call that runs for a message that stands within its request as bytes, which are about to be decoded.
func (c *Call) ChargeDecoded(m proto.Message, data []byte) error {
	if len(data) <= smallRequest {
		return nil
	}
	return c.Memory.Grow(c.ctx, DecodedBytes(m.ProtoReflect().Descriptor(), data))
}

// What a decoded message takes, by Go's layout of generated code: a struct with a header, a few words for each field that is set, and a
// pointer to it; a string's header and its bytes.
const (
	messageBytes = 96
	fieldBytes   = 24
)

// DecodedBytes estimates how much memory a message takes when it is decoded from data. A value of a row takes up to twenty times its bytes.
func DecodedBytes(d protoreflect.MessageDescriptor, data []byte) int64 {
	return decodedBytes(d, data, protowire.DefaultRecursionLimit)
}

// decodedBytes looks at messages within messages, depth deep. The decoder refuses deeper ones.
func decodedBytes(d protoreflect.MessageDescriptor, data []byte, depth int) int64 {
	n := int64(messageBytes)
	if depth == 0 {
		return n
	}
	fields := d.Fields()
	for len(data) > 0 {
		number, kind, head := protowire.ConsumeTag(data)
		if head < 0 {
			return n // the decoder will say what is wrong
		}
		data = data[head:]
		n += fieldBytes
		if kind != protowire.BytesType {
			skipped := protowire.ConsumeFieldValue(number, kind, data)
			if skipped < 0 {
				return n
			}
			data = data[skipped:]
			continue
		}
		body, size := protowire.ConsumeBytes(data)
		if size < 0 {
			return n
		}
		data = data[size:]
		if f := fields.ByNumber(number); f != nil && f.Message() != nil {
			n += decodedBytes(f.Message(), body, depth-1)
		} else {
			n += int64(size)
		}
	}
	return n
}

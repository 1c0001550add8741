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

// smallRequest is the length in bytes up to which a message is not charged, because decoding it takes no more than
// memory.FreeBytes.
const smallRequest = 4 << 10

// Read reads a message of at most limit bytes from r, and charges the call for it as Charge does. size is the length
// that the client announced, or unknownSize. Read charges for that length before it reads, so that the request takes no
// memory while it waits for the charge. It charges for further bytes as they come. It returns errors of r unchanged.
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

// unknownSize is the size of a message whose client does not announce its length; http.Request.ContentLength uses the
// same value.
const unknownSize = -1

// A chargedReader charges an account for the bytes that are read from it.
type chargedReader struct {
	io.Reader
	ctx     context.Context
	account *memory.Account
	prepaid int // number of bytes that were charged in advance and are not read yet
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

// Inflate returns the content of a gzip-compressed request. It returns an error when the content exceeds limit bytes,
// so that a small request cannot become a huge one.
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

// notGzip returns the error for the client after decompressing has failed with err.
func notGzip(err error) error {
	if status.IsForUser(err) {
		return err
	}
	return usererror.UndecodableRequest("The request body is not valid gzip.")
}

// IsGzip reports whether data begins with the magic number of gzip
// (https://www.rfc-editor.org/rfc/rfc1952#section-2.3.1). No protobuf message begins with these bytes: its first field
// would have a wire type that does not exist.
func IsGzip(data []byte) bool { return bytes.HasPrefix(data, []byte{0x1f, 0x8b}) }

// MessageFactor is how many bytes of memory a request takes for each byte of its message. While the message is decoded,
// it exists three times: in the buffers in which it was received, in one slice of bytes, and decoded. A commit later
// holds the data as values, as writes to each key, and as a batch.
const MessageFactor = 4

// Charge charges the call for a message of size bytes. If there is no memory left it waits as memory.Account.Grow does.
func (c *Call) Charge(ctx context.Context, size int) error {
	if size <= smallRequest {
		return nil
	}
	return c.Memory.Grow(ctx, int64(size)*MessageFactor)
}

// Decode decodes the request's message, for which Charge was called. A message of many small parts takes more memory
// when it is decoded; Decode first charges for that. Afterwards, except for a CommitRequest, it gives back the part of
// the charge that the call no longer needs.
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

// UploadFactor is how many bytes of memory a request of a stream takes for each byte of its message, which exists three
// times: in the buffers in which it was received, in one slice of bytes, and decoded.
const UploadFactor = 3

// DecodeUpload decodes a request of a stream, for which the call was charged. Unlike Decode, it charges nothing more:
// the decoded message is about as large as data, because all Arrow data is in one field.
func DecodeUpload(data []byte, m proto.Message) error {
	if err := proto.Unmarshal(data, m); err != nil {
		return usererror.UndecodableRequest(fmt.Sprintf("The request is not a valid %s: %v.", m.ProtoReflect().Descriptor().Name(), err))
	}
	return nil
}

// ChargeDecoded charges a running call for decoding m from data, a message that the request contains as bytes.
func (c *Call) ChargeDecoded(m proto.Message, data []byte) error {
	if len(data) <= smallRequest {
		return nil
	}
	return c.Memory.Grow(c.ctx, DecodedBytes(m.ProtoReflect().Descriptor(), data))
}

// Approximate memory in bytes of a decoded message, from the layout of generated Go code: messageBytes for the struct
// and the pointer to it, and fieldBytes for each field that is set. A string also takes its bytes.
const (
	messageBytes = 96
	fieldBytes   = 24
)

// DecodedBytes estimates the memory in bytes of the message that data decodes to. For the values of a row it can be
// twenty times their encoded bytes.
func DecodedBytes(d protoreflect.MessageDescriptor, data []byte) int64 {
	return decodedBytes(d, data, protowire.DefaultRecursionLimit)
}

// decodedBytes gives the estimate for DecodedBytes. It does not count messages at a nesting depth of more than depth,
// because the decoder refuses them.
func decodedBytes(d protoreflect.MessageDescriptor, data []byte, depth int) int64 {
	n := int64(messageBytes)
	if depth == 0 {
		return n
	}
	fields := d.Fields()
	for len(data) > 0 {
		number, kind, head := protowire.ConsumeTag(data)
		if head < 0 {
			return n // the decoder will return an error
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

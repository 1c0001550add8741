package server

import (
	"fmt"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/encoding"
	protocodec "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Sizes of requests: https://cloud.google.com/spanner/quotas#query_limits and #limits_for. The limits are of data: 10 MiB, which the
// largest cell has too, and what a commit writes, which table counts. The messages that bring them are larger: base64 makes four bytes of three.
const (
	maxRequestMessage = (10<<20)/3*4 + requestOverhead // all requests but those about mutations
	// requestOverhead is for the text of a statement, of at most 1,000,000 characters, and names.
	requestOverhead = 4 << 20

	maxCommitMessage = table.MaxCommitBytes/3*4 + commitOverhead // a commit's mutations, or the largest of them
	// commitOverhead is for the names of a table and a column (128 letters each) with every mutation.
	commitOverhead = table.MaxMutations * 2 * 128
)

// codec is gRPC's proto codec that also takes frames: messages encoded already.
type codec struct{ messages encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(protocodec.Name)} }

// Name is that of the proto codec, whose bytes these are.
func (codec) Name() string { return protocodec.Name }

// Marshal hands over a frame's bytes, and encodes any other message.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if f, ok := v.(*frame); ok {
		return mem.BufferSlice{f.detach()}, nil
	}
	return c.messages.Marshal(v)
}

// Unmarshal decodes the request of an execution, if its size is permitted, and opens the execution. What is wrong with
// the request becomes the execution's refusal: gRPC answers errors of a codec itself, and as INTERNAL.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	e := v.(*execution)
	e.open(data.Len())
	if limit := maxBytes(e.request); data.Len() > limit {
		e.refusal = usererror.RequestTooLarge(limit)
		return nil
	}
	buf := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buf.Free()
	if err := proto.Unmarshal(buf.ReadOnlyData(), e.request); err != nil {
		e.refusal = usererror.UndecodableRequest(fmt.Sprintf("The request is not a valid %s: %v.", e.request.ProtoReflect().Descriptor().Name(), err))
	}
	return nil
}

// maxBytes is how long a request may be. BeginTransaction brings one of the mutations to come, as its mutation_key.
func maxBytes(request proto.Message) int {
	switch request.(type) {
	case *spannerpb.CommitRequest, *spannerpb.BatchWriteRequest, *spannerpb.BeginTransactionRequest:
		return maxCommitMessage
	}
	return maxRequestMessage
}

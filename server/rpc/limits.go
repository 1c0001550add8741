package rpc

import (
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/table"
)

// Sizes of requests: https://cloud.google.com/spanner/quotas#query_limits and #limits_for. Those limits are of data: 10 MiB, as for the
// largest cell, and the bytes that a commit writes, which table counts. The messages are larger: base64 makes four bytes of three.
const (
	MaxRequestBytes = (10<<20)/3*4 + requestOverhead // all requests but those about mutations
	// requestOverhead is for the text of a statement, of at most 1,000,000 characters, and names.
	requestOverhead = 4 << 20

	MaxCommitBytes = table.MaxCommitBytes/3*4 + commitOverhead // a commit's mutations, or the largest of them
	// commitOverhead is for the names of a table and a column (128 letters each) with every mutation.
	commitOverhead = table.MaxMutations * 2 * 128
)

// MaxUploadBytes is how long each request of a stream of them may be. Clients of Arrow Flight send a batch of rows in one.
const MaxUploadBytes = 128 << 20

// MaxBytes is how long a request may be. BeginTransaction brings one of the mutations to come, as its mutation_key.
func MaxBytes(request proto.Message) int {
	switch request.(type) {
	case *spannerpb.CommitRequest, *spannerpb.BatchWriteRequest, *spannerpb.BeginTransactionRequest:
		return MaxCommitBytes
	case *flightpb.FlightData:
		return MaxUploadBytes
	}
	return MaxRequestBytes
}

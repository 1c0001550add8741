package rpc

import (
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/table"
)

// Limits of requests: https://cloud.google.com/spanner/quotas#query_limits and #limits_for. Those limits count data: 10 MiB, as
// for the largest cell, and the bytes that a commit writes, which package table counts. Messages are larger: base64 makes four
// bytes of three.
const (
	MaxRequestBytes = (10<<20)/3*4 + requestOverhead // all requests except those with mutations
	// requestOverhead is for the text of a statement, of at most 1,000,000 characters, and names.
	requestOverhead = 4 << 20

	MaxCommitBytes = table.MaxCommitBytes/3*4 + commitOverhead // a commit's mutations, or the largest mutation
	// commitOverhead is for the names of a table and a column (128 letters each) with every mutation.
	commitOverhead = table.MaxMutations * 2 * 128
)

// MaxUploadBytes is the most bytes of each request in a stream of requests. Clients of Arrow Flight send a batch of rows in one
// request.
const MaxUploadBytes = 128 << 20

// MaxBytes returns the most bytes of a request. BeginTransaction may contain a later mutation as its mutation_key, so it has the
// limit of a commit.
func MaxBytes(request proto.Message) int {
	switch request.(type) {
	case *spannerpb.CommitRequest, *spannerpb.BatchWriteRequest, *spannerpb.BeginTransactionRequest:
		return MaxCommitBytes
	case *flightpb.FlightData:
		return MaxUploadBytes
	}
	return MaxRequestBytes
}

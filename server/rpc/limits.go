package rpc

import (
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	flightpb "github.com/apache/arrow-go/v18/arrow/flight/gen/flight"
	"google.golang.org/protobuf/proto"

	"github.com/crowfoot-db/crowfoot/table"
)

// Limits of requests in bytes. Cloud Spanner's limits (https://cloud.google.com/spanner/quotas#query_limits and
// #limits_for) count data: 10 MiB for the largest cell, and for a commit the bytes that it writes, which package table
// counts. Messages can be larger than the data, because base64 makes four bytes of three.
const (
	MaxRequestBytes = (10<<20)/3*4 + requestOverhead // for all requests except those with mutations
	// requestOverhead is for names and for the SQL of a statement, which has at most 1,000,000 characters.
	requestOverhead = 4 << 20

	MaxCommitBytes = table.MaxCommitBytes/3*4 + commitOverhead // for requests with mutations
	// commitOverhead is for the names of a table and a column, of 128 letters each, in every mutation.
	commitOverhead = table.MaxMutations * 2 * 128
)

// MaxUploadBytes is how many bytes each request in a stream of requests can have. Clients of Arrow Flight send a batch
// of rows in one request.
const MaxUploadBytes = 128 << 20

// MaxBytes returns how many bytes a request of this type can have. BeginTransaction has the limit of a commit, because
// its mutation_key may be a mutation of the later commit.
func MaxBytes(request proto.Message) int {
	switch request.(type) {
	case *spannerpb.CommitRequest, *spannerpb.BatchWriteRequest, *spannerpb.BeginTransactionRequest:
		return MaxCommitBytes
	case *flightpb.FlightData:
		return MaxUploadBytes
	}
	return MaxRequestBytes
}

package rest

import (
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/server/status"
)

// FuzzJSON checks that any body of a request is decoded, or refused with INVALID_ARGUMENT.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		`{"mutations":[{"insert":{"table":"T","columns":["A"],"values":[["1"]]}}],"singleUseTransaction":{"readWrite":{}}}`,
		`{"mutations":[{"insert":{"tabel":"T"}}]}`, `{"mutations":null,"requestOptions":{"priority":"X"}}`, `{"maxCommitDelay":"1s"`, `[[[{}]]]`, `{"a":{"b`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := unmarshalJSON(data, new(spannerpb.CommitRequest)); err != nil && status.Code(err) != codes.InvalidArgument {
			t.Errorf("%q: %v", data, err)
		}
	})
}

package server

import (
	"encoding/base64"
	"strconv"
	"strings"
	"testing"

	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/schema"
)

// insertData returns a mutation that writes n rows of Singers with size bytes of Data each.
func insertData(n, size int) *spannerpb.Mutation {
	text := base64.StdEncoding.EncodeToString(make([]byte, size))
	w := &spannerpb.Mutation_Write{Table: "Singers", Columns: []string{"SingerId", "Data"}}
	for i := range n {
		w.Values = append(w.Values, list(strconv.Itoa(i), text))
	}
	return &spannerpb.Mutation{Operation: &spannerpb.Mutation_InsertOrUpdate{InsertOrUpdate: w}}
}

// TestCommitLimit checks that the limit of a commit counts the bytes of data, not those of its base64 form. The error
// for too much data must have a code for which no client retries.
func TestCommitLimit(t *testing.T) {
	h := newHarness(t)
	ses := h.session(true)
	for _, c := range []struct {
		name       string
		rows, size int
		code       codes.Code
		text       string
	}{
		{"all that is permitted", 10, schema.MaxBytesLength - 100, codes.OK, ""},
		{"too much data", 10, schema.MaxBytesLength, codes.InvalidArgument, "Maximum size: 104857600"},
		{"too long a message", 12, schema.MaxBytesLength, codes.InvalidArgument, "payload size"},
	} {
		_, err := h.data.Commit(h.ctx, singleUse(ses, insertData(c.rows, c.size)))
		if status.Code(err) != c.code || !strings.Contains(status.Convert(err).Message(), c.text) {
			t.Errorf("%s: %v, want %v %s", c.name, err, c.code, c.text)
		}
	}
}

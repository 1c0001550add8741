package listing

import (
	"slices"
	"testing"

	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
)

// TestPages: for any page size, the pages of a list together contain every item once.
func TestPages(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	self := func(s string) string { return s }
	for _, sizes := range [][]int32{{1}, {2}, {5}, {0}, {4, 1, 3}} {
		var got []string
		req := &databasepb.ListDatabasesRequest{Parent: "p"}
		for i := 0; ; i++ {
			req.PageSize = sizes[i%len(sizes)]
			list, next, err := Page(req, names, self)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, list...)
			if req.PageToken = next; next == "" {
				break
			}
		}
		if !slices.Equal(got, names) {
			t.Errorf("pages of %v: %v", sizes, got)
		}
	}
}

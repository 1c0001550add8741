package server

import (
	"context"
	"encoding/base64"
	"slices"
	"testing"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestPages: page after page gives the whole list, whatever their sizes are.
func TestPages(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	self := func(s string) string { return s }
	for _, sizes := range [][]int32{{1}, {2}, {5}, {0}, {4, 1, 3}} {
		var got []string
		req := &databasepb.ListDatabasesRequest{Parent: "p"}
		for i := 0; ; i++ {
			req.PageSize = sizes[i%len(sizes)]
			list, next, err := page(req, names, self)
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

// TestPageTokens: a token that is not ours, or of another list, is refused.
func TestPageTokens(t *testing.T) {
	h := newHarness(t)
	for range 2 {
		h.session(false)
	}
	first, err := h.data.ListSessions(h.ctx, &spannerpb.ListSessionsRequest{Database: testDatabase, PageSize: 1})
	h.ok(err)
	token := first.NextPageToken
	call := func(list func(ctx context.Context, token string) error, token string) codes.Code {
		return status.Code(list(h.ctx, token))
	}
	sessions := func(ctx context.Context, token string) error {
		_, err := h.data.ListSessions(ctx, &spannerpb.ListSessionsRequest{Database: testDatabase, PageToken: token})
		return err
	}
	if code := call(sessions, token); code != codes.OK {
		t.Errorf("the token of this list: %v", code)
	}
	for name, list := range map[string]func(ctx context.Context, token string) error{
		"another filter": func(ctx context.Context, token string) error {
			_, err := h.data.ListSessions(ctx, &spannerpb.ListSessionsRequest{Database: testDatabase, Filter: "labels.a:*", PageToken: token})
			return err
		},
		"databases": func(ctx context.Context, token string) error {
			_, err := h.databases.ListDatabases(ctx, &databasepb.ListDatabasesRequest{Parent: testInstance, PageToken: token})
			return err
		},
		"roles": func(ctx context.Context, token string) error {
			_, err := h.databases.ListDatabaseRoles(ctx, &databasepb.ListDatabaseRolesRequest{Parent: testDatabase, PageToken: token})
			return err
		},
		"database operations": func(ctx context.Context, token string) error {
			_, err := h.databases.ListDatabaseOperations(ctx, &databasepb.ListDatabaseOperationsRequest{Parent: testInstance, PageToken: token})
			return err
		},
		"instances": func(ctx context.Context, token string) error {
			_, err := h.instances.ListInstances(ctx, &instancepb.ListInstancesRequest{Parent: "projects/p", PageToken: token})
			return err
		},
		"configs": func(ctx context.Context, token string) error {
			_, err := h.instances.ListInstanceConfigs(ctx, &instancepb.ListInstanceConfigsRequest{Parent: "projects/p", PageToken: token})
			return err
		},
		"operations": func(ctx context.Context, token string) error {
			_, err := h.ops.ListOperations(ctx, &longrunningpb.ListOperationsRequest{Name: testDatabase + "/operations", PageToken: token})
			return err
		},
	} {
		if code := call(list, token); code != codes.InvalidArgument {
			t.Errorf("%s: %v", name, code)
		}
	}
	for _, bad := range []string{"nonsense", "====", testDatabase + "/sessions/x", base64.RawURLEncoding.EncodeToString([]byte("12345678" + testDatabase)), token + "A"} {
		if code := call(sessions, bad); code != codes.InvalidArgument {
			t.Errorf("%q: %v", bad, code)
		}
	}
}

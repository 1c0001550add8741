package server

import (
	"context"
	"encoding/base64"
	"testing"

	"cloud.google.com/go/longrunning/autogen/longrunningpb"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"cloud.google.com/go/spanner/admin/instance/apiv1/instancepb"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestPageTokens checks that the server refuses a page token that it did not make, or that it made for another list.
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

package crowfoot_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot"
)

// TestStorageFailed checks that a program which embeds a server is told when the storage has failed, keeps running, and
// can close the server. The clients must get errors at once.
func TestStorageFailed(t *testing.T) {
	const name = "projects/p/instances/i/databases/d"
	data := filepath.Join(t.TempDir(), "data")
	failed := make(chan error, 2)
	srv, err := crowfoot.Start(t.Context(), crowfoot.Options{
		Data: data, Databases: []string{name}, DDL: []string{"CREATE TABLE T (K INT64 NOT NULL, V BYTES(MAX)) PRIMARY KEY (K)"},
		StorageFailed: func(cause error) { failed <- cause },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("SPANNER_EMULATOR_HOST", srv.GRPC)
	client, err := spanner.NewClientWithConfig(t.Context(), name, spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for os.RemoveAll(data) != nil { // repeated, because it fails while files are still being created
	}
	write := func(key int) error {
		_, err := client.Apply(context.Background(), []*spanner.Mutation{spanner.InsertOrUpdate("T", []string{"K", "V"}, []any{key, make([]byte, 100_000)})})
		return err
	}
	for key := 0; len(failed) == 0; key++ {
		_ = write(key)
	}
	if cause := <-failed; !strings.Contains(cause.Error(), data) {
		t.Errorf("the cause is %v", cause)
	}
	if err := write(-1); spanner.ErrCode(err) != codes.Internal || !strings.Contains(err.Error(), "storage has failed") {
		t.Errorf("a commit: %v", err)
	}
	if _, err := client.Single().ReadRow(context.Background(), "T", spanner.Key{0}, []string{"K"}); spanner.ErrCode(err) != codes.Internal {
		t.Errorf("a read: %v", err)
	}
	if err := srv.Close(); err == nil || !strings.Contains(err.Error(), data) {
		t.Errorf("close: %v", err)
	}
	if len(failed) != 0 {
		t.Error("the failure was reported twice")
	}
}

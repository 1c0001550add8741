package endtoend_test

import (
	"context"
	"testing"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot"
)

const name = "projects/p/instances/i/databases/d"

// client starts a server with one table and connects the official client to it.
func client(t *testing.T) (*crowfoot.Server, *spanner.Client) {
	t.Helper()
	return clientOf(t, spanner.ClientConfig{})
}

func clientOf(t *testing.T, cfg spanner.ClientConfig) (*crowfoot.Server, *spanner.Client) {
	t.Helper()
	cfg.DisableNativeMetrics = true
	s := crowfoot.ForTest(t, name, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	c, err := spanner.NewClientWithConfig(context.Background(), name, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return s, c
}

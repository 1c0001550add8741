// Package clienttest connects Cloud Spanner's official Go client to a server that a test starts.
//
// Imports of this module: ..
package clienttest

import (
	"context"
	"testing"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot"
)

// Database is the name of the database that Connect creates.
const Database = "projects/p/instances/i/databases/d"

// Connect starts a server whose database has the schema ddl, and connects a client to it. Both are closed when the
// test ends.
func Connect(t *testing.T, ddl ...string) *spanner.Client {
	t.Helper()
	crowfoot.ForTest(t, Database, ddl...)
	return Dial(t)
}

// Dial connects one more client to the server that Connect has started.
func Dial(t *testing.T) *spanner.Client {
	t.Helper()
	client, err := spanner.NewClientWithConfig(context.Background(), Database, spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// Package clienttest connects the official client to a server of a test.
//
// Imports of this module: ..
package clienttest

import (
	"context"
	"testing"

	"cloud.google.com/go/spanner"

	"github.com/crowfoot-db/crowfoot"
)

// Database is the name of the database that Connect makes.
const Database = "projects/p/instances/i/databases/d"

// Connect starts a server with tables and connects a client to it. Both end with the test.
func Connect(t *testing.T, ddl ...string) *spanner.Client {
	t.Helper()
	crowfoot.ForTest(t, Database, ddl...)
	return Dial(t)
}

// Dial connects one more client to the server.
func Dial(t *testing.T) *spanner.Client {
	t.Helper()
	client, err := spanner.NewClientWithConfig(context.Background(), Database, spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

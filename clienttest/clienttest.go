// Package clienttest connects Cloud Spanner's official Go client to a server that a test starts.
//
// Imports of this module: ..
package clienttest

import (
	"context"
	"testing"

	"cloud.google.com/go/spanner"
	database "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"

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

// Alter runs DDL statements on Database and waits until they have ended.
func Alter(t *testing.T, statements ...string) {
	t.Helper()
	admin, err := database.NewDatabaseAdminClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	op, err := admin.UpdateDatabaseDdl(t.Context(), &databasepb.UpdateDatabaseDdlRequest{Database: Database, Statements: statements})
	if err == nil {
		err = op.Wait(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

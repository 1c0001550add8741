package database_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cloud.google.com/go/spanner"
	admin "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"

	"github.com/crowfoot-db/crowfoot"
	"github.com/crowfoot-db/crowfoot/arrowtype"
	"github.com/crowfoot-db/crowfoot/bulk/transfer"
	"github.com/crowfoot-db/crowfoot/database"
)

// TestDDLOfExports checks that the schema of a database survives an export and an import. The test exports databases
// with random schemas into folders that have the layout of Cloud Spanner's exports, and runs the DDL statements of each
// folder in an empty database. GetDatabaseDdl must then return the same statements for both databases.
func TestDDLOfExports(t *testing.T) {
	const instance = "projects/p/instances/i"
	crowfoot.ForTest(t, instance+"/databases/other")
	client, err := admin.NewDatabaseAdminClient(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	create := func(id string, protos []byte, ddl ...string) {
		t.Helper()
		op, err := client.CreateDatabase(t.Context(), &databasepb.CreateDatabaseRequest{Parent: instance, CreateStatement: "CREATE DATABASE `" + id + "`", ExtraStatements: ddl, ProtoDescriptors: protos})
		if err == nil {
			_, err = op.Wait(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	printed := func(id string) *databasepb.GetDatabaseDdlResponse {
		t.Helper()
		r, err := client.GetDatabaseDdl(t.Context(), &databasepb.GetDatabaseDdlRequest{Database: instance + "/databases/" + id})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for _, seed := range []uint64{0, 2} { // the schema of seed 2 has change streams of tables in named schemas
		ddl, protos := database.RandomDDL(seed)
		from, to := fmt.Sprintf("from-%d", seed), fmt.Sprintf("into-%d", seed)
		rename := func(list []string, old, name string) (renamed []string) {
			for _, text := range list {
				renamed = append(renamed, strings.Replace(text, "ALTER DATABASE `"+old+"`", "ALTER DATABASE `"+name+"`", 1))
			}
			return renamed
		}
		create(from, protos, rename(ddl, "round-trip", from)...)
		create(to, nil)
		was := printed(from)
		rows, err := spanner.NewClientWithConfig(t.Context(), instance+"/databases/"+from, spanner.ClientConfig{DisableNativeMetrics: true})
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		dir := filepath.Join(t.TempDir(), from)
		result, err := transfer.Export(t.Context(), transfer.ExportOptions{Client: rows, Database: instance + "/databases/" + from, Dir: dir, Format: transfer.SpannerExport,
			Timestamps: arrowtype.Text, Bound: spanner.StrongRead(), DDL: was.Statements, ProtoDescriptors: was.ProtoDescriptors})
		if err != nil {
			t.Fatal(err)
		}
		folder, err := transfer.OpenFolder(dir, to)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%d tables, %d statements before the rows and %d behind; beside the layout: %q", len(folder.Tables), len(folder.Before), len(folder.After), result.Beside)
		for _, list := range [][]string{folder.Before, folder.After} {
			op, err := client.UpdateDatabaseDdl(t.Context(), &databasepb.UpdateDatabaseDdlRequest{Database: instance + "/databases/" + to, Statements: list, ProtoDescriptors: folder.ProtoDescriptors})
			if err == nil && len(list) > 0 {
				err = op.Wait(t.Context())
			}
			if err != nil && len(list) > 0 {
				t.Fatalf("%v\nin\n%s", err, strings.Join(list, ";\n"))
			}
		}
		if got, want := rename(printed(to).Statements, to, from), was.Statements; !slices.Equal(got, want) {
			t.Errorf("the copy prints\n%s\n\nand the database\n%s", strings.Join(got, ";\n"), strings.Join(want, ";\n"))
		}
		if missing := transfer.Missing(slices.Concat(folder.Before, folder.After), printed(to).Statements); slices.ContainsFunc(missing, func(s string) bool { return strings.HasPrefix(s, "CREATE") }) {
			t.Errorf("an import that goes on would run again: %q", missing)
		}
	}
}

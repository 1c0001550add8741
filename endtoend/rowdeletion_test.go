package endtoend_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	adminapi "cloud.google.com/go/spanner/admin/database/apiv1"
	"cloud.google.com/go/spanner/admin/database/apiv1/databasepb"
	"google.golang.org/api/iterator"
)

// TestRowDeletionPolicy adds a row deletion policy and checks that INFORMATION_SCHEMA shows it, that the output of
// GetDatabaseDdl can be run again, and that the server deletes rows by the policy.
func TestRowDeletionPolicy(t *testing.T) {
	if testing.Short() {
		t.Skip("takes ten seconds, until the first pass")
	}
	_, c := client(t)
	ctx := context.Background()
	admin, err := adminapi.NewDatabaseAdminClient(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	op, err := admin.UpdateDatabaseDdl(ctx, &databasepb.UpdateDatabaseDdlRequest{Database: name, Statements: []string{
		"CREATE TABLE Events (Id INT64, Created TIMESTAMP) PRIMARY KEY (Id), ROW DELETION POLICY (OLDER_THAN(Created, INTERVAL 7 DAY))",
		"CREATE INDEX ByCreated ON Events(Created)",
		"ALTER TABLE T ADD COLUMN Ts TIMESTAMP",
		"ALTER TABLE T ADD ROW DELETION POLICY (OLDER_THAN(Ts, INTERVAL 1 DAY))",
		"ALTER TABLE T REPLACE ROW DELETION POLICY (OLDER_THAN(Ts, INTERVAL 30 DAY))",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := op.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	copyDDL(t, admin)
	want := []string{"Events|OLDER_THAN(Created, INTERVAL 7 DAY)", "T|OLDER_THAN(Ts, INTERVAL 30 DAY)"}
	sql := "SELECT TABLE_NAME, ROW_DELETION_POLICY_EXPRESSION FROM INFORMATION_SCHEMA.TABLES WHERE ROW_DELETION_POLICY_EXPRESSION IS NOT NULL"
	if got := texts(t, c, sql); !slices.Equal(got, want) {
		t.Errorf("INFORMATION_SCHEMA shows %q", got)
	}

	now := time.Now()
	row := func(id int, created any) *spanner.Mutation {
		return spanner.Insert("Events", []string{"Id", "Created"}, []any{id, created})
	}
	day := 24 * time.Hour
	if _, err := c.Apply(ctx, []*spanner.Mutation{row(1, now.Add(-8*day)), row(2, now.Add(-6*day)), row(3, nil), row(4, now.Add(-9*day))}); err != nil {
		t.Fatal(err)
	}
	passed := "SELECT TABLE_NAME, CAST(UNDELETABLE_ROWS AS STRING) FROM SPANNER_SYS.ROW_DELETION_POLICIES " +
		"WHERE PROCESSED_WATERMARK IS NOT NULL AND MIN_UNDELETABLE_TIMESTAMP IS NULL ORDER BY 1"
	for len(texts(t, c, passed)) < 2 {
		time.Sleep(100 * time.Millisecond) // pause between two queries
	}
	if got, want := texts(t, c, passed), []string{"Events|0", "T|0"}; !slices.Equal(got, want) {
		t.Errorf("SPANNER_SYS shows %q", got)
	}
	if got, want := texts(t, c, "SELECT CAST(Id AS STRING), '' FROM Events ORDER BY Id"), []string{"2|", "3|"}; !slices.Equal(got, want) {
		t.Errorf("rows left: %q", got)
	}
	tasks := "SELECT TASK_NAME, LAST_RUN_STATUS FROM SPANNER_SYS.TASKS WHERE TASK_NAME = 'row_deletion_policy' AND PROCESSED_WATERMARK IS NOT NULL"
	if got, want := texts(t, c, tasks), []string{"row_deletion_policy|OK"}; !slices.Equal(got, want) {
		t.Errorf("SPANNER_SYS.TASKS shows %q", got)
	}
}

// copyDDL creates another database from the statements that GetDatabaseDdl returns for the first database. It checks
// that GetDatabaseDdl returns the same statements for both.
func copyDDL(t *testing.T, admin *adminapi.DatabaseAdminClient) {
	t.Helper()
	ctx := context.Background()
	printed, err := admin.GetDatabaseDdl(ctx, &databasepb.GetDatabaseDdlRequest{Database: name})
	if err != nil {
		t.Fatal(err)
	}
	op, err := admin.CreateDatabase(ctx, &databasepb.CreateDatabaseRequest{
		Parent: "projects/p/instances/i", CreateStatement: "CREATE DATABASE again", ExtraStatements: printed.Statements,
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := op.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	again, err := admin.GetDatabaseDdl(ctx, &databasepb.GetDatabaseDdlRequest{Database: "projects/p/instances/i/databases/again"})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(printed.Statements, again.Statements) || !strings.Contains(printed.Statements[0], "ROW DELETION POLICY") {
		t.Errorf("printed\n%s\nand of the copy\n%s", strings.Join(printed.Statements, "\n"), strings.Join(again.Statements, "\n"))
	}
}

// texts returns the rows of a query that has two STRING columns, each row as one text.
func texts(t *testing.T, c *spanner.Client, sql string) []string {
	t.Helper()
	rows := c.Single().Query(context.Background(), spanner.NewStatement(sql))
	defer rows.Stop()
	var list []string
	for {
		row, err := rows.Next()
		if err == iterator.Done {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		var a, b spanner.NullString
		if err := row.Columns(&a, &b); err != nil {
			t.Fatal(err)
		}
		list = append(list, a.StringVal+"|"+b.StringVal)
	}
}

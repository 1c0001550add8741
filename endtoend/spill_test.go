package endtoend_test

import (
	"context"
	"os"
	"testing"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"google.golang.org/api/iterator"

	"github.com/crowfoot-db/crowfoot"
	"github.com/crowfoot-db/crowfoot/memory"
)

// TestSpill runs a query whose rows need several times the memory that one statement of a small server may take. The
// query must use temporary files, and none may be left afterwards.
func TestSpill(t *testing.T) {
	dir := t.TempDir()
	s, err := crowfoot.Start(t.Context(), crowfoot.Options{Data: dir, Memory: memory.MinBytes, Databases: []string{name}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	t.Setenv("SPANNER_EMULATOR_HOST", s.GRPC)
	c, err := spanner.NewClientWithConfig(context.Background(), name, spanner.ClientConfig{DisableNativeMetrics: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	const rows = 300_000
	mode := spannerpb.ExecuteSqlRequest_PROFILE
	iter := c.Single().QueryWithOptions(t.Context(), spanner.Statement{
		SQL:    "SELECT COUNT(*), MIN(x), MAX(x) FROM (SELECT DISTINCT x, x + 1 FROM UNNEST(GENERATE_ARRAY(1, @n)) x)",
		Params: map[string]any{"n": rows},
	}, spanner.QueryOptions{Mode: &mode})
	defer iter.Stop()
	row, err := iter.Next()
	if err != nil {
		t.Fatal(err)
	}
	var count, least, greatest int64
	if err := row.Columns(&count, &least, &greatest); err != nil || count != rows || least != 1 || greatest != rows {
		t.Errorf("%d rows from %d to %d, %v", count, least, greatest, err)
	}
	if _, err := iter.Next(); err != iterator.Done {
		t.Fatal(err)
	}
	spooled := 0
	for _, n := range iter.QueryPlan.GetPlanNodes() {
		if n.ExecutionStats.GetFields()["Rows Spooled"] != nil {
			spooled++
		}
	}
	if spooled != 1 {
		t.Errorf("%d operators have spooled rows, want one", spooled)
	}
	if files, err := os.ReadDir(dir + "/spill"); err != nil || len(files) > 0 {
		t.Errorf("temporary files %v, %v", files, err)
	}
}

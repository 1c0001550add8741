package database

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/value"
)

// systemRows returns the rows of a system table of a database.
func systemRows(t *testing.T, d *Database, name string) [][]value.Value {
	t.Helper()
	for _, table := range d.schema.Newest().Preparer.System() {
		if table.FullName() == name {
			rows, err := table.Rows(context.Background(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
	}
	t.Fatalf("no table %s", name)
	return nil
}

// TestStatisticsSurvive checks that the next process shows the statistics of the process before, and that no statistics
// of a dropped database are left.
func TestStatisticsSurvive(t *testing.T) {
	store, err := pebble.Open("data", vfs.NewMem())
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	cfg := Config{Clock: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
	r, err := Open(store, cfg)
	if err != nil {
		t.Fatal(err)
	}
	db, err := r.CreateDatabase(context.Background(), testName, []string{"CREATE TABLE T (K INT64) PRIMARY KEY (K)"})
	if err != nil {
		t.Fatal(err)
	}
	db.Stats().Query(&stats.Query{Text: stats.TextOf("SELECT 1"), End: now, Rows: 1})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = Open(store, cfg); err != nil {
		t.Fatal(err)
	}
	if db, err = r.Database(testName); err != nil {
		t.Fatal(err)
	}
	now = now.Add(2 * time.Minute)
	rows := systemRows(t, db, "SPANNER_SYS.QUERY_STATS_TOP_MINUTE")
	if len(rows) != 1 || rows[0][1].AsString() != "SELECT 1" || rows[0][4].AsInt64() != 1 {
		t.Errorf("after a restart: %v", rows)
	}
	found := false
	for _, row := range systemRows(t, db, "INFORMATION_SCHEMA.TABLES") {
		found = found || row[2].AsString() == "LOCK_STATS_TOTAL_HOUR"
	}
	if !found {
		t.Error("INFORMATION_SCHEMA does not list the tables of SPANNER_SYS")
	}
	if err := dropDatabase(r); err != nil {
		t.Fatal(err)
	}
	lower, upper := stats.Range(db.space)
	it, err := store.NewIter(lower, upper)
	if err != nil {
		t.Fatal(err)
	}
	if it.First() {
		t.Errorf("left of a dropped database: %q", it.Key())
	}
	it.Close()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestTableSizes checks that tableSizes returns a size for every table and index.
func TestTableSizes(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)", "CREATE INDEX ByV ON T(V)")
	if err := b.insert("T", [2]int64{1, 1}); err != nil {
		t.Fatal(err)
	}
	sizes, err := b.db.tableSizes()
	if err != nil || len(sizes) != 2 || sizes[0].Table != "T" || sizes[1].Table != "ByV" {
		t.Errorf("%v, %v", sizes, err)
	}
}

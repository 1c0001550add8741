package database

import (
	"context"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestDroppedInterleaved checks that the keys of dropped interleaved tables and indexes are deleted once no read at an
// allowed timestamp needs them.
func TestDroppedInterleaved(t *testing.T) {
	a := newAged(t,
		"CREATE TABLE Parents (Id INT64) PRIMARY KEY (Id)",
		"CREATE TABLE Children (Id INT64, N INT64) PRIMARY KEY (Id, N), INTERLEAVE IN PARENT Parents ON DELETE CASCADE",
		"CREATE TABLE Grand (Id INT64, N INT64, G INT64) PRIMARY KEY (Id, N, G), INTERLEAVE IN PARENT Children",
		"CREATE TABLE Siblings (Id INT64, N INT64) PRIMARY KEY (Id, N), INTERLEAVE IN Parents",
		"CREATE INDEX ByN ON Siblings(Id, N DESC), INTERLEAVE IN Parents",
		"CREATE INDEX Apart ON Children(N)",
	)
	n := func(i int) value.Value { return value.OfInt64(int64(i)) }
	a.fill("Parents", 20, func(i int) []value.Value { return []value.Value{n(i)} })
	a.fill("Children", 200, func(i int) []value.Value { return []value.Value{n(i % 20), n(i)} })
	a.fill("Grand", 200, func(i int) []value.Value { return []value.Value{n(i % 20), n(i), n(i)} })
	a.fill("Siblings", 200, func(i int) []value.Value { return []value.Value{n(i % 20), n(i)} })
	before, c := a.clock(), a.db.Catalog()
	layouts := []*table.Layout{
		table.TableLayout(c.Table("Children")), table.TableLayout(c.Table("Grand")), table.IndexLayout(c.Index("ByN")), table.IndexLayout(c.Index("Apart")),
	}
	want := func(when string, counts ...int) {
		t.Helper()
		if err := a.db.collect(context.Background()); err != nil {
			t.Fatal(err)
		}
		for i, l := range layouts {
			if got := a.owned(l); got != counts[i] {
				t.Errorf("%s: %d keys of %s, want %d", when, got, l.Name(), counts[i])
			}
		}
		if rows := a.count("SELECT COUNT(*) FROM Parents") + a.count("SELECT COUNT(*) FROM Siblings@{FORCE_INDEX=_BASE_TABLE}"); rows != "20200" {
			t.Errorf("%s: %s rows of others", when, rows)
		}
	}
	a.now.Add(time.Minute.Microseconds())
	drop := []string{"DROP INDEX ByN", "DROP INDEX Apart", "DROP TABLE Grand", "DROP TABLE Children"}
	if err := a.db.UpdateSchema(context.Background(), drop, nil); err != nil {
		t.Fatal(err)
	}
	want("dropped", 200, 200, 200, 200)
	snapshot, err := a.db.Transactions().Snapshot(context.Background(), txn.Bound{Kind: txn.ReadTimestamp, Time: before.Add(time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	if c, err := a.db.CatalogAt(snapshot.Timestamp()); err != nil || c.Table("Grand") == nil {
		t.Errorf("the past cannot be read: %v", err)
	}

	// Until the drop is older than the retention period, the keys of the dropped tables and indexes must stay, even if
	// the schema changes once more during that time.
	a.now.Add((59 * time.Minute).Microseconds())
	again := []string{"CREATE TABLE Children (Id INT64, N INT64) PRIMARY KEY (Id, N), INTERLEAVE IN PARENT Parents ON DELETE CASCADE"}
	if err := a.db.UpdateSchema(context.Background(), again, nil); err != nil {
		t.Fatal(err)
	}
	a.fill("Children", 20, func(i int) []value.Value { return []value.Value{n(i % 20), n(i)} })
	a.close()
	a.open()
	if a.db, err = a.Database(testName); err != nil {
		t.Fatal(err)
	}
	want("still to be read", 200, 200, 200, 200)
	a.now.Add((2 * time.Minute).Microseconds())
	want("past", 0, 0, 0, 0)
	if got := a.count("SELECT COUNT(*) FROM Children"); got != "20" {
		t.Errorf("%s rows in the new table", got)
	}
	a.now.Add(time.Hour.Microseconds())
	want("all forgotten", 0, 0, 0, 0)
	if versions := a.db.schema.Versions(); len(versions) != 1 {
		t.Errorf("%d schema versions are kept", len(versions))
	}
}

// owned counts the keys in the store that belong to the table or index of layout l and that are not deleted.
func (a *aged) owned(l *table.Layout) int {
	a.t.Helper()
	span, _ := l.Space()
	c, err := a.db.rows.Scan(span.Start, span.End, mvcc.Latest, false)
	if err != nil {
		a.t.Fatal(err)
	}
	defer c.Close()
	n := 0
	for c.Next() {
		if l.Owns(c.Key()) {
			n++
		}
	}
	if err := c.Err(); err != nil {
		a.t.Fatal(err)
	}
	return n
}

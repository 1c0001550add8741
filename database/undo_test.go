package database

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/kv/pebble/disktest"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestUndoRefused makes a schema change fail, because the store refuses a write or because a row breaks a constraint.
// The store then refuses the undo of the change, too. The next schema change or the next start must undo the failed
// change first, even if all schema versions are older than the retention period. The failed change must never count as
// complete.
func TestUndoRefused(t *testing.T) {
	const create = "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)"
	for name, c := range map[string]struct {
		statement string
		from      int // the store refuses writes once the database has this number of schema versions
	}{
		"row":     {"CREATE UNIQUE INDEX ByV ON T(V)", 2},
		"fill":    {"CREATE INDEX ByV ON T(V)", 2},
		"settle":  {"CREATE INDEX ByV ON T(V)", 3},
		"columns": {"ALTER TABLE T ALTER COLUMN V INT64 NOT NULL", 2},
	} {
		for _, next := range []string{"change", "restart"} {
			t.Run(name+"/"+next, func(t *testing.T) {
				a := newAged(t, create)
				store := &disktest.Refusing{Store: a.store}
				a.reopenOn(store)
				a.fill("T", 10, func(i int) []value.Value { return []value.Value{value.OfInt64(int64(i)), value.OfInt64(1)} })
				want := a.db.DDL()
				db := a.db
				store.When(func() bool { return len(db.schema.Versions()) >= c.from })
				if err := a.db.UpdateSchema(context.Background(), []string{c.statement}, nil); err == nil {
					t.Fatal("the change succeeded")
				}
				if got := a.db.DDL(); !a.db.schema.Newest().Tentative() || !slices.Equal(got, want) {
					t.Errorf("after the failure: %q", got)
				}
				store.When(nil)
				a.now.Add((2 * time.Hour).Microseconds())
				if err := a.db.collect(context.Background()); err != nil {
					t.Fatal(err)
				}
				if next == "restart" {
					a.reopenOn(store)
				}
				if err := a.db.UpdateSchema(context.Background(), []string{"CREATE TABLE W (K INT64) PRIMARY KEY (K)"}, nil); err != nil {
					t.Fatal(err)
				}
				a.reopenOn(store)
				if got := a.db.DDL(); len(got) != 2 || got[0] != want[0] {
					t.Errorf("after the next change: %q", got)
				}
				if err := a.db.UpdateSchema(context.Background(), []string{"CREATE INDEX ByV ON T(V)"}, nil); err != nil {
					t.Fatal(err)
				}
				if n := a.count("SELECT COUNT(*) FROM T@{FORCE_INDEX=ByV}"); n != "10" {
					t.Errorf("%s index entries", n)
				}
			})
		}
	}
}

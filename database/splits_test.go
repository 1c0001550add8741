package database

import (
	"context"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/meta"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestSplitPoints checks that split points exist and have effect after a restart, that they are deleted with their
// table and their database, and that none can be added to a dropped database.
func TestSplitPoints(t *testing.T) {
	fs := vfs.NewMem()
	b := open(t, fs)
	db, err := b.CreateDatabase(context.Background(), testName, []string{
		"CREATE TABLE T (A INT64 NOT NULL) PRIMARY KEY (A)", "CREATE TABLE U (A INT64 NOT NULL) PRIMARY KEY (A)"})
	if err != nil {
		t.Fatal(err)
	}
	b.db = db
	point := func(name string) split.Point {
		return split.Point{Table: b.db.Catalog().Table(name), Key: []value.Value{value.OfInt64(7)}, Expires: time.Now().Add(time.Hour)}
	}
	if err := db.Splits().AddPoints([]split.Point{point("T"), point("U")}); err != nil {
		t.Fatal(err)
	}
	b = b.reopen()
	b.alter("DROP TABLE U")
	rows := systemRows(t, b.db, "SPANNER_SYS.USER_SPLIT_POINTS")
	if len(rows) != 1 || rows[0][3].AsString() != "T(7)" || !b.db.Splits().Many(time.Now()) {
		t.Errorf("after a restart: %v", rows)
	}
	last := point("T")
	if err := dropDatabase(b.Registry); err != nil {
		t.Fatal(err)
	}
	wantCode(t, b.db.Splits().AddPoints([]split.Point{last}), codes.NotFound)
	if n := records(t, b.store, meta.SplitPoint); n != 0 {
		t.Errorf("%d points are left", n)
	}
}

// records counts the records in the store whose names begin with prefix.
func records(t *testing.T, store kv.Store, prefix string) (n int) {
	t.Helper()
	if err := meta.Each(store, prefix, func(string, []byte) error { n++; return nil }); err != nil {
		t.Fatal(err)
	}
	return n
}

package schema

import "testing"

// TestSharing checks that a statement copies as few tables as possible in a database with many tables, all of which
// refer to one table, Hub. A statement that adds a child of Hub must copy no table. A statement that adds a column to
// Hub must copy all other tables, because they point at Hub, but the copies must share the columns of the originals.
func TestSharing(t *testing.T) {
	c := mustApply(t, NewCatalog(), "CREATE TABLE Hub (K INT64, V INT64) PRIMARY KEY (K)")
	for i := range 300 {
		c = mustApply(t, c, "CREATE TABLE T%d (K INT64, L INT64, FOREIGN KEY (L) REFERENCES Hub (K)) PRIMARY KEY (K)", i)
	}
	count := func(before, after *Catalog) (copied, redefined int) {
		for old := range before.Tables() {
			now := after.TableByID(old.ID)
			if now != old {
				copied++
			}
			if !now.sharesColumns(old) {
				redefined++
			}
		}
		return copied, redefined
	}
	for _, test := range []struct {
		statement         string
		copied, redefined int
	}{
		{"CREATE TABLE N (K INT64) PRIMARY KEY (K)", 0, 0},
		{"CREATE TABLE N (K INT64, FOREIGN KEY (K) REFERENCES Hub (K)) PRIMARY KEY (K)", 0, 0},
		{"CREATE TABLE N (K INT64, L INT64) PRIMARY KEY (K, L), INTERLEAVE IN PARENT Hub ON DELETE CASCADE", 0, 0},
		{"CREATE INDEX ByL ON T7(L)", 1, 1},
		{"ALTER TABLE Hub ADD COLUMN W INT64", 301, 1},
	} {
		next := mustApply(t, c, "%s", test.statement)
		if copied, redefined := count(c, next); copied != test.copied || redefined != test.redefined {
			t.Errorf("%s: %d tables copied and %d redefined, want %d and %d", test.statement, copied, redefined, test.copied, test.redefined)
		}
		if e := encoded(t, c, next); len(e.Objects) != max(test.redefined, 1) {
			t.Errorf("%s: %d tables stored", test.statement, len(e.Objects))
		}
		checkFollows(t, c, next)
	}
}

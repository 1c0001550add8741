package schema

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/usererror"
)

func mustApply(tb testing.TB, c *Catalog, format string, args ...any) *Catalog {
	tb.Helper()
	next, _, err := c.Apply(fmt.Sprintf(format, args...), wordCompiler{})
	if err != nil {
		tb.Fatal(err)
	}
	return next
}

func wantRefused(tb testing.TB, c *Catalog, text string, format string, args ...any) {
	tb.Helper()
	_, _, err := c.Apply(fmt.Sprintf(format, args...), wordCompiler{})
	if usererror.CodeOf(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), text) {
		tb.Errorf("got %v, want %q", err, text)
	}
}

func TestTooManyColumns(t *testing.T) {
	var b strings.Builder
	for i := range MaxColumns {
		fmt.Fprintf(&b, "c%d INT64, ", i)
	}
	c := mustApply(t, NewCatalog(), "CREATE TABLE t (%s) PRIMARY KEY (c0)", b.String())
	wantRefused(t, c, "too many columns", "ALTER TABLE t ADD COLUMN d INT64")
	wantRefused(t, c, "too many columns", "CREATE TABLE u (%s d INT64) PRIMARY KEY (c0)", b.String())
}

func TestTooManyIndexes(t *testing.T) {
	c := mustApply(t, NewCatalog(), "CREATE TABLE t (a INT64) PRIMARY KEY (a)")
	for i := range MaxIndexesPerTable {
		c = mustApply(t, c, "CREATE INDEX i%d ON t(a)", i)
	}
	wantRefused(t, c, "too many indices", "CREATE INDEX j ON t(a)")
}

func TestTooManyTables(t *testing.T) {
	c := NewCatalog()
	for i := range MaxTables {
		c.tables = c.tables.with(TableID(i+1), &Table{ID: TableID(i + 1), Name: fmt.Sprint("t", i)})
	}
	wantRefused(t, c, "too many tables", "CREATE TABLE u (a INT64) PRIMARY KEY (a)")
}

func TestSchemaTooLarge(t *testing.T) {
	c := mustApply(t, NewCatalog(), "CREATE TABLE t (a STRING(MAX)) PRIMARY KEY (a)")
	long := strings.Repeat("x", 1<<20)
	for i := range 9 {
		c = mustApply(t, c, `ALTER TABLE t ADD CONSTRAINT c%d CHECK (a != "%s")`, i, long)
	}
	wantRefused(t, c, "maximum size", `ALTER TABLE t ADD CONSTRAINT d CHECK (a != "%s")`, long)
	c = mustApply(t, c, "ALTER TABLE t DROP CONSTRAINT c0")
	mustApply(t, c, `ALTER TABLE t ADD CONSTRAINT d CHECK (a != "%s")`, long)
}

// BenchmarkApply adds a column to one of 1,000 tables: what a statement costs must not grow with all tables' columns.
func BenchmarkApply(b *testing.B) {
	c := NewCatalog()
	for i := range 1000 {
		c = mustApply(b, c, "CREATE TABLE t%d (a INT64, b STRING(MAX), c BYTES(20), d TIMESTAMP) PRIMARY KEY (a)", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		mustApply(b, c, "ALTER TABLE t7 ADD COLUMN e INT64")
	}
}

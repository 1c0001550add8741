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

// TestLimits checks each limit: the largest permitted value succeeds, and that value plus one is refused.
func TestLimits(t *testing.T) {
	base := mustApply(t, NewCatalog(), "CREATE TABLE t (a INT64, b INT64, c INT64, s STRING(MAX), k TIMESTAMP) PRIMARY KEY (a)")
	name := func(n int) string { return strings.Repeat("N", n) }
	key := func(n int) (columns, parts string) {
		for i := range n {
			columns += fmt.Sprintf("k%d INT64, ", i)
			parts += fmt.Sprintf(", k%d", i)
		}
		return columns, parts[2:]
	}
	table := func(parts int) string {
		columns, names := key(parts)
		return fmt.Sprintf("CREATE TABLE u (%s) PRIMARY KEY (%s)", columns, names)
	}
	wide, _ := key(MaxKeyParts)
	indexed := mustApply(t, base, "CREATE TABLE w (x INT64, y INT64, %s) PRIMARY KEY (x, y)", wide)
	index := func(parts int) string {
		_, names := key(parts)
		return fmt.Sprintf("CREATE INDEX i ON w(%s)", names)
	}
	for _, limit := range []struct {
		of    string
		c     *Catalog
		limit int
		stmt  func(n int) string
		code  codes.Code
	}{
		{"a table's name", base, MaxNameLength, func(n int) string { return "CREATE TABLE " + name(n) + " (a INT64) PRIMARY KEY (a)" }, codes.InvalidArgument},
		{"a column's name", base, MaxNameLength, func(n int) string { return "ALTER TABLE t ADD COLUMN " + name(n) + " INT64" }, codes.InvalidArgument},
		{"an index's name", base, MaxNameLength, func(n int) string { return "CREATE INDEX " + name(n) + " ON t(b)" }, codes.InvalidArgument},
		{"a constraint's name", base, MaxNameLength, func(n int) string { return "ALTER TABLE t ADD CONSTRAINT " + name(n) + " CHECK (a > 0)" }, codes.InvalidArgument},
		{"a foreign key's name", base, MaxNameLength, func(n int) string {
			return "ALTER TABLE t ADD CONSTRAINT " + name(n) + " FOREIGN KEY (b) REFERENCES t (a)"
		}, codes.InvalidArgument},
		{"a schema's name", base, MaxNameLength, func(n int) string { return "CREATE SCHEMA " + name(n) }, codes.InvalidArgument},
		{"a change stream's name", base, maxChangeStreamName, func(n int) string { return "CREATE CHANGE STREAM " + name(n) }, codes.InvalidArgument},
		{"a locality group's name", base, MaxNameLength, func(n int) string { return "CREATE LOCALITY GROUP " + name(n) }, codes.InvalidArgument},
		{"a view's name", base, MaxNameLength, func(n int) string { return "CREATE VIEW " + name(n) + " SQL SECURITY INVOKER AS SELECT t.a FROM t" }, codes.InvalidArgument},
		{"a role's name", base, MaxNameLength, func(n int) string { return "CREATE ROLE " + name(n) }, codes.InvalidArgument},
		{"a synonym", base, MaxNameLength, func(n int) string { return "ALTER TABLE t ADD SYNONYM " + name(n) }, codes.InvalidArgument},
		{"STRING", base, MaxStringLength, func(n int) string { return fmt.Sprintf("ALTER TABLE t ADD COLUMN d STRING(%d)", n) }, codes.InvalidArgument},
		{"BYTES", base, MaxBytesLength, func(n int) string { return fmt.Sprintf("ALTER TABLE t ADD COLUMN d BYTES(%d)", n) }, codes.InvalidArgument},
		{"ARRAY<STRING>", base, MaxStringLength, func(n int) string { return fmt.Sprintf("ALTER TABLE t ADD COLUMN d ARRAY<STRING(%d)>", n) }, codes.InvalidArgument},
		{"parts of a key", base, MaxKeyParts, table, codes.InvalidArgument},
		{"parts of an index's key, the table's included", indexed, MaxKeyParts - 2, index, codes.InvalidArgument},
		{"version_retention_period", base, maxRetentionHours, func(n int) string {
			return fmt.Sprintf("ALTER DATABASE db SET OPTIONS (version_retention_period = '%dh')", n)
		}, codes.InvalidArgument},
		{"optimizer_version", base, NewestOptimizer, func(n int) string { return fmt.Sprintf("ALTER DATABASE db SET OPTIONS (optimizer_version = %d)", n) }, codes.InvalidArgument},
	} {
		t.Run(limit.of, func(t *testing.T) {
			mustApply(t, limit.c, "%s", limit.stmt(limit.limit))
			if _, _, err := limit.c.Apply(limit.stmt(limit.limit+1), wordCompiler{}); usererror.CodeOf(err) != limit.code {
				t.Errorf("one past %d: %v", limit.limit, err)
			}
		})
	}
}

// TestObjectLimits creates as many objects of each kind as its limit permits. One more must be refused.
func TestObjectLimits(t *testing.T) {
	for _, limit := range []struct {
		of     string
		limit  int
		stmt   string // creates one object, with the number %d in its name; "" means the result of the function deeper
		refuse string
	}{
		{"levels below a root table", MaxInterleaveDepth, "", "too deeply nested"},
		{"change streams", MaxChangeStreams, "CREATE CHANGE STREAM s%d", "limit 10"},
		{"change streams of a table", maxWatchers, "CREATE CHANGE STREAM s%d FOR t", "3"},
		{"locality groups", maxLocalityGroups, "CREATE LOCALITY GROUP g%d", "limit 16"},
		{"roles", maxRoles, "CREATE ROLE r%d", "limit 100"},
		{"placements", maxPlacements, "CREATE PLACEMENT p%d OPTIONS (instance_partition = 'p')", "limit 50"},
		{"indexes of a table", MaxIndexesPerTable, "CREATE INDEX i%d ON t(a)", "limit 128"},
	} {
		t.Run(limit.of, func(t *testing.T) {
			c := mustApply(t, NewCatalog(), "CREATE TABLE t (a INT64) PRIMARY KEY (a)")
			for i := range limit.limit {
				if limit.stmt == "" {
					c = mustApply(t, c, "%s", deeper(i))
				} else {
					c = mustApply(t, c, limit.stmt, i)
				}
			}
			if limit.stmt == "" {
				wantRefused(t, c, limit.refuse, "%s", deeper(limit.limit))
			} else {
				wantRefused(t, c, limit.refuse, limit.stmt, limit.limit)
			}
		})
	}
}

// deeper returns the statement that creates table t<n> as a child of table t<n-1>, or t0 as a child of table t.
func deeper(n int) string {
	key, parent := "a", "t"
	columns := "a INT64"
	for i := range n + 1 {
		key += fmt.Sprintf(", k%d", i)
		columns += fmt.Sprintf(", k%d INT64", i)
	}
	if n > 0 {
		parent = fmt.Sprint("t", n-1)
	}
	return fmt.Sprintf("CREATE TABLE t%d (%s) PRIMARY KEY (%s), INTERLEAVE IN PARENT %s", n, columns, key, parent)
}

func TestTooManyViews(t *testing.T) {
	base := mustApply(t, NewCatalog(), "CREATE TABLE v0 (a INT64) PRIMARY KEY (a)")
	c := base
	const view = "CREATE VIEW v%d SQL SECURITY INVOKER AS SELECT v%d.a FROM v%d"
	for i := range maxViewNesting {
		c = mustApply(t, c, view, i+1, i, i)
	}
	if _, _, err := c.Apply(fmt.Sprintf(view, maxViewNesting+1, maxViewNesting, maxViewNesting), wordCompiler{}); usererror.CodeOf(err) != codes.FailedPrecondition {
		t.Errorf("a view on %d: %v", maxViewNesting, err)
	}
	many := mustApply(t, base, view, 1, 0, 0)
	one := many.Views()[0]
	for i := range MaxViews - 2 {
		another := *one
		another.ID = TableID(i + 10)
		many.objects = many.objects.With(another.ID, &another)
	}
	many = mustApply(t, many, view, 2, 0, 0)
	wantRefused(t, many, "limit 5000", view, 3, 0, 0)
}

// TestTooManyDatabaseIndexes checks that a database can have MaxIndexes indexes, and no more. To be fast, it enters
// most indexes into the catalog without running statements.
func TestTooManyDatabaseIndexes(t *testing.T) {
	c := mustApply(t, NewCatalog(), "CREATE TABLE t (a INT64) PRIMARY KEY (a)")
	for i := range MaxIndexes - 1 {
		c.indexes = c.indexes.With(TableID(i+10), 1)
	}
	c = mustApply(t, c, "CREATE INDEX last ON t(a)")
	wantRefused(t, c, "too many indexes", "CREATE INDEX more ON t(a)")
}

func TestTooManyTables(t *testing.T) {
	c := NewCatalog()
	for i := range MaxTables - 1 {
		c.tables = c.tables.With(TableID(i+1), &Table{ID: TableID(i + 1), Name: fmt.Sprint("t", i)})
	}
	c.NextID = MaxTables
	c = mustApply(t, c, "CREATE TABLE last (a INT64) PRIMARY KEY (a)")
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

// BenchmarkApply measures a statement that adds a column to one of 1,000 tables. The time of a statement must not grow
// with the number of tables.
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

func TestTooManyRoles(t *testing.T) {
	c := NewCatalog()
	for i := range maxRoles {
		c = mustApply(t, c, "CREATE ROLE r%d", i)
	}
	wantRefused(t, c, "too many", "CREATE ROLE s")
	mustApply(t, mustApply(t, c, "DROP ROLE r7"), "CREATE ROLE s")
}

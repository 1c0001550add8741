package schema

import (
	"strings"
	"testing"
)

// dependencyBase is the DDL of the schema to which TestDependencies applies statements.
var dependencyBase = []string{
	"CREATE TABLE T (K INT64, V STRING(10), W INT64, X INT64, G STRING(MAX) AS (V)) PRIMARY KEY (K)",
	"CREATE INDEX ByV ON T(V) STORING (X)",
	"CREATE TABLE C (K INT64, L INT64, M INT64) PRIMARY KEY (K, L), INTERLEAVE IN PARENT T ON DELETE CASCADE",
	"CREATE TABLE R (K INT64, TK INT64, CONSTRAINT RT FOREIGN KEY (TK) REFERENCES T (K)) PRIMARY KEY (K)",
	"CREATE TABLE O (K INT64, V INT64) PRIMARY KEY (K)",
	"CREATE CHANGE STREAM OfR FOR R(TK)",
}

// dependents returns some Dependencies on c, by name.
func dependents(c *Catalog) map[string]*Dependencies {
	read := func(table, index string, columns ...string) *Dependencies {
		d := new(Dependencies)
		t := c.Table(table)
		var list []*Column
		for _, name := range columns {
			list = append(list, t.Column(name))
		}
		var x *Index
		if index != "" {
			x = t.Index(index)
		}
		d.Read(t, x, list)
		return d
	}
	write := func(table string, removes bool) *Dependencies {
		d := new(Dependencies)
		d.Write(c, c.Table(table), removes)
		return d
	}
	return map[string]*Dependencies{
		"read-V": read("T", "", "V"), "read-W": read("T", "", "W"), "read-G": read("T", "", "G"), "by-index": read("T", "ByV", "V"),
		"insert": write("T", false), "change": write("T", true), "insert-C": write("C", false), "change-C": write("C", true),
		"insert-R": write("R", false), "other": write("O", true), "nothing": new(Dependencies),
	}
}

// TestDependencies checks which Dependencies cease to hold when a statement begins and when it completes. While a
// statement's rows are filled or checked, an intermediate catalog serves requests. begun lists the Dependencies on the
// old catalog that do not hold in the intermediate one. complete lists the Dependencies on the intermediate catalog
// that do not hold in the complete one.
func TestDependencies(t *testing.T) {
	for _, test := range []struct{ statement, begun, complete string }{
		{"CREATE TABLE N (K INT64) PRIMARY KEY (K)", "", ""},
		{"CREATE TABLE N (K INT64, N INT64) PRIMARY KEY (K, N), INTERLEAVE IN PARENT T", "change", ""},
		{"CREATE TABLE N (K INT64, TK INT64, FOREIGN KEY (TK) REFERENCES T (K)) PRIMARY KEY (K)", "change", ""},
		{"CREATE TABLE N (K INT64, V STRING(10), FOREIGN KEY (V) REFERENCES T (V)) PRIMARY KEY (K)", "change insert", "change insert"},
		{"CREATE INDEX ByW ON T(W)", "change insert", ""},
		{"CREATE UNIQUE INDEX OnceW ON T(W)", "change insert", "change insert"},
		{"CREATE INDEX ByM ON C(M)", "change change-C insert-C", ""},
		{"CREATE INDEX ByOther ON O(V)", "other", ""},
		{"DROP INDEX ByV", "by-index change insert", ""},
		{"ALTER INDEX ByV ADD STORED COLUMN W", "change insert", "by-index change insert"},
		{"ALTER INDEX ByV DROP STORED COLUMN X", "by-index change insert", ""},
		{"ALTER TABLE T ADD COLUMN N INT64", "change insert", ""},
		{"ALTER TABLE T ADD COLUMN N INT64 NOT NULL DEFAULT (1)", "change insert", ""},
		{"ALTER TABLE T DROP COLUMN W", "change insert read-W", ""},
		{"ALTER TABLE T ALTER COLUMN W SET DEFAULT (1)", "change insert", ""},
		{"ALTER TABLE T ALTER COLUMN W INT64 NOT NULL", "change insert", ""},
		{"ALTER TABLE T ALTER COLUMN V STRING(20)", "change insert", ""},
		{"ALTER TABLE T ADD CONSTRAINT Positive CHECK (W)", "change insert", ""},
		{"ALTER TABLE R DROP CONSTRAINT RT", "change insert-R", ""},
		{"ALTER TABLE R ADD CONSTRAINT RO FOREIGN KEY (K) REFERENCES O (K)", "insert-R other", ""},
		{"ALTER TABLE C SET ON DELETE NO ACTION", "change change-C insert-C", ""},
		{"ALTER TABLE O RENAME TO P", "other", ""},
		{"DROP TABLE O", "other", ""},
		{"CREATE CHANGE STREAM S FOR O", "other", ""},
		{"CREATE CHANGE STREAM S FOR T()", "change insert", ""},
		{"CREATE CHANGE STREAM S FOR ALL", "change change-C insert insert-C insert-R other", ""},
		{"CREATE CHANGE STREAM S", "", ""},
		{"ALTER CHANGE STREAM OfR SET FOR O, R", "insert-R other", ""},
		{"ALTER CHANGE STREAM OfR SET OPTIONS (exclude_insert = true)", "insert-R", ""},
		{"ALTER CHANGE STREAM OfR DROP FOR ALL", "insert-R", ""},
		{"DROP CHANGE STREAM OfR", "insert-R", ""},
		{"ALTER TABLE T SET OPTIONS (columnar_policy = 'enabled')", "", ""},
		{"ALTER INDEX ByV SET OPTIONS (columnar_policy = 'enabled')", "", ""},
		{"ALTER TABLE T SET OPTIONS (locality_group = 'default')", "", ""},
		{"ALTER TABLE T ALTER COLUMN W SET OPTIONS (locality_group = 'default')", "", ""},
		{"ALTER INDEX ByV SET OPTIONS (locality_group = 'default')", "", ""},
		{"CREATE PLACEMENT P OPTIONS (instance_partition = 'p')", "", ""},
		{"ANALYZE", "", ""},
		{"ALTER DATABASE d SET OPTIONS (version_retention_period = '2h')", "", ""},
	} {
		t.Run(test.statement, func(t *testing.T) {
			c := NewCatalog()
			for _, s := range dependencyBase {
				c, _ = changed(t, c, s)
			}
			next, _ := changed(t, c, test.statement)
			begun, ch := changed(t, c, test.statement)
			if ch.Redefines() {
				begun = c.Expecting(ch)
			} else if ch.Fills() {
				begun = begun.Filling(ch)
			}
			if got := broken(dependents(c), begun); got != test.begun {
				t.Errorf("as it begins, it concerns %q, want %q", got, test.begun)
			}
			if begun.Table("O") == nil || begun.Table("T").Column("W") == nil || begun.Table("T").Index("ByV") == nil {
				return // the statement dropped or renamed an object that the function dependents needs
			}
			if got := broken(dependents(begun), next); got != test.complete {
				t.Errorf("as it completes, it concerns %q, want %q", got, test.complete)
			}
		})
	}
}

// TestPlacementDependencies checks which transactions a DROP PLACEMENT affects: only those that write rows with a
// placement key.
func TestPlacementDependencies(t *testing.T) {
	c := NewCatalog()
	for _, s := range []string{
		"CREATE PLACEMENT P OPTIONS (instance_partition = 'p')", "CREATE TABLE Plain (K INT64) PRIMARY KEY (K)",
		"CREATE TABLE Placed (K INT64, Place STRING(MAX) NOT NULL PLACEMENT KEY) PRIMARY KEY (K)",
	} {
		c, _ = changed(t, c, s)
	}
	next, _ := changed(t, c, "DROP PLACEMENT P")
	for name, holds := range map[string]bool{"Plain": true, "Placed": false} {
		table := c.Table(name)
		var writes, reads Dependencies
		writes.Write(c, table, false)
		reads.Read(table, nil, table.Columns)
		if writes.HoldIn(next) != holds || !reads.HoldIn(next) {
			t.Errorf("of %s, writes hold %v, reads %v", name, writes.HoldIn(next), reads.HoldIn(next))
		}
	}
}

// TestUniqueDependencies checks which transactions a new UNIQUE index affects. When it is filled, and before its
// entries are compared, it affects the transactions that wrote while it was being filled. When it becomes complete,
// it affects no transaction.
func TestUniqueDependencies(t *testing.T) {
	c := NewCatalog()
	for _, s := range dependencyBase {
		c, _ = changed(t, c, s)
	}
	next, ch := changed(t, c, "CREATE UNIQUE INDEX OnceW ON T(W)")
	filling, validating := next.Filling(ch), next.ValidatingUnique(ch)
	if got := broken(dependents(filling), validating); got != "change insert" {
		t.Errorf("before entries are compared, it concerns %q", got)
	}
	if got := broken(dependents(validating), next); got != "" {
		t.Errorf("as it completes, it concerns %q", got)
	}
}

func changed(t *testing.T, c *Catalog, statement string) (*Catalog, *Change) {
	t.Helper()
	next, ch, err := c.Apply(statement, wordCompiler{})
	if err != nil {
		t.Fatal(err)
	}
	return next, ch
}

// broken returns the names of the dependencies that do not hold in c.
func broken(all map[string]*Dependencies, c *Catalog) string {
	var names []string
	for _, name := range strings.Fields("by-index change change-C insert insert-C insert-R nothing other read-G read-V read-W") {
		if !all[name].HoldIn(c) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}

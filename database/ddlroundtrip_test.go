package database

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestDDLRoundTrips: what GetDatabaseDdl gives, run in an empty database, makes a database that gives the same. Schemas are random, of every kind of
// object, with names that are reserved words, differ from them in case, or stand in named schemas.
func TestDDLRoundTrips(t *testing.T) {
	succeeded := map[string]int{}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := &ddlGenerator{Rand: rand.New(rand.NewPCG(seed, 1)), apply: func(c *schema.Catalog, stmt string) (*schema.Catalog, error) {
				next, _, err := c.Apply(stmt, compiler{context.Background(), time.Now, sequence.New(nil)})
				return next, err
			}}
			g.catalog = emptyCatalog()
			for range 150 {
				kind, statement := g.statement()
				next, err := g.apply(g.catalog, statement)
				switch usererror.CodeOf(err) {
				case codes.OK:
					g.catalog = next
					succeeded[kind]++
				case codes.Internal:
					t.Fatalf("%s: %v", statement, err)
				}
				if g.IntN(50) == 0 {
					g.checkRoundTrip(t)
				}
			}
			g.checkRoundTrip(t)
		})
	}
	for _, k := range ddlKinds {
		if succeeded[k.name] == 0 {
			t.Errorf("no %s has succeeded", k.name)
		}
	}
}

func emptyCatalog() *schema.Catalog {
	c := schema.NewCatalog()
	c.Database = "round-trip"
	return c
}

// ddlGenerator makes random statements about a catalog.
type ddlGenerator struct {
	*rand.Rand
	catalog *schema.Catalog
	apply   func(c *schema.Catalog, stmt string) (*schema.Catalog, error)
}

// checkRoundTrip feeds what the catalog prints to an empty one, which prints the same.
func (g *ddlGenerator) checkRoundTrip(t *testing.T) {
	t.Helper()
	want := g.catalog.DDL()
	c := emptyCatalog()
	for _, stmt := range want {
		next, err := g.apply(c, stmt)
		if err != nil {
			t.Fatalf("printed:\n%s\n%v\nof:\n%s", stmt, err, strings.Join(want, ";\n"))
		}
		c = next
	}
	if got := c.DDL(); !slices.Equal(got, want) {
		t.Fatalf("printed:\n%s\n\nrun and printed again:\n%s", strings.Join(want, ";\n"), strings.Join(got, ";\n"))
	}
}

// ddlKinds are the kinds of statements. One that the catalog refuses changes nothing.
var ddlKinds = []struct {
	name string
	make func(*ddlGenerator) string
}{
	{"CREATE SCHEMA", func(g *ddlGenerator) string { return "CREATE SCHEMA " + g.name() }},
	{"CREATE TABLE", (*ddlGenerator).createTable},
	{"CREATE TABLE again", (*ddlGenerator).createTable},
	{"CREATE TABLE, a child", (*ddlGenerator).createChild},
	{"CREATE INDEX", (*ddlGenerator).createIndex},
	{"CREATE INDEX again", (*ddlGenerator).createIndex},
	{"ADD COLUMN", func(g *ddlGenerator) string { return g.alterTable("ADD COLUMN " + g.column(g.name())) }},
	{"DROP COLUMN", func(g *ddlGenerator) string { t := g.table(); return g.alter(t, "DROP COLUMN "+g.columnOf(t)) }},
	{"ALTER COLUMN", func(g *ddlGenerator) string {
		t := g.table()
		return g.alter(t, "ALTER COLUMN "+g.columnOf(t)+" "+g.columnType()+g.either(" NOT NULL", ""))
	}},
	{"SET DEFAULT", func(g *ddlGenerator) string {
		t := g.table()
		return g.alter(t, "ALTER COLUMN "+g.columnOf(t)+" "+g.either("SET DEFAULT (1)", `SET DEFAULT ("it's \n \\")`, "DROP DEFAULT"))
	}},
	{"ALTER COLUMN SET OPTIONS", func(g *ddlGenerator) string {
		t := g.table()
		return g.alter(t, "ALTER COLUMN "+g.columnOf(t)+" SET OPTIONS (allow_commit_timestamp = "+g.either("true", "null")+")")
	}},
	{"ADD CHECK", func(g *ddlGenerator) string {
		t := g.table()
		return g.alter(t, "ADD "+g.either("", "CONSTRAINT "+g.name()+" ")+"CHECK ("+g.columnOf(t)+" IS NOT NULL)")
	}},
	{"ADD FOREIGN KEY", func(g *ddlGenerator) string { return g.alterTable("ADD " + g.foreignKey(g.table())) }},
	{"DROP CONSTRAINT", func(g *ddlGenerator) string {
		t := g.table()
		if len(t.ForeignKeys) > 0 {
			return g.alter(t, "DROP CONSTRAINT "+quoted(t.ForeignKeys[0].Name))
		}
		if len(t.Checks) > 0 {
			return g.alter(t, "DROP CONSTRAINT "+quoted(t.Checks[0].Name))
		}
		return g.alter(t, "DROP CONSTRAINT "+g.name())
	}},
	{"ROW DELETION POLICY", func(g *ddlGenerator) string {
		t, column := g.table(), g.name()
		if at := slices.IndexFunc(t.Columns, func(c *schema.Column) bool { return c.Type.Kind == value.Timestamp }); at >= 0 {
			column = quoted(t.Columns[at].Name)
		}
		return g.alter(t, g.either("DROP ROW DELETION POLICY", "REPLACE ROW DELETION POLICY (OLDER_THAN("+column+", INTERVAL 7 DAY))", "ADD ROW DELETION POLICY (OLDER_THAN("+column+", INTERVAL 7 DAY))"))
	}},
	{"SET ON DELETE", func(g *ddlGenerator) string { return g.alterTable("SET ON DELETE " + g.either("CASCADE", "NO ACTION")) }},
	{"SET INTERLEAVE", func(g *ddlGenerator) string {
		t := g.table()
		if t.Parent == nil {
			return g.alter(t, "SET INTERLEAVE IN "+g.path(g.table()))
		}
		return g.alter(t, "SET INTERLEAVE IN "+g.either("", "PARENT ")+g.path(t.Parent))
	}},
	{"SET OPTIONS of a table", func(g *ddlGenerator) string {
		return g.alterTable("SET OPTIONS (columnar_policy = " + g.either("'enabled'", "'disabled'", "NULL") + ")")
	}},
	{"RENAME TO", func(g *ddlGenerator) string { return g.alterTable("RENAME TO " + g.name()) }},
	{"RENAME TABLE", func(g *ddlGenerator) string { return "RENAME TABLE " + g.path(g.table()) + " TO " + g.name() }},
	{"ALTER INDEX", func(g *ddlGenerator) string {
		t := g.table()
		return "ALTER INDEX " + g.index(t) + " " + g.either("ADD STORED COLUMN "+g.columnOf(t), "DROP STORED COLUMN "+g.columnOf(t), "SET OPTIONS (columnar_policy = 'enabled')")
	}},
	{"DROP INDEX", func(g *ddlGenerator) string { return "DROP INDEX " + g.index(g.table()) }},
	{"DROP TABLE", func(g *ddlGenerator) string { return "DROP TABLE " + g.path(g.table()) }},
	{"DROP SCHEMA", func(g *ddlGenerator) string { return "DROP SCHEMA " + g.name() }},
	{"CREATE CHANGE STREAM", (*ddlGenerator).createChangeStream},
	{"DROP CHANGE STREAM", func(g *ddlGenerator) string {
		if streams := g.catalog.Streams; len(streams) > 0 {
			return "DROP CHANGE STREAM " + quoted(streams[0].Name)
		}
		return "DROP CHANGE STREAM " + g.name()
	}},
	{"ALTER DATABASE", func(g *ddlGenerator) string {
		return "ALTER DATABASE `round-trip` SET OPTIONS (" + g.either(
			"version_retention_period = '3d', optimizer_version = 4", "version_retention_period = null", "columnar_policy = 'enabled'", "optimizer_version = null",
			"use_unenforced_foreign_key_for_query_optimization = false") + ")"
	}},
	{"CREATE LOCALITY GROUP", func(g *ddlGenerator) string {
		return "CREATE LOCALITY GROUP " + g.name() + g.either("", " OPTIONS (storage = 'hdd')", " OPTIONS (storage = 'ssd', ssd_to_hdd_spill_timespan = '10d')")
	}},
	{"ALTER LOCALITY GROUP", func(g *ddlGenerator) string { return "ALTER LOCALITY GROUP `default` SET OPTIONS (storage = 'ssd')" }},
}

func (g *ddlGenerator) statement() (kind, text string) {
	k := ddlKinds[g.IntN(len(ddlKinds))]
	return k.name, k.make(g)
}

func (g *ddlGenerator) either(list ...string) string { return list[g.IntN(len(list))] }

// name is a name for something new, or of something that is there already.
func (g *ddlGenerator) name() string {
	if g.IntN(3) > 0 {
		return fmt.Sprintf("N%d", g.IntN(100))
	}
	return quoted(g.either("Select", "order", "GROUP", "Table", "Index", "by", "interval", "CamelCase_9", "check", "primary", "Key", "All", "hash", "constraint", "Options",
		"Row", "parent", "column", "value", "END", "a", "synonym", "x_", strings.Repeat("Long", 32)))
}

func quoted(name string) string { return "`" + name + "`" }

// newPath is a name that may stand in a named schema.
func (g *ddlGenerator) newPath() string {
	if list := g.catalog.Schemas; len(list) > 0 && g.IntN(3) == 0 {
		return quoted(list[g.IntN(len(list))]) + "." + g.name()
	}
	return g.name()
}

// table is one of the catalog's, which gets one if there is none.
func (g *ddlGenerator) table() *schema.Table {
	list := slices.Collect(g.catalog.Tables())
	if len(list) == 0 {
		next, err := g.apply(g.catalog, "CREATE TABLE First (a INT64, b STRING(20), c TIMESTAMP) PRIMARY KEY (a)")
		if err != nil {
			panic(err)
		}
		g.catalog = next
		return g.table()
	}
	return list[g.IntN(len(list))]
}

func (g *ddlGenerator) path(t *schema.Table) string {
	if t.Schema == "" {
		return quoted(t.Name)
	}
	return quoted(t.Schema) + "." + quoted(t.Name)
}

func (g *ddlGenerator) alter(t *schema.Table, action string) string {
	return "ALTER TABLE " + g.path(t) + " " + action
}

func (g *ddlGenerator) alterTable(action string) string { return g.alter(g.table(), action) }

func (g *ddlGenerator) columnOf(t *schema.Table) string {
	return quoted(t.Columns[g.IntN(len(t.Columns))].Name)
}

func (g *ddlGenerator) index(t *schema.Table) string {
	if len(t.Indexes) == 0 {
		return g.name()
	}
	i := t.Indexes[g.IntN(len(t.Indexes))]
	if i.Schema == "" {
		return quoted(i.Name)
	}
	return quoted(i.Schema) + "." + quoted(i.Name)
}

func (g *ddlGenerator) columnType() string {
	return g.either("INT64", "INT64", "STRING(MAX)", "STRING(20)", "BYTES(0x10)", "BYTES(MAX)", "BOOL", "FLOAT64", "FLOAT32", "NUMERIC", "DATE", "TIMESTAMP", "TIMESTAMP", "JSON", "UUID",
		"ARRAY<STRING(7)>", "ARRAY<INT64>")
}

func (g *ddlGenerator) column(name string) string {
	return name + " " + g.columnType() + g.either("", "", "", " NOT NULL") + g.either("", "", "", " DEFAULT (1)", ` DEFAULT ("a'b")`, " DEFAULT (CURRENT_TIMESTAMP())", " AS (1 + 1) STORED",
		" AS (a)", " DEFAULT (PENDING_COMMIT_TIMESTAMP()) ON UPDATE (PENDING_COMMIT_TIMESTAMP())") + g.either("", "", " HIDDEN", " OPTIONS (allow_commit_timestamp = true)")
}

func (g *ddlGenerator) createTable() string {
	columns := []string{g.either("a INT64", "a INT64 NOT NULL", "a STRING(20)", "a UUID DEFAULT (NEW_UUID())"), "b INT64"}
	for range g.IntN(4) {
		columns = append(columns, g.column(g.name()))
	}
	if g.IntN(4) == 0 {
		columns = append(columns, g.foreignKey(g.table()))
	}
	if g.IntN(4) == 0 {
		columns = append(columns, "CHECK (b > 0)", "CONSTRAINT "+g.name()+" CHECK (b < 100)")
	}
	return "CREATE TABLE " + g.newPath() + " (" + strings.Join(columns, ", ") + ") PRIMARY KEY (" + g.either("a", "a DESC", "a, b", "") + ")" +
		g.either("", "", ", OPTIONS (columnar_policy = 'disabled')")
}

func (g *ddlGenerator) createChild() string {
	parent := g.table()
	var columns, key []string
	for _, p := range parent.Key {
		c := quoted(p.Column.Name) + " " + p.Column.TypeSQL()
		if p.Column.NotNull {
			c += " NOT NULL"
		}
		columns = append(columns, c)
		k := quoted(p.Column.Name)
		if p.Desc {
			k += " DESC"
		}
		key = append(key, k)
	}
	columns = append(columns, "own INT64", g.column(g.name()))
	return "CREATE TABLE " + g.newPath() + " (" + strings.Join(columns, ", ") + ") PRIMARY KEY (" + strings.Join(append(key, "own"), ", ") + "), INTERLEAVE IN " +
		g.either("PARENT ", "") + g.path(parent) + g.either("", " ON DELETE CASCADE")
}

// foreignKey is one from a column b or a to the key of a table, or to a column of it.
func (g *ddlGenerator) foreignKey(to *schema.Table) string {
	column := g.columnOf(to)
	if len(to.Key) > 0 && g.IntN(2) == 0 {
		column = quoted(to.Key[0].Column.Name)
	}
	return g.either("", "CONSTRAINT "+g.name()+" ") + "FOREIGN KEY (" + g.either("a", "b") + ") REFERENCES " + g.path(to) + " (" + column + ")" + g.either("", " ON DELETE CASCADE", " NOT ENFORCED")
}

func (g *ddlGenerator) createIndex() string {
	t := g.table()
	s := "CREATE " + g.either("", "UNIQUE ", "NULL_FILTERED ", "UNIQUE NULL_FILTERED ") + "INDEX "
	if t.Schema != "" {
		s += quoted(t.Schema) + "."
	}
	s += g.name() + " ON " + g.path(t) + " ("
	var key []string
	for range 1 + g.IntN(2) {
		key = append(key, g.columnOf(t)+g.either("", " DESC"))
	}
	s += strings.Join(key, ", ") + ")"
	if g.IntN(3) == 0 {
		s += " STORING (" + g.columnOf(t) + ")"
	}
	if g.IntN(4) == 0 {
		s += " WHERE " + g.columnOf(t) + " IS NOT NULL"
	}
	if t.Parent != nil && g.IntN(3) == 0 {
		s += ", INTERLEAVE IN " + g.path(t.Parent)
	}
	return s + g.either("", "", " OPTIONS (columnar_policy = 'enabled')")
}

func (g *ddlGenerator) createChangeStream() string {
	t := g.table()
	watched := g.either("", " FOR ALL", " FOR "+g.path(t), " FOR "+g.path(t)+"()", " FOR "+g.path(t)+"("+g.columnOf(t)+")")
	return "CREATE CHANGE STREAM " + g.name() + watched +
		g.either("", " OPTIONS (retention_period = '36h', value_capture_type = 'NEW_ROW')", " OPTIONS (exclude_ttl_deletes = true, exclude_insert = true)")
}

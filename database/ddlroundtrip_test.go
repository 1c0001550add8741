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
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/sequence"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestDDLRoundTrips checks that the DDL statements of a catalog, which GetDatabaseDdl returns, make the same catalog
// when they run on an empty one: the second catalog must have the same DDL statements. The schemas are random, with
// every kind of object. Some names are reserved words, differ from a reserved word only in case, or are in a named
// schema.
func TestDDLRoundTrips(t *testing.T) {
	succeeded := map[string]int{}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			g := newDDLGenerator(seed)
			for range 250 {
				kind, statement := g.statement()
				next, err := g.apply(g.catalog, statement, shopProtos)
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

// RandomDDL returns a random schema as GetDatabaseDdl prints it, of a database called round-trip. protos holds the
// descriptors of its proto bundle; nil if it has none.
func RandomDDL(seed uint64) (ddl []string, protos []byte) {
	g := newDDLGenerator(seed)
	for range 250 {
		_, statement := g.statement()
		if next, err := g.apply(g.catalog, statement, shopProtos); err == nil {
			g.catalog = next
		}
	}
	if g.catalog.ProtoBundle() != nil {
		protos = shopProtos
	}
	return g.catalog.DDL(), protos
}

func newDDLGenerator(seed uint64) *ddlGenerator {
	return &ddlGenerator{Rand: rand.New(rand.NewPCG(seed, 1)), catalog: emptyCatalog(), apply: func(c *schema.Catalog, stmt string, protos []byte) (*schema.Catalog, error) {
		next, _, err := c.Apply(stmt, prepare.NewCompiler(context.Background(), time.Now, sequence.New(nil)), protos)
		return next, err
	}}
}

// ddlGenerator makes random statements about a catalog.
type ddlGenerator struct {
	*rand.Rand
	catalog *schema.Catalog
	apply   func(c *schema.Catalog, stmt string, protos []byte) (*schema.Catalog, error)
}

// checkRoundTrip runs the DDL of the generator's catalog on an empty catalog, whose DDL must then be the same.
func (g *ddlGenerator) checkRoundTrip(t *testing.T) {
	t.Helper()
	want := g.catalog.DDL()
	var protos []byte
	if b := g.catalog.ProtoBundle(); b != nil {
		protos = b.Descriptors
	}
	c := emptyCatalog()
	for _, stmt := range want {
		next, err := g.apply(c, stmt, protos)
		if err != nil {
			t.Fatalf("printed:\n%s\n%v\nof:\n%s", stmt, err, strings.Join(want, ";\n"))
		}
		c = next
	}
	if got := c.DDL(); !slices.Equal(got, want) {
		t.Fatalf("printed:\n%s\n\nrun and printed again:\n%s", strings.Join(want, ";\n"), strings.Join(got, ";\n"))
	}
}

// ddlKinds are the kinds of statements, each with a function that makes a random one. A statement that the catalog
// refuses is skipped.
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
	{"DROP SCHEMA", func(g *ddlGenerator) string {
		return "DROP SCHEMA " + quoted(append([]string{"none"}, g.catalog.Schemas...)[len(g.catalog.Schemas)])
	}},
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
			"use_unenforced_foreign_key_for_query_optimization = false", "default_leader = 'europe-west1'", "read_lease_regions = 'a,b'") + ")"
	}},
	{"ALTER DATABASE for sequences", func(g *ddlGenerator) string {
		return "ALTER DATABASE `round-trip` SET OPTIONS (default_sequence_kind = 'bit_reversed_positive')"
	}},
	{"CREATE SEQUENCE", func(g *ddlGenerator) string {
		return "CREATE SEQUENCE " + g.newPath() + g.either(" BIT_REVERSED_POSITIVE", " BIT_REVERSED_POSITIVE SKIP RANGE 5, 500 START COUNTER WITH 7", "",
			" OPTIONS (sequence_kind = 'bit_reversed_positive')", " OPTIONS (sequence_kind = 'bit_reversed_positive', skip_range_min = 1, skip_range_max = 9, start_with_counter = 50)")
	}},
	{"ALTER SEQUENCE", func(g *ddlGenerator) string {
		return "ALTER SEQUENCE " + g.sequence() + g.either(" SKIP RANGE 1, 3", " NO SKIP RANGE", " RESTART COUNTER WITH 40", " SET OPTIONS (start_with_counter = 9)")
	}},
	{"DROP SEQUENCE", func(g *ddlGenerator) string { return "DROP SEQUENCE " + g.sequence() }},
	{"ADD COLUMN by a sequence", func(g *ddlGenerator) string {
		return g.alterTable("ADD COLUMN " + g.name() + " INT64 DEFAULT (GET_NEXT_SEQUENCE_VALUE(SEQUENCE " + g.sequence() + "))")
	}},
	{"CREATE TABLE with IDENTITY", func(g *ddlGenerator) string {
		return "CREATE TABLE " + g.newPath() + " (a INT64 " + g.either("GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE)", "AUTO_INCREMENT", "GENERATED BY DEFAULT AS IDENTITY",
			"NOT NULL GENERATED BY DEFAULT AS IDENTITY (BIT_REVERSED_POSITIVE SKIP RANGE 1, 1000 START COUNTER WITH 3)") + ", b INT64) PRIMARY KEY (a)"
	}},
	{"ALTER IDENTITY", func(g *ddlGenerator) string {
		return g.alterTable("ALTER COLUMN a ALTER IDENTITY " + g.either("SET SKIP RANGE 7, 8", "SET NO SKIP RANGE", "RESTART COUNTER WITH 99"))
	}},
	{"CREATE VIEW", func(g *ddlGenerator) string {
		t := g.table()
		return "CREATE " + g.either("", "OR REPLACE ") + "VIEW " + g.newPath() + " SQL SECURITY " + g.either("INVOKER", "DEFINER") + " AS SELECT t." + g.columnOf(t) + " AS v, 'it\\'s' AS w FROM " + g.path(t) + " AS t"
	}},
	{"CREATE VIEW of a view", func(g *ddlGenerator) string {
		return "CREATE VIEW " + g.newPath() + " SQL SECURITY INVOKER AS SELECT x.v AS v, COUNT(*) AS w FROM " + g.view() + " AS x GROUP BY x.v"
	}},
	{"DROP VIEW", func(g *ddlGenerator) string { return "DROP VIEW " + g.view() }},
	{"ADD SYNONYM", func(g *ddlGenerator) string { return g.alterTable("ADD SYNONYM " + g.name()) }},
	{"DROP SYNONYM", func(g *ddlGenerator) string {
		t := g.table()
		if t.Synonym == "" {
			return g.alter(t, "DROP SYNONYM "+g.name())
		}
		return g.alter(t, "DROP SYNONYM "+quoted(t.Synonym))
	}},
	{"RENAME TO, ADD SYNONYM", func(g *ddlGenerator) string {
		t := g.table()
		return g.alter(t, "RENAME TO "+g.name()+", ADD SYNONYM "+quoted(t.Name))
	}},
	{"CREATE PLACEMENT", func(g *ddlGenerator) string {
		return "CREATE PLACEMENT " + g.name() + " OPTIONS (instance_partition = 'p'" + g.either("", ", default_leader = 'us-east1'") + ")"
	}},
	{"PLACEMENT KEY", func(g *ddlGenerator) string {
		return "CREATE TABLE " + g.newPath() + " (a INT64, p STRING(MAX) NOT NULL PLACEMENT KEY) PRIMARY KEY (a)"
	}},
	{"locality_group", func(g *ddlGenerator) string {
		t, group := g.table(), g.either("'default'", "NULL")
		if list := g.catalog.LocalityGroups(); len(list) > 0 {
			group = "'" + list[g.IntN(len(list))].Name + "'"
		}
		return g.either(g.alter(t, "SET OPTIONS (locality_group = "+group+")"), g.alter(t, "ALTER COLUMN "+g.columnOf(t)+" SET OPTIONS (locality_group = "+group+")"),
			"ALTER INDEX "+g.index(t)+" SET OPTIONS (locality_group = "+group+")")
	}},
	{"CREATE ROLE", func(g *ddlGenerator) string { return "CREATE ROLE " + g.name() }},
	{"DROP ROLE", func(g *ddlGenerator) string { return "DROP ROLE " + g.role() }},
	{"GRANT on a table", func(g *ddlGenerator) string {
		t := g.table()
		return "GRANT " + g.either("SELECT", "SELECT, INSERT", "DELETE", "UPDATE ("+g.columnOf(t)+")", "SELECT ("+g.columnOf(t)+"), INSERT") + " ON TABLE " + g.path(t) + " TO ROLE " + g.role()
	}},
	{"GRANT on others", func(g *ddlGenerator) string {
		return "GRANT " + g.either("SELECT ON VIEW "+g.view(), "SELECT, UPDATE ON SEQUENCE "+g.sequence(), "ROLE "+g.role(), "USAGE ON SCHEMA DEFAULT", "SELECT ON ALL TABLES IN SCHEMA DEFAULT") + " TO ROLE " + g.role()
	}},
	{"REVOKE", func(g *ddlGenerator) string {
		return "REVOKE SELECT ON TABLE " + g.path(g.table()) + " FROM ROLE " + g.role()
	}},
	{"PROTO BUNDLE", func(g *ddlGenerator) string {
		return g.either("CREATE PROTO BUNDLE (shop.Item, shop.Kind)", "CREATE PROTO BUNDLE (shop.Item)", "ALTER PROTO BUNDLE INSERT (shop.Kind)", "ALTER PROTO BUNDLE DELETE (shop.Kind)", "DROP PROTO BUNDLE")
	}},
	{"ADD COLUMN of a proto", func(g *ddlGenerator) string {
		return g.alterTable("ADD COLUMN " + g.name() + " " + g.either("shop.Item", "`shop.Kind`", "ARRAY<shop.Item>"))
	}},
	{"vector_length", func(g *ddlGenerator) string {
		return g.alterTable("ADD COLUMN " + g.name() + " ARRAY<FLOAT32>(vector_length=>8)")
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

// name returns a random name, which an object may have already.
func (g *ddlGenerator) name() string {
	if g.IntN(3) > 0 {
		return fmt.Sprintf("N%d", g.IntN(100))
	}
	return quoted(g.either("Select", "order", "GROUP", "Table", "Index", "by", "interval", "CamelCase_9", "check", "primary", "Key", "All", "hash", "constraint", "Options",
		"Row", "parent", "column", "value", "END", "a", "synonym", "x_", strings.Repeat("Long", 32)))
}

func quoted(name string) string { return "`" + name + "`" }

// newPath returns a random name, in some cases with a named schema before it.
func (g *ddlGenerator) newPath() string {
	if list := g.catalog.Schemas; len(list) > 0 && g.IntN(3) == 0 {
		return quoted(list[g.IntN(len(list))]) + "." + g.name()
	}
	return g.name()
}

// table returns a random table of the catalog. If there is none, it creates one.
func (g *ddlGenerator) table() *schema.Table {
	list := slices.Collect(g.catalog.Tables())
	if len(list) == 0 {
		next, err := g.apply(g.catalog, "CREATE TABLE First (a INT64, b STRING(20), c TIMESTAMP) PRIMARY KEY (a)", nil)
		if err != nil {
			panic(err)
		}
		g.catalog = next
		return g.table()
	}
	return list[g.IntN(len(list))]
}

func (g *ddlGenerator) path(t *schema.Table) string { return g.inSchema(t.Schema, t.Name) }

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
	return g.inSchema(i.Schema, i.Name)
}

// sequence returns the name of a random sequence of the catalog, or a random name if there is none.
func (g *ddlGenerator) sequence() string {
	list := slices.Collect(g.catalog.Sequences())
	if len(list) == 0 {
		return g.name()
	}
	q := list[g.IntN(len(list))]
	return g.inSchema(q.Schema, q.Name)
}

func (g *ddlGenerator) view() string {
	list := g.catalog.Views()
	if len(list) == 0 {
		return g.name()
	}
	v := list[g.IntN(len(list))]
	return g.inSchema(v.Schema, v.Name)
}

func (g *ddlGenerator) role() string {
	list := g.catalog.RoleNames()
	return quoted(list[g.IntN(len(list))])
}

func (g *ddlGenerator) inSchema(schemaName, name string) string {
	if schemaName == "" {
		return quoted(name)
	}
	return quoted(schemaName) + "." + quoted(name)
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

// foreignKey returns a random foreign key clause. The referring column is called a or b. The parameter to is the
// referenced table.
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

// shopProtos are the descriptors of a message shop.Item and an enumeration shop.Kind.
var shopProtos = func() []byte {
	file := &descriptorpb.FileDescriptorProto{
		Name: proto.String("shop.proto"), Package: proto.String("shop"),
		MessageType: []*descriptorpb.DescriptorProto{{Name: proto.String("Item"), Field: []*descriptorpb.FieldDescriptorProto{{
			Name: proto.String("id"), Number: proto.Int32(1), Type: descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum(), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum(),
		}}}},
		EnumType: []*descriptorpb.EnumDescriptorProto{{Name: proto.String("Kind"), Value: []*descriptorpb.EnumValueDescriptorProto{{Name: proto.String("NONE"), Number: proto.Int32(0)}}}},
	}
	data, err := proto.Marshal(&descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{file}})
	if err != nil {
		panic(err)
	}
	return data
}()

// Package system makes the tables that describe a database to its users: INFORMATION_SCHEMA, and those tables of
// SPANNER_SYS that need no statistics.
//
// The tables have Spanner's columns and are sorted by their keys. Tables about objects that Crowfoot does not have
// (models, property graphs, ...) exist and are empty. A column that names a catalog, such as TABLE_CATALOG, always
// holds an empty string. The name of the default schema is an empty string, too.
//
// For each table that can have rows, the map contents has a function that calls builder.add for each row.
//
// Imports of this module: schema, value.
package system

import (
	"context"
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// The names of the built-in schemas.
const (
	InformationSchema = "INFORMATION_SCHEMA"
	SpannerSys        = "SPANNER_SYS"
)

// definitions are the system tables, without rows.
var definitions = append(define(InformationSchema, informationSchema), define(SpannerSys, spannerSys)...)

// contents has, for each table that has rows, the function that adds the rows to a builder.
var contents = map[string]func(b *builder){
	"INFORMATION_SCHEMA.CHANGE_STREAMS":            changeStreams,
	"INFORMATION_SCHEMA.CHANGE_STREAM_COLUMNS":     changeStreamColumns,
	"INFORMATION_SCHEMA.CHANGE_STREAM_OPTIONS":     changeStreamOptions,
	"INFORMATION_SCHEMA.CHANGE_STREAM_PRIVILEGES":  changeStreamPrivileges,
	"INFORMATION_SCHEMA.CHANGE_STREAM_TABLES":      changeStreamTables,
	"INFORMATION_SCHEMA.CHECK_CONSTRAINTS":         checkConstraints,
	"INFORMATION_SCHEMA.COLUMNS":                   columns,
	"INFORMATION_SCHEMA.COLUMN_COLUMN_USAGE":       columnColumnUsage,
	"INFORMATION_SCHEMA.COLUMN_OPTIONS":            columnOptions,
	"INFORMATION_SCHEMA.COLUMN_PRIVILEGES":         columnPrivileges,
	"INFORMATION_SCHEMA.CONSTRAINT_COLUMN_USAGE":   constraintColumnUsage,
	"INFORMATION_SCHEMA.CONSTRAINT_TABLE_USAGE":    constraintTableUsage,
	"INFORMATION_SCHEMA.DATABASE_OPTIONS":          databaseOptions,
	"INFORMATION_SCHEMA.INDEXES":                   indexes,
	"INFORMATION_SCHEMA.INDEX_COLUMNS":             indexColumns,
	"INFORMATION_SCHEMA.INDEX_OPTIONS":             indexOptions,
	"INFORMATION_SCHEMA.KEY_COLUMN_USAGE":          keyColumnUsage,
	"INFORMATION_SCHEMA.LOCALITY_GROUP_OPTIONS":    localityGroupOptions,
	"INFORMATION_SCHEMA.PARAMETERS":                parameters,
	"INFORMATION_SCHEMA.PLACEMENTS":                placements,
	"INFORMATION_SCHEMA.PLACEMENT_OPTIONS":         placementOptions,
	"INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS":   referentialConstraints,
	"INFORMATION_SCHEMA.ROLES":                     roles,
	"INFORMATION_SCHEMA.ROLE_CHANGE_STREAM_GRANTS": changeStreamPrivileges,
	"INFORMATION_SCHEMA.ROLE_COLUMN_GRANTS":        roleColumnGrants,
	"INFORMATION_SCHEMA.ROLE_GRANTEES":             roleGrantees,
	"INFORMATION_SCHEMA.ROLE_ROUTINE_GRANTS":       roleRoutineGrants,
	"INFORMATION_SCHEMA.ROLE_TABLE_GRANTS":         roleTableGrants,
	"INFORMATION_SCHEMA.ROUTINES":                  routines,
	"INFORMATION_SCHEMA.ROUTINE_PRIVILEGES":        routinePrivileges,
	"INFORMATION_SCHEMA.SCHEMATA":                  schemata,
	"INFORMATION_SCHEMA.SEQUENCES":                 sequences,
	"INFORMATION_SCHEMA.SEQUENCE_OPTIONS":          sequenceOptions,
	"INFORMATION_SCHEMA.SPANNER_STATISTICS":        statisticsPackages,
	"INFORMATION_SCHEMA.TABLES":                    tables,
	"INFORMATION_SCHEMA.TABLE_CONSTRAINTS":         tableConstraints,
	"INFORMATION_SCHEMA.TABLE_OPTIONS":             tableOptions,
	"INFORMATION_SCHEMA.TABLE_PRIVILEGES":          tablePrivileges,
	"INFORMATION_SCHEMA.TABLE_SYNONYMS":            tableSynonyms,
	"INFORMATION_SCHEMA.VIEWS":                     views,
	"SPANNER_SYS.SUPPORTED_OPTIMIZER_VERSIONS":     optimizerVersions,
}

// Tables returns the system tables for the catalog c. Their rows describe the objects of c and the system tables. The
// parameter more lists system tables that other packages make; the rows describe these, too. If the schema change that
// has made c still back-fills or validates rows, underWay returns that change; otherwise it returns nil.
func Tables(c *schema.Catalog, underWay func() *schema.Change, more ...*schema.Table) []*schema.Table {
	builtIn := slices.Concat(definitions, more)
	list := make([]*schema.Table, len(definitions))
	for i, d := range definitions {
		t := *d
		fill := contents[t.FullName()]
		t.Rows = func(ctx context.Context, want map[string]map[string]bool) ([][]value.Value, error) {
			if fill == nil {
				return nil, nil
			}
			b := &builder{table: d, catalog: c, builtIn: builtIn, want: want, access: accessOf(ctx)}
			if ch := underWay(); ch != nil {
				b.validations = ch.Validations
			}
			fill(b)
			b.sort()
			return b.rows, nil
		}
		list[i] = &t
	}
	return list
}

// builder collects the rows of one table.
type builder struct {
	table       *schema.Table
	catalog     *schema.Catalog
	validations []schema.Validation // the validations of the schema change under way
	builtIn     []*schema.Table
	want        map[string]map[string]bool // by column: the values that the reading query asks for (schema.Table.Rows)
	access      *schema.Access             // the access of the role that reads the table; nil if it sees all rows
	rows        [][]value.Value
}

// add appends a row if the query that reads the table may select the row, and the role that runs the query may see the
// row. A cell is a string, an int, a bool, a value.Value, or nil for NULL.
func (b *builder) add(cells ...any) {
	if len(b.want) > 0 && !b.wants(cells) || !b.sees(cells) {
		return
	}
	row := make([]value.Value, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case string:
			row[i] = value.OfString(c)
		case int:
			row[i] = value.OfInt64(int64(c))
		case bool:
			row[i] = value.OfBool(c)
		case value.Value:
			row[i] = c
		default:
			row[i] = value.Null(b.table.Columns[i].Type.Kind)
		}
	}
	b.rows = append(b.rows, row)
}

// wants reports whether the query that reads b.table may select a row with these cells. It may if the row has, in each
// column that b.want restricts, one of the values that b.want permits there.
func (b *builder) wants(cells []any) bool {
	for i, c := range cells {
		values, some := b.want[b.table.Columns[i].Name]
		if text, _ := c.(string); some && (c == nil || !values[text]) {
			return false
		}
	}
	return true
}

func (b *builder) wantsValue(column, text string) bool {
	values, some := b.want[column]
	return !some || values[text]
}

// sort puts the rows in the order of the table's key.
func (b *builder) sort() {
	slices.SortStableFunc(b.rows, func(x, y []value.Value) int {
		for _, p := range b.table.Key {
			if c := value.Compare(x[p.Column.Ordinal], y[p.Column.Ordinal], p.Column.Type); c != 0 {
				return c
			}
		}
		return 0
	})
}

// tables returns all tables, of users and built-in, about which the query that reads b.table may select rows. b.table
// must have the columns TABLE_SCHEMA and TABLE_NAME, and may have INDEX_NAME. If the query asks only for certain
// names (b.want), tables looks up these names, so that the time of a query for one table does not grow with the
// number of tables.
func (b *builder) tables() []*schema.Table {
	if names, some := b.want["TABLE_NAME"]; some {
		return b.named("TABLE_SCHEMA", names)
	}
	if names, some := b.want["INDEX_NAME"]; some && !names[primaryKey] {
		return b.withIndexes("TABLE_SCHEMA", names)
	}
	return b.all("TABLE_SCHEMA")
}

// all returns all tables in the schemas that the query on b.table asks for (b.want), or the tables of all schemas if
// the query does not restrict them. schemaColumn is the name of the column of b.table that holds the schema.
func (b *builder) all(schemaColumn string) []*schema.Table {
	list := slices.AppendSeq(slices.Collect(b.catalog.Tables()), slices.Values(b.builtIn))
	if _, some := b.want[schemaColumn]; !some {
		return list
	}
	return slices.DeleteFunc(list, func(t *schema.Table) bool { return !b.wantsValue(schemaColumn, t.Schema) })
}

// named returns the tables that have one of the names. If the query on b.table asks only for certain schemas (b.want),
// the tables are in these schemas. schemaColumn is the name of the column of b.table that holds the schema.
func (b *builder) named(schemaColumn string, names map[string]bool) []*schema.Table {
	var list []*schema.Table
	for _, s := range b.schemas(schemaColumn) {
		for name := range names {
			if t := b.catalog.Table(path(s, name)); t != nil && t.Schema == s && t.Name == name {
				list = append(list, t)
			}
		}
	}
	for _, t := range b.builtIn {
		if names[t.Name] && b.wantsValue(schemaColumn, t.Schema) {
			list = append(list, t)
		}
	}
	return list
}

// withIndexes returns the tables of users that have an index with one of the names. If the query on b.table asks only
// for certain schemas (b.want), the indexes are in these schemas. schemaColumn is the name of the column of b.table
// that holds the schema.
func (b *builder) withIndexes(schemaColumn string, names map[string]bool) []*schema.Table {
	var list []*schema.Table
	for _, s := range b.schemas(schemaColumn) {
		for name := range names {
			if i := b.catalog.Index(path(s, name)); i != nil && i.Name == name && !slices.Contains(list, i.Table) {
				list = append(list, i.Table)
			}
		}
	}
	return list
}

// schemas returns the schemas of users. If the query on b.table restricts the given column to certain schemas (b.want),
// schemas returns only those.
func (b *builder) schemas(column string) []string {
	list := append([]string{""}, b.catalog.Schemas...)
	return slices.DeleteFunc(list, func(s string) bool { return !b.wantsValue(column, s) })
}

// path returns the name by which the catalog finds an object in a schema.
func path(schemaName, name string) string {
	if schemaName == "" {
		return name
	}
	return schemaName + "." + name
}

// builtIn reports whether a table belongs to a built-in schema.
func builtIn(t *schema.Table) bool { return t.Schema == InformationSchema || t.Schema == SpannerSys }

// yesNo returns YES or NO, as the SQL standard writes a boolean.
func yesNo(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// orNull returns s if the parameter have is true. Otherwise it returns nil, which means NULL.
func orNull(have bool, s string) any {
	if have {
		return s
	}
	return nil
}

// Package system makes the tables that describe a database to its users:
// INFORMATION_SCHEMA, and those of SPANNER_SYS that need no statistics.
//
// Tables have Spanner's columns and are sorted by their keys. Those about
// objects that Crowfoot does not have (views, roles, models,
// ...) are there and empty. Catalog columns are always empty strings; the
// default schema is called ”.
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

// definitions are the tables without their rows.
var definitions = append(define(InformationSchema, informationSchema), define(SpannerSys, spannerSys)...)

// contents are the rows of the tables that have any.
var contents = map[string]func(b *builder){
	"INFORMATION_SCHEMA.CHANGE_STREAMS":          changeStreams,
	"INFORMATION_SCHEMA.CHANGE_STREAM_COLUMNS":   changeStreamColumns,
	"INFORMATION_SCHEMA.CHANGE_STREAM_OPTIONS":   changeStreamOptions,
	"INFORMATION_SCHEMA.CHANGE_STREAM_TABLES":    changeStreamTables,
	"INFORMATION_SCHEMA.CHECK_CONSTRAINTS":       checkConstraints,
	"INFORMATION_SCHEMA.COLUMNS":                 columns,
	"INFORMATION_SCHEMA.COLUMN_COLUMN_USAGE":     columnColumnUsage,
	"INFORMATION_SCHEMA.COLUMN_OPTIONS":          columnOptions,
	"INFORMATION_SCHEMA.CONSTRAINT_COLUMN_USAGE": constraintColumnUsage,
	"INFORMATION_SCHEMA.CONSTRAINT_TABLE_USAGE":  constraintTableUsage,
	"INFORMATION_SCHEMA.DATABASE_OPTIONS":        databaseOptions,
	"INFORMATION_SCHEMA.INDEXES":                 indexes,
	"INFORMATION_SCHEMA.INDEX_COLUMNS":           indexColumns,
	"INFORMATION_SCHEMA.KEY_COLUMN_USAGE":        keyColumnUsage,
	"INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS": referentialConstraints,
	"INFORMATION_SCHEMA.ROUTINES":                routines,
	"INFORMATION_SCHEMA.SCHEMATA":                schemata,
	"INFORMATION_SCHEMA.TABLES":                  tables,
	"INFORMATION_SCHEMA.TABLE_CONSTRAINTS":       tableConstraints,
	"SPANNER_SYS.SUPPORTED_OPTIMIZER_VERSIONS":   optimizerVersions,
}

// Tables returns the system tables; their rows describe a catalog, and themselves, and more system tables made elsewhere.
func Tables(c *schema.Catalog, more ...*schema.Table) []*schema.Table {
	builtIn := slices.Concat(definitions, more)
	list := make([]*schema.Table, len(definitions))
	for i, d := range definitions {
		t := *d
		fill := contents[t.FullName()]
		t.Rows = func(_ context.Context, want map[string]map[string]bool) ([][]value.Value, error) {
			if fill == nil {
				return nil, nil
			}
			b := &builder{catalog: c, builtIn: builtIn, want: want}
			fill(b)
			b.sort(d)
			return b.rows, nil
		}
		list[i] = &t
	}
	return list
}

// builder collects the rows of one table.
type builder struct {
	catalog *schema.Catalog
	builtIn []*schema.Table
	want    map[string]map[string]bool // see schema.Table.Rows
	rows    [][]value.Value
}

// add appends a row of strings, ints, bools, values as they are, and nil for NULL.
func (b *builder) add(cells ...any) {
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
		}
	}
	b.rows = append(b.rows, row)
}

// sort puts the rows in the order of the table's key and gives every NULL its column's kind.
func (b *builder) sort(t *schema.Table) {
	for _, row := range b.rows {
		for i := range row {
			if row[i].IsNull() {
				row[i] = value.Null(t.Columns[i].Type.Kind)
			}
		}
	}
	slices.SortStableFunc(b.rows, func(x, y []value.Value) int {
		for _, p := range t.Key {
			if c := value.Compare(x[p.Column.Ordinal], y[p.Column.Ordinal], p.Column.Type); c != 0 {
				return c
			}
		}
		return 0
	})
}

// all are the tables of users and the built-in tables.
func (b *builder) all() []*schema.Table {
	return slices.AppendSeq(slices.Collect(b.catalog.Tables()), slices.Values(b.builtIn))
}

// wanted are those of all whose rows are wanted, in a system table that has a TABLE_SCHEMA and a TABLE_NAME.
func (b *builder) wanted() []*schema.Table {
	return slices.DeleteFunc(b.all(), func(t *schema.Table) bool { return !b.wants(t) })
}

func (b *builder) wants(t *schema.Table) bool {
	schemas, ok := b.want["TABLE_SCHEMA"]
	if ok && !schemas[t.Schema] {
		return false
	}
	names, ok := b.want["TABLE_NAME"]
	return !ok || names[t.Name]
}

// builtIn says whether a table belongs to a built-in schema.
func builtIn(t *schema.Table) bool { return t.Schema == InformationSchema || t.Schema == SpannerSys }

// yesNo is how the standard spells a boolean.
func yesNo(b bool) string {
	if b {
		return "YES"
	}
	return "NO"
}

// orNull is s if have is set, and otherwise nil, for NULL.
func orNull(have bool, s string) any {
	if have {
		return s
	}
	return nil
}

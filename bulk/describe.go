package bulk

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"
	"github.com/apache/arrow-go/v18/arrow"

	"github.com/crowfoot-db/crowfoot/arrowtype"
)

// TableInfo describes a table of a database.
type TableInfo struct {
	Name    string // SCHEMA.TABLE for a table in a named schema
	Parent  string // the table of the clause INTERLEAVE IN PARENT, or "" without this clause
	Columns []ColumnInfo
	Key     []string // columns of the primary key, in order
}

// ColumnInfo is a column of a table.
type ColumnInfo struct {
	Name      string
	DDL       string // its type, such as STRING(25)
	Type      *spannerpb.Type
	MaxLength int // the n of STRING(n) or BYTES(n), also of the elements of an array; 0 for MAX and other types
	Nullable  bool
	Generated bool // the database computes its values, so they cannot be written
	Indexes   int  // how many indexes have the column; each of them counts towards a commit's limit of mutations
}

// Column returns the column with the given name. Case does not matter.
func (t *TableInfo) Column(name string) (ColumnInfo, bool) {
	for _, c := range t.Columns {
		if strings.EqualFold(c.Name, name) {
			return c, true
		}
	}
	return ColumnInfo{}, false
}

// Definition returns the columns with their types, and the key, as lines of text. The columns decide which values the
// table accepts, and the key decides under which keys it stores its rows.
func (t *TableInfo) Definition() (lines []string) {
	for _, c := range t.Columns {
		line := c.Name + " " + c.DDL
		if !c.Nullable {
			line += " NOT NULL"
		}
		if c.Generated {
			line += " AS (...)"
		}
		lines = append(lines, line)
	}
	return append(lines, "PRIMARY KEY ("+strings.Join(t.Key, ", ")+")")
}

// Change describes how a later definition of the table differs from this one, or returns "" if both are equal.
func (t *TableInfo) Change(later *TableInfo) string {
	return DefinitionChange(t.Definition(), later.Definition())
}

// DefinitionChange describes how a table's definition has changed, or returns "" if it has not. Its two parameters are
// results of TableInfo.Definition: first the earlier definition, then the present one.
func DefinitionChange(was, is []string) string {
	var changes []string
	for _, line := range was {
		if !slices.Contains(is, line) {
			changes = append(changes, "it had "+line)
		}
	}
	for _, line := range is {
		if !slices.Contains(was, line) {
			changes = append(changes, "it has "+line)
		}
	}
	if len(changes) == 0 && !slices.Equal(was, is) {
		changes = []string{"its columns have another order"}
	}
	return strings.Join(changes, ", ")
}

// Select returns the columns with the given names. If names is empty, it returns all columns that can be written.
func (t *TableInfo) Select(names []string) (selected []ColumnInfo, err error) {
	for _, name := range names {
		c, ok := t.Column(name)
		if !ok {
			return nil, fmt.Errorf("table %s has no column %s", t.Name, name)
		}
		selected = append(selected, c)
	}
	if len(names) == 0 {
		for _, c := range t.Columns {
			if !c.Generated {
				selected = append(selected, c)
			}
		}
	}
	return selected, nil
}

// Schema returns the Arrow schema of the columns that can be written.
func (t *TableInfo) Schema(timestamps arrowtype.Timestamps) (*arrow.Schema, error) {
	columns, err := t.Select(nil)
	if err != nil {
		return nil, err
	}
	fields := make([]arrow.Field, len(columns))
	for i, c := range columns {
		if fields[i], err = arrowtype.Field(c.Name, c.Type, c.DDL, c.Nullable, timestamps); err != nil {
			return nil, err
		}
	}
	return arrow.NewSchema(fields, nil), nil
}

// Describe reads the description of a table from the database. name is the table's name or synonym; case does not
// matter.
func Describe(ctx context.Context, client *spanner.Client, name string) (*TableInfo, error) {
	tables, err := describe(ctx, client, name)
	if err != nil {
		return nil, err
	}
	if len(tables) > 0 {
		return tables[0], nil
	}
	kind, err := text(ctx, client, kindQuery, name)
	switch {
	case err != nil:
		return nil, err
	case kind == "SYNONYM":
		table, err := text(ctx, client, synonymQuery, name)
		if err != nil {
			return nil, err
		}
		return Describe(ctx, client, table)
	case kind == "VIEW":
		return nil, fmt.Errorf("%s is a view: its rows are those of a query of it", name)
	}
	return nil, fmt.Errorf("the database has no table %s", name)
}

// text runs a query with the parameter @name. It returns the value of the last row, or "" if there are no rows.
func text(ctx context.Context, client *spanner.Client, query, name string) (value string, err error) {
	err = client.Single().Query(ctx, spanner.Statement{SQL: query, Params: map[string]any{"name": name}}).Do(func(row *spanner.Row) error { return row.Columns(&value) })
	return value, err
}

// DescribeAll reads the descriptions of all tables. Each table comes after its parent.
func DescribeAll(ctx context.Context, client *spanner.Client) ([]*TableInfo, error) {
	tables, err := describe(ctx, client, "")
	if err != nil {
		return nil, err
	}
	return parentsFirst(tables), nil
}

func parentsFirst(tables []*TableInfo) (sorted []*TableInfo) {
	byParent := map[string][]*TableInfo{}
	for _, t := range tables {
		byParent[strings.ToLower(t.Parent)] = append(byParent[strings.ToLower(t.Parent)], t)
	}
	var add func(parent string)
	add = func(parent string) {
		for _, t := range byParent[parent] {
			sorted = append(sorted, t)
			add(strings.ToLower(t.Name))
		}
	}
	add("")
	return sorted
}

const (
	columnsQuery = `SELECT c.TABLE_SCHEMA, c.TABLE_NAME, IFNULL(t.PARENT_TABLE_NAME, ''), IFNULL(t.INTERLEAVE_TYPE, ''), c.COLUMN_NAME, c.SPANNER_TYPE,
  c.IS_NULLABLE = 'YES', c.IS_GENERATED = 'ALWAYS',
  (SELECT COUNT(*) FROM INFORMATION_SCHEMA.INDEX_COLUMNS i WHERE i.TABLE_SCHEMA = c.TABLE_SCHEMA AND i.TABLE_NAME = c.TABLE_NAME
    AND i.COLUMN_NAME = c.COLUMN_NAME AND i.INDEX_TYPE != 'PRIMARY_KEY')
FROM INFORMATION_SCHEMA.COLUMNS c
JOIN INFORMATION_SCHEMA.TABLES t ON t.TABLE_SCHEMA = c.TABLE_SCHEMA AND t.TABLE_NAME = c.TABLE_NAME AND t.TABLE_TYPE = 'BASE TABLE'
WHERE c.TABLE_CATALOG = '' AND c.TABLE_SCHEMA NOT IN ('INFORMATION_SCHEMA', 'SPANNER_SYS') AND (@name = '' OR
  LOWER(IF(c.TABLE_SCHEMA = '', c.TABLE_NAME, CONCAT(c.TABLE_SCHEMA, '.', c.TABLE_NAME))) = LOWER(@name))
ORDER BY c.TABLE_SCHEMA, c.TABLE_NAME, c.ORDINAL_POSITION`
	keysQuery = `SELECT i.TABLE_SCHEMA, i.TABLE_NAME, i.COLUMN_NAME FROM INFORMATION_SCHEMA.INDEX_COLUMNS i
WHERE i.INDEX_TYPE = 'PRIMARY_KEY' AND i.TABLE_SCHEMA NOT IN ('INFORMATION_SCHEMA', 'SPANNER_SYS')
ORDER BY i.TABLE_SCHEMA, i.TABLE_NAME, i.ORDINAL_POSITION`
	kindQuery = `SELECT t.TABLE_TYPE FROM INFORMATION_SCHEMA.TABLES t
WHERE t.TABLE_CATALOG = '' AND LOWER(IF(t.TABLE_SCHEMA = '', t.TABLE_NAME, CONCAT(t.TABLE_SCHEMA, '.', t.TABLE_NAME))) = LOWER(@name)`
	synonymQuery = `SELECT IF(s.TABLE_SCHEMA = '', s.TABLE_NAME, CONCAT(s.TABLE_SCHEMA, '.', s.TABLE_NAME)) FROM INFORMATION_SCHEMA.TABLE_SYNONYMS s
WHERE LOWER(IF(s.SYNONYM_SCHEMA = '', s.SYNONYM_TABLE_NAME, CONCAT(s.SYNONYM_SCHEMA, '.', s.SYNONYM_TABLE_NAME))) = LOWER(@name)`
)

// describe reads the description of one table, or of all tables if name is "".
func describe(ctx context.Context, client *spanner.Client, name string) (tables []*TableInfo, err error) {
	ro := client.ReadOnlyTransaction()
	defer ro.Close()
	byName := map[string]*TableInfo{}
	columns := spanner.Statement{SQL: columnsQuery, Params: map[string]any{"name": name}}
	err = ro.Query(ctx, columns).Do(func(row *spanner.Row) error {
		var schema, table, parent, interleave string
		var c ColumnInfo
		var indexes int64
		if err := row.Columns(&schema, &table, &parent, &interleave, &c.Name, &c.DDL, &c.Nullable, &c.Generated, &indexes); err != nil {
			return err
		}
		full := qualified(schema, table)
		t := byName[full]
		if t == nil {
			t = &TableInfo{Name: full}
			if parent != "" && interleave != "IN" {
				t.Parent = qualified(schema, parent)
			}
			byName[full] = t
			tables = append(tables, t)
		}
		c.Indexes = int(indexes)
		var err error
		if c.Type, c.MaxLength, err = arrowtype.ParseDDL(c.DDL); err != nil {
			return fmt.Errorf("table %s, column %s: %w", full, c.Name, err)
		}
		t.Columns = append(t.Columns, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return tables, ro.Query(ctx, spanner.NewStatement(keysQuery)).Do(func(row *spanner.Row) error {
		var schema, table, column string
		if err := row.Columns(&schema, &table, &column); err != nil {
			return err
		}
		if t := byName[qualified(schema, table)]; t != nil {
			t.Key = append(t.Key, column)
		}
		return nil
	})
}

func qualified(schema, name string) string {
	if schema == "" {
		return name
	}
	return schema + "." + name
}

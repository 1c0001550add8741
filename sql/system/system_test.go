package system

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/cockroachdb/datadriven"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// wordCompiler stands in for SQL: a word that is a column's name reads that column.
type wordCompiler struct{}

func (wordCompiler) CompileExpr(t *schema.Table, sql string, want *value.Type) (*schema.Expr, error) {
	e := &schema.Expr{SQL: sql, Eval: func([]value.Value) (value.Value, error) { return value.Null(want.Kind), nil }}
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
	for _, w := range strings.FieldsFunc(sql, func(r rune) bool { return !isWord(r) }) {
		if c := t.Column(w); c != nil {
			e.Uses = append(e.Uses, c)
		}
	}
	return e, nil
}

// TestGolden runs the scripts in testdata: apply runs DDL, users and built-in
// print the rows of tables about objects of users and about built-in ones, columns prints the columns of all tables.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		c := schema.NewCatalog()
		c.Database = "db"
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "apply":
				for _, stmt := range strings.Split(d.Input, "\n\n") {
					next, _, err := c.Apply(stmt, wordCompiler{})
					if err != nil {
						t.Fatal(err)
					}
					c = next
				}
				return ""
			case "columns":
				return columnsText(Tables(c))
			case "users":
				return rowsText(t, Tables(c), d.Input, false)
			case "built-in":
				return rowsText(t, Tables(c), d.Input, true)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

func columnsText(tables []*schema.Table) string {
	var b strings.Builder
	count := 0
	for _, t := range tables {
		fmt.Fprintf(&b, "%s(", t.FullName())
		for i, c := range t.Columns {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(c.Name + " " + c.TypeSQL())
			if c.NotNull {
				b.WriteString("!")
			}
			if c.KeyOrdinal >= 0 {
				b.WriteString("*")
			}
			count++
		}
		b.WriteString(")\n")
	}
	fmt.Fprintf(&b, "%d tables, %d columns\n", len(tables), count)
	return b.String()
}

// rowsText prints the rows of the named tables that are about built-in objects, or those that are not.
func rowsText(t *testing.T, tables []*schema.Table, names string, builtIn bool) string {
	var b strings.Builder
	for _, name := range strings.Fields(names) {
		for _, table := range tables {
			if table.Name != name {
				continue
			}
			fmt.Fprintf(&b, "%s\n", name)
			for _, row := range checkedRows(t, table) {
				text := rowText(row)
				if about := strings.Contains(text, InformationSchema) || strings.Contains(text, SpannerSys); about == builtIn {
					b.WriteString("  " + text + "\n")
				}
			}
		}
	}
	return b.String()
}

func rowText(row []value.Value) string {
	var cells []string
	for _, v := range row {
		switch {
		case v.IsNull():
			cells = append(cells, "NULL")
		case v.Kind() == value.Bool:
			cells = append(cells, fmt.Sprint(v.AsBool()))
		case v.Kind() == value.Int64:
			cells = append(cells, fmt.Sprint(v.AsInt64()))
		case v.Kind() == value.Date:
			cells = append(cells, string(value.AppendDate(nil, v.AsDate())))
		default:
			cells = append(cells, "'"+v.AsString()+"'")
		}
	}
	return strings.Join(cells, " ")
}

// checkedRows are a table's rows, which fit its columns and stand in the order of its key, none twice.
func checkedRows(t *testing.T, table *schema.Table) [][]value.Value {
	t.Helper()
	rows := rowsOf(t, table, nil)
	for r, row := range rows {
		if len(row) != len(table.Columns) {
			t.Fatalf("%s: %d values for %d columns: %s", table.Name, len(row), len(table.Columns), rowText(row))
		}
		for i, c := range table.Columns {
			if row[i].Kind() != c.Type.Kind || row[i].IsNull() && c.NotNull {
				t.Fatalf("%s: %s is of kind %v: %s", table.Name, c.Name, row[i].Kind(), rowText(row))
			}
		}
		if r > 0 && len(table.Key) > 0 && compareKeys(table, rows[r-1], row) >= 0 {
			t.Fatalf("%s: %s does not come after %s", table.Name, rowText(row), rowText(rows[r-1]))
		}
	}
	return rows
}

func rowsOf(t *testing.T, table *schema.Table, want map[string]map[string]bool) [][]value.Value {
	t.Helper()
	rows, err := table.Rows(context.Background(), want)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func compareKeys(table *schema.Table, a, b []value.Value) int {
	for _, p := range table.Key {
		if c := value.Compare(a[p.Column.Ordinal], b[p.Column.Ordinal], p.Column.Type); c != 0 {
			return c
		}
	}
	return 0
}

// TestAllRows checks the rows of every table, of an empty database too.
func TestAllRows(t *testing.T) {
	for _, table := range Tables(schema.NewCatalog()) {
		checkedRows(t, table)
	}
	known := 0
	for _, table := range definitions {
		if contents[table.FullName()] != nil {
			known++
		}
	}
	if known != len(contents) {
		t.Errorf("%d contents, but only %d of their tables are defined", len(contents), known)
	}
}

// TestWanted asks every table that has a TABLE_SCHEMA and a TABLE_NAME for the rows of one table: it gives those, and no others.
func TestWanted(t *testing.T) {
	c := schema.NewCatalog()
	for _, stmt := range []string{
		"CREATE SCHEMA s",
		"CREATE TABLE T (k INT64 NOT NULL, v INT64, g INT64 AS (v) STORED, CHECK (v > 0)) PRIMARY KEY (k)",
		"CREATE TABLE U (k INT64, t TIMESTAMP OPTIONS (allow_commit_timestamp = true), FOREIGN KEY (k) REFERENCES T (v)) PRIMARY KEY (k)",
		"CREATE TABLE s.T (k INT64, FOREIGN KEY (k) REFERENCES T (k)) PRIMARY KEY (k)",
		"CREATE INDEX s.I ON s.T(k)",
	} {
		var err error
		if c, _, err = c.Apply(stmt, wordCompiler{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range Tables(c) {
		of, name := table.Column("TABLE_SCHEMA"), table.Column("TABLE_NAME")
		if of == nil || name == nil {
			continue
		}
		all := rowsOf(t, table, nil)
		for _, pair := range [][2]string{{"", "T"}, {"s", "T"}, {"", "U"}, {InformationSchema, "TABLES"}, {"s", "U"}, {"", ""}} {
			var want []string
			for _, row := range all {
				if row[of.Ordinal].AsString() == pair[0] && row[name.Ordinal].AsString() == pair[1] {
					want = append(want, rowText(row))
				}
			}
			var got []string
			for _, row := range rowsOf(t, table, map[string]map[string]bool{"TABLE_SCHEMA": {pair[0]: true}, "TABLE_NAME": {pair[1]: true}, "COLUMN_NAME": {"other": true}}) {
				got = append(got, rowText(row))
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s of %q:\n%s\nwant:\n%s", table.Name, pair, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}

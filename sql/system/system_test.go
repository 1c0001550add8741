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

// wordCompiler takes the place of the SQL compiler. It does not parse an expression: an expression reads each column
// whose name is a word of the text.
type wordCompiler struct{ schema.Compiler }

func (wordCompiler) CompileExpr(_ *schema.Catalog, t *schema.Table, sql string, want *value.Type) (*schema.Expr, error) {
	e := &schema.Expr{SQL: sql, Eval: func([]value.Value) (value.Value, error) { return value.Null(want.Kind), nil }}
	isWord := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
	for _, w := range strings.FieldsFunc(sql, func(r rune) bool { return !isWord(r) }) {
		if c := t.Column(w); c != nil {
			e.Uses = append(e.Uses, c)
		}
	}
	return e, nil
}

// atRest returns nil: no schema change is under way.
func atRest() *schema.Change { return nil }

func (wordCompiler) NextValue(string, *schema.Generator) func([]value.Value) (value.Value, error) {
	return nil
}

// TestGolden checks the rows of the system tables: the scripts in testdata say which rows they must have. Directives:
//
//   - apply runs DDL.
//   - users prints those rows of the named tables that are about objects of users.
//   - built-in prints those rows of the named tables that are about built-in objects.
//   - columns prints the columns of all tables.
//   - filling, expecting and validating are the stages of a schema change. They take a DDL statement and, after a blank
//     line, names of tables. They print the rows that are new in these tables while the change is at that stage.
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
			case "filling", "expecting", "validating":
				return underWayText(t, c, d.Cmd, d.Input)
			case "columns":
				return columnsText(Tables(c, atRest))
			case "users":
				return rowsText(t, Tables(c, atRest), d.Input, false)
			case "built-in":
				return rowsText(t, Tables(c, atRest), d.Input, true)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

// underWayText returns the rows that system tables have only while a schema change is at the given stage. input holds
// the DDL statement of that change and, after a blank line, the names of the tables.
func underWayText(t *testing.T, c *schema.Catalog, stage, input string) string {
	statement, names, _ := strings.Cut(input, "\n\n")
	next, change, err := c.Apply(statement, wordCompiler{})
	if err != nil {
		t.Fatal(err)
	}
	serving := next
	switch stage {
	case "filling":
		serving = next.Filling(change)
	case "expecting":
		serving = c.Expecting(change)
	}
	before := strings.Split(rowsText(t, Tables(c, atRest), names, false), "\n")
	var out strings.Builder
	for _, line := range strings.SplitAfter(rowsText(t, Tables(serving, func() *schema.Change { return change }), names, false), "\n") {
		if !strings.HasPrefix(line, " ") || !slices.Contains(before, strings.TrimSuffix(line, "\n")) {
			out.WriteString(line)
		}
	}
	return out.String()
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

// rowsText prints rows of the named tables. If the parameter builtIn is true, it prints the rows about built-in
// objects; otherwise it prints the rows about objects of users.
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

// checkedRows returns a table's rows. It checks that they fit the table's columns, are sorted by its key, and have no
// duplicates.
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

// TestAllRows calls checkedRows for every table of an empty database. It also checks that each function in the map
// contents belongs to a defined table.
func TestAllRows(t *testing.T) {
	for _, table := range Tables(schema.NewCatalog(), atRest) {
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

// TestWanted checks that every table returns exactly the rows that a query asks for. The test asks for rows with
// certain values in one or two of the table's columns.
func TestWanted(t *testing.T) {
	c := schema.NewCatalog()
	for _, stmt := range []string{
		"CREATE SCHEMA s",
		"CREATE TABLE T (k INT64 NOT NULL, v INT64, g INT64 AS (v) STORED, CHECK (v > 0)) PRIMARY KEY (k)",
		"CREATE TABLE U_V (k INT64 NOT NULL, t TIMESTAMP OPTIONS (allow_commit_timestamp = true), FOREIGN KEY (k) REFERENCES T (v)) PRIMARY KEY (k)",
		"CREATE TABLE s.T (k INT64 NOT NULL, CONSTRAINT kept FOREIGN KEY (k) REFERENCES T (k)) PRIMARY KEY (k)",
		"CREATE INDEX s.I ON s.T(k)", "CREATE INDEX I ON T(v)", "CREATE CHANGE STREAM C FOR T(v), s.T",
		"CREATE PLACEMENT P OPTIONS (instance_partition = 'p')",
		"CREATE TABLE s.W (k INT64 NOT NULL, p STRING(MAX) NOT NULL PLACEMENT KEY) PRIMARY KEY (k)",
	} {
		var err error
		if c, _, err = c.Apply(stmt, wordCompiler{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, table := range Tables(c, atRest) {
		all := rowsOf(t, table, nil)
		for _, a := range table.Columns {
			for _, b := range table.Columns[:a.Ordinal+1] {
				for _, row := range some(all) {
					compareWanted(t, table, all, map[string]map[string]bool{a.Name: {textOf(row[a.Ordinal]): true, "none": true}, b.Name: {textOf(row[b.Ordinal]): true}})
				}
			}
		}
		for _, a := range table.Columns {
			compareWanted(t, table, all, map[string]map[string]bool{a.Name: {"none": true, "t": true, "": true}})
		}
		if name := table.Column("CONSTRAINT_NAME"); name != nil {
			for _, row := range all {
				compareWanted(t, table, all, map[string]map[string]bool{name.Name: {textOf(row[name.Ordinal]): true}})
			}
		}
	}
}

// some returns a few of many rows, with more from the beginning than from the end.
func some(rows [][]value.Value) (list [][]value.Value) {
	for i := 0; i < len(rows); i += 1 + i/2 {
		list = append(list, rows[i])
	}
	return list
}

// textOf returns the text of a STRING, "" for another value.
func textOf(v value.Value) string {
	if v.Kind() != value.String || v.IsNull() {
		return ""
	}
	return v.AsString()
}

func compareWanted(t *testing.T, table *schema.Table, all [][]value.Value, want map[string]map[string]bool) {
	t.Helper()
	for name := range want {
		if table.Column(name).Type.Kind != value.String {
			return
		}
	}
	var expected, got []string
	for _, row := range all {
		if !slices.ContainsFunc(table.Columns, func(c *schema.Column) bool {
			values, some := want[c.Name]
			return some && (row[c.Ordinal].IsNull() || !values[row[c.Ordinal].AsString()])
		}) {
			expected = append(expected, rowText(row))
		}
	}
	for _, row := range rowsOf(t, table, want) {
		got = append(got, rowText(row))
	}
	if !slices.Equal(got, expected) {
		t.Errorf("%s where %v:\n%s\nwant:\n%s", table.Name, want, strings.Join(got, "\n"), strings.Join(expected, "\n"))
	}
}

package analyze

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/schema"
)

// TestNamesIn: namesIn finds the tables, sequences and change streams that a text may name, in any spelling, and no
// others.
func TestNamesIn(t *testing.T) {
	c := schema.NewCatalog()
	for _, ddl := range []string{
		"CREATE SCHEMA s", "CREATE TABLE Singers (K INT64) PRIMARY KEY (K)", "CREATE TABLE s.Singers (K INT64) PRIMARY KEY (K)",
		"CREATE TABLE s.Albums (K INT64) PRIMARY KEY (K)", "CREATE TABLE Other (K INT64) PRIMARY KEY (K)",
		"CREATE CHANGE STREAM Everything FOR ALL",
		"CREATE SEQUENCE q BIT_REVERSED_POSITIVE", "CREATE SEQUENCE s.q BIT_REVERSED_POSITIVE",
	} {
		next, _, err := c.Apply(ddl, nil)
		if err != nil {
			t.Fatal(err)
		}
		c = next
	}
	a := New(c, nil, &schema.Table{Schema: "INFORMATION_SCHEMA", Name: "TABLES"})
	for sql, want := range map[string]string{
		"SELECT 1":                                    "",
		"SELECT 'Singers', \"Other\" -- Singers":      "",
		"SELECT * FROM singers":                       "Singers",
		"SELECT * FROM `SINGERS`":                     "Singers",
		"SELECT * FROM s.singers":                     "Singers s.Singers",
		"SELECT * FROM s . /* x */ `albums` AS o":     "s.Albums",
		"SELECT * FROM `s`.`Albums`, Other":           "Other s.Albums",
		"SELECT * FROM information_schema.tables":     "INFORMATION_SCHEMA.TABLES",
		"SELECT * FROM `S\\x69ngers`":                 "Singers",
		"SELECT * FROM read_everything()":             "READ_Everything",
		"SELECT * FROM `READ_Everything` ()":          "READ_Everything",
		"SELECT 'READ_Everything' FROM READ_, READ_E": "",
		"SELECT * FROM s.`\\101l\\U00000062ums`":      "s.Albums",
		"SELECT f(SEQUENCE s.Q)":                      "q s.q",
		"SELECT f(SEQUENCE `q`)":                      "q",
	} {
		var got []string
		found := a.namesIn(sql)
		for _, table := range found.tables {
			got = append(got, table.FullName())
		}
		for _, sequence := range found.sequences {
			got = append(got, sequence.FullName())
		}
		for _, stream := range found.streams {
			got = append(got, "READ_"+stream.Name)
		}
		slices.Sort(got)
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%s: %q, want %q", sql, text, want)
		}
	}
}

// TestLibraryHasNamedTables: a library gets only the tables that statements name, and an engine keeps the libraries
// of at most maxLibraries schema versions.
func TestLibraryHasNamedTables(t *testing.T) {
	c := schema.NewCatalog()
	for i := range 200 {
		next, _, err := c.Apply(fmt.Sprintf("CREATE TABLE Table%d (K INT64) PRIMARY KEY (K)", i), nil)
		if err != nil {
			t.Fatal(err)
		}
		c = next
	}
	for range 2 * maxLibraries {
		a := New(c, nil)
		for _, sql := range []string{"SELECT K FROM Table7", "SELECT t.K FROM table8 t JOIN TABLE7 USING (K)", "SELECT K FROM `Tabl\\x659`"} {
			if _, _, err := a.Statement(t.Context(), sql, nil, Options{}); err != nil {
				t.Fatal(err)
			}
			err := a.with(t.Context(), 1, sql, func(l *library) {
				if len(l.tables) > 3 {
					t.Errorf("%s: the library has %d tables", sql, len(l.tables))
				}
				if len(l.engine.libraries) > maxLibraries {
					t.Errorf("the library has %d versions", len(l.engine.libraries))
				}
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		_, _, err := a.Statement(t.Context(), "SELECT K FROM Tabel7", nil, Options{})
		if err == nil || !strings.Contains(err.Error(), "Did you mean Table") {
			t.Errorf("got %v", err)
		}
	}
}

// TestUnquoted checks that unquoted reads names in back quotes as GoogleSQL does.
func TestUnquoted(t *testing.T) {
	for token, want := range map[string]string{
		"Singers": "Singers", "`Singers`": "Singers", "`S": "S", "`": "", "``": "",
		"`\\x53\\X69\\u006eg\\U00000065\\162s`": "Singers",
		"`a\\`\\?\\n`":                          "a`?\n",
		"`a\\q`":                                "a\\q", "`a\\x5": "a\\x5", "`a\\": "a\\", "`\\89a`": "\\89a",
	} {
		if got := unquoted(token); got != want {
			t.Errorf("%s: %q, want %q", token, got, want)
		}
	}
}

// BenchmarkTablesLike searches 5,000 tables whose names all resemble the name that is looked for.
func BenchmarkTablesLike(b *testing.B) {
	var tables []*schema.Table
	long := strings.Repeat("x", schema.MaxNameLength-4)
	for i := range 5_000 {
		tables = append(tables, &schema.Table{Name: fmt.Sprintf("%s%04d", long, i)})
	}
	a := New(schema.NewCatalog(), nil, tables...)
	for b.Loop() {
		if got := a.tablesLike(long + "word"); len(got) != suggestible {
			b.Errorf("%d tables", len(got))
		}
	}
}

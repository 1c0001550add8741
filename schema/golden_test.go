package schema

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// TestGolden runs the scripts in testdata/ddl and checks that each directive prints what its script says. These are the
// directives:
//
//	new                   start with an empty catalog
//	apply                 apply the statements, which blank lines separate; print the Change or the error of each one
//	protos                read files as a FileDescriptorSet in text format, from which later statements take types
//	ddl                   print the catalog as DDL
//	stored                print the catalog as Marshal encodes it
//	columnar              print the tables and indexes that have a columnar copy
//	watchers              print the change streams that watch each table, and the columns that they watch
//
// After every successful statement, the test checks the invariants of the new catalog. If the statement fills new
// columns or indexes, or checks existing rows, the test also checks the invariants of the catalog that serves requests
// meanwhile. The old catalog must not change.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/ddl", func(t *testing.T, path string) {
		c := NewCatalog()
		c.Database = "db"
		var protos []byte
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				c = NewCatalog()
				c.Database = "db"
				return ""
			case "apply":
				var out strings.Builder
				for _, stmt := range strings.Split(d.Input, "\n\n") {
					c = applyGolden(t, c, stmt, &out, protos)
				}
				return out.String()
			case "protos":
				protos = descriptorsOf(t, d.Input)
				return ""
			case "ddl":
				return strings.Join(c.DDL(), ";\n") + "\n"
			case "stored":
				lines := strings.ReplaceAll(string(stored(t, c)), `{"id"`, "\n  {\"id\"")
				return strings.ReplaceAll(lines, "\n\n", "\n")
			case "columnar":
				return columnarText(c)
			case "watchers":
				return watchersText(c)
			}
			t.Fatalf("unknown command %s", d.Cmd)
			return ""
		})
	})
}

func applyGolden(t *testing.T, c *Catalog, stmt string, out *strings.Builder, protos []byte) *Catalog {
	before := stored(t, c)
	next, change, err := c.Apply(stmt, wordCompiler{}, protos)
	if !bytes.Equal(before, stored(t, c)) {
		t.Fatalf("%s: changed the catalog it was applied to", stmt)
	}
	if err != nil {
		var user *usererror.Error
		if !errors.As(err, &user) {
			t.Fatalf("%s: %v is not meant for users", stmt, err)
		}
		fmt.Fprintf(out, "%s: %s\n", user.Code, user.Text())
		return c
	}
	out.WriteString(changeText(change))
	checkInvariants(t, next)
	checkRoundTrips(t, next)
	checkUnderWay(t, c, stmt, protos)
	checkFollows(t, c, next)
	return next
}

// stored encodes the whole catalog, as Marshal does for the first version of a database. The result has one line for
// the catalog and one for each table or object.
func stored(t *testing.T, c *Catalog) []byte {
	t.Helper()
	e := encoded(t, nil, c)
	out := append(e.Catalog, '\n')
	for _, id := range slices.Sorted(maps.Keys(e.Objects)) {
		out = append(append(out, e.Objects[id]...), '\n')
	}
	return out
}

func encoded(t *testing.T, before, c *Catalog) *Encoding {
	t.Helper()
	e, err := c.Marshal(before)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// watchersText prints a line for each pair of a table and a change stream that watches it.
func watchersText(c *Catalog) string {
	var out strings.Builder
	for t := range c.Tables() {
		for _, w := range c.Watchers(t) {
			names := ""
			for _, col := range w.Columns {
				names += " " + col.Name
			}
			fmt.Fprintf(&out, "%s by %s:%s\n", t.FullName(), w.Stream.Name, names)
		}
	}
	return out.String()
}

// changeText prints a Change in one line.
func changeText(c *Change) string {
	if c.Nothing {
		return "nothing\n"
	}
	kinds := [...]string{"not null", "length", "vector length", "utf8", "commit timestamp", "check", "parents", "foreign key", "placement", "unique", "enum", "computed"}
	s := "ok"
	for _, b := range c.Columns {
		s += ", fill column " + b.Table.FullName() + "." + b.Column.Name
	}
	for _, i := range c.Indexes {
		s += fmt.Sprintf(", fill index %s #%d", i.FullName(), i.ID)
	}
	for _, v := range c.Validations {
		s += ", validate " + kinds[v.Kind] + " of " + v.Table.FullName()
		switch {
		case v.Column != nil:
			s += "." + v.Column.Name + " (was " + v.Old.TypeSQL() + ")"
		case v.Placed != nil:
			s += "." + v.Placed.Name
		case v.Check != nil:
			s += "." + v.Check.Name
		case v.ForeignKey != nil:
			s += "." + v.ForeignKey.Name
		}
	}
	for _, t := range c.DroppedTables {
		s += fmt.Sprintf(", drop rows of %s #%d", t.FullName(), t.ID)
	}
	for _, i := range c.DroppedIndexes {
		s += fmt.Sprintf(", drop entries of %s #%d", i.FullName(), i.ID)
	}
	return s + "\n"
}

func columnarText(c *Catalog) string {
	var out strings.Builder
	for t := range c.Tables() {
		if c.TableIsColumnar(t) {
			fmt.Fprintln(&out, t.FullName())
		}
		for _, i := range t.Indexes {
			if c.IndexIsColumnar(i) {
				fmt.Fprintln(&out, t.FullName(), "index", i.FullName())
			}
		}
	}
	return out.String()
}

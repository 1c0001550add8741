package system

import (
	"maps"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
)

func changeStreams(b *builder) {
	for _, s := range b.catalog.Streams {
		b.add("", "", s.Name, s.All)
	}
}

// changeStreamTables adds a row for each table that a change stream names. It adds no row for a table that a stream
// watches only because the stream watches the whole database.
func changeStreamTables(b *builder) {
	for _, s := range b.catalog.Streams {
		for _, w := range s.Tables {
			t := b.catalog.TableByID(w.Table)
			b.add("", "", s.Name, "", t.Schema, t.Name, w.Whole)
		}
	}
}

// changeStreamColumns adds a row for each column that a change stream names. It adds no row for a column that a stream
// watches only because the stream watches the whole table.
func changeStreamColumns(b *builder) {
	for _, s := range b.catalog.Streams {
		for _, w := range s.Tables {
			t := b.catalog.TableByID(w.Table)
			for _, c := range t.Columns {
				if slices.Contains(w.Columns, c.ID) {
					b.add("", "", s.Name, "", t.Schema, t.Name, c.Name)
				}
			}
		}
	}
}

func changeStreamOptions(b *builder) {
	for _, s := range b.catalog.Streams {
		for _, name := range slices.Sorted(maps.Keys(s.Options)) {
			typ, text := schema.ChangeStreamOptionType(name), s.Options[name]
			if typ == "BOOL" {
				text = strings.ToUpper(text)
			}
			b.add("", "", s.Name, name, typ, text)
		}
	}
}

// routines adds a row for each function that reads a change stream, and for each user-defined function.
func routines(b *builder) {
	for _, s := range b.catalog.Streams {
		name := readFunction(s)
		b.add("", "", name, "", "", name, "FUNCTION", "", "EXTERNAL", "", "INVOKER", nil)
	}
	for _, f := range b.catalog.Functions() {
		result := f.Result.TypeSQL()
		b.add("", f.Schema, f.Name, "", f.Schema, f.Name, "FUNCTION", result, "SQL", f.SQL, "INVOKER", result)
	}
}

// readParameters are the names and types of the parameters of a function that reads a change stream, in order.
var readParameters = [][2]string{
	{"start_timestamp", "TIMESTAMP"}, {"end_timestamp", "TIMESTAMP"}, {"partition_token", "STRING(MAX)"},
	{"heartbeat_milliseconds", "INT64"}, {"read_options", "ARRAY<STRING(MAX)>"},
}

func parameters(b *builder) {
	for _, s := range b.catalog.Streams {
		for i, p := range readParameters {
			b.add("", "", readFunction(s), i+1, p[0], p[1], nil, p[1])
		}
	}
	for _, f := range b.catalog.Functions() {
		for i := range f.Params {
			p := &f.Params[i]
			b.add("", f.Schema, f.Name, i+1, p.Name, p.TypeSQL(), orNull(f.Defaults[i] != "", f.Defaults[i]), p.TypeSQL())
		}
	}
}

func readFunction(s *schema.ChangeStream) string { return "READ_" + s.Name }

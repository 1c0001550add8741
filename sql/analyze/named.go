package analyze

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
)

// suggestible is the maximum number of tables that the library gets as candidates for "Did you mean ...?" when it has
// not found a table.
const suggestible = 20

// A schema may have 5,000 tables. Each table costs the library some 30 us, and some kilobytes of memory for each of its
// columns. So the library gets a table or change stream only when the first SQL text that contains its name is
// analyzed.

// table returns the table with this name ("t" or "schema.t") or synonym; nil if there is none. System tables are
// found too.
func (a *Analyzer) table(name string) *schema.Table {
	if t := a.catalog.TableOrSynonym(name); t != nil {
		return t
	}
	return a.system[strings.ToLower(name)]
}

// named holds the objects that a text may name. They are found by name alone, so the text perhaps does not use all of
// them: a word that is the name of a table may be a column or an alias in the text.
type named struct {
	tables    []*schema.Table
	views     []*schema.View
	functions []*schema.Function
	streams   []*schema.ChangeStream // change streams whose read functions the text may call

	sequences []*schema.Sequence
	types     []string // names of types of the proto bundle
}

// namesIn returns the objects of the schema whose names occur in a text: tables, views, functions, sequences and
// types of the proto bundle. It also returns the change streams whose read functions the text may call.
func (a *Analyzer) namesIn(sql string) (found named) {
	bundle := a.catalog.ProtoBundle()
	eachName(sql, func(before, token, path string) {
		a.find(token, &found)
		if before != "" {
			a.find(before+"."+token, &found)
		}
		if s := a.streamOf(token); s != nil {
			found.streams = append(found.streams, s)
		}
		if bundle.Type(path) != nil {
			found.types = append(found.types, path)
		}
	})
	return found
}

// typesIn returns the names of a bundle's types that occur in a text.
func typesIn(sql string, bundle *schema.ProtoBundle) (types []string) {
	eachName(sql, func(_, _, path string) {
		if bundle.Type(path) != nil {
			types = append(types, path)
		}
	})
	return types
}

// eachName calls f for each name in a text. If a dot and another name precede the name, the argument before is that
// other name; otherwise it is "". The argument path is the whole path of names and dots that ends with the name. For c
// in a.b.c, for example, before is b and path is a.b.c.
func eachName(sql string, f func(before, name, path string)) {
	s := scanner{sql: sql}
	// The variable last holds the last token if that is a name or a dot. If it is a dot, the variable before holds the
	// name in front of the dot.
	before, last, path := "", "", ""
	for s.next() {
		token := s.token
		switch c := token[0]; {
		case token == ".":
			before, last = last, token
			continue
		case c == '`':
			token = unquoted(token)
		case !isWord(c) || c >= '0' && c <= '9':
			last = ""
			continue
		}
		if last == "." && before != "" {
			path += "." + token
		} else {
			before, path = "", token
		}
		f(before, token, path)
		last = token
	}
}

// find adds to found the tables, views and other objects called name.
func (a *Analyzer) find(name string, found *named) {
	if t := a.table(name); t != nil {
		found.tables = append(found.tables, t)
	} else if v := a.catalog.View(name); v != nil && !slices.Contains(found.views, v) {
		found.views = append(found.views, v)
	} else if s := a.catalog.Sequence(name); s != nil {
		found.sequences = append(found.sequences, s)
	} else if f := a.catalog.Function(name); f != nil && !slices.Contains(found.functions, f) {
		found.functions = append(found.functions, f)
	}
}

func (a *Analyzer) allTables() (list []*schema.Table) {
	for t := range a.catalog.Tables() {
		list = append(list, t)
	}
	for _, t := range a.system {
		list = append(list, t)
	}
	return list
}

// tablesLike returns up to suggestible tables whose names are similar to name, the most similar first. It is for a name
// that no table has: the user may have meant one of these tables.
func (a *Analyzer) tablesLike(name string) []*schema.Table {
	type candidate struct {
		table    *schema.Table
		distance int
	}
	var list []candidate
	for _, t := range a.allTables() {
		if d, near := nearness(name, t.FullName()); near {
			list = append(list, candidate{t, d})
		}
	}
	slices.SortFunc(list, func(s, t candidate) int {
		return cmp.Or(cmp.Compare(s.distance, t.distance), cmp.Compare(s.table.FullName(), t.table.FullName()))
	})
	var tables []*schema.Table
	for _, c := range list[:min(len(list), suggestible)] {
		tables = append(tables, c.table)
	}
	return tables
}

// tableNotFound matches the library's error for a name that no table has.
var tableNotFound = regexp.MustCompile("^Table not found: ([^; ]+)")

// suggest adds to l the tables whose names resemble the one that the library has not found, so that the library's
// error can suggest one of them. It returns whether it has added any.
func (l *library) suggest(err error) bool {
	m := tableNotFound.FindStringSubmatch(err.Error())
	if m == nil || l.of == nil || len(m[1]) > 2*schema.MaxNameLength {
		return false
	}
	return l.add(l.like(m[1]))
}

// like calls tablesLike. It leaves the engine meanwhile, so that other goroutines can enter their engines.
func (l *library) like(name string) []*schema.Table {
	l.engine.leave()
	defer l.engine.enter()
	return l.of.tablesLike(name)
}

// add adds those of the given tables that the library does not have yet. It returns whether it has added any.
func (l *library) add(tables []*schema.Table) (added bool) {
	for _, t := range tables {
		if !l.has[t] {
			l.addTable(t)
			l.has[t], added = true, true
			l.engine.rest()
		}
	}
	return added
}

// addNamed adds the objects that a text may name.
func (l *library) addNamed(n named) {
	l.addTypes(n.types)
	l.add(n.tables)
	l.addStreams(n.streams)
	l.addSequences(n.sequences)
	for _, v := range n.views {
		if !l.viewed[v] {
			l.addView(v)
			l.viewed[v] = true
			l.engine.rest()
		}
	}
	l.addFunctions(n.functions)
}

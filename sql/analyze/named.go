package analyze

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
)

// suggestible is how many tables the library chooses from when it suggests one for a name that it has not found.
const suggestible = 20

// The library is given the tables and change streams whose names stand in a text, when the first such text comes: a schema may have 5,000 tables, each of which takes
// the library some 30 us and some kilobytes for each of its columns.

// table is the table called name ("t" or "schema.t"), or with this synonym, one of the system's among them, or nil.
func (a *Analyzer) table(name string) *schema.Table {
	if t := a.catalog.TableOrSynonym(name); t != nil {
		return t
	}
	return a.system[strings.ToLower(name)]
}

// named is what a text may name: what stands there as a table may be a column or an alias.
type named struct {
	tables    []*schema.Table
	views     []*schema.View
	functions []*schema.Function
	streams   []*schema.ChangeStream // whose functions it calls

	sequences []*schema.Sequence
	types     []string // of the proto bundle
}

// namesIn are the tables and views whose names stand in a text, the change streams whose functions do, and the types of the proto bundle.
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

// typesIn are the names of types of a bundle that stand in a text.
func typesIn(sql string, bundle *schema.ProtoBundle) (types []string) {
	eachName(sql, func(_, _, path string) {
		if bundle.Type(path) != nil {
			types = append(types, path)
		}
	})
	return types
}

// eachName calls f for each name in a text: with the name before the dot before it, "" if there is none, and with the path of names and dots that it ends.
func eachName(sql string, f func(before, name, path string)) {
	s := scanner{sql: sql}
	before, last, path := "", "", "" // last is a name, or the dot behind before
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

// find adds what is called name.
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

// tablesLike are the tables that a user may have meant by a name which no table has, the nearest of them.
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

// tableNotFound is how the library refuses a name that no table has.
var tableNotFound = regexp.MustCompile("^Table not found: ([^; ]+)")

// suggest has the library know the tables whose names are like one that it has not found, so that its error can suggest one. It says
// whether there are any.
func (l *library) suggest(err error) bool {
	m := tableNotFound.FindStringSubmatch(err.Error())
	if m == nil || l.of == nil || len(m[1]) > 2*schema.MaxNameLength {
		return false
	}
	return l.add(l.like(m[1]))
}

// like is tablesLike, while others use their handles.
func (l *library) like(name string) []*schema.Table {
	l.engine.leave()
	defer l.engine.enter()
	return l.of.tablesLike(name)
}

// add adds tables that the library does not have yet, and says whether there are any.
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

// addNamed adds what a text names.
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

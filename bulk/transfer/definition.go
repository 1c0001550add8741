package transfer

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"
)

// parseDDL parses a statement, where memefish cannot with a change to the text that leaves its places as they are: memefish wants OPTIONS in CREATE
// SEQUENCE, and the options are not the statement's own if it has none, and knows no tables of named schemas in CREATE CHANGE STREAM.
func parseDDL(text string) (ast.DDL, error) {
	statement, err := memefish.ParseDDL("", text)
	switch {
	case err == nil:
	case strings.HasPrefix(text, "CREATE SEQUENCE"):
		if s, again := memefish.ParseDDL("", text+" OPTIONS (none = NULL)"); again == nil {
			s.(*ast.CreateSequence).Options = nil
			return s, nil
		}
	case strings.HasPrefix(text, "CREATE CHANGE STREAM"):
		if s, again := memefish.ParseDDL("", withoutPaths(text)); again == nil {
			return s, nil
		}
	}
	return statement, err
}

// withoutPaths has one name of as many characters in the place of each a.b.
func withoutPaths(text string) string {
	lexer := &memefish.Lexer{File: &token.File{Buffer: text}}
	var before, dot token.Token
	var edits []edit
	for lexer.NextToken() == nil && lexer.Token.Kind != token.TokenEOF {
		if t := lexer.Token; t.Kind == token.TokenIdent && dot.Kind == "." && before.Kind == token.TokenIdent {
			edits = append(edits, edit{before.Pos, t.End, strings.Repeat("x", int(t.End-before.Pos))})
		}
		before, dot = dot, lexer.Token
	}
	return apply(text, edits)
}

func pathName(p *ast.Path) string {
	var names []string
	for _, i := range p.Idents {
		names = append(names, i.Name)
	}
	return strings.Join(names, ".")
}

// quoteName quotes a name, which may be that of a named schema's object.
func quoteName(name string) string { return "`" + strings.ReplaceAll(name, ".", "`.`") + "`" }

// edit puts a text in the place of a part of a statement.
type edit struct {
	from, to token.Pos
	text     string
}

func apply(text string, edits []edit) string {
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(b.from, a.from) })
	for _, e := range edits {
		text = text[:e.from] + e.text + text[e.to:]
	}
	return text
}

// withoutForeignKeys takes the foreign keys out of a CREATE TABLE. later are the statements that add them.
func withoutForeignKeys(text string) (table string, later []string) {
	statement, err := parseDDL(text)
	s, ok := statement.(*ast.CreateTable)
	if err != nil || !ok {
		return text, nil
	}
	var edits []edit
	for _, c := range s.TableConstraints {
		if _, ok := c.Constraint.(*ast.ForeignKey); !ok {
			continue
		}
		from, end := c.Pos(), c.End()
		later = append(later, "ALTER TABLE "+quoteName(pathName(s.Name))+" ADD "+text[from:end])
		rest := text[end:]
		if after := strings.TrimLeft(rest, " \t\r\n"); strings.HasPrefix(after, ",") {
			end += token.Pos(len(rest) - len(after) + 1)
		}
		edits = append(edits, edit{from, end, ""})
	}
	return apply(text, edits), later
}

// withCounters has the sequences and identity columns that a statement makes begin where counters says, by the lower case names of sequences,
// and TABLE.COLUMN.
func withCounters(text string, counters map[string]int64) string {
	statement, err := parseDDL(text)
	if err != nil {
		return text
	}
	var edits []edit
	switch s := statement.(type) {
	case *ast.CreateSequence:
		if n, ok := counters[strings.ToLower(pathName(s.Name))]; ok && s.Options != nil {
			edits = append(edits, optionEdit(s.Options, n))
		} else if ok {
			edits = append(edits, clauseEdit(s.Params, token.Pos(len(text)), n))
		}
	case *ast.CreateTable:
		for _, c := range s.Columns {
			n, ok := counters[strings.ToLower(pathName(s.Name)+"."+c.Name.Name)]
			identity, is := c.DefaultSemantics.(*ast.IdentityColumn)
			switch {
			case !ok || !is:
			case len(identity.Params) > 0:
				edits = append(edits, clauseEdit(identity.Params, identity.Rparen, n))
			default:
				end := identity.End()
				edits = append(edits, edit{end, end, " (START COUNTER WITH " + strconv.FormatInt(n, 10) + ")"})
			}
		}
	}
	return apply(text, edits)
}

// optionEdit sets the option start_with_counter.
func optionEdit(o *ast.Options, n int64) edit {
	value := strconv.FormatInt(n, 10)
	for _, r := range o.Records {
		if strings.EqualFold(r.Name.Name, "start_with_counter") {
			return edit{r.Value.Pos(), r.Value.End(), value}
		}
	}
	return edit{o.Rparen, o.Rparen, ", start_with_counter = " + value}
}

// clauseEdit sets START COUNTER WITH among clauses that end at a place.
func clauseEdit(clauses []ast.SequenceParam, end token.Pos, n int64) edit {
	clause := "START COUNTER WITH " + strconv.FormatInt(n, 10)
	for _, c := range clauses {
		if s, ok := c.(*ast.StartCounterWith); ok {
			return edit{s.Pos(), s.End(), clause}
		}
	}
	return edit{end, end, " " + clause}
}

// ofDatabase has an ALTER DATABASE name the database in which it is to run.
func ofDatabase(text, database string) string {
	if statement, err := parseDDL(text); err == nil {
		if s, ok := statement.(*ast.AlterDatabase); ok {
			return apply(text, []edit{{s.Name.Pos(), s.Name.End(), quoteName(database)}})
		}
	}
	return text
}

// defines says whether a statement makes something new or sets options: those of an export do no more.
func defines(text string) bool {
	statement, err := parseDDL(text)
	if err == nil {
		switch s := statement.(type) {
		case *ast.AlterDatabase, *ast.AlterLocalityGroup, *ast.Grant:
			return true
		case *ast.AlterTable:
			_, ok := s.TableAlteration.(*ast.AddTableConstraint)
			return ok
		}
		text = statement.SQL()
	}
	// What cannot be parsed the server may know.
	return strings.HasPrefix(text, "CREATE ") && !strings.HasPrefix(text, "CREATE OR ")
}

// tablesOf are the tables that statements make, in lower case.
func tablesOf(ddl []string) map[string]bool {
	tables := map[string]bool{}
	for _, text := range ddl {
		if name, ok := strings.CutPrefix(first(definedBy(text)), "table "); ok {
			tables[name] = true
		}
	}
	return tables
}

// relations tells, by names in lower case, in which table each is interleaved with INTERLEAVE IN PARENT, and to which its foreign keys refer.
func relations(ddl []string) (parents map[string]string, references map[string][]string) {
	parents, references = map[string]string{}, map[string][]string{}
	refer := func(table *ast.Path, c *ast.TableConstraint) {
		if key, ok := c.Constraint.(*ast.ForeignKey); ok {
			name := strings.ToLower(pathName(table))
			references[name] = append(references[name], strings.ToLower(pathName(key.ReferenceTable)))
		}
	}
	for _, text := range ddl {
		statement, _ := parseDDL(text)
		switch s := statement.(type) {
		case *ast.CreateTable:
			if s.Cluster != nil && s.Cluster.Enforced {
				parents[strings.ToLower(pathName(s.Name))] = strings.ToLower(pathName(s.Cluster.TableName))
			}
			for _, c := range s.TableConstraints {
				refer(s.Name, c)
			}
		case *ast.AlterTable:
			if c, ok := s.TableAlteration.(*ast.AddTableConstraint); ok {
				refer(s.Name, c.TableConstraint)
			}
		}
	}
	return parents, references
}

// foreignKeyOf tells which table refers to which by the foreign key that a statement adds; "" if it adds none.
func foreignKeyOf(text string) (from, to string) {
	statement, _ := parseDDL(text)
	s, ok := statement.(*ast.AlterTable)
	if !ok {
		return "", ""
	}
	if c, ok := s.TableAlteration.(*ast.AddTableConstraint); ok {
		if key, ok := c.TableConstraint.Constraint.(*ast.ForeignKey); ok {
			return pathName(s.Name), pathName(key.ReferenceTable)
		}
	}
	return "", ""
}

// kinds are the words with which the names of madeBy begin, and what users call many of them.
var kinds = []struct{ kind, one, many string }{
	{"schema ", "schema", "schemas"}, {"proto bundle", "proto bundle", "proto bundles"}, {"locality group ", "locality group", "locality groups"},
	{"placement ", "placement", "placements"}, {"sequence ", "sequence", "sequences"}, {"function ", "function", "functions"}, {"table ", "table", "tables"},
	{"constraint ", "foreign key", "foreign keys"}, {"foreign key ", "foreign key", "foreign keys"}, {"index ", "index", "indexes"}, {"view ", "view", "views"},
	{"change stream ", "change stream", "change streams"}, {"role ", "role", "roles"},
}

// Made tells in words what statements make: 2 sequences, 5 tables. It is "" if they make nothing.
func Made(statements []string) string {
	counts := map[string]int{}
	for _, text := range statements {
		name := first(madeBy(text))
		for _, k := range kinds {
			if strings.HasPrefix(name, k.kind) {
				counts[k.many]++
				break
			}
		}
	}
	var parts []string
	for _, k := range kinds {
		if n := counts[k.many]; n == 1 {
			parts = append(parts, "1 "+k.one)
		} else if n > 1 {
			parts = append(parts, strconv.Itoa(n)+" "+k.many)
		}
		delete(counts, k.many)
	}
	return strings.Join(parts, ", ")
}

// Missing are the statements that define objects which a database does not have, and those that may run again. there are the statements that
// define it.
func Missing(statements, there []string) (missing []string) {
	defined := map[string]bool{}
	for _, text := range there {
		for _, name := range definedBy(text) {
			defined[name] = true
		}
	}
	for _, text := range statements {
		if names := definedBy(text); len(names) == 0 || !defined[names[0]] {
			missing = append(missing, text)
		}
	}
	return missing
}

// definedBy is madeBy in lower case.
func definedBy(text string) []string {
	names := madeBy(text)
	for i, name := range names {
		names[i] = strings.ToLower(name)
	}
	return names
}

// madeBy names what a statement makes: the object itself first, and the constraints within a table.
func madeBy(text string) (names []string) {
	statement, err := parseDDL(text)
	if err != nil {
		return nil // the server says what is wrong with it
	}
	switch s := statement.(type) {
	case *ast.CreateSchema:
		names = []string{"schema " + s.Name.Name}
	case *ast.CreateProtoBundle:
		names = []string{"proto bundle"}
	case *ast.CreateLocalityGroup:
		names = []string{"locality group " + s.Name.Name}
	case *ast.AlterLocalityGroup: // that which is always there
		names = []string{"locality group " + s.Name.Name}
	case *ast.CreatePlacement:
		names = []string{"placement " + s.Name.Name}
	case *ast.CreateFunction:
		names = []string{"function " + pathName(s.Name)}
	case *ast.CreateRole:
		names = []string{"role " + s.Name.Name}
	case *ast.CreateTable:
		names = []string{"table " + pathName(s.Name)}
		for _, c := range s.TableConstraints {
			names = append(names, constraintName(s.Name, c)...)
		}
	case *ast.CreateIndex:
		names = []string{"index " + pathName(s.Name)}
	case *ast.CreateSequence:
		names = []string{"sequence " + pathName(s.Name)}
	case *ast.CreateView:
		names = []string{"view " + pathName(s.Name)}
	case *ast.CreateChangeStream:
		names = []string{"change stream " + s.Name.Name}
	case *ast.AlterTable:
		if c, ok := s.TableAlteration.(*ast.AddTableConstraint); ok {
			names = constraintName(s.Name, c.TableConstraint)
		}
	}
	return names
}

// constraintName names a constraint of a table. A foreign key without a name is known by its columns.
func constraintName(table *ast.Path, c *ast.TableConstraint) []string {
	if c.Name != nil {
		return []string{"constraint " + c.Name.Name}
	}
	if f, ok := c.Constraint.(*ast.ForeignKey); ok {
		return []string{"foreign key of " + pathName(table) + identsText(f.Columns) + pathName(f.ReferenceTable) + identsText(f.ReferenceColumns)}
	}
	return nil
}

func identsText(list []*ast.Ident) string {
	text := " "
	for _, i := range list {
		text += i.Name + " "
	}
	return text
}

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

// parseDDL parses a statement. memefish cannot parse two kinds of statements: CREATE SEQUENCE without OPTIONS, and
// CREATE CHANGE STREAM for tables in named schemas. For these, parseDDL parses a changed text. It appends options to
// CREATE SEQUENCE, and removes them from the result. In CREATE CHANGE STREAM, it replaces the names of such tables by
// simple names of the same length. So all other parts keep their positions in the text.
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

// withoutPaths replaces each path a.b by a simple name of the same length.
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

// quoteName quotes a name. If the name is in a named schema, it quotes both parts.
func quoteName(name string) string { return "`" + strings.ReplaceAll(name, ".", "`.`") + "`" }

// edit is a change of a statement: it replaces the part [from, to) by text.
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

// withoutForeignKeys removes the foreign keys from a CREATE TABLE statement. It returns two results: table is the
// statement without the foreign keys, and later holds the ALTER TABLE statements that add them.
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

// withCounters changes a statement so that the sequences and identity columns that it creates start at the values of
// the map counters. The keys of the map are in lower case: the name of a sequence, or TABLE.COLUMN.
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

// optionEdit returns the edit that sets the option start_with_counter.
func optionEdit(o *ast.Options, n int64) edit {
	value := strconv.FormatInt(n, 10)
	for _, r := range o.Records {
		if strings.EqualFold(r.Name.Name, "start_with_counter") {
			return edit{r.Value.Pos(), r.Value.End(), value}
		}
	}
	return edit{o.Rparen, o.Rparen, ", start_with_counter = " + value}
}

// clauseEdit returns the edit that sets START COUNTER WITH in a list of clauses. end is the position of the end of the
// list.
func clauseEdit(clauses []ast.SequenceParam, end token.Pos, n int64) edit {
	clause := "START COUNTER WITH " + strconv.FormatInt(n, 10)
	for _, c := range clauses {
		if s, ok := c.(*ast.StartCounterWith); ok {
			return edit{s.Pos(), s.End(), clause}
		}
	}
	return edit{end, end, " " + clause}
}

// ofDatabase replaces the database's name in an ALTER DATABASE statement by that of the database in which the
// statement will run.
func ofDatabase(text, database string) string {
	if statement, err := parseDDL(text); err == nil {
		if s, ok := statement.(*ast.AlterDatabase); ok {
			return apply(text, []edit{{s.Name.Pos(), s.Name.End(), quoteName(database)}})
		}
	}
	return text
}

// defines reports whether a statement only creates an object, sets options or grants privileges. Exports contain no
// other statements.
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
	// For other statements, defines looks only at the first words, because memefish cannot parse some statements that
	// the server supports. A statement that creates an object is allowed, but not one that replaces an object.
	return strings.HasPrefix(text, "CREATE ") && !strings.HasPrefix(text, "CREATE OR ")
}

// tablesOf returns the names of the tables that statements create, in lower case.
func tablesOf(ddl []string) map[string]bool {
	tables := map[string]bool{}
	for _, text := range ddl {
		if name, ok := strings.CutPrefix(first(definedBy(text)), "table "); ok {
			tables[name] = true
		}
	}
	return tables
}

// relations returns two maps. parents gives the parent of each table with INTERLEAVE IN PARENT. references gives the
// tables to which the foreign keys of a table refer. All names are in lower case.
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

// foreignKeyOf returns the referring and the referenced table of the foreign key that a statement adds. If the
// statement adds no foreign key, both are "".
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

// kinds lists the kinds of objects that statements create. The field kind is the prefix that madeBy gives to the names
// of such objects. The fields one and many are the words that users see, for one object and for several.
var kinds = []struct{ kind, one, many string }{
	{"schema ", "schema", "schemas"}, {"proto bundle", "proto bundle", "proto bundles"}, {"locality group ", "locality group", "locality groups"},
	{"placement ", "placement", "placements"}, {"sequence ", "sequence", "sequences"}, {"function ", "function", "functions"}, {"table ", "table", "tables"},
	{"constraint ", "foreign key", "foreign keys"}, {"foreign key ", "foreign key", "foreign keys"}, {"index ", "index", "indexes"}, {"view ", "view", "views"},
	{"change stream ", "change stream", "change streams"}, {"role ", "role", "roles"},
}

// Made says in words how many objects of each kind the statements create, such as "2 sequences, 5 tables". It returns
// "" if they create none.
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

// Missing returns the statements that an import still has to run in a database: those that define objects that the
// database does not have, and those that may be run a second time. The second parameter holds the statements that
// define the database as it is now.
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

// definedBy returns the names that madeBy returns, in lower case.
func definedBy(text string) []string {
	names := madeBy(text)
	for i, name := range names {
		names[i] = strings.ToLower(name)
	}
	return names
}

// madeBy returns the names of the objects that a statement creates. Each name begins with the kind of the object, such
// as "index ". For CREATE TABLE, the first name is that of the table, and the names of its constraints follow.
func madeBy(text string) (names []string) {
	statement, err := parseDDL(text)
	if err != nil {
		return nil // the server will report the error
	}
	switch s := statement.(type) {
	case *ast.CreateSchema:
		names = []string{"schema " + s.Name.Name}
	case *ast.CreateProtoBundle:
		names = []string{"proto bundle"}
	case *ast.CreateLocalityGroup:
		names = []string{"locality group " + s.Name.Name}
	case *ast.AlterLocalityGroup: // exports alter only the default locality group, which always exists
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

// constraintName returns the name of a table constraint. A foreign key without a name gets a name from its columns.
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

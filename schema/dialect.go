package schema

import (
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"
)

// objects are the kinds of schema objects that Spanner has and Crowfoot does
// not, by the words that follow CREATE, ALTER or DROP.
var objects = [][]string{
	{"MODEL"}, {"PROPERTY", "GRAPH"},
	{"SEARCH", "INDEX"}, {"VECTOR", "INDEX"}, {"QUEUE"},
}

// ungrantable are those of them, and of those that Crowfoot has, on which Spanner grants privileges and Crowfoot does not.
var ungrantable = [][]string{{"MODEL"}, {"QUEUE"}, {"FUNCTION"}}

// unimplemented names what a statement is about if Crowfoot does not have it,
// whether or not the statement is well formed; else it returns "".
func unimplemented(words []word) string {
	verb := words[0].upper
	switch verb {
	case "CALL":
		return verb
	case "GRANT", "REVOKE":
		for _, object := range ungrantable {
			if contains(words, append([]string{"ON"}, object...)...) {
				return verb + " ON" + join(object)
			}
		}
	case "CREATE", "ALTER", "DROP":
		rest := words[1:]
		if verb == "CREATE" && startsWith(rest, "OR", "REPLACE") {
			rest = rest[2:]
			if startsWith(rest, "SCHEMA") {
				return "CREATE OR REPLACE SCHEMA"
			}
		}
		if verb == "ALTER" && startsWith(rest, "SCHEMA") {
			return "ALTER SCHEMA"
		}
		if startsWith(rest, "NULL_FILTERED", "SEARCH") || startsWith(rest, "NULL_FILTERED", "VECTOR") {
			rest = rest[1:]
		}
		for _, object := range objects {
			if startsWith(rest, object...) {
				return verb + join(object)
			}
		}
	}
	return ""
}

func join(words []string) (s string) {
	for _, w := range words {
		s += " " + w
	}
	return s
}

func startsWith(words []word, want ...string) bool {
	if len(words) < len(want) {
		return false
	}
	for i, w := range want {
		if words[i].upper != w {
			return false
		}
	}
	return true
}

// contains says whether the wanted words stand somewhere in words, next to each other.
func contains(words []word, want ...string) bool {
	for i := range words {
		if startsWith(words[i:], want...) {
			return true
		}
	}
	return false
}

// adapt rewrites what Spanner's grammar allows and memefish's does not. What
// it takes away it keeps in fields of the source.
func (s *source) adapt() {
	s.adaptEmptyOptions()
	switch {
	case startsWith(s.tokens, "CREATE", "TABLE"):
		s.adaptUnknownTypes()
		s.adaptOnUpdate()
		s.joinNames("SYNONYM", "(")
	case startsWith(s.tokens, "ALTER", "TABLE"):
		s.adaptAlterTable()
		s.adaptUnknownTypes()
		s.adaptOnUpdate()
		s.joinNames("RENAME", "TO")
		s.joinNames("ADD", "SYNONYM")
		s.joinNames("DROP", "SYNONYM")
	case startsWith(s.tokens, "RENAME", "TABLE"):
		s.joinNames("RENAME", "TABLE")
		s.joinNames("TO")
		s.joinNames(",")
	case startsWith(s.tokens[1:], "CHANGE", "STREAM"):
		s.adaptChangeStream()
	case startsWith(s.tokens[1:], "SEQUENCE"):
		s.adaptSequence()
	case startsWith(s.tokens, "CREATE", "VIEW"), startsWith(s.tokens, "CREATE", "OR", "REPLACE", "VIEW"):
		s.adaptView()
	case startsWith(s.tokens, "CREATE", "FUNCTION"), startsWith(s.tokens, "CREATE", "OR", "REPLACE", "FUNCTION"):
		s.adaptFunction()
	case startsWith(s.tokens, "CREATE") && contains(s.tokens, "INDEX"):
		s.adaptCreateIndex()
	case startsWith(s.tokens, "ALTER", "INDEX"):
		s.adaptAlterIndex()
	case startsWith(s.tokens, "GRANT"), startsWith(s.tokens, "REVOKE"):
		s.adaptGrant()
	case startsWith(s.tokens[1:], "LOCALITY", "GROUP"):
		s.adaptCondition()
		if name := s.tokens[3:]; startsWith(name, "DEFAULT") && name[0].kind == "DEFAULT" { // the name of a group, which memefish wants in back quotes
			s.tokens[3] = word{kind: token.TokenIdent, pos: name[0].pos, end: name[0].pos, upper: "`" + defaultLocalityGroup + "`"}
		}
	}
}

// adaptGrant makes a name of DEFAULT where GRANT and REVOKE name a schema: memefish knows it in ON SCHEMA only.
func (s *source) adaptGrant() {
	for i, w := range s.tokens {
		if w.upper == "DEFAULT" && i > 0 && (s.tokens[i-1].upper == "SCHEMA" || s.tokens[i-1].kind == ",") {
			s.tokens[i] = word{kind: token.TokenIdent, pos: w.pos, end: w.pos, upper: "`" + defaultSchema + "`"}
		}
	}
}

// adaptView takes the query away, which SQL's own analyzer parses, and writes SQL SECURITY where it is left out.
func (s *source) adaptView() {
	as := slices.IndexFunc(s.tokens, func(w word) bool { return w.upper == "AS" })
	if as < 0 || as == len(s.tokens)-1 {
		return
	}
	s.body = s.between(as+1, len(s.tokens))
	head, query := s.tokens[:as:as], s.put("AS", "SELECT", "1")
	if s.secured = contains(head, "SQL", "SECURITY"); !s.secured {
		head = append(head, s.put("SQL", "SECURITY", "INVOKER")...)
	}
	s.tokens = append(head, query...)
}

// adaptCondition takes away IF NOT EXISTS behind CREATE and two more words, and IF EXISTS behind others.
func (s *source) adaptCondition() {
	condition := []string{"IF", "EXISTS"}
	if s.tokens[0].upper == "CREATE" {
		condition = []string{"IF", "NOT", "EXISTS"}
	}
	if startsWith(s.tokens[3:], condition...) {
		s.ifExists = true
		s.tokens = append(s.tokens[:3:3], s.tokens[3+len(condition):]...)
	}
}

// hasOptions says whether OPTIONS and a parenthesis stand somewhere in the statement: OPTIONS alone may be a name.
func (s *source) hasOptions() bool {
	for i, w := range s.tokens[1:] {
		if w.kind == "(" && s.tokens[i].upper == "OPTIONS" {
			return true
		}
	}
	return false
}

// adaptSequence takes away IF EXISTS of ALTER SEQUENCE, and writes OPTIONS where CREATE SEQUENCE has none: memefish wants some.
func (s *source) adaptSequence() {
	switch verb := s.tokens[0].upper; {
	case verb == "ALTER" && startsWith(s.tokens[2:], "IF", "EXISTS"):
		s.ifExists = true
		s.tokens = append(s.tokens[:2:2], s.tokens[4:]...)
	case verb == "CREATE" && !s.hasOptions():
		s.noOptions = true
		s.tokens = append(s.tokens, s.put("OPTIONS", "(", "NONE", "=", "NULL", ")")...)
	}
}

// takeIdentity takes GENERATED BY DEFAULT AS IDENTITY (...) or AUTO_INCREMENT, at or after a token, out of ALTER COLUMN, where memefish knows
// neither.
func (s *source) takeIdentity(from int) {
	for i := from; i < len(s.tokens); i++ {
		end := i
		switch rest := s.tokens[i:]; {
		case startsWith(rest, "AUTO_INCREMENT"):
			end = i + 1
		case startsWith(rest, "GENERATED", "BY", "DEFAULT", "AS", "IDENTITY"):
			end = i + 5
			if closing := slices.IndexFunc(rest, func(w word) bool { return w.kind == ")" }); len(rest) > 5 && rest[5].kind == "(" && closing > 0 {
				end = i + closing + 1
			}
		default:
			continue
		}
		s.identity = slices.Clone(s.tokens[i:end])
		s.tokens = slices.Delete(s.tokens, i, end)
		return
	}
}

// adaptFunction takes the expression away, which SQL's own analyzer parses, and puts NULL in its place.
func (s *source) adaptFunction() {
	open, last := 0, len(s.tokens)-1
	for i, w := range s.tokens[:last] {
		if w.upper == "AS" && s.tokens[i+1].kind == "(" {
			open = i + 1
			break
		}
	}
	if open == 0 || open+1 >= last || s.tokens[last].kind != ")" {
		return
	}
	s.body = s.between(open+1, last)
	s.tokens = slices.Concat(s.tokens[:open+1], s.put("NULL"), s.tokens[last:])
}

// adaptChangeStream takes away IF [NOT] EXISTS, and makes one name of schema.table in FOR.
func (s *source) adaptChangeStream() {
	if s.tokens[0].upper != "ALTER" {
		s.adaptCondition()
	}
	clause := slices.IndexFunc(s.tokens, func(w word) bool { return w.upper == "FOR" })
	if clause < 0 {
		return
	}
	for i := clause + 1; i < len(s.tokens); i++ {
		if s.tokens[i-1].kind != "(" {
			s.joinName(i)
		}
	}
}

// joinNames makes one name of schema.table wherever it follows the words, which memefish wants one name behind.
func (s *source) joinNames(words ...string) {
	for i := len(words); i < len(s.tokens); i++ {
		if s.startsAt(i-len(words), words...) {
			s.joinName(i)
		}
	}
}

// startsAt says whether words, or signs, stand at a token.
func (s *source) startsAt(i int, words ...string) bool {
	for j, w := range words {
		if t := s.tokens[i+j]; t.upper != w && string(t.kind) != w {
			return false
		}
	}
	return true
}

// joinName makes one name of schema.table at token i, if that stands there.
func (s *source) joinName(i int) {
	if i+2 >= len(s.tokens) {
		return
	}
	schema, dot, table := s.tokens[i], s.tokens[i+1], s.tokens[i+2]
	if schema.kind != token.TokenIdent || dot.kind != "." || table.kind != token.TokenIdent {
		return
	}
	unquoted := func(w word) string { return strings.Trim(s.text[w.pos:w.end], "`") }
	path := word{kind: token.TokenIdent, pos: schema.pos, end: schema.pos, upper: "`" + unquoted(schema) + "." + unquoted(table) + "`"}
	s.tokens = append(append(s.tokens[:i:i], path), s.tokens[i+3:]...)
}

// adaptCreateIndex takes the schema out of INTERLEAVE IN schema.table.
func (s *source) adaptCreateIndex() {
	for i := range s.tokens {
		if rest := s.tokens[i:]; startsWith(rest, "INTERLEAVE", "IN") && len(rest) >= 5 && rest[3].kind == "." {
			s.parentSchema = strings.Trim(s.text[rest[2].pos:rest[2].end], "`")
			s.tokens = append(s.tokens[:i+2:i+2], rest[4:]...)
			return
		}
	}
}

// adaptAlterIndex makes ALTER VECTOR INDEX i SET OPTIONS (...) of ALTER INDEX i SET OPTIONS (...): memefish knows that action of vector
// indexes only.
func (s *source) adaptAlterIndex() {
	if !contains(s.tokens, "SET", "OPTIONS") {
		return
	}
	index := s.tokens[1]
	vector := word{kind: token.TokenIdent, pos: index.pos, end: index.pos, upper: "VECTOR"}
	s.tokens = append([]word{s.tokens[0], vector}, s.tokens[1:]...)
}

// adaptEmptyOptions takes away OPTIONS () at the end of CREATE TABLE and CREATE INDEX, with the comma before it.
func (s *source) adaptEmptyOptions() {
	end := len(s.tokens) - 3
	if end < 1 || s.tokens[0].upper != "CREATE" || s.tokens[end].upper != "OPTIONS" || s.tokens[end+1].kind != "(" || s.tokens[end+2].kind != ")" {
		return
	}
	if s.tokens[end-1].kind == "," {
		end--
	}
	s.tokens = s.tokens[:end]
}

// adaptAlterTable takes away IF EXISTS, and writes COLUMN where ADD c, DROP c or ALTER c leave it out.
func (s *source) adaptAlterTable() {
	if startsWith(s.tokens[2:], "IF", "EXISTS") {
		s.ifExists = true
		s.tokens = append(s.tokens[:2:2], s.tokens[4:]...)
	}
	i := 2 // behind the table's name: name, or name.name
	for i++; i+1 < len(s.tokens) && s.tokens[i].kind == "."; i += 2 {
	}
	if i+1 >= len(s.tokens) {
		return
	}
	next := s.tokens[i+1]
	isColumn := false
	switch s.tokens[i].upper {
	case "ADD":
		isColumn = next.kind == token.TokenIdent && !isAny(next.upper, "COLUMN", "CONSTRAINT", "FOREIGN", "CHECK", "ROW", "SYNONYM", "PRIMARY") ||
			next.upper == "IF"
	case "DROP":
		isColumn = next.kind == token.TokenIdent && !isAny(next.upper, "COLUMN", "CONSTRAINT", "ROW", "SYNONYM")
	case "ALTER":
		isColumn = next.kind == token.TokenIdent && next.upper != "COLUMN"
		s.takeIdentity(i + 3) // behind the column's name
	}
	if isColumn {
		column := word{kind: token.TokenIdent, pos: next.pos, end: next.pos, upper: "COLUMN"}
		s.tokens = append(s.tokens[:i+1:i+1], append([]word{column}, s.tokens[i+1:]...)...)
	}
}

// adaptOnUpdate puts ON UPDATE (e) behind DEFAULT (e), where memefish wants it; Spanner takes the two in either order.
func (s *source) adaptOnUpdate() {
	for i := range s.tokens {
		middle := 0
		if startsWith(s.tokens[i:], "ON", "UPDATE") {
			middle = i + 2 + s.parenthesized(i+2)
		}
		if middle <= i+2 || !startsWith(s.tokens[middle:], "DEFAULT") {
			continue
		}
		if end := s.parenthesized(middle + 1); end > 0 {
			end += middle + 1
			copy(s.tokens[i:end], slices.Concat(s.tokens[middle:end], s.tokens[i:middle]))
		}
	}
}

// parenthesized is how many tokens are in the parentheses that open at a token, these included; 0 if none open there or they do not close.
func (s *source) parenthesized(from int) int {
	for depth, i := 0, from; i < len(s.tokens); i++ {
		switch s.tokens[i].kind {
		case "(":
			depth++
		case ")":
			depth--
		}
		switch {
		case depth == 0 && i == from:
			return 0
		case depth == 0:
			return i + 1 - from
		}
	}
	return 0
}

// adaptUnknownTypes takes the length away from a column type that Spanner does not have, VARCHAR(10) or DECIMAL(10, 2): memefish
// knows lengths of STRING and BYTES only, and the error is to be about the type.
func (s *source) adaptUnknownTypes() {
	for i := 2; i < len(s.tokens); i++ {
		if !s.isColumnType(i) || isTypeName(s.tokens[i].upper) {
			continue
		}
		if end := lengthEnd(s.tokens[i+1:]); end > 0 {
			s.tokens = append(s.tokens[:i+1:i+1], s.tokens[i+1+end:]...)
		}
	}
}

// isColumnType says whether token i is a name that stands where a column or an array has its type.
func (s *source) isColumnType(i int) bool {
	before, column := s.tokens[i-2], s.tokens[i-1]
	if s.tokens[i].kind != token.TokenIdent {
		return false
	}
	if column.kind == "<" {
		return before.upper == "ARRAY"
	}
	begins := before.kind == "(" || before.kind == "," || before.upper == "COLUMN" || before.upper == "EXISTS"
	return begins && column.kind == token.TokenIdent && !isAny(column.upper, "PRIMARY", "FOREIGN")
}

// lengthEnd is how many tokens the length at the beginning of words has, (10) or (10, 2) or (MAX); 0 if there is none.
func lengthEnd(words []word) int {
	if len(words) == 0 || words[0].kind != "(" {
		return 0
	}
	for i, w := range words[1:] {
		switch {
		case w.kind == ")" && i > 0:
			return i + 2
		case w.kind != token.TokenInt && w.kind != "," && w.upper != "MAX":
			return 0
		}
	}
	return 0
}

func isAny(s string, list ...string) bool {
	for _, l := range list {
		if s == l {
			return true
		}
	}
	return false
}

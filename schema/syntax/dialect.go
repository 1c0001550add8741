package syntax

import (
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/crowfoot-db/crowfoot/value"
)

// objects lists the kinds of schema objects that Spanner has and Crowfoot does not have, as the words that follow
// CREATE, ALTER or DROP.
var objects = [][]string{
	{"MODEL"}, {"PROPERTY", "GRAPH"},
	{"SEARCH", "INDEX"}, {"VECTOR", "INDEX"}, {"QUEUE"},
}

// ungrantable lists the kinds of objects on which Spanner grants privileges and Crowfoot does not grant any.
var ungrantable = [][]string{{"MODEL"}, {"QUEUE"}, {"FUNCTION"}}

// unimplemented returns the name of a feature that a statement needs and Crowfoot does not have; "" if there is none.
// The statement may be malformed.
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

// contains reports whether the words in want stand next to each other, in that order, somewhere in words.
func contains(words []word, want ...string) bool {
	for i := range words {
		if startsWith(words[i:], want...) {
			return true
		}
	}
	return false
}

// adapt rewrites syntax that Spanner permits and the parser memefish does not. If it removes a clause from the tokens,
// it notes the clause in a field of the statement, such as IfExists.
func (s *Statement) adapt() {
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
		if name := s.tokens[3:]; startsWith(name, "DEFAULT") && name[0].kind == "DEFAULT" { // memefish requires back quotes for a group named DEFAULT
			s.tokens[3] = word{kind: token.TokenIdent, pos: name[0].pos, end: name[0].pos, upper: "`" + DefaultName + "`"}
		}
	}
}

// DefaultName is the name of the default schema, and of the default locality group.
const DefaultName = "default"

// adaptGrant puts DEFAULT in back quotes where GRANT and REVOKE name a schema, because memefish accepts the bare word
// only after ON SCHEMA.
func (s *Statement) adaptGrant() {
	for i, w := range s.tokens {
		if w.upper == "DEFAULT" && i > 0 && (s.tokens[i-1].upper == "SCHEMA" || s.tokens[i-1].kind == ",") {
			s.tokens[i] = word{kind: token.TokenIdent, pos: w.pos, end: w.pos, upper: "`" + DefaultName + "`"}
		}
	}
}

// adaptView replaces the query of a view, which the SQL analyzer will parse, by SELECT 1. If SQL SECURITY is missing,
// it inserts that clause.
func (s *Statement) adaptView() {
	as := slices.IndexFunc(s.tokens, func(w word) bool { return w.upper == "AS" })
	if as < 0 || as == len(s.tokens)-1 {
		return
	}
	s.Body = s.between(as+1, len(s.tokens))
	head, query := s.tokens[:as:as], s.put("AS", "SELECT", "1")
	if s.Secured = contains(head, "SQL", "SECURITY"); !s.Secured {
		head = append(head, s.put("SQL", "SECURITY", "INVOKER")...)
	}
	s.tokens = append(head, query...)
}

// adaptCondition removes IF NOT EXISTS if it follows the first three words of a CREATE statement. In other
// statements, it removes IF EXISTS in the same position.
func (s *Statement) adaptCondition() {
	condition := []string{"IF", "EXISTS"}
	if s.tokens[0].upper == "CREATE" {
		condition = []string{"IF", "NOT", "EXISTS"}
	}
	if startsWith(s.tokens[3:], condition...) {
		s.IfExists = true
		s.tokens = append(s.tokens[:3:3], s.tokens[3+len(condition):]...)
	}
}

// hasOptions reports whether the statement contains OPTIONS and an opening parenthesis. OPTIONS without a parenthesis
// may be a name.
func (s *Statement) hasOptions() bool {
	for i, w := range s.tokens[1:] {
		if w.kind == "(" && s.tokens[i].upper == "OPTIONS" {
			return true
		}
	}
	return false
}

// adaptSequence removes IF EXISTS from ALTER SEQUENCE. If CREATE SEQUENCE has no OPTIONS, it inserts them, because
// memefish requires them.
func (s *Statement) adaptSequence() {
	switch verb := s.tokens[0].upper; {
	case verb == "ALTER" && startsWith(s.tokens[2:], "IF", "EXISTS"):
		s.IfExists = true
		s.tokens = append(s.tokens[:2:2], s.tokens[4:]...)
	case verb == "CREATE" && !s.hasOptions():
		s.NoOptions = true
		s.tokens = append(s.tokens, s.put("OPTIONS", "(", "NONE", "=", "NULL", ")")...)
	}
}

// takeIdentity removes GENERATED BY DEFAULT AS IDENTITY (...) or AUTO_INCREMENT from ALTER COLUMN, because memefish
// accepts neither there. It begins the search at the token whose index is from, and stores the removed tokens in
// s.identity.
func (s *Statement) takeIdentity(from int) {
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

// adaptFunction replaces the expression of a function, which the SQL analyzer will parse, by NULL.
func (s *Statement) adaptFunction() {
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
	s.Body = s.between(open+1, last)
	s.tokens = slices.Concat(s.tokens[:open+1], s.put("NULL"), s.tokens[last:])
}

// adaptChangeStream removes IF [NOT] EXISTS, and turns schema.table in the FOR clause into one quoted name, because
// memefish accepts only one name there.
func (s *Statement) adaptChangeStream() {
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

// joinNames turns schema.table into one quoted name wherever it follows the given words, because memefish accepts
// only one name there.
func (s *Statement) joinNames(words ...string) {
	for i := len(words); i < len(s.tokens); i++ {
		if s.startsAt(i-len(words), words...) {
			s.joinName(i)
		}
	}
}

// startsAt reports whether the given words or punctuation marks are the tokens from index i on.
func (s *Statement) startsAt(i int, words ...string) bool {
	for j, w := range words {
		if t := s.tokens[i+j]; t.upper != w && string(t.kind) != w {
			return false
		}
	}
	return true
}

// joinName replaces schema.table by one quoted name, if these three tokens begin at index i.
func (s *Statement) joinName(i int) {
	if i+2 >= len(s.tokens) {
		return
	}
	schema, dot, table := s.tokens[i], s.tokens[i+1], s.tokens[i+2]
	if schema.kind != token.TokenIdent || dot.kind != "." || table.kind != token.TokenIdent {
		return
	}
	unquoted := func(w word) string { return strings.Trim(s.Text[w.pos:w.end], "`") }
	path := word{kind: token.TokenIdent, pos: schema.pos, end: schema.pos, upper: "`" + unquoted(schema) + "." + unquoted(table) + "`"}
	s.tokens = append(append(s.tokens[:i:i], path), s.tokens[i+3:]...)
}

// adaptCreateIndex removes the schema from INTERLEAVE IN schema.table, and stores it in ParentSchema.
func (s *Statement) adaptCreateIndex() {
	for i := range s.tokens {
		if rest := s.tokens[i:]; startsWith(rest, "INTERLEAVE", "IN") && len(rest) >= 5 && rest[3].kind == "." {
			s.ParentSchema = strings.Trim(s.Text[rest[2].pos:rest[2].end], "`")
			s.tokens = append(s.tokens[:i+2:i+2], rest[4:]...)
			return
		}
	}
}

// adaptAlterIndex rewrites ALTER INDEX i SET OPTIONS (...) as ALTER VECTOR INDEX i SET OPTIONS (...), because
// memefish accepts SET OPTIONS only for vector indexes.
func (s *Statement) adaptAlterIndex() {
	if !contains(s.tokens, "SET", "OPTIONS") {
		return
	}
	index := s.tokens[1]
	vector := word{kind: token.TokenIdent, pos: index.pos, end: index.pos, upper: "VECTOR"}
	s.tokens = append([]word{s.tokens[0], vector}, s.tokens[1:]...)
}

// adaptEmptyOptions removes OPTIONS () at the end of CREATE TABLE and CREATE INDEX, with the comma before it.
func (s *Statement) adaptEmptyOptions() {
	end := len(s.tokens) - 3
	if end < 1 || s.tokens[0].upper != "CREATE" || s.tokens[end].upper != "OPTIONS" || s.tokens[end+1].kind != "(" || s.tokens[end+2].kind != ")" {
		return
	}
	if s.tokens[end-1].kind == "," {
		end--
	}
	s.tokens = s.tokens[:end]
}

// adaptAlterTable removes IF EXISTS, and the identity clause of ALTER COLUMN c. If the statement has ADD c, DROP c or
// ALTER c without the word COLUMN, where c is a column, adaptAlterTable inserts that word.
func (s *Statement) adaptAlterTable() {
	if startsWith(s.tokens[2:], "IF", "EXISTS") {
		s.IfExists = true
		s.tokens = append(s.tokens[:2:2], s.tokens[4:]...)
	}
	i := 2 // the loop moves i past the table's name: name, or name.name
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
		s.takeIdentity(i + 3) // after the column's name
	}
	if isColumn {
		column := word{kind: token.TokenIdent, pos: next.pos, end: next.pos, upper: "COLUMN"}
		s.tokens = append(s.tokens[:i+1:i+1], append([]word{column}, s.tokens[i+1:]...)...)
	}
}

// adaptOnUpdate moves ON UPDATE (e) behind DEFAULT (e), because memefish accepts only that order. Spanner accepts
// both.
func (s *Statement) adaptOnUpdate() {
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

// parenthesized returns the number of tokens from an opening parenthesis to the one that closes it, both included. from
// is the index of the opening parenthesis. If another token is at that index, or no parenthesis closes the opening one,
// the result is 0.
func (s *Statement) parenthesized(from int) int {
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

// adaptUnknownTypes removes the length from a column type that Spanner does not have, such as VARCHAR(10) or
// DECIMAL(10, 2). memefish accepts a length only after STRING and BYTES. If the length stayed, memefish's error would
// be about the length, and not about the type.
func (s *Statement) adaptUnknownTypes() {
	for i := 2; i < len(s.tokens); i++ {
		if !s.isColumnType(i) || isTypeName(s.tokens[i].upper) {
			continue
		}
		if end := lengthEnd(s.tokens[i+1:]); end > 0 {
			s.tokens = append(s.tokens[:i+1:i+1], s.tokens[i+1+end:]...)
		}
	}
}

// ScalarTypes maps the names of types in DDL to column types. STRING and BYTES are missing, because they have a
// length.
var ScalarTypes = map[string]*value.Type{
	"BOOL": value.BoolType, "INT64": value.Int64Type, "FLOAT32": value.Float32Type, "FLOAT64": value.Float64Type,
	"NUMERIC": value.NumericType, "DATE": value.DateType, "TIMESTAMP": value.TimestampType, "JSON": value.JSONType,
	"UUID": value.UUIDType,
}

// isTypeName reports whether DDL has a type called upper, a name in upper case.
func isTypeName(upper string) bool {
	return ScalarTypes[upper] != nil || isAny(upper, "STRING", "BYTES", "TOKENLIST", "INTERVAL")
}

// isColumnType reports whether token i is a name that stands where the type of a column, or of the elements of an
// array, must stand.
func (s *Statement) isColumnType(i int) bool {
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

// lengthEnd returns the number of tokens of the length at the start of words: (10), (10, 2) or (MAX). It returns 0 if
// words does not begin with a length.
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

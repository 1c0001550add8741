package analyze

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/value"
)

// Normalized is a statement with parameters in place of literals. Texts that differ only in literals, white space and
// comments have the same normalized text.
//
// A parameter replaces a literal only where GoogleSQL needs to know no more than the literal's type: as an operand of a
// comparison or of arithmetic, after BETWEEN, in IN (...) and VALUES (...), and in SET c = .... Literals in other
// places stay as they are: arguments of functions, patterns of LIKE, LIMIT, ORDER BY 1, hints, lengths of types,
// DATE '...' and the like. Literals that are not written in the plainest form, such as r'a' and 1e5, also stay. The
// caller must verify that the text with parameters means the same as the text with literals.
type Normalized struct {
	Text     string
	Literals []Literal
}

// Literal is a literal that a parameter has replaced.
type Literal struct {
	Param string      // the name of the parameter that replaces the literal; it is valid only in back quotes
	Type  *value.Type // INT64, FLOAT64 or STRING
	Text  string      // the literal as written; a STRING without its quotes
	End   int         // the literal's end in the statement, as a byte offset
}

// Texts of more than maxNormalizedText bytes, and texts with more than maxLiterals literals, are not normalized: they
// are seldom sent again with other literals, and each search for literals costs time.
const (
	maxNormalizedText = 64 << 10
	maxLiterals       = 500
)

// Normalize replaces the literals of a text by parameters. It returns false if it has replaced none, if the text or the
// number of literals is too large, or if a parameter of the text has a quoted name, because that could be the name of a
// parameter for a literal.
func Normalize(sql string) (Normalized, bool) {
	if len(sql) > maxNormalizedText {
		return Normalized{}, false
	}
	s := normalizer{scanner: scanner{sql: sql}, open: make([]clause, 1, 8)}
	s.out.Grow(len(sql) + 64)
	for end := 0; s.next(); end = s.pos {
		if s.start > end && end > 0 {
			s.out.WriteByte(' ')
		}
		if s.taking && s.literal() {
			continue
		}
		if s.last == "@" && s.token[0] == '`' {
			return Normalized{}, false // the parameter could have the name of a parameter for a literal
		}
		s.out.WriteString(s.token)
		s.follow()
	}
	n := len(s.literals)
	return Normalized{Text: s.out.String(), Literals: s.literals}, n > 0 && n <= maxLiterals
}

// normalizer copies a text token by token and replaces literals by parameters.
type normalizer struct {
	scanner
	out      strings.Builder
	literals []Literal

	open    []clause // states of the whole text, then of the text in each open bracket
	hints   int      // number of open brackets that are a hint, or lie within one
	last    string   // the last token
	operand bool     // the last token ends an operand, so that + and - after it are binary operators
	taking  bool     // if the next token is a literal, a parameter replaces it
}

// clause holds the state of the text within an open bracket.
type clause struct {
	list     bool // the text is the list of IN (...) or VALUES (...)
	values   bool // VALUES was the last word
	betweens int  // number of BETWEENs whose AND has not come yet
}

// follow sets the field taking, which says whether a parameter replaces a literal that comes directly after the current
// token.
func (s *normalizer) follow() {
	top := &s.open[len(s.open)-1]
	operand := s.operand
	s.operand, s.taking = false, false
	switch s.token {
	case "(", "[", "{":
		s.push(top)
	case ")", "]", "}":
		s.pop()
		s.operand = true
	case ",":
		s.taking = top.list
	case "=", "<", ">", "<=", ">=", "<>", "!=":
		s.taking = true
	case "+", "-", "*", "/", "||":
		s.taking = operand
	default:
		if isWord(s.token[0]) {
			s.keyword(top)
		} else {
			s.operand = quoteAt(s.token) >= 0
		}
	}
	s.taking = s.taking && s.hints == 0
	s.last = s.token
}

func (s *normalizer) push(top *clause) {
	list := s.token == "(" && (strings.EqualFold(s.last, "IN") || top.values && (s.last == "," || strings.EqualFold(s.last, "VALUES")))
	s.open = append(s.open, clause{list: list})
	s.taking = list
	if s.hints > 0 || s.token == "{" && s.last == "@" {
		s.hints++
	}
}

func (s *normalizer) pop() {
	if last := len(s.open) - 1; last > 0 {
		s.open = s.open[:last]
	}
	s.hints = max(s.hints-1, 0)
}

// beforeOperand holds the words after which + and - are signs.
var beforeOperand = map[string]bool{
	"SELECT": true, "DISTINCT": true, "ALL": true, "WHERE": true, "AND": true, "OR": true, "NOT": true, "ON": true, "HAVING": true,
	"CASE": true, "WHEN": true, "THEN": true, "ELSE": true, "BY": true, "IN": true, "LIKE": true, "BETWEEN": true, "LIMIT": true,
	"OFFSET": true, "RETURN": true, "IS": true, "SET": true, "AS": true, "EXTEND": true,
}

func (s *normalizer) keyword(top *clause) {
	word := s.word()
	top.values = word == "VALUES"
	switch word {
	case "SELECT", "FROM", "WITH": // not a list but a subquery: IN (SELECT ...)
		top.list = false
	case "BETWEEN":
		top.betweens++
		s.taking = true
	case "AND":
		if top.betweens > 0 {
			top.betweens--
			s.taking = true
		}
	}
	number := s.token[0] >= '0' && s.token[0] <= '9' // 1e does not end an operand: it may begin 1e-5
	s.operand = !beforeOperand[word] && !number
}

// literal replaces the literal that begins with the current token by a parameter. It returns false if there is no
// plain literal.
func (s *normalizer) literal() bool {
	start, after := s.start, s.pos
	t, text := value.StringType, ""
	switch c := s.token[0]; {
	case c == '\'' || c == '"':
		if !plainString(s.token) {
			return false
		}
		text = s.token[1 : len(s.token)-1]
	case c == '-' && s.pos < len(s.sql) && isDigit(s.sql[s.pos]):
		s.next()
		fallthrough
	case isDigit(c):
		if t = s.number(); t == nil {
			s.pos, s.start, s.token = after, start, s.sql[start:after]
			return false
		}
		text = s.sql[start:s.pos]
	default:
		return false
	}
	kind := strings.ToLower(t.Kind.String()[:1])
	l := Literal{Param: "$" + kind + strconv.Itoa(len(s.literals)), Type: t, Text: text, End: s.pos}
	s.literals = append(s.literals, l)
	s.out.WriteString("@`" + l.Param + "`")
	s.last, s.operand, s.taking = "", true, false
	return true
}

// plainString reports whether a string literal has no escapes and no triple quotes, so that its value is the text
// between its quotes.
func plainString(token string) bool {
	n := len(token)
	if n < 2 || token[n-1] != token[0] || n > 2 && token[1] == token[0] {
		return false
	}
	return !strings.ContainsAny(token, "\\\n\r") && utf8.ValidString(token)
}

// number returns the type of the number that begins with the current token, and moves to the end of the number. It
// returns nil if the number is not written like 12 or 1.5, or is not within INT64.
func (s *normalizer) number() *value.Type {
	if !digits(s.token) {
		return nil
	}
	rest := s.sql[s.pos:]
	if rest == "" || rest[0] != '.' {
		if _, err := strconv.ParseInt(s.sql[s.start:s.pos], 10, 64); err != nil {
			return nil
		}
		return value.Int64Type
	}
	n := 1
	for n < len(rest) && isWord(rest[n]) {
		n++
	}
	if !digits(rest[1:n]) || n < len(rest) && rest[n] == '.' {
		return nil
	}
	s.pos += n
	return value.Float64Type
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func digits(text string) bool {
	for i := range len(text) {
		if !isDigit(text[i]) {
			return false
		}
	}
	return text != ""
}

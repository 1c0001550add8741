package analyze

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/value"
)

// Normalized is a statement with parameters in the place of literals: what texts that differ in literals, space and comments alone
// have in common.
//
// A literal is taken out only where GoogleSQL looks at no more than its type: as an operand of a comparison or of arithmetic, after
// BETWEEN, in IN (...) and VALUES (...), and in SET c = .... Arguments of functions, patterns of LIKE, LIMIT, ORDER BY 1, hints,
// lengths of types, DATE '...' and the like stay as they are, and so do literals that are not written in the plainest way. It is for
// the caller to verify that the text with parameters means the same.
type Normalized struct {
	Text     string
	Literals []Literal
}

// Literal is a literal that was taken out of a text.
type Literal struct {
	Param string      // the parameter in its place: a name that only back quotes allow
	Type  *value.Type // INT64, FLOAT64 or STRING
	Text  string      // as it stands; a STRING without its quotes
	End   int         // where it ends in the statement
}

// Texts beyond these bounds are not normalized. They are seldom sent again with other literals, and looking for literals costs every
// time.
const (
	maxNormalizedText = 64 << 10
	maxLiterals       = 500
)

// Normalize takes the literals out of a text; false if there are none to take.
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
			return Normalized{}, false // the parameter could have a name that is given to literals here
		}
		s.out.WriteString(s.token)
		s.follow()
	}
	n := len(s.literals)
	return Normalized{Text: s.out.String(), Literals: s.literals}, n > 0 && n <= maxLiterals
}

// normalizer copies a text token by token, and puts parameters in the place of literals.
type normalizer struct {
	scanner
	out      strings.Builder
	literals []Literal

	open    []clause // the text as a whole, and each bracket that is open
	hints   int      // how many of them are a hint, or within one
	last    string   // the token before
	operand bool     // the token before ends an operand, so that + and - are binary
	taking  bool     // a literal in this place is taken out
}

// clause is what is known of the text within an open bracket.
type clause struct {
	list     bool // elements of IN (...) or VALUES (...)
	values   bool // VALUES was the last word
	betweens int  // BETWEENs whose AND is to come
}

// follow notes whether a literal that comes after the current token is taken out.
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

// beforeOperand are the words after which + and - are signs.
var beforeOperand = map[string]bool{
	"SELECT": true, "DISTINCT": true, "ALL": true, "WHERE": true, "AND": true, "OR": true, "NOT": true, "ON": true, "HAVING": true,
	"CASE": true, "WHEN": true, "THEN": true, "ELSE": true, "BY": true, "IN": true, "LIKE": true, "BETWEEN": true, "LIMIT": true,
	"OFFSET": true, "RETURN": true, "IS": true, "SET": true, "AS": true, "EXTEND": true,
}

func (s *normalizer) keyword(top *clause) {
	word := s.word()
	top.values = word == "VALUES"
	switch word {
	case "SELECT", "FROM", "WITH": // IN (SELECT ...)
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
	number := s.token[0] >= '0' && s.token[0] <= '9' // such as the 1e of 1e-5, which is no operand by itself
	s.operand = !beforeOperand[word] && !number
}

// literal takes out the literal that begins with the current token, if it is a plain one.
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

// plainString says whether the value of a string literal is the text between its quotes, without escapes.
func plainString(token string) bool {
	n := len(token)
	if n < 2 || token[n-1] != token[0] || n > 2 && token[1] == token[0] {
		return false
	}
	return !strings.ContainsAny(token, "\\\n\r") && utf8.ValidString(token)
}

// number is the type of the number that begins with the current token, and moves behind the number; nil if it is not plain.
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

package analyze

import (
	"strconv"
	"strings"
)

// scanner cuts SQL text into tokens. So words and brackets in strings and comments are not mistaken for those of the
// statement itself. It follows GoogleSQL's lexical rules. It also cuts text that breaks these rules; the library then
// reports the error.
type scanner struct {
	sql string
	pos int // the end of the current token, as a byte offset in sql

	token string // the current token as written; strings and quoted names include their quotes
	start int
}

// next moves to the next token. It returns false at the end of the text.
func (s *scanner) next() bool {
	s.skipSpace()
	if s.pos >= len(s.sql) {
		return false
	}
	s.start = s.pos
	s.pos += s.length(s.sql[s.pos:])
	s.token = s.sql[s.start:s.pos]
	return true
}

func (s *scanner) skipSpace() {
	for s.pos < len(s.sql) {
		rest := s.sql[s.pos:]
		switch {
		case rest[0] == ' ' || rest[0] >= '\t' && rest[0] <= '\r':
			s.pos++
		case rest[0] == '#' || strings.HasPrefix(rest, "--"):
			s.pos += through(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			s.pos += 2 + through(rest[2:], "*/")
		default:
			return
		}
	}
}

// through returns the length of text up to and including mark, or the length of all of it if mark does not occur.
func through(text, mark string) int {
	if i := strings.Index(text, mark); i >= 0 {
		return i + len(mark)
	}
	return len(text)
}

// operators are the tokens of two characters.
var operators = []string{"|>", "->", "=>", "||", "<<", ">>", "<=", ">=", "<>", "!=", "@@"}

// length returns the length of the token at the beginning of text, which is not empty.
func (s *scanner) length(text string) int {
	if n := quoteAt(text); n >= 0 {
		return n + quotedLength(text[n:])
	}
	if isWord(text[0]) {
		n := 1
		for n < len(text) && isWord(text[n]) {
			n++
		}
		return n
	}
	for _, op := range operators {
		if strings.HasPrefix(text, op) {
			return len(op)
		}
	}
	return 1
}

// isWord reports whether c can be part of a name, keyword or number. All bytes above 0x7f can.
func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// quoteAt returns the index of the opening quote if text begins with a string or a quoted name; otherwise -1. The
// quote of a string may have a prefix such as rb.
func quoteAt(text string) int {
	for i := 0; i < len(text) && i < 3; i++ {
		switch text[i] {
		case '\'', '"':
			return i
		case '`':
			if i == 0 {
				return 0
			}
			return -1
		case 'r', 'R', 'b', 'B':
		default:
			return -1
		}
	}
	return -1
}

// quotedLength returns the length in bytes of the string or quoted name with which text begins. A backslash escapes
// the next character in raw strings too, so that a quote after it does not end the string.
func quotedLength(text string) int {
	quote := text[:1]
	if triple := strings.Repeat(quote, 3); quote != "`" && strings.HasPrefix(text, triple) {
		quote = triple
	}
	for i := len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote)
		}
	}
	return len(text)
}

// word returns the current token in upper case if it could be a keyword, else "".
func (s *scanner) word() string {
	const longest = len("INTERSECT")
	if len(s.token) > longest || !isWord(s.token[0]) {
		return ""
	}
	return strings.ToUpper(s.token)
}

// unquoted returns a name without its back quotes and with its escapes replaced. If an escape is not valid in
// GoogleSQL, the name keeps its escapes; the library refuses such a name.
func unquoted(name string) string {
	if !strings.HasPrefix(name, "`") {
		return name
	}
	name = strings.TrimSuffix(name[1:], "`")
	if !strings.Contains(name, `\`) {
		return name
	}
	var plain strings.Builder
	rest := name
	for {
		before, escape, found := strings.Cut(rest, `\`)
		plain.WriteString(before)
		if !found {
			return plain.String()
		}
		c, n := unescaped(escape)
		if n == 0 {
			return name
		}
		plain.WriteRune(c)
		rest = escape[n:]
	}
}

// unescaped returns the character that an escape stands for, and the length in bytes of the escape without its
// backslash. The length is 0 if the escape is not valid.
func unescaped(escape string) (c rune, length int) {
	if escape == "" {
		return 0, 0
	}
	const letters, meanings = "abfnrtv", "\a\b\f\n\r\t\v"
	if i := strings.IndexByte(letters, escape[0]); i >= 0 {
		return rune(meanings[i]), 1
	}
	digits, base := 0, 16
	switch escape[0] {
	case '\\', '?', '"', '\'', '`':
		return rune(escape[0]), 1
	case 'x', 'X':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		escape, digits, base = "0"+escape, 3, 8
	}
	if len(escape) <= digits {
		return 0, 0
	}
	code, err := strconv.ParseUint(escape[1:1+digits], base, 32)
	if err != nil {
		return 0, 0
	}
	if base == 8 {
		return rune(code), digits
	}
	return rune(code), 1 + digits
}

package analyze

import (
	"slices"
	"strconv"
	"strings"
)

// positionalName is what the parameters that question marks stand for are called: p1, p2, and so on, as the JDBC driver of Cloud Spanner calls them.
const positionalName = "p"

// Parameters gives the question marks of a statement names, since Spanner's parameters have names, and lists the parameters' names in lower case in the
// order in which they first stand in the text.
func Parameters(sql string) (named string, names []string) {
	s := scanner{sql: sql}
	var b strings.Builder
	copied, marks := 0, 0
	add := func(name string) {
		if name = strings.ToLower(name); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for s.next() {
		switch s.token {
		case "?":
			marks++
			name := positionalName + strconv.Itoa(marks)
			b.WriteString(sql[copied:s.start] + "@" + name)
			copied = s.pos
			add(name)
		case "@":
			at := s.pos
			if rest := sql[at:]; rest == "" || !isWord(rest[0]) && rest[0] != '`' || rest[0] >= '0' && rest[0] <= '9' {
				continue // a hint
			}
			s.next()
			add(unquoted(s.token))
		}
	}
	return b.String() + sql[copied:], names
}

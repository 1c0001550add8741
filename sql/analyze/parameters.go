package analyze

import (
	"slices"
	"strconv"
	"strings"
)

// positionalName is the prefix of the names of the parameters that replace question marks: p1, p2, and so on. Cloud
// Spanner's JDBC driver uses the same names.
const positionalName = "p"

// Parameters replaces the question marks of a statement by named parameters, since Spanner's parameters have names.
// The result named is the new text. The result names lists all parameters of the new text in lower case, in the order
// of their first occurrence.
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
				continue // not a parameter but a hint: @{...} or @5
			}
			s.next()
			add(unquoted(s.token))
		}
	}
	return b.String() + sql[copied:], names
}

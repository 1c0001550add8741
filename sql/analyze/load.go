package analyze

import (
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
)

// load estimates from the tokens of an SQL text how much work it is for GoogleSQL's library to analyze the text. One
// unit of weight is the work for an ordinary token, which takes 5 to 20 us. Some tokens take far more: a * in each of
// twenty subqueries if it stands for a thousand columns, or an operator at the end of a long chain. The estimate need
// not be exact: if a heavy text is taken for a light one, its analysis is stopped after lightTime.
type load struct {
	columns func(name string) int

	length  int // length of the text in bytes
	tokens  int
	selects int
	pipes   int
	deep    int // number of brackets around the innermost SELECT
	with    bool
	joins   int
	stars   int
	items   int    // elements of SELECT lists and STRUCTs, not counting the first element of each list
	width   int    // number of columns of the tables that the text names
	deepest levels // deepest nesting so far

	last   string // the last token
	name   string // the last name or keyword, without quotes
	tables bool   // the name of a table may follow the last word
}

// beforeTable holds the words after which the name of a table comes.
var beforeTable = map[string]bool{"FROM": true, "JOIN": true, "INTO": true, "UPDATE": true, "DELETE": true, "INSERT": true}

// add counts a token. The parameter in is the group to which the token belongs. The parameter brackets is the number of
// open brackets around the token. The parameter dotted is true if the token follows a dot.
func (l *load) add(token string, dotted bool, in *group, brackets int) {
	l.tokens++
	switch {
	case in.hint:
		return
	case token == "*":
		l.stars++
	case token == "|>":
		l.pipes++
	case token == ",":
		l.comma(in)
	case token[0] == '`' || isWord(token[0]):
		l.word(token, dotted, in.clause == "FROM", brackets)
	}
	l.last = token
}

func (l *load) comma(in *group) {
	l.tables = in.clause == "FROM"
	switch {
	case l.tables:
		l.joins++
	case in.clause == "SELECT" || in.list == "STRUCT":
		l.items++
	}
}

func (l *load) word(token string, dotted, from bool, brackets int) {
	// longest is the length in bytes of the longest name, if the text writes each of its characters as an escape.
	const longest = len(`\U00000000`) * schema.MaxNameLength
	if len(token) > longest {
		return
	}
	name := unquoted(token)
	if l.tables || from {
		if dotted {
			l.width += l.columns(l.name + "." + name)
		} else {
			l.width += l.columns(name)
		}
	}
	l.name = name
	upper := strings.ToUpper(token)
	switch upper {
	case "SELECT":
		l.query(brackets)
	case "FROM":
		// A query that begins with FROM, such as FROM t |> ..., selects all columns, as SELECT * does.
		if l.last == "" || l.last == "(" {
			l.query(brackets)
			l.stars++
		}
	case "WITH":
		l.with = true
	case "JOIN":
		l.joins++
	}
	l.tables = beforeTable[upper]
}

func (l *load) query(brackets int) {
	l.selects++
	l.deep = max(l.deep, brackets)
}

// nest records the depths of the text within a bracket that was closed.
func (l *load) nest(inside levels) { l.deepest = l.deepest.max(inside) }

// weight returns the estimate for the tokens so far.
func (l *load) weight() int {
	// The time for an operator grows with the length of the operator chain that it ends. Each BETWEEN within another
	// doubles the time.
	tokens := l.tokens * (1 + l.deepest.all/100) << max(l.deepest.betweens-3, 0)

	// Stages are nested SELECTs, pipe operators and, if the text has WITH, all SELECTs. Each stage may hand all of
	// its columns on to the next.
	stages := 1 + l.deep + l.pipes
	if l.with {
		stages += l.selects
	}
	columns := max(l.width, l.selects+l.items) * stages
	if l.stars > 0 || l.pipes > 0 {
		columns *= 4
		if stages > 1 {
			columns <<= min(l.joins, 30) / 2 // a join of a subquery with itself doubles its columns
		}
	}
	const charactersOfToken = 100 // long literals and comments weigh one unit for each 100 bytes
	return tokens + columns + l.pipes*l.pipes/16 + l.length/charactersOfToken
}

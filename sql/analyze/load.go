package analyze

import "strings"

// load estimates the library's work for a text, from its tokens. One unit of weight stands for one token, which takes 5 to 20 us. A
// token may take far more: a table with a thousand columns, all of which * names in each of twenty subqueries, or an operator at the end
// of a long chain. The estimate need not be exact, but the work for a text of little weight must not be large.
type load struct {
	columns func(name string) int

	length  int // in bytes
	tokens  int
	selects int
	pipes   int
	deep    int // how deep a SELECT stands in brackets
	with    bool
	joins   int
	stars   int
	width   int    // columns of the tables that the text names
	deepest levels // of the brackets

	path   string // the dotted name that the last token belongs to
	tables bool   // the last word stands before the name of a table
}

// beforeTable are the words after which a table is named.
var beforeTable = map[string]bool{"FROM": true, "JOIN": true, "INTO": true, "UPDATE": true, "DELETE": true, "INSERT": true}

// add counts a token. dotted says that it stands behind a dot, from that it stands in FROM; brackets is how many are open.
func (l *load) add(token string, dotted, from bool, brackets int) {
	l.tokens++
	switch {
	case token == "*":
		l.stars++
	case token == "|>":
		l.pipes++
	case token == ",":
		if from {
			l.joins++
		}
		l.tables = from
	case token[0] == '`' || isWord(token[0]):
		l.word(token, dotted, from, brackets)
	}
}

func (l *load) word(token string, dotted, from bool, brackets int) {
	const longest = 128 // characters of a name
	if len(token) > longest {
		return
	}
	if dotted {
		l.path += "." + unquoted(token)
	} else {
		l.path = unquoted(token)
	}
	if l.tables || from {
		l.width += l.columns(l.path)
	}
	upper := strings.ToUpper(token)
	switch upper {
	case "SELECT":
		l.selects++
		l.deep = max(l.deep, brackets)
	case "WITH":
		l.with = true
	case "JOIN":
		l.joins++
	}
	l.tables = beforeTable[upper]
}

// nest notes how deep a bracket is.
func (l *load) nest(inside levels) { l.deepest = l.deepest.max(inside) }

// weight is the estimate for the tokens so far.
func (l *load) weight() int {
	// An operator takes more time the longer the chain is that it ends, and a BETWEEN twice as much in each other one.
	tokens := l.tokens * (1 + l.deepest.all/100) << max(l.deepest.betweens-3, 0)

	// Each of these hands columns on to the next.
	stages := 1 + l.deep + l.pipes
	if l.with {
		stages += l.selects
	}
	columns := l.width * stages
	if l.stars > 0 {
		columns *= 4
		if stages > 1 {
			columns <<= min(l.joins, 30) / 2 // a join of a subquery with itself doubles its columns
		}
	}
	const charactersOfToken = 100 // in literals and comments
	return tokens + columns + l.pipes*l.pipes/16 + l.length/charactersOfToken
}

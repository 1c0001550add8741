package analyze

import (
	"strings"
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/fault"
)

// What a text must keep to before the library sees it. The library recurses as deep as a statement is nested; on its own stack, of
// fixed size, and on the goroutine's. Where either ends, the process ends, so depth must be bounded here.
const (
	maxLength = 1_000_000 // characters of a statement (quota "Query statement length")

	// maxNesting is the depth of parentheses, brackets and CASE. Spanner's own limits on nested functions (75), subqueries
	// (25) and subselects (60) are reached before.
	maxNesting = 300
	// maxDepth is the depth to which a statement may nest when operators count as well: 1+1+1 is (1+1)+1. The library was
	// seen to take ten thousand levels, at 20 KiB each and in 85 us each; Spanner allows 75 nested calls.
	maxDepth = 1_000
	// maxTextJoins bounds joins, UNNEST among them: the library's time and memory rise with the square of their number times
	// the columns of their tables.
	maxTextJoins = 64
	// maxTokens bounds the time for a text that is long but not deep: the library takes some 5 us and 1 KiB for each.
	maxTokens = 250_000
)

// guard refuses a text that the library should not see.
func guard(sql string) error {
	if !utf8.ValidString(sql) {
		return fault.SQLNotUTF8()
	}
	if n := utf8.RuneCountInString(sql); n > maxLength {
		return fault.SQLTooLong(n, maxLength)
	}
	g := gauge{scanner: scanner{sql: sql}, open: make([]group, 1, 16)}
	for g.next() {
		if err := g.take(); err != nil {
			return err
		}
	}
	return nil
}

// gauge finds an upper bound of the depth of a statement's tree, without knowing its grammar.
type gauge struct {
	scanner
	open   []group // the text as a whole, and each parenthesis, bracket and CASE that is open
	name   bool    // the last token was a dot: a word is a name, whatever it is
	tokens int
	joins  int
	unions int
}

// group is what is known of an open group. It consists of stretches of text that do not nest in each other, between commas, clause
// keywords, AND and OR.
type group struct {
	isCase  bool
	from    bool // in a FROM clause, where a comma is a join
	stages  int  // joins and pipe operators, each of which nests what is before it
	deepest int  // depth of the deepest stretch but the current one
	ops     int  // operators in the current stretch, each of which may nest what is before or behind it
	inner   int  // depth of the deepest group in the current stretch
}

func (g *group) depth() int { return g.stages + max(g.deepest, g.ops+g.inner) }

func (g *group) endStretch() {
	g.deepest = max(g.deepest, g.ops+g.inner)
	g.ops, g.inner = 0, 0
}

func (g *gauge) take() error {
	top := &g.open[len(g.open)-1]
	if g.tokens++; g.tokens > maxTokens {
		return fault.QueryLimit("tokens in a query", maxTokens)
	}
	name := g.name
	g.name = g.token == "."
	switch g.token {
	case "(", "[", "{":
		return g.push(false)
	case ")", "]", "}":
		for g.open[len(g.open)-1].isCase {
			g.pop()
		}
		g.pop()
	case ",":
		if top.from {
			g.joins++
			top.stages++
		}
		top.endStretch()
	case ";":
		top.endStretch()
	case "|>":
		top.stages++
		top.endStretch()
	default:
		if isWord(g.token[0]) {
			if !name {
				return g.keyword(top, g.word())
			}
		} else if quoteAt(g.token) < 0 {
			top.ops++
		}
	}
	return g.tooDeep()
}

func (g *gauge) keyword(top *group, word string) error {
	switch word {
	case "CASE":
		return g.push(true)
	case "END":
		if top.isCase {
			g.pop()
		}
	case "JOIN":
		g.joins++
		top.stages++
		top.endStretch()
	case "UNION":
		g.unions++
		top.from = false
		top.endStretch()
	case "FROM":
		top.from = true
		top.endStretch()
	case "SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "INTERSECT", "EXCEPT", "SET", "VALUES", "WITH":
		top.from = false
		top.endStretch()
	case "AND", "OR", "ON", "USING", "WHEN", "THEN", "ELSE":
		top.endStretch()
	case "NOT", "IN", "LIKE", "BETWEEN", "IS":
		top.ops++
	}
	return g.tooDeep()
}

func (g *gauge) push(isCase bool) error {
	if len(g.open) > maxNesting {
		return g.fault(maxNesting)
	}
	g.open = append(g.open, group{isCase: isCase})
	return nil
}

// pop closes a group; one bracket too many is for the library to find.
func (g *gauge) pop() {
	last := len(g.open) - 1
	if last == 0 {
		return
	}
	depth := g.open[last].depth() + 1
	g.open = g.open[:last]
	top := &g.open[last-1]
	top.inner = max(top.inner, depth)
}

func (g *gauge) tooDeep() error {
	if g.joins > maxTextJoins {
		return fault.QueryLimit("joins", maxJoins)
	}
	if g.unions > maxUnions {
		return fault.QueryLimit("unions in a query", maxUnions)
	}
	if g.open[len(g.open)-1].depth() > maxDepth {
		return g.fault(maxDepth)
	}
	return nil
}

// fault says at which line and column, in characters, the statement is too deep.
func (g *gauge) fault(limit int) error {
	before := g.sql[:g.start]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return fault.QueryTooDeep(limit, line, column)
}

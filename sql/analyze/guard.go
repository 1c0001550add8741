package analyze

import (
	"unicode/utf8"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Bounds of a text. The guard checks them before GoogleSQL's library gets the text. The library recurses as deeply as a
// statement is nested, on its own stack of a fixed size and on the goroutine's stack. If either stack overflows, the
// process ends, so the guard must bound the depth.
const (
	maxLength = 1_000_000 // the maximum number of characters of a statement (Spanner's quota "Query statement length")

	// maxNesting bounds the depth of parentheses, brackets and CASE. It is far above the depth of statements within
	// Spanner's own limits on nested functions (75), subqueries (25) and subselects (60).
	maxNesting = 300
	// maxDepth bounds the depth of a statement if each operator counts as a level too: 1+1+1 has two levels, because it
	// means (1+1)+1. In a test GoogleSQL's library could analyze ten thousand levels, each of which took 20 KiB and
	// 85 us. The bound refuses no nested calls that Spanner allows, because Spanner allows only 75.
	maxDepth = 1_000
	// maxBetweens bounds the depth of BETWEEN in operands of BETWEEN. If the operands of a BETWEEN have different
	// types, GoogleSQL resolves them twice, so that its time doubles with each level: from 20 us to 20 ms at
	// maxBetweens levels.
	maxBetweens = 10
	// maxTextJoins bounds the number of joins, including joined UNNESTs. GoogleSQL's time and memory grow with the
	// square of the number of joins, times the number of columns of the joined tables.
	maxTextJoins = 64
	// maxSelectColumns bounds the columns of one SELECT list. If the columns are names, GoogleSQL's time grows with the
	// square of their number: GoogleSQL takes half a second for maxSelectColumns names, and half a minute for six times
	// as many.
	maxSelectColumns = 20_000
	// maxAdjacentStrings bounds the number of string literals in a row. GoogleSQL refuses even two, but only after
	// work that grows with the square of their number.
	maxAdjacentStrings = 1_000
)

// guard refuses a text beyond the bounds above, and estimates the weight of GoogleSQL's work for the text (see load).
// The function columns returns how many columns the table or view called name has; 0 if there is no such table or view.
func guard(sql string, columns func(name string) int) (weight int, err error) {
	if !utf8.ValidString(sql) {
		return 0, usererror.SQLNotUTF8()
	}
	if n := utf8.RuneCountInString(sql); n > maxLength {
		return 0, usererror.SQLTooLong(n, maxLength)
	}
	g := gauge{scanner: scanner{sql: sql}, open: make([]group, 1, 16)}
	g.load.columns, g.load.length = columns, len(sql)
	for g.next() {
		in := &g.open[len(g.open)-1]
		if err := g.tally.add(g.tokenOrWord(), in); err != nil {
			return 0, err
		}
		g.load.add(g.token, g.name, in, len(g.open)-1)
		if err := g.addToken(); err != nil {
			return 0, err
		}
	}
	g.load.nest(g.open[0].levels())
	return g.load.weight(), nil
}

// tokenOrWord returns the current token, in upper case if it is a word that could be a keyword.
func (g *gauge) tokenOrWord() string {
	if w := g.word(); w != "" && !g.name {
		return w
	}
	return g.token
}

// gauge computes an upper bound of the depth of a statement's tree from its tokens, without knowing the grammar.
type gauge struct {
	scanner
	open   []group // counts for the whole text, then for each open parenthesis, bracket and CASE
	name   bool    // the last token was a dot, so that a keyword after it is a name
	last   string  // the last word
	row    int     // number of string literals in a row that end with the last token
	joins  int
	unions int
	load   load
	tally  tally
}

// group holds counts of the text within an open parenthesis, bracket or CASE. Commas, clause keywords, AND and OR cut
// this text into stretches that do not nest in each other.
type group struct {
	isCase bool
	hint   bool
	list   string // IN or STRUCT if the group is the list after that word; else ""
	commas int
	// clause is FROM, where a comma means a join; SELECT or GROUP, where a comma means another column; ORDER or SET; or
	// "" for all other clauses.
	clause   string
	grouped  int    // number of commas in GROUP BY
	selected int    // number of commas in SELECT
	stages   int    // number of joins and pipe operators, each of which nests everything before it
	deepest  levels // deepest nesting within the earlier stretches of the group
	inner    levels // deepest nesting within those groups that the current stretch contains

	// Counts in the current stretch. ops is the number of operators, each of which may nest the text before or after
	// it. betweens is the number of BETWEENs. pending is the number of BETWEENs whose AND has not come yet.
	ops, betweens, pending int
}

// levels holds depths: all counts operators, calls and brackets together; betweens counts only BETWEEN.
type levels struct{ all, betweens int }

func (l levels) max(m levels) levels {
	return levels{max(l.all, m.all), max(l.betweens, m.betweens)}
}

func (g *group) currentLevels() levels {
	return levels{g.ops + g.inner.all, g.betweens + g.inner.betweens}
}

func (g *group) levels() levels {
	l := g.deepest.max(g.currentLevels())
	l.all += g.stages
	return l
}

func (g *group) endStretch() {
	g.deepest = g.deepest.max(g.currentLevels())
	g.inner = levels{}
	g.ops, g.betweens, g.pending = 0, 0, 0
}

// begin starts a new clause in the group.
func (g *group) begin(clause string) {
	g.clause = clause
	g.endStretch()
}

func (g *gauge) addToken() error {
	top := &g.open[len(g.open)-1]
	name := g.name
	g.name = g.token == "."
	if quoteAt(g.token) < 0 {
		g.row = 0
	} else if g.row++; g.row > maxAdjacentStrings {
		return usererror.QueryLimit("string literals in a row", maxAdjacentStrings)
	}
	switch g.token {
	case "(", "[", "{":
		return g.push(false)
	case ")", "]", "}":
		for g.open[len(g.open)-1].isCase {
			g.pop()
		}
		g.pop()
		g.open[len(g.open)-1].ops++ // the brackets may be a subscript, which nests the text before it
	case ",":
		switch top.clause {
		case "FROM":
			g.joins++
			top.stages++
		case "GROUP":
			top.grouped++
		case "SELECT":
			top.selected++
		}
		top.endStretch()
	case ";":
		top.endStretch()
	case "|>":
		top.stages++
		top.begin("")
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
	last := g.last
	g.last = word
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
	case "UNION", "INTERSECT":
		g.unions++
		top.begin("")
	case "FROM":
		top.list = ""
		if last == "DISTINCT" { // the operator IS DISTINCT FROM, not a clause
			top.ops++
		} else {
			top.begin(word)
		}
	case "AGGREGATE":
		g.tally.grouped = true
	case "GROUP":
		g.tally.grouped = true
		top.grouped = 0
		top.begin(word)
	case "ORDER", "SET":
		top.begin(word)
	case "SELECT", "EXTEND":
		top.list = "" // not a list but a subquery: IN (SELECT ...)
		top.selected = 0
		top.begin("SELECT")
	case "WITH":
		top.list = ""
		top.begin("")
	case "WHERE", "HAVING", "LIMIT", "EXCEPT", "VALUES", "RETURN":
		top.begin("")
	case "AND":
		if top.pending > 0 {
			top.pending--
		} else {
			top.endStretch()
		}
	case "BETWEEN":
		top.ops++
		top.betweens++
		top.pending++
	case "OR", "ON", "USING", "WHEN", "THEN", "ELSE":
		top.endStretch()
	case "NOT", "IN", "LIKE", "IS":
		top.ops++
	}
	return g.tooDeep()
}

func (g *gauge) push(isCase bool) error {
	if len(g.open) > maxNesting {
		return g.nestingError(maxNesting)
	}
	in := group{isCase: isCase}
	switch before := g.tally.before[1]; {
	case g.token == "{" && before == "@":
		in.hint = true
	case g.token == "(" && (before == "IN" || before == "STRUCT"):
		in.list = before
	}
	in.hint = in.hint || g.open[len(g.open)-1].hint
	g.open = append(g.open, in)
	return nil
}

// pop closes a group. It ignores a closing bracket without an opening one: GoogleSQL reports that error later.
func (g *gauge) pop() {
	last := len(g.open) - 1
	if last == 0 {
		return
	}
	l := g.open[last].levels()
	l.all++
	g.open = g.open[:last]
	top := &g.open[last-1]
	top.inner = top.inner.max(l)
	g.load.nest(l)
}

func (g *gauge) tooDeep() error {
	if g.joins > maxTextJoins {
		return usererror.QueryLimit(limitJoins, maxJoins)
	}
	if g.unions > maxUnions {
		return usererror.QueryLimit(limitUnions, maxUnions)
	}
	top := &g.open[len(g.open)-1]
	if top.grouped >= maxGroupByColumns {
		return usererror.QueryLimit(limitGroupByColumns, maxGroupByColumns)
	}
	if top.selected >= maxSelectColumns {
		return usererror.QueryLimit("columns of a SELECT", maxSelectColumns)
	}
	l := top.levels()
	if l.betweens > maxBetweens {
		return usererror.QueryLimit("nested BETWEEN operators", maxBetweens)
	}
	if l.all > maxDepth {
		return g.nestingError(maxDepth)
	}
	return nil
}

// nestingError returns the error for a statement that is nested too deep, with the line and column as GoogleSQL
// counts them.
func (g *gauge) nestingError(limit int) error {
	line, column := usererror.PositionOf(g.sql, g.start)
	return usererror.QueryTooDeep(limit, line, column)
}

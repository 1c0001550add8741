package analyze

import "github.com/crowfoot-db/crowfoot/usererror"

// Limits of a statement, from Spanner's page "Quotas and limits", section "Query limits".
const (
	maxJoins            = 20
	maxUnions           = 200
	maxInValues         = 10_000
	maxParameters       = 950
	maxGroupByColumns   = 1_000
	maxStructFields     = 1_000
	maxFunctionCalls    = 1_000
	maxNestedCalls      = 75
	maxNestedGroupBys   = 35
	maxNestedSubqueries = 25
	maxNestedSubselects = 60
	maxSubqueries       = 50 // subqueries in the expressions of one query; Spanner: "Subquery expression children"
)

// maxNestedFields bounds the number of fields of a STRUCT type, including the fields of the STRUCTs in it. STRUCT(s
// AS a, s AS b) has twice the fields of s, so without a bound a short statement could have a type with millions of
// fields. Spanner documents no such limit.
const maxNestedFields = 10 * maxStructFields

// maxExpansions bounds how often the names of views and functions are replaced by their texts in a statement. Names
// within these texts count too. In a chain of ten views, each of which reads the view before it twice, one name becomes
// a thousand texts. If each view reads the one before it ten times, one name becomes ten billion texts, too many to
// analyze. Spanner documents no such limit.
const maxExpansions = 1_000

// maxNamed bounds how many subqueries of WITH a statement has after each name is replaced by its subquery. A chain of
// 30 names, each of which doubles the rows of the one before by UNION ALL, is a short text that turns one row into a
// billion rows. Spanner documents no such limit.
const maxNamed = 1_000_000

// Names of the limited quantities, in the words of the Spanner emulator's error messages.
const (
	limitJoins            = "joins"
	limitUnions           = "UNION operations"
	limitInValues         = "values in the IN operator"
	limitParameters       = "parameters in query"
	limitGroupByColumns   = "grouping columns"
	limitStructFields     = "struct fields"
	limitFunctions        = "functions"
	limitNestedCalls      = "nested boolean predicates"
	limitNestedGroupBys   = "nested aggregations"
	limitNestedSubqueries = "nested subqueries"
	limitNestedSubselects = "nested subselects"
	limitSubqueries       = "child subqueries"
	limitNestedFields     = "struct fields within each other"
	limitNamed            = "named subqueries, those within each other,"
	limitExpansions       = "views and functions, those within each other,"
)

// counts holds the numbers of joins, UNIONs and other limited parts of a statement that the walk through the statement
// has met so far. Its methods end the walk with an error as soon as a number exceeds its limit.
type counts struct {
	joins, unions, functions, expansions int
	parameters                           map[string]bool

	named   int            // number of subqueries of WITH if each name is replaced by its subquery
	namedIn map[string]int // for each subquery of WITH, by its name: how much each use adds to named

	// The depths of nesting at the place that the walk has reached.
	calls, groupBys, subqueries, subselects int

	siblings int // subqueries met so far in the current query
}

func (c *counts) join() {
	c.joins++
	atMost(limitJoins, c.joins, maxJoins)
}

// union counts the UNIONs of a set operation with the given number of inputs. The function guard has already counted
// the UNIONs in the statement's own text, but not those in the texts of views.
func (c *counts) union(inputs int) {
	c.unions += inputs - 1
	atMost(limitUnions, max(inputs, c.unions), maxUnions)
}

// define calls walk, which walks through the definition of a subquery of WITH. It stores how many uses of subqueries of
// WITH the definition contains, plus one for the subquery itself. At each use of the subquery, c.name adds that number
// to the total.
func (c *counts) define(name string, walk func()) {
	before := c.named
	walk()
	if c.namedIn == nil {
		c.namedIn = map[string]int{}
	}
	c.namedIn[name], c.named = c.named-before+1, before
}

// name counts a subquery of WITH and the subqueries within it. The walk calls it at each use of the subquery.
func (c *counts) name(name string) {
	c.named += c.namedIn[name]
	atMost(limitNamed, c.named, maxNamed)
}

// expansion counts a view or a function whose name is replaced by its text.
func (c *counts) expansion() {
	c.expansions++
	atMost(limitExpansions, c.expansions, maxExpansions)
}

func (c *counts) function() {
	c.functions++
	atMost(limitFunctions, c.functions, maxFunctionCalls)
}

func (c *counts) parameter(name string) {
	if c.parameters == nil {
		c.parameters = map[string]bool{}
	}
	c.parameters[name] = true
	atMost(limitParameters, len(c.parameters), maxParameters)
}

// enter increments *nested, a depth of nesting, and refuses the statement if the depth exceeds limit. The string
// in what names the depth in the error message. The returned function leave decrements the depth again.
func enter(nested *int, what string, limit int) (leave func()) {
	*nested++
	atMost(what, *nested, limit)
	return func() { *nested-- }
}

// subquery enters a subquery of an expression. leave must be called at the end of the subquery.
func (c *counts) subquery() (leave func()) {
	c.siblings++
	atMost(limitSubqueries, c.siblings, maxSubqueries)
	before := c.siblings
	c.siblings = 0
	up := enter(&c.subqueries, limitNestedSubqueries, maxNestedSubqueries)
	return func() {
		c.siblings = before
		up()
	}
}

// atMost refuses the statement if n is greater than limit. The string in what names the quantity in the error
// message.
func atMost(what string, n, limit int) {
	if n > limit {
		refuse(usererror.QueryLimit(what, limit))
	}
}

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
	maxSubqueries       = 50 // in the expressions of one query ("Subquery expression children")
)

// maxNestedFields bounds the number of fields of a STRUCT type, including the fields of the STRUCTs in it. STRUCT(s
// AS a, s AS b) has twice the fields of s, so without a bound a short statement could have a type with millions of
// fields. Spanner documents no such limit.
const maxNestedFields = 10 * maxStructFields

// maxExpansions bounds how many names of views and functions are replaced by their texts in a statement. Names within
// these texts also count. Ten views, each of which reads the one before twice, turn one name into a thousand texts.
// If each reads the one before ten times, there are more texts than could ever be analyzed. Spanner documents no such
// limit.
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

// counts holds the limited quantities of a statement, as far as the walk through the statement has counted them. Its
// methods end the walk with an error as soon as a count exceeds its limit.
type counts struct {
	joins, unions, functions, expansions int
	parameters                           map[string]bool

	named   int            // subqueries of WITH after each name is replaced by its subquery
	namedIn map[string]int // the same count within each subquery of WITH, by its name; the subquery itself counts as one

	// The depths of nesting at the place that the walk has reached.
	calls, groupBys, subqueries, subselects int

	siblings int // subqueries met so far in the current query
}

func (c *counts) join() {
	c.joins++
	atMost(limitJoins, c.joins, maxJoins)
}

// union counts the UNIONs of a set operation with this many inputs. The guard has already counted those of the
// statement's own text; this method also counts those in the texts of views.
func (c *counts) union(inputs int) {
	c.unions += inputs - 1
	atMost(limitUnions, max(inputs, c.unions), maxUnions)
}

// define calls walk, which walks through the definition of a subquery of WITH, and stores how many such subqueries
// walk has counted. c.name later adds that number to the total at each use of the subquery.
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

// enter increments nested, a depth of nesting, and refuses the statement if the depth exceeds the limit. The argument
// what is the name of the kind of nesting in the error. leave decrements the depth again.
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

// atMost refuses the statement if n is over the limit. what is the name of the quantity for the error message.
func atMost(what string, n, limit int) {
	if n > limit {
		refuse(usererror.QueryLimit(what, limit))
	}
}

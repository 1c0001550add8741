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
	maxSubqueries       = 50 // of one query, in its expressions ("Subquery expression children")
)

// maxNestedFields bounds the fields of a STRUCT type with those of the STRUCTs in it. STRUCT(s AS a, s AS b) has twice those of s, so that
// a short statement could have a type of millions. Spanner names no such limit.
const maxNestedFields = 10 * maxStructFields

// maxExpansions bounds how many texts of views and functions take the place of their names in a statement: each time that a name is met, also in such a
// text. Ten views that read the one before twice would otherwise make a thousand of one, and ten that read it ten times more than could ever be analyzed.
// Spanner names no such limit.
const maxExpansions = 1_000

// maxNamed bounds how many subqueries of WITH a statement has if their texts take the place of their names. A chain of them that doubles rows by
// UNION ALL, 30 names long, is a short text that makes a billion rows of one. Spanner names no such limit.
const maxNamed = 1_000_000

// What is limited, in Spanner's words, as the emulator's errors give them.
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

// counts is how much of what Spanner limits the walk through a statement has met so far. It ends with an error as soon as a limit is passed.
type counts struct {
	joins, unions, functions, expansions int
	parameters                           map[string]bool

	named   int            // subqueries of WITH, their texts in the place of their names
	namedIn map[string]int // that are in each subquery of WITH, with itself

	// How deeply the place that the walk has reached is nested.
	calls, groupBys, subqueries, subselects int

	siblings int // subqueries met so far in the query at hand
}

func (c *counts) join() {
	c.joins++
	atMost(limitJoins, c.joins, maxJoins)
}

// union counts the UNIONs of a set operation. The text of a statement was refused before if it has too many; those of views are counted here.
func (c *counts) union(inputs int) {
	c.unions += inputs - 1
	atMost(limitUnions, max(inputs, c.unions), maxUnions)
}

// define counts the named subqueries within one that walk goes through. They count where it is named.
func (c *counts) define(name string, walk func()) {
	before := c.named
	walk()
	if c.namedIn == nil {
		c.namedIn = map[string]int{}
	}
	c.namedIn[name], c.named = c.named-before+1, before
}

// name counts a named subquery where it is named.
func (c *counts) name(name string) {
	c.named += c.namedIn[name]
	atMost(limitNamed, c.named, maxNamed)
}

// expansion counts a view or a function whose text takes the place of its name.
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

// enter goes one level deeper, in calls, subqueries or the like, and refuses a level beyond the limit; leave goes back up.
func enter(nested *int, what string, limit int) (leave func()) {
	*nested++
	atMost(what, *nested, limit)
	return func() { *nested-- }
}

// subquery enters a subquery of an expression; leave leaves it.
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

// atMost refuses a statement that has n of what is limited to fewer.
func atMost(what string, n, limit int) {
	if n > limit {
		refuse(usererror.QueryLimit(what, limit))
	}
}

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

// counts is how much of what Spanner limits the walk through a statement has met so far. It ends with an error as soon as a limit is passed.
type counts struct {
	joins, functions int
	parameters       map[string]bool

	// How deeply the place that the walk has reached is nested.
	calls, groupBys, subqueries, subselects int

	siblings int // subqueries met so far in the query at hand
}

func (c *counts) join() {
	c.joins++
	atMost("joins", c.joins, maxJoins)
}

func (c *counts) function() {
	c.functions++
	atMost("function calls", c.functions, maxFunctionCalls)
}

func (c *counts) parameter(name string) {
	if c.parameters == nil {
		c.parameters = map[string]bool{}
	}
	c.parameters[name] = true
	atMost("parameters", len(c.parameters), maxParameters)
}

// enter goes one level deeper, in calls, subqueries or the like, and refuses a level beyond the limit; leave goes back up.
func enter(nested *int, what string, limit int) (leave func()) {
	*nested++
	atMost("nested "+what, *nested, limit)
	return func() { *nested-- }
}

// subquery enters a subquery of an expression; leave leaves it.
func (c *counts) subquery() (leave func()) {
	c.siblings++
	atMost("subqueries of an expression", c.siblings, maxSubqueries)
	before := c.siblings
	c.siblings = 0
	up := enter(&c.subqueries, "subquery expressions", maxNestedSubqueries)
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

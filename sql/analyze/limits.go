package analyze

import "github.com/crowfoot-db/crowfoot/fault"

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
)

// counts are what has been met in a statement so far.
type counts struct {
	joins      int
	functions  int
	parameters map[string]bool

	calls, groupBys, subqueries, subselects nesting
}

// nesting is how deeply things of one kind are nested: at the moment, and at most.
type nesting struct{ now, most int }

// enter goes one level deeper into n; the result leaves it.
func (c *counts) enter(n *nesting) (leave func()) {
	n.now++
	n.most = max(n.most, n.now)
	return func() { n.now-- }
}

func (c *counts) parameter(name string) {
	if c.parameters == nil {
		c.parameters = map[string]bool{}
	}
	c.parameters[name] = true
}

// check refuses a statement that is beyond a limit.
func (c *counts) check() {
	atMost("joins", c.joins, maxJoins)
	atMost("function calls", c.functions, maxFunctionCalls)
	atMost("parameters", len(c.parameters), maxParameters)
	atMost("nested function calls", c.calls.most, maxNestedCalls)
	atMost("nested GROUP BY clauses", c.groupBys.most, maxNestedGroupBys)
	atMost("nested subquery expressions", c.subqueries.most, maxNestedSubqueries)
	atMost("nested subselects", c.subselects.most, maxNestedSubselects)
}

// atMost refuses a statement with more of something than allowed.
func atMost(what string, n, limit int) {
	if n > limit {
		refuse(fault.QueryLimit(what, limit))
	}
}

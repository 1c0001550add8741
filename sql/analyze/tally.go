package analyze

import (
	"strings"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// tally counts function calls, parameters and other quantities that Spanner limits, by the tokens of an SQL text alone.
// So a text far beyond a limit never reaches GoogleSQL's library. The walk through the resolved statement counts
// everything that tally counts. The walk may count more, such as the calls in the texts of views, and so refuse a text
// that tally accepts.
type tally struct {
	functions  int
	grouped    bool // the text has GROUP BY, which may merge equal calls, so the field functions may be too high
	parameters map[string]bool
	before     [2]string // the token that was counted last, and the token before it
}

// comparisons holds the tokens that become a function call wherever they stand, except for = in SET.
var comparisons = map[string]bool{"=": true, "<=": true, ">=": true, "<>": true, "!=": true, "||": true, "LIKE": true, "BETWEEN": true, "IS": true}

// arithmetic are tokens each of which becomes a function call if it follows a number or a closing bracket. After a word
// they are not counted, because they may be a sign, or the star of SELECT.
var arithmetic = map[string]bool{"+": true, "-": true, "*": true, "/": true}

// notFunctions are words that may stand before a parenthesis without being the name of a function.
// PENDING_COMMIT_TIMESTAMP is among them, since the walk through the statement does not count a call of that function
// as the value of a column in INSERT or UPDATE.
var notFunctions = words(`AGGREGATE ALL AND ANY ARRAY AS ASC BERNOULLI BETWEEN BY BYTES CASE CAST CONFLICT CROSS CUBE DEFAULT DESC DISTINCT
	ELSE END EXCEPT EXISTS EXTEND FROM FULL GROUP GROUPING HAVING IGNORE IN INNER INSERT INTERSECT INTERVAL INTO IS JOIN LATERAL LIKE
	LIMIT NOT NUMERIC OFFSET ON OR ORDER OUTER OVER PARTITION PENDING_COMMIT_TIMESTAMP PIVOT RECURSIVE REPLACE RESERVOIR RETURN ROLLUP SAFE_CAST
	SELECT SET SETS SOME STRING STRUCT TABLESAMPLE THEN TO UNION UNNEST UNPIVOT UPDATE USING VALUES WHEN WHERE WINDOW WITH WITHIN`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(list) {
		set[w] = true
	}
	return set
}

// add counts a token. The parameter in is the group to which the token belongs. It returns an error if a count exceeds
// its limit.
func (t *tally) add(token string, in *group) error {
	last, second := t.before[0], t.before[1]
	t.before = [2]string{token, last}
	switch {
	case in.hint:
		return nil
	case last == "@" && (isWord(token[0]) || token[0] == '`'):
		return t.parameter(strings.ToLower(unquoted(token)))
	case token == ",":
		in.commas++
		return in.tooMany()
	case token == "(" && isCall(last, second),
		comparisons[token] && !(token == "=" && in.clause == "SET") && in.clause != "ORDER",
		arithmetic[token] && last != "" && (last == ")" || last == "]" || isDigit(last[0])) && in.clause != "ORDER":
		return t.function()
	}
	return nil
}

// isCall reports whether an opening parenthesis begins the arguments of a function. The parameter name is the token in
// front of the parenthesis, and the parameter before is the token in front of name.
func isCall(name, before string) bool {
	if name == "" || !isWord(name[0]) || isDigit(name[0]) || notFunctions[strings.ToUpper(name)] {
		return false
	}
	return !strings.EqualFold(before, "INTO") && !strings.EqualFold(before, "INSERT") && !strings.EqualFold(before, "UPDATE")
}

func (t *tally) function() error {
	if t.functions++; t.functions > maxFunctionCalls && !t.grouped {
		return usererror.QueryLimit(limitFunctions, maxFunctionCalls)
	}
	return nil
}

func (t *tally) parameter(name string) error {
	if t.parameters == nil {
		t.parameters = map[string]bool{}
	}
	t.parameters[name] = true
	if len(t.parameters) > maxParameters {
		return usererror.QueryLimit(limitParameters, maxParameters)
	}
	return nil
}

// tooMany refuses a list with more values than IN or STRUCT may have. A list has one more value than commas.
func (g *group) tooMany() error {
	switch {
	case g.list == "IN" && g.commas >= maxInValues:
		return usererror.QueryLimit(limitInValues, maxInValues)
	case g.list == "STRUCT" && g.commas >= maxStructFields:
		return usererror.QueryLimit(limitStructFields, maxStructFields)
	}
	return nil
}

package analyze

import (
	"strings"

	"github.com/crowfoot-db/crowfoot/value"
)

// procedureParameters returns the types of those parameters that are arguments of a CALL: CALL cancel_query(@id)
// makes @id a STRING. The walker must declare these types, because the library infers the types of parameters in
// function calls, but breaks down on undeclared parameters in procedure calls.
func procedureParameters(sql string) map[string]*value.Type {
	if KindOf(sql) != CallKind {
		return nil
	}
	types := map[string]*value.Type{}
	name, args := calledWith(sql)
	for _, p := range spannerProcedures {
		want := p.signatures[0].args
		if !strings.EqualFold(p.name, name) || len(args) != len(want) {
			continue
		}
		for i, arg := range args {
			if arg.tokens == 2 && arg.first == "@" {
				types[strings.ToLower(unquoted(arg.last))] = want[i]
			}
		}
	}
	return types
}

// argument is an argument of a CALL: its number of tokens, not counting parentheses, and its first and last token.
type argument struct {
	tokens      int
	first, last string
}

// calledWith returns the name and the arguments of the procedure that a CALL calls.
func calledWith(sql string) (name string, args []argument) {
	s := scanner{sql: sql}
	for s.next() && s.token != "(" {
		name = unquoted(s.token)
	}
	args = make([]argument, 1)
	for depth := 1; depth > 0 && s.next(); {
		switch s.token {
		case "(":
			depth++
			continue
		case ")":
			depth--
			continue
		case ",":
			if depth == 1 {
				args = append(args, argument{})
				continue
			}
		}
		arg := &args[len(args)-1]
		if arg.last = s.token; arg.tokens == 0 {
			arg.first = s.token
		}
		arg.tokens++
	}
	return name, args
}

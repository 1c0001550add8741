package fn

import (
	"strings"

	"github.com/crowfoot-db/crowfoot/value"
)

// Fits reports whether a signature (see Overload) accepts arguments of these types. A nil type means a lambda.
func Fits(signature string, args []*value.Type) bool {
	params, _, _ := strings.Cut(signature, "->")
	i := 0
	for params = strings.TrimSpace(params); params != ""; {
		var p string
		p, params = NextParameter(params)
		if rest, ok := strings.CutSuffix(p, "..."); ok {
			group := strings.Split(strings.Trim(rest, "()"), ", ")
			for acceptAll(group, args[i:]) {
				i += len(group)
			}
			continue
		}
		p, optional := strings.CutPrefix(p, "?")
		switch {
		case i < len(args) && accepts(p, args[i]):
			i++
		case !optional:
			return false
		}
	}
	return i == len(args)
}

func acceptAll(params []string, args []*value.Type) bool {
	for i, p := range params {
		if i == len(args) || !accepts(p, args[i]) {
			return false
		}
	}
	return true
}

// NextParameter cuts a list of parameters after the first one. Commas inside <> and () do not separate parameters.
func NextParameter(params string) (first, rest string) {
	depth := 0
	for i := range len(params) {
		switch params[i] {
		case '<', '(':
			depth++
		case '>', ')':
			depth--
		case ',':
			if depth == 0 {
				return params[:i], strings.TrimSpace(params[i+1:])
			}
		}
	}
	return params, ""
}

func accepts(param string, t *value.Type) bool {
	if t == nil || param == "LAMBDA" {
		return t == nil && param == "LAMBDA"
	}
	switch param {
	case "ANY":
		return true
	case "PART":
		return t.Kind == value.String
	case "ARRAY", "STRUCT":
		return t.Kind.String() == param
	}
	return t.String() == param
}

package tree

// Walk calls f for an expression and all expressions in it, parents first. It does not enter the scans of subqueries.
func Walk(e Expr, f func(Expr)) {
	if e == nil {
		return
	}
	f(e)
	for _, o := range e.Operands() {
		Walk(o, f)
	}
}

// nondeterministic are the functions whose results do not depend on their arguments alone, but on the time or on chance.
var nondeterministic = map[string]bool{
	"current_timestamp": true, "current_date": true, "pending_commit_timestamp": true,
	"generate_uuid": true, "new_uuid": true, "rand": true,
}

// Nondeterministic reports whether an expression calls a function whose result its arguments do not determine, and returns the name of the
// function.
func Nondeterministic(e Expr) (name string, found bool) {
	Walk(e, func(e Expr) {
		if c, ok := e.(*Call); ok && nondeterministic[c.Func.Name] {
			name, found = c.Func.Name, true
		}
	})
	return name, found
}

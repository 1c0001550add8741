package tree

// Walk calls f for an expression and all expressions in it, parents first. It does not call f for expressions in the
// scans of subqueries.
func Walk(e Expr, f func(Expr)) {
	if e == nil {
		return
	}
	f(e)
	switch e := e.(type) {
	case *Call:
		walkAll(e.Args, f)
		for _, l := range e.Lambdas {
			Walk(l.Body, f)
		}
	case *Cast:
		walkAll([]Expr{e.Arg, e.Format, e.Zone}, f)
	case *Subquery:
		Walk(e.In, f)
	case *MakeStruct:
		walkAll(e.Fields, f)
	case *GetField:
		Walk(e.Arg, f)
	case *GetJSONField:
		Walk(e.Arg, f)
	case *Let:
		for _, d := range e.Defs {
			Walk(d.Expr, f)
		}
		Walk(e.Body, f)
	}
}

func walkAll(list []Expr, f func(Expr)) {
	for _, e := range list {
		Walk(e, f)
	}
}

// nondeterministic holds the functions whose results depend on the time or on chance.
var nondeterministic = map[string]bool{
	"current_timestamp": true, "current_date": true, "pending_commit_timestamp": true,
	"generate_uuid": true, "new_uuid": true, "rand": true,
}

// Nondeterministic reports whether an expression calls a nondeterministic function. name is the function's name.
func Nondeterministic(e Expr) (name string, found bool) {
	Walk(e, func(e Expr) {
		if c, ok := e.(*Call); ok && nondeterministic[c.Func.Name] {
			name, found = c.Func.Name, true
		}
	})
	return name, found
}

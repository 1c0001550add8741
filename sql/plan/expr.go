package plan

import (
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Expr is a scalar expression over the row at hand.
type Expr interface{ Type() *value.Type }

type (
	// Slot is a column of the row at hand.
	Slot struct {
		T     *value.Type
		Index int
		Name  string // for people
	}
	// Outer is a column of an enclosing row: of the left side of the Apply, or of the row whose
	// expression holds the Subquery, that this expression runs under. It was put in a register (see Bind).
	Outer struct {
		T        *value.Type
		Register int
		Name     string
	}
	// Parameter is Plan.Params[Index].
	Parameter struct {
		T     *value.Type
		Index int
		Name  string
	}
	// Const is a constant.
	Const struct {
		T     *value.Type
		Value value.Value
	}
	// Call applies a function. Where Args[i] is nil, Lambdas holds the argument.
	Call struct {
		Func    *tree.Function
		Args    []Expr
		Lambdas []*Lambda
	}
	// Lambda is a function argument: its parameters are put in Registers, then Body is computed.
	Lambda struct {
		Registers []int
		Body      Expr
	}
	// Cast converts. Format and Zone may be nil.
	Cast struct {
		Arg          Expr
		T            *value.Type
		Safe         bool
		Format, Zone Expr
	}
	// Subquery runs Plan, whose rows have one column (any, for EXISTS).
	Subquery struct {
		T    *value.Type
		Kind tree.SubqueryKind
		In   Expr // left side of IN
		Plan Node
		// Bind are the columns of the row at hand that Plan refers to. If Plan refers to no enclosing row at all
		// (Constant), its result is computed once in a run.
		Bind     []Bind
		Constant bool
	}
	// MakeStruct builds a STRUCT.
	MakeStruct struct {
		T      *value.Type
		Fields []Expr
	}
	// GetField takes a field of a STRUCT.
	GetField struct {
		T     *value.Type
		Arg   Expr
		Index int
	}
	// GetJSONField takes a member of a JSON object.
	GetJSONField struct {
		Arg  Expr
		Name string
	}
	// Let computes Values into Registers, in order, then Body.
	Let struct {
		Registers []int
		Values    []Expr
		Body      Expr
	}
)

// Bind puts a column of the row at hand in a register.
type Bind struct {
	Slot, Register int
	Name           string // for people
}

func (e *Slot) Type() *value.Type         { return e.T }
func (e *Outer) Type() *value.Type        { return e.T }
func (e *Parameter) Type() *value.Type    { return e.T }
func (e *Const) Type() *value.Type        { return e.T }
func (e *Call) Type() *value.Type         { return e.Func.Type }
func (e *Cast) Type() *value.Type         { return e.T }
func (e *Subquery) Type() *value.Type     { return e.T }
func (e *MakeStruct) Type() *value.Type   { return e.T }
func (e *GetField) Type() *value.Type     { return e.T }
func (e *GetJSONField) Type() *value.Type { return value.JSONType }
func (e *Let) Type() *value.Type          { return e.Body.Type() }

// children are the expressions that e is made of, subqueries' plans left out.
func children(e Expr) []Expr {
	switch e := e.(type) {
	case *Call:
		list := make([]Expr, 0, len(e.Args)+len(e.Lambdas))
		for _, a := range e.Args {
			if a != nil {
				list = append(list, a)
			}
		}
		for _, l := range e.Lambdas {
			if l != nil {
				list = append(list, l.Body)
			}
		}
		return list
	case *Cast:
		return present(e.Arg, e.Format, e.Zone)
	case *Subquery:
		return present(e.In)
	case *MakeStruct:
		return e.Fields
	case *GetField:
		return []Expr{e.Arg}
	case *GetJSONField:
		return []Expr{e.Arg}
	case *Let:
		return append(append([]Expr(nil), e.Values...), e.Body)
	}
	return nil
}

func present(list ...Expr) []Expr {
	var out []Expr
	for _, e := range list {
		if e != nil {
			out = append(out, e)
		}
	}
	return out
}

// WalkExpr calls f for e and every expression in it, those before what they are made of; not for the plans of subqueries.
func WalkExpr(e Expr, f func(Expr)) {
	if e == nil {
		return
	}
	f(e)
	for _, c := range children(e) {
		WalkExpr(c, f)
	}
}

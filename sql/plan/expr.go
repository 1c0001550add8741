package plan

import (
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Expr is a scalar expression over the current row.
type Expr interface{ Type() *value.Type }

type (
	// Slot is a column of the current row.
	Slot struct {
		T     *value.Type
		Index int
		Name  string // shown in printed plans
	}
	// Outer is a column of an enclosing row: of the left side of the Apply that this expression runs under, or of the row whose expression
	// holds the Subquery. The enclosing operator has put its value in a register (see Bind).
	Outer struct {
		T        *value.Type
		Register int
		Name     string
	}
	// Parameter is the query parameter Plan.Params[Index].
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
	// Lambda is a function as an argument. A call puts its arguments in Registers and then computes Body.
	Lambda struct {
		Registers []int
		Body      Expr
	}
	// Cast converts Arg to type T. Format and Zone may be nil.
	Cast struct {
		Arg          Expr
		T            *value.Type
		Safe         bool
		Format, Zone Expr
	}
	// Subquery runs Plan. The rows of Plan have one column (any columns for EXISTS).
	Subquery struct {
		T    *value.Type
		Kind tree.SubqueryKind
		In   Expr // left side of IN
		Plan Node
		// Bind lists the columns of the current row that Plan refers to. If Plan refers to no enclosing row at all, Constant is set: each
		// run computes the result once.
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

// Bind puts a column of the current row in a register.
type Bind struct {
	Slot, Register int
	Name           string // shown in printed plans
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

// children returns the direct operands of e, without the plans of subqueries.
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

// WalkExpr calls f for e and every expression in it, each before its operands. It does not enter the plans of subqueries.
func WalkExpr(e Expr, f func(Expr)) {
	if e == nil {
		return
	}
	f(e)
	for _, c := range children(e) {
		WalkExpr(c, f)
	}
}

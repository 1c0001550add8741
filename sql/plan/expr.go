package plan

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Expr is a scalar expression over the current row of an operator. The expressions of a plan are those of package tree that mention neither a
// column nor a parameter nor a scan (Literal, Call, Cast, MakeStruct, GetField, GetJSONField), and the expressions below.
//
// The others have a form of their own because the planner compiles an expression of the statement more than once, each time for rows with other
// slots. A Plan also lives in a cache for long and must not hold the scans of the statement.
type Expr = tree.Expr

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
	// Lambda is a function as an argument. A call puts its arguments in Registers and then computes Body.
	Lambda struct {
		Registers []int
		Body      Expr
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

func (e *Slot) Type() *value.Type      { return e.T }
func (e *Outer) Type() *value.Type     { return e.T }
func (e *Parameter) Type() *value.Type { return e.T }
func (e *Lambda) Type() *value.Type    { return nil }
func (e *Subquery) Type() *value.Type  { return e.T }
func (e *Let) Type() *value.Type       { return e.Body.Type() }

func (e *Slot) Operands() []Expr      { return nil }
func (e *Outer) Operands() []Expr     { return nil }
func (e *Parameter) Operands() []Expr { return nil }
func (e *Lambda) Operands() []Expr    { return []Expr{e.Body} }
func (e *Let) Operands() []Expr       { return append(slices.Clone(e.Values), e.Body) }
func (e *Subquery) Operands() []Expr {
	if e.In == nil {
		return nil
	}
	return []Expr{e.In}
}

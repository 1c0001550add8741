package plan

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Expr is a scalar expression over the current row of an operator. A plan uses those expressions of package tree
// that mention neither a column nor a parameter nor a scan (Literal, Call, Cast, MakeStruct, GetField,
// GetJSONField), and the expressions below.
//
// The expressions below replace those of package tree for two reasons. The planner compiles an expression of the
// statement more than once, each time for rows with different slots. And a Plan stays in a cache for a long time, so it
// must not keep the scans of the statement in memory.
type Expr = tree.Expr

type (
	// Slot is a column of the current row.
	Slot struct {
		T     *value.Type
		Index int
		Name  string // shown in printed plans
	}
	// Outer is a value that another operator or expression has put in a register. Mostly it is a column of an
	// enclosing row: a row of the left side of an Apply whose right side contains the Outer, or the row for which a
	// Subquery that contains the Outer is computed (see Bind). It can also be a parameter of a Lambda, or a value of
	// a Let.
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
	// Lambda is a function that is an argument of a call. The called function puts the lambda's arguments in
	// Registers and then computes Body.
	Lambda struct {
		Registers []int
		Body      Expr
	}
	// Subquery runs Plan. The rows of Plan have one column (for EXISTS, any number of columns).
	Subquery struct {
		T    *value.Type
		Kind tree.SubqueryKind
		In   Expr // left side of IN
		Plan Node
		// Bind lists the columns of the current row that Plan refers to. Constant says that Plan refers to no
		// enclosing row at all, so each run of the statement computes the result only once.
		Bind     []Bind
		Constant bool
	}
	// Let computes Values into Registers, in this order, and then Body.
	Let struct {
		Registers []int
		Values    []Expr
		Body      Expr
	}
)

// Bind says that column Slot of the current row is put in the register with the number Register.
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

package plan

import (
	"strings"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// conjuncts folds the constants of a condition and splits it at AND. The condition is TRUE if and only if all
// returned conditions are TRUE. If cond is nil, conjuncts returns none.
func (p *planner) conjuncts(cond tree.Expr) []tree.Expr {
	if cond == nil {
		return nil
	}
	return split(p.fold(cond), nil)
}

func split(e tree.Expr, list []tree.Expr) []tree.Expr {
	c, ok := e.(*tree.Call)
	if !ok || c.Func.Safe {
		return append(list, e)
	}
	switch c.Func.Name {
	case "$and":
		for _, a := range c.Args {
			list = split(a, list)
		}
		return list
	case "$not":
		if parts := negate(c.Args[0]); parts != nil {
			for _, part := range parts {
				list = split(part, list)
			}
			return list
		}
	case "$between":
		if _, ok := c.Args[0].(*tree.Ref); ok && sameKinds(c.Func.Args) {
			list = append(list, call("$greater_or_equal", c.Args[0], c.Args[1]))
			return append(list, call("$less_or_equal", c.Args[0], c.Args[2]))
		}
	case "$equal":
		if parts := splitStruct(c); parts != nil {
			for _, part := range parts {
				list = split(part, list)
			}
			return list
		}
	}
	return append(list, e)
}

// opposites maps each comparison to its negation: one is TRUE where the other is FALSE. This does not hold if NaN is
// compared.
var opposites = map[string]string{
	"$less": "$greater_or_equal", "$less_or_equal": "$greater", "$greater": "$less_or_equal", "$greater_or_equal": "$less",
	"$equal": "$not_equal", "$not_equal": "$equal",
}

// negate returns conditions that together mean NOT e and that seeks can use more easily. It returns nil if it knows
// none.
func negate(e tree.Expr) []tree.Expr {
	c, ok := e.(*tree.Call)
	if !ok || c.Func.Safe {
		return nil
	}
	switch name := c.Func.Name; {
	case name == "$not":
		return c.Args
	case name == "$or":
		var parts []tree.Expr
		for _, a := range c.Args {
			parts = append(parts, call("$not", a))
		}
		return parts
	case opposites[name] != "" && exact(c.Args[0].Type()) && exact(c.Args[1].Type()):
		return []tree.Expr{call(opposites[name], c.Args...)}
	}
	return nil
}

// exact reports whether any two values of the type are equal, or one of them is less than the other. That does not
// hold for types that can contain NaN (floating-point numbers, and ARRAY and STRUCT), nor for JSON.
func exact(t *value.Type) bool {
	switch t.Kind {
	case value.Float64, value.Float32, value.Array, value.Struct, value.JSON:
		return false
	}
	return true
}

// splitStruct splits (a, b) = s into a = s.0 and b = s.1, which key seeks can use. It returns nil if c does not
// have that form.
func splitStruct(c *tree.Call) []tree.Expr {
	left, right := c.Args[0], c.Args[1]
	make1, ok := left.(*tree.MakeStruct)
	if !ok {
		left, right = right, left
		if make1, ok = left.(*tree.MakeStruct); !ok {
			return nil
		}
	}
	if _, made := right.(*tree.MakeStruct); !made && !movable(right) || len(make1.Fields) != len(right.Type().Fields) {
		return nil
	}
	var parts []tree.Expr
	for i, f := range make1.Fields {
		parts = append(parts, call("$equal", f, field(right, i)))
	}
	return parts
}

// field returns an expression for field number i of the struct e. If e is a constant or makes a struct, the result
// is the value of the field itself.
func field(e tree.Expr, i int) tree.Expr {
	switch e := e.(type) {
	case *tree.MakeStruct:
		return e.Fields[i]
	case *tree.Literal:
		if e.Value.IsNull() {
			return &tree.Literal{T: e.T.Fields[i].Type, Value: value.Null(e.T.Fields[i].Type.Kind)}
		}
		return &tree.Literal{T: e.T.Fields[i].Type, Value: e.Value.AsList()[i]}
	}
	return &tree.GetField{T: e.Type().Fields[i].Type, Arg: e, Index: i}
}

// call returns a call of an operator of GoogleSQL whose result is BOOL.
func call(name string, args ...tree.Expr) *tree.Call {
	f := &tree.Function{Name: name, Type: value.BoolType}
	for _, a := range args {
		f.Args = append(f.Args, a.Type())
	}
	return &tree.Call{Func: f, Args: args}
}

func sameKinds(types []*value.Type) bool {
	for _, t := range types {
		if t.Kind != types[0].Kind {
			return false
		}
	}
	return true
}

// isTrue reports whether e is the literal TRUE.
func isTrue(e tree.Expr) bool {
	l, ok := e.(*tree.Literal)
	return ok && !l.Value.IsNull() && l.T.Kind == value.Bool && l.Value.AsBool()
}

// isNever reports whether e is the literal FALSE or NULL.
func isNever(e tree.Expr) bool {
	l, ok := e.(*tree.Literal)
	return ok && (l.Value.IsNull() || l.T.Kind == value.Bool && !l.Value.AsBool())
}

// isCall reports whether e calls the function called name without SAFE, and returns the call.
func isCall(e tree.Expr, name string) (*tree.Call, bool) {
	c, ok := e.(*tree.Call)
	if !ok || c.Func.Safe || !strings.EqualFold(c.Func.Name, name) {
		return nil, false
	}
	return c, true
}

package plan

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/conversion"
	"github.com/crowfoot-db/crowfoot/sql/fn/library"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// fold computes the constant parts of an expression. If computing a part fails, fold leaves that part as it is, so
// the error appears only if the statement computes the part.
func (p *planner) fold(e tree.Expr) tree.Expr {
	if e == nil {
		return nil
	}
	return rebuild(e, func(e tree.Expr) tree.Expr {
		switch e := e.(type) {
		case *tree.Call:
			return p.foldCall(e)
		case *tree.Cast:
			return p.foldCast(e)
		case *tree.GetField:
			if arg := p.fold(e.Arg); isLiteral(arg) {
				return field(arg, e.Index)
			}
		}
		return nil
	})
}

func (p *planner) foldAll(list []tree.Expr) []tree.Expr {
	out := make([]tree.Expr, len(list))
	for i, e := range list {
		out[i] = p.fold(e)
	}
	return out
}

func (p *planner) foldComputed(list []tree.Computed) []tree.Computed {
	out := make([]tree.Computed, len(list))
	for i, c := range list {
		out[i] = tree.Computed{Col: c.Col, Expr: p.fold(c.Expr)}
	}
	return out
}

func (p *planner) foldKeys(list []tree.SortKey) []tree.SortKey {
	out := append([]tree.SortKey(nil), list...)
	for i := range out {
		out[i].Expr = p.fold(out[i].Expr)
	}
	return out
}

func isLiteral(e tree.Expr) bool {
	_, ok := e.(*tree.Literal)
	return ok
}

func (p *planner) foldCall(c *tree.Call) tree.Expr {
	folded := &tree.Call{Func: c.Func, Args: p.foldAll(c.Args)}
	if slices.ContainsFunc(folded.Args, func(a tree.Expr) bool { return !isLiteral(a) }) {
		return shorten(folded)
	}
	f, err := library.Lookup(c.Func)
	if err != nil || f.Volatile || f.Stable {
		return folded
	}
	args := make([]value.Value, len(folded.Args))
	for i, a := range folded.Args {
		args[i] = a.(*tree.Literal).Value
	}
	v, err := callConstant(f, args)
	if err != nil {
		return folded
	}
	return &tree.Literal{T: c.Func.Type, Value: v}
}

func callConstant(f *fn.Scalar, args []value.Value) (value.Value, error) {
	ctx := &fn.Context{}
	if f.Lazy != nil {
		return f.Lazy(ctx, constants(args))
	}
	return f.Call(ctx, args)
}

// constants are the arguments of a lazy function when all of them are constants.
type constants []value.Value

func (c constants) Arg(i int) (value.Value, error) { return c[i], nil }
func (c constants) Len() int                       { return len(c) }

// shorten removes operands of AND and OR that do not change the result. If one operand decides the result, shorten
// returns that operand.
func shorten(c *tree.Call) tree.Expr {
	if c.Func.Safe || c.Func.Name != "$and" && c.Func.Name != "$or" {
		return c
	}
	neutral := c.Func.Name == "$and" // the operand that does not change the result: TRUE in AND, FALSE in OR
	var rest []tree.Expr
	for _, a := range c.Args {
		l, ok := a.(*tree.Literal)
		switch {
		case !ok || l.Value.IsNull():
			rest = append(rest, a)
		case l.Value.AsBool() != neutral:
			return l
		}
	}
	switch len(rest) {
	case len(c.Args):
		return c
	case 0:
		return &tree.Literal{T: value.BoolType, Value: value.OfBool(neutral)}
	case 1:
		return rest[0]
	}
	f := *c.Func
	f.Args = f.Args[:0:0]
	for range rest {
		f.Args = append(f.Args, value.BoolType)
	}
	return &tree.Call{Func: &f, Args: rest}
}

func (p *planner) foldCast(c *tree.Cast) tree.Expr {
	arg := p.fold(c.Arg)
	folded := &tree.Cast{Arg: arg, T: c.T, Safe: c.Safe, Format: p.fold(c.Format), Zone: p.fold(c.Zone)}
	l, ok := arg.(*tree.Literal)
	if !ok || c.Format != nil || c.Zone != nil {
		return folded
	}
	if l.Value.IsNull() {
		return &tree.Literal{T: c.T, Value: value.Null(c.T.Kind)}
	}
	if zoned(l.T) != zoned(c.T) {
		return folded // the result of the cast depends on the database's time zone, so each run computes it
	}
	f, err := conversion.Cast(l.T, c.T, c.Safe)
	if err != nil {
		return folded
	}
	v, err := f.Call(&fn.Context{}, []value.Value{l.Value})
	if err != nil {
		return folded
	}
	return &tree.Literal{T: c.T, Value: v}
}

func zoned(t *value.Type) bool { return t.Kind == value.Timestamp }

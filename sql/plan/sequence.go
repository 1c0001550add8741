package plan

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/fn"
)

// Sequences are the full names of the sequences that the statement itself names: those that it takes values of, and those whose states
// it shows. Defaults of columns that it leaves out may take values of others.
func (p *Plan) Sequences() (values, states []string) {
	Walk(p.Root, func(n Node) {
		for _, e := range n.exprs() {
			WalkExpr(e, func(e Expr) {
				c, ok := e.(*Call)
				if !ok || c.Func.Name != fn.NextSequenceValue && c.Func.Name != fn.SequenceState {
					return
				}
				list := &states
				if c.Func.Name == fn.NextSequenceValue {
					list = &values
				}
				if name := c.Args[0].(*Const).Value.AsString(); !slices.Contains(*list, name) {
					*list = append(*list, name)
				}
			})
		}
	})
	return values, states
}

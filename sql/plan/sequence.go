package plan

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/fn/utility"
)

// Sequences returns the full names of the sequences that the statement itself names: values lists those that it takes values from, states
// those whose state it shows. Defaults of columns that the statement leaves out may take values from other sequences.
func (p *Plan) Sequences() (values, states []string) {
	Walk(p.Root, func(n Node) {
		for _, e := range n.exprs() {
			WalkExpr(e, func(e Expr) {
				c, ok := e.(*Call)
				if !ok || c.Func.Name != utility.NextSequenceValue && c.Func.Name != utility.SequenceState {
					return
				}
				list := &states
				if c.Func.Name == utility.NextSequenceValue {
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

package plan

import (
	"fmt"
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// slots maps each column, by its Col.ID, to the column's index in a flat row. Several columns can share an index.
type slots map[int]int

// scalar compiles e to an expression over rows. The parameter at has the slots of the columns of these rows. The
// expression reads a column that has no slot from a register. Such a column belongs to an enclosing row, or is a
// parameter of a lambda or a value of a WITH expression.
func (p *planner) scalar(e tree.Expr, at slots) (Expr, error) {
	var failed error
	compile := func(e tree.Expr) Expr {
		x, err := p.scalar(e, at)
		if failed == nil {
			failed = err
		}
		return x
	}
	x := rebuild(e, func(e tree.Expr) Expr {
		if failed != nil {
			return e
		}
		switch e := e.(type) {
		case *tree.Literal, *tree.Call, *tree.Cast, *tree.MakeStruct, *tree.GetField, *tree.GetJSONField:
			return nil // nil makes rebuild keep the operation and compile its operands
		case *tree.Param:
			i, ok := p.params[e.Name]
			if !ok {
				i = len(p.plan.Params)
				p.params[e.Name] = i
				p.plan.Params = append(p.plan.Params, Param{Name: e.Name, Type: e.T})
			}
			return &Parameter{T: e.T, Index: i, Name: e.Name}
		case *tree.Ref:
			if i, ok := at[e.Col.ID]; ok {
				return &Slot{T: e.Col.Type, Index: i, Name: e.Col.Name}
			}
			return &Outer{T: e.Col.Type, Register: p.register(e.Col.ID), Name: e.Col.Name}
		case *tree.Lambda:
			l := &Lambda{}
			for _, param := range e.Params {
				l.Registers = append(l.Registers, p.register(param.ID))
			}
			l.Body = compile(e.Body)
			return l
		case *tree.Let:
			l := &Let{}
			for _, d := range e.Defs {
				l.Values = append(l.Values, compile(d.Expr))
				l.Registers = append(l.Registers, p.register(d.Col.ID))
			}
			l.Body = compile(e.Body)
			return l
		case *tree.Subquery:
			q, err := p.scalarSubquery(e, at)
			if err != nil {
				failed = err
				return e
			}
			return q
		}
		failed = fmt.Errorf("expression %T has no plan", e)
		return e
	})
	if failed != nil {
		return nil, failed
	}
	return x, nil
}

// scalars compiles a list of expressions. A nil expression stays nil.
func (p *planner) scalars(list []tree.Expr, at slots) ([]Expr, error) {
	out := make([]Expr, len(list))
	for i, e := range list {
		if e == nil {
			continue
		}
		var err error
		if out[i], err = p.scalar(e, at); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// all compiles conditions and combines them into one expression by AND. It returns nil if there are no conditions.
func (p *planner) all(conds []tree.Expr, at slots) (Expr, error) {
	if len(conds) == 0 {
		return nil, nil
	}
	if len(conds) == 1 {
		return p.scalar(conds[0], at)
	}
	args, err := p.scalars(conds, at)
	if err != nil {
		return nil, err
	}
	f := &tree.Function{Name: "$and", Type: value.BoolType}
	for range args {
		f.Args = append(f.Args, value.BoolType)
	}
	return &tree.Call{Func: f, Args: args}, nil
}

func (p *planner) optional(e tree.Expr, at slots) (Expr, error) {
	if e == nil {
		return nil, nil
	}
	return p.scalar(e, at)
}

// register returns the number of the register that holds a column of an enclosing row, given by its Col.ID.
func (p *planner) register(col int) int {
	r, ok := p.registers[col]
	if !ok {
		r = p.plan.Registers
		p.registers[col] = r
		p.plan.Registers++
	}
	return r
}

func (p *planner) scalarSubquery(e *tree.Subquery, at slots) (*Subquery, error) {
	r, ok := p.lowered[e]
	if !ok {
		var err error
		if r, err = p.lower(e.Scan); err != nil {
			return nil, err
		}
	}
	req := request{need: colSet{}}
	var out []tree.Col
	switch e.Kind {
	case tree.ExistsSubquery:
		req.limit = 1
	default:
		out = []tree.Col{e.Out}
		req.need[e.Out.ID] = true
	}
	b, err := p.build(r, req)
	if err != nil {
		return nil, err
	}
	q := &Subquery{T: e.T, Kind: e.Kind, Plan: b.exactly(out)}
	if e.Kind == tree.ExistsSubquery {
		q.Plan = b.node
	}
	if q.In, err = p.optional(e.In, at); err != nil {
		return nil, err
	}
	free := freeRegisters(q.Plan)
	q.Constant = len(free) == 0
	q.Bind = p.binds(free, at)
	return q, nil
}

// binds returns a Bind for each of the given registers that holds a column of the current row. The parameter at has the
// slots of the current row's columns. All other registers are set by operators further up in the plan.
func (p *planner) binds(registers map[int]bool, at slots) []Bind {
	var list []Bind
	for col, r := range p.registers {
		if slot, ok := at[col]; ok && registers[r] {
			list = append(list, Bind{Slot: slot, Register: r})
		}
	}
	slices.SortFunc(list, func(a, b Bind) int { return a.Register - b.Register })
	return list
}

// freeRegisters returns the registers that a plan reads but does not set itself.
func freeRegisters(n Node) map[int]bool {
	used, set := map[int]bool{}, map[int]bool{}
	bind := func(list []Bind) {
		for _, b := range list {
			set[b.Register] = true
		}
	}
	Walk(n, func(n Node) {
		if a, ok := n.(*Apply); ok {
			bind(a.Bind)
		}
		for _, e := range n.exprs() {
			tree.Walk(e, func(e Expr) {
				switch e := e.(type) {
				case *Outer:
					used[e.Register] = true
				case *Subquery:
					bind(e.Bind)
				case *Let:
					for _, r := range e.Registers {
						set[r] = true
					}
				case *Lambda:
					for _, r := range e.Registers {
						set[r] = true
					}
				}
			})
		}
	})
	for r := range set {
		delete(used, r)
	}
	return used
}

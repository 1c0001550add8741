package plan

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/fn/utility"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Kind is the kind of a statement.
type Kind uint8

const (
	Query Kind = iota
	Insert
	Update
	Delete
)

// Plan is a planned statement. It is immutable.
type Plan struct {
	Kind Kind
	// Columns are the columns of the query's result, or those of THEN RETURN. They are nil for DML without THEN
	// RETURN.
	Columns []Column
	// Params are the parameters that the statement uses. Each run is given their values in this order.
	Params []Param
	// Root computes the result rows. For DML it is a *DML.
	Root Node
	// Read is not nil if the plan is a key read: Root only reads keys or ranges of one table or index. Read is then a
	// scan that returns exactly the columns of the result, in the order of the result.
	Read *Scan
	// ForUpdate says that the query has FOR UPDATE, which only a read-write transaction can run.
	ForUpdate bool
	// Registers is the number of registers that a run needs. A register holds a value that an expression uses but that
	// is not in the expression's row, such as a column of an enclosing row (see Outer). Spools is the number of spools
	// (see With).
	Registers, Spools int
}

// Column is a column of a result, as the user sees it.
type Column struct {
	Name string
	Type *value.Type
}

// Param is a query parameter.
type Param struct {
	Name string // in lower case
	Type *value.Type
}

// Options control the planner.
type Options struct {
	// Batch asks for a plan that can be divided into partitions (PartitionQuery). The planner then prefers
	// operators that run independently in each partition.
	Batch bool
}

// IsDML reports whether the statement is INSERT, UPDATE or DELETE.
func (p *Plan) IsDML() bool { return p.Kind != Query }

// ReadsSystem reports whether the statement reads INFORMATION_SCHEMA or SPANNER_SYS.
func (p *Plan) ReadsSystem() bool {
	found := false
	Walk(p.Root, func(n Node) {
		if s, ok := n.(*Scan); ok && s.Table.Rows != nil {
			found = true
		}
	})
	return found
}

// Tables returns the tables that the statement reads or writes, each only once.
func (p *Plan) Tables() []*schema.Table {
	var list []*schema.Table
	listed := map[*schema.Table]bool{}
	add := func(t *schema.Table) {
		if !listed[t] {
			listed[t] = true
			list = append(list, t)
		}
	}
	Walk(p.Root, func(n Node) {
		switch n := n.(type) {
		case *Scan:
			add(n.Table)
		case *DML:
			add(n.Table)
		}
	})
	return list
}

// Sequences returns the full names of the sequences that the text of the statement names. The first list has the
// sequences from which the statement takes values. The second list has those whose internal state it shows. An INSERT
// can also take values from sequences that are not listed, through DEFAULTs of columns.
func (p *Plan) Sequences() (values, states []string) {
	Walk(p.Root, func(n Node) {
		for _, e := range n.exprs() {
			tree.Walk(e, func(e Expr) {
				c, ok := e.(*tree.Call)
				if !ok || c.Func.Name != utility.NextSequenceValue && c.Func.Name != utility.SequenceState {
					return
				}
				list := &states
				if c.Func.Name == utility.NextSequenceValue {
					list = &values
				}
				if name := c.Args[0].(*tree.Literal).Value.AsString(); !slices.Contains(*list, name) {
					*list = append(*list, name)
				}
			})
		}
	})
	return values, states
}

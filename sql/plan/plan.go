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
	// Columns are the columns of the query's result, or of THEN RETURN (nil for DML without it).
	Columns []Column
	// Params are the parameters that the statement uses. A run takes their values in this order.
	Params []Param
	// Root produces the result rows. For DML it is a *DML.
	Root Node
	// Read is set if Root only reads rows of one table or index by key. It is the scan in Root, with the columns of the result in their
	// order.
	Read *Scan
	// ForUpdate says that the query has FOR UPDATE, which only a read-write transaction can run.
	ForUpdate bool
	// Registers is the number of columns of enclosing rows that the statement refers to (see Outer). Spools is the number of its spools
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
	// Batch asks for a plan that can be divided into partitions (PartitionQuery). The planner then prefers operators that can run in each
	// partition by itself.
	Batch bool
}

// IsDML reports whether the statement writes.
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

// Tables returns the tables that the statement reads or writes, each once.
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

// Sequences returns the full names of the sequences that the statement itself names: values lists those that it takes values from, states
// those whose state it shows. Defaults of columns that the statement leaves out may take values from other sequences.
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

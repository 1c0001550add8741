package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Independent reports whether a plan uses no columns of enclosing rows.
func Independent(n Node) bool { return len(freeRegisters(n)) == 0 }

// Driving returns the scan whose rows drive the whole statement: the statement is partitioned by dividing the keys
// that this scan reads. It returns nil if there is no such scan.
func (p *Plan) Driving() *Scan {
	if m, ok := p.Root.(*DML); ok {
		if m.Input == nil {
			return nil
		}
		return driving(m.Input)
	}
	return driving(p.Root)
}

func driving(n Node) *Scan {
	switch n := n.(type) {
	case *Scan:
		return n
	case *Filter:
		return driving(n.Input)
	case *Compute:
		return driving(n.Input)
	case *Unnest:
		return driving(n.Input)
	case *Apply:
		return driving(n.Left)
	}
	return nil
}

// Partitionable returns nil if PartitionQuery accepts the query, else the error with which it refuses the query. A
// query is root partitionable if each of its rows is computed from one row of the driving scan and the rows stored
// with that row: the rows interleaved with it, or the table's row of an index entry. A query that reads no table is
// accepted too, and has one partition.
func (p *Plan) Partitionable() error {
	if p.Kind != Query {
		return usererror.PartitionedDMLQuery()
	}
	if len(p.Tables()) == 0 {
		return nil
	}
	if p.ReadsSystem() || !rootPartitionable(p.Root) {
		return usererror.NotPartitionable()
	}
	return nil
}

func rootPartitionable(n Node) bool {
	for _, e := range n.exprs() {
		if readsTables(e) {
			return false
		}
	}
	switch n := n.(type) {
	case *Scan:
		return n.Limit == nil
	case *Filter:
		return rootPartitionable(n.Input)
	case *Compute:
		return rootPartitionable(n.Input)
	case *Unnest:
		return rootPartitionable(n.Input)
	case *Apply:
		return rootPartitionable(n.Left) && (n.BackJoin || local(n))
	}
	return false
}

// readsTables reports whether an expression has a subquery that reads a table.
func readsTables(e Expr) bool {
	found := false
	tree.Walk(e, func(e Expr) {
		if q, ok := e.(*Subquery); ok {
			Walk(q.Plan, func(n Node) {
				if _, ok := n.(*Scan); ok {
					found = true
				}
			})
		}
	})
	return found
}

// local reports whether the right side of a join reads only rows that are stored with the row of the left side.
// These are rows of ancestors or descendants of the left table, which the right side seeks by all leading key
// columns that both tables share.
func local(a *Apply) bool {
	left := driving(a.Left)
	if left == nil {
		return false
	}
	ok := true
	Walk(a.Right, func(n Node) {
		if s, is := n.(*Scan); is {
			ok = ok && s.Index == nil && left.Index == nil && lineage(left.Table, s.Table) && bindsParent(s, left)
		}
	})
	return ok
}

// lineage reports whether one of two tables is an ancestor of the other.
func lineage(a, b *schema.Table) bool {
	for t := a; t != nil; t = t.Parent {
		if t == b {
			return true
		}
	}
	for t := b; t != nil; t = t.Parent {
		if t == a {
			return true
		}
	}
	return false
}

// bindsParent reports whether the scan s seeks its rows by values of the left scan: for every key column that the
// tables of both scans share, s must seek the value that this column has in the left scan.
func bindsParent(s, left *Scan) bool {
	shared := min(len(s.Table.Key), len(left.Table.Key))
	if len(s.Seeks) != 1 || len(s.Seeks[0].Parts) < shared {
		return false
	}
	for i := range shared {
		p := s.Seeks[0].Parts[i]
		if len(p.Values) != 1 || p.Array != nil {
			return false
		}
		o, ok := p.Values[0].(*Outer)
		if !ok || o.Name != left.Table.Key[i].Column.Name {
			return false
		}
	}
	return true
}

// PartitionedDML returns nil if the statement can run as partitioned DML, else the error with which partitioned DML
// refuses it. The statement must change rows of one table, each independently of the others.
func (p *Plan) PartitionedDML() error {
	m, ok := p.Root.(*DML)
	if !ok || m.Kind == Insert || m.Return != nil || m.Assert != nil {
		return usererror.PartitionedDMLStatement()
	}
	if !fullyPartitionable(m.Input) {
		return usererror.NotFullyPartitionable()
	}
	return nil
}

func fullyPartitionable(n Node) bool {
	for _, e := range n.exprs() {
		if readsTables(e) {
			return false
		}
	}
	switch n := n.(type) {
	case *Scan, *Empty:
		return true
	case *Filter:
		return fullyPartitionable(n.Input)
	case *Compute:
		return fullyPartitionable(n.Input)
	case *Apply:
		return n.BackJoin && fullyPartitionable(n.Left)
	}
	return false
}

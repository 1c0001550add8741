package prepare

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// dependenciesOf lists the parts of the schema on which a plan depends: the given objects, and what its nodes read and
// write.
func dependenciesOf(c *schema.Catalog, p *plan.Plan, objects []schema.Object) *schema.Dependencies {
	d := new(schema.Dependencies)
	for _, o := range objects {
		d.Name(o)
	}
	plan.Walk(p.Root, func(n plan.Node) {
		switch n := n.(type) {
		case *plan.Scan:
			if n.Table.Rows == nil {
				d.Read(n.Table, n.Index, n.Columns)
			}
		case *plan.DML:
			d.Write(c, n.Table, !onlyInserts(n))
		}
	})
	return d
}

// onlyInserts reports whether a statement adds rows and never changes existing ones.
func onlyInserts(n *plan.DML) bool {
	if n.Kind != plan.Insert || n.Conflict != nil && n.Conflict.Update {
		return false
	}
	return n.Mode != tree.InsertOrUpdate
}

// writing lists the parts of the schema on which a write to a table depends. The parameter removes says that the write
// may delete rows or index entries.
func writing(c *schema.Catalog, t *schema.Table, removes bool) *schema.Dependencies {
	d := new(schema.Dependencies)
	d.Write(c, t, removes)
	return d
}

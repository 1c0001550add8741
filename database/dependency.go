package database

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

// dependenciesOf are what a plan counts on of the schema version that it was made for.
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

// onlyInserts reports whether a statement adds rows and leaves those alone that are there.
func onlyInserts(n *plan.DML) bool {
	if n.Kind != plan.Insert || n.Conflict != nil && n.Conflict.Update {
		return false
	}
	return n.Mode != tree.InsertOrUpdate
}

// writing is what writing rows of a table counts on.
func writing(c *schema.Catalog, t *schema.Table, removes bool) *schema.Dependencies {
	d := new(schema.Dependencies)
	d.Write(c, t, removes)
	return d
}

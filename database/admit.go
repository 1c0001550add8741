package database

import (
	"context"
	"slices"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// Allow checks that a role has the privileges in n. The role "" is that of a session without a role, which may do
// everything. If tx is not nil, tx depends on these privileges from then on: a schema change that revokes one aborts
// tx. c is the catalog in which the request was resolved.
func (d *Database) Allow(ctx context.Context, tx *txn.Tx, c *schema.Catalog, role string, n *prepare.Needs) error {
	if role == "" {
		return nil
	}
	dependencies, err := n.Allow(d.Catalog(), role)
	if err != nil || tx == nil {
		return err
	}
	return tx.DependOn(ctx, dependencies, c)
}

// Admit checks that a role may make mutations. It makes tx, the transaction in which they will be applied, depend on
// the parts of the schema that they use. It returns the accesses of the mutations to tables, without duplicates.
// Consecutive mutations usually have the same operation, table and columns. Admit checks only the first of such
// mutations, since the result is the same for the others.
func (d *Database) Admit(ctx context.Context, tx *txn.Tx, c *schema.Catalog, role string, muts []table.Mutation) (accesses []*stats.Access, err error) {
	for i := range muts {
		m := &muts[i]
		if i > 0 {
			if p := &muts[i-1]; p.Op == m.Op && p.Table == m.Table && slices.Equal(p.Columns, m.Columns) {
				continue
			}
		}
		like := d.mutations(c, m)
		if !slices.Contains(accesses, like.Access) {
			accesses = append(accesses, like.Access)
		}
		if err := tx.DependOn(ctx, like.Dependencies(m.Op), c); err != nil {
			return nil, err
		}
		if err := d.Allow(ctx, tx, c, role, like.Needs(m.Op)); err != nil {
			return nil, err
		}
	}
	return accesses, nil
}

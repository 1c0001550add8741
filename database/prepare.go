package database

import (
	"context"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// Prepare analyzes and plans a statement for a schema version: see prepare.Preparer.Statement.
func (d *Database) Prepare(ctx context.Context, c *schema.Catalog, sql string, params map[string]*value.Type, opts prepare.Options) (*prepare.Statement, error) {
	v, err := d.schema.Version(c)
	if err != nil {
		return nil, err
	}
	return v.Preparer.Statement(ctx, sql, params, opts)
}

// Projection resolves the table, index and columns that a READ names, in schema version c. index is "" for a read of
// the table itself.
func (d *Database) Projection(c *schema.Catalog, tableName, index string, columns []string) (*prepare.Projection, error) {
	v, err := d.schema.Version(c)
	if err != nil {
		return nil, err
	}
	return v.Preparer.Projection(tableName, index, columns)
}

// Tables returns the table.Descriptors of a catalog, which writers need to write rows of its tables.
func (d *Database) Tables(c *schema.Catalog) (*table.Descriptors, error) {
	v, err := d.schema.Version(c)
	if err != nil {
		return nil, err
	}
	return v.Preparer.Tables(), nil
}

// mutations returns the prepare.Mutations that m shares with all mutations of the same table, columns and kind. If the
// schema version is no longer kept, mutations makes one for m alone.
func (d *Database) mutations(c *schema.Catalog, m *table.Mutation) *prepare.Mutations {
	v, err := d.schema.Version(c)
	if err != nil {
		return prepare.MutationsOf(c, m)
	}
	return v.Preparer.Mutations(m)
}

// ReadColumns opens a read of all rows from a columnar copy. It returns nil if there is no copy, or if reading from the
// table is cheaper. It takes no locks.
func (d *Database) ReadColumns(ctx context.Context, read table.Read, view table.View) (exec.Rows, error) {
	return prepare.ReadColumns(ctx, d.copies, read, view)
}

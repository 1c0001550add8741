package schema

import (
	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// Apply runs one DDL statement: it returns the catalog after it and what
// existing data needs. The receiver stays as it is. Errors are *usererror.Error.
func (c *Catalog) Apply(stmt string, compiler Compiler) (*Catalog, *Change, error) {
	src, err := parse(stmt)
	if err != nil {
		return nil, nil, err
	}
	d := c.draft(src, compiler)
	if err := d.run(src.tree); err != nil {
		return nil, nil, err
	}
	if d.change.Nothing {
		return c, d.change, nil
	}
	d.Version++
	if err := d.checkSize(len(stmt)); err != nil {
		return nil, nil, err
	}
	return d.Catalog, d.change, nil
}

// DatabaseName returns the id in a CREATE DATABASE statement.
func DatabaseName(stmt string) (string, error) {
	src, err := parse(stmt)
	if err != nil {
		return "", err
	}
	create, ok := src.tree.(*ast.CreateDatabase)
	if !ok {
		return "", usererror.NotCreateDatabase(stmt)
	}
	return create.Name.Name, nil
}

func (d *draft) run(stmt ast.DDL) error {
	switch s := stmt.(type) {
	case *ast.CreateDatabase:
		return usererror.CreateDatabaseInUpdate()
	case *ast.AlterDatabase:
		return d.alterDatabase(s)
	case *ast.CreateSchema:
		return d.createSchema(s)
	case *ast.DropSchema:
		return d.dropSchema(s)
	case *ast.CreateTable:
		return d.createTable(s)
	case *ast.AlterTable:
		return d.alterTable(s)
	case *ast.DropTable:
		return d.dropTable(s)
	case *ast.RenameTable:
		return d.renameTables(s)
	case *ast.CreateIndex:
		return d.createIndex(s)
	case *ast.AlterIndex:
		return d.alterIndex(s)
	case *ast.DropIndex:
		return d.dropIndex(s)
	case *ast.Analyze: // the planner keeps no statistics packages that could be built anew
		d.change.Nothing = true
		return nil
	}
	return usererror.DDLUnimplemented("This DDL statement")
}

// checkSize keeps the whole schema, as printed, within its limit. Printing is
// expensive: each catalog carries an estimate, and is printed only when the estimate passes the limit.
func (d *draft) checkSize(added int) error {
	// A statement prints as a few times its own length at most, names and defaults spelled out.
	const spelledOut, fixed = 8, 1024
	d.size += spelledOut*added + fixed
	if d.size <= MaxDDLBytes {
		return nil
	}
	d.size = 0
	for _, stmt := range d.DDL() {
		d.size += len(stmt)
	}
	if d.size > MaxDDLBytes {
		return usererror.SchemaTooLarge(MaxDDLBytes)
	}
	return nil
}

package schema

import (
	"bytes"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/schema/immutable"
	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Apply runs one DDL statement on the catalog c. It returns a new catalog, and a Change that says what must be done to
// existing data. It does not change c. protoDescriptors, if given, is the serialized FileDescriptorSet from which
// CREATE and ALTER PROTO BUNDLE take types. Errors are *usererror.Error.
func (c *Catalog) Apply(stmt string, compiler Compiler, protoDescriptors ...[]byte) (*Catalog, *Change, error) {
	src, err := syntax.Parse(stmt)
	if err != nil {
		return nil, nil, err
	}
	d := c.draft(src, compiler)
	d.protoDescriptors = bytes.Join(protoDescriptors, nil) // concatenated messages decode as one merged message
	if err := d.run(src.Tree); err != nil {
		return nil, nil, d.placed(err)
	}
	if d.change.Nothing {
		return c, d.change, nil
	}
	d.dropGrants()
	d.Version++
	if err := d.checkSize(); err != nil {
		return nil, nil, err
	}
	return d.Catalog, d.change, nil
}

// CheckSyntax returns an error if a statement does not parse, or if it sets a database option that no database can
// have. Such a statement fails a whole UpdateDatabaseDdl call before any of the call's statements runs.
func CheckSyntax(stmt string) error {
	src, err := syntax.Parse(stmt)
	if err != nil {
		return err
	}
	if s, ok := src.Tree.(*ast.AlterDatabase); ok {
		return NewCatalog().draft(src, nil).alterDatabase(s)
	}
	return nil
}

// DatabaseName returns the database id in a CREATE DATABASE statement.
func DatabaseName(stmt string) (string, error) {
	src, err := syntax.Parse(stmt)
	if err != nil {
		return "", err
	}
	create, ok := src.Tree.(*ast.CreateDatabase)
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
	case *ast.AlterVectorIndex: // package syntax rewrites ALTER INDEX ... SET OPTIONS as ALTER VECTOR INDEX
		return d.setIndexOptions(s)
	case *ast.DropIndex:
		return d.dropIndex(s)
	case *ast.CreateChangeStream:
		return d.createChangeStream(s)
	case *ast.AlterChangeStream:
		return d.alterChangeStream(s)
	case *ast.DropChangeStream:
		return d.dropChangeStream(s)
	case *ast.CreateFunction:
		return d.createFunction(s)
	case *ast.DropFunction:
		return d.dropFunction(s)
	case *ast.CreateView:
		return d.createView(s)
	case *ast.DropView:
		return d.dropView(s)
	case *ast.CreateProtoBundle:
		return d.createProtoBundle(s)
	case *ast.AlterProtoBundle:
		return d.alterProtoBundle(s)
	case *ast.DropProtoBundle:
		return d.dropProtoBundle()
	case *ast.CreateLocalityGroup:
		return d.createLocalityGroup(s)
	case *ast.AlterLocalityGroup:
		return d.alterLocalityGroup(s)
	case *ast.DropLocalityGroup:
		return d.dropLocalityGroup(s)
	case *ast.CreateRole:
		return d.createRole(s)
	case *ast.DropRole:
		return d.dropRole(s)
	case *ast.Grant:
		return d.grantPrivileges(s)
	case *ast.Revoke:
		return d.revokePrivileges(s)
	case *ast.CreatePlacement:
		return d.createPlacement(s)
	case *ast.DropPlacement:
		return d.dropPlacement(s)
	case *ast.CreateSequence:
		return d.createSequence(s)
	case *ast.AlterSequence:
		return d.alterSequence(s)
	case *ast.DropSequence:
		return d.dropSequence(s)
	case *ast.Analyze:
		return d.analyze()
	case *ast.AlterStatistics:
		return d.alterStatistics(s)
	}
	return usererror.DDLUnimplemented("This DDL statement")
}

// checkSize returns an error if the DDL text of the whole schema is too long. To be fast, it prints only those tables
// and objects that the statement has changed. For the others it uses the lengths that the catalog stores.
func (d *draft) checkSize() error {
	d.measure()
	size := d.size + len(d.optionsSQL())
	for _, s := range d.Schemas {
		size += len(schemaSQL(s))
	}
	for _, s := range d.Streams {
		size += len(d.changeStreamSQL(s))
	}
	if size > syntax.MaxBytes {
		return usererror.SchemaTooLarge(syntax.MaxBytes)
	}
	return nil
}

// measure recomputes lengths of DDL text: the size of each table that the draft has changed, and d.size, which is the
// length for all tables and objects together.
func (d *draft) measure() {
	immutable.Differences(d.old.tables, d.tables, func(_ TableID, before, after *Table) {
		if before != nil {
			d.size -= before.size
		}
		if after == nil {
			return
		}
		if d.mine[after] || d.renamed {
			after.size = after.ddlSize()
		}
		d.size += after.size
	})
	d.measureObjects()
}

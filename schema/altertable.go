package schema

import (
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

func (d *draft) alterTable(s *ast.AlterTable) error {
	t, err := d.table(s.Name)
	if err != nil {
		if d.src.IfExists && isMissing(err) {
			return d.nothing()
		}
		return err
	}
	d.reading(s.TableAlteration)
	switch a := s.TableAlteration.(type) {
	case *ast.AddColumn:
		return d.alterAddColumn(t, a)
	case *ast.DropColumn:
		return d.dropColumn(t, a)
	case *ast.AlterColumn:
		if err := d.alterColumn(t, a); err != nil {
			return err
		}
		return d.revalidateColumn(t, a.Name.Name)
	case *ast.AddTableConstraint:
		return d.addConstraint(t, a.TableConstraint)
	case *ast.DropConstraint:
		return d.dropConstraint(t, a.Name.Name)
	case *ast.SetOnDelete:
		return d.setOnDelete(t, a)
	case *ast.SetInterleaveIn:
		return d.setInterleaveIn(t, a)
	case *ast.RenameTo:
		return d.renameTable(t, a)
	case *ast.AddSynonym:
		return d.addSynonym(t, a.Name.Name)
	case *ast.DropSynonym:
		return d.dropSynonym(t, a.Name.Name)
	case *ast.AddRowDeletionPolicy:
		return d.addRowDeletionPolicy(t, a.RowDeletionPolicy)
	case *ast.ReplaceRowDeletionPolicy:
		return d.replaceRowDeletionPolicy(t, a.RowDeletionPolicy)
	case *ast.DropRowDeletionPolicy:
		return t.dropRowDeletionPolicy()
	case *ast.AlterTableSetOptions:
		return d.setStorageOptions("Table", t.FullName(), a.Options, &t.ColumnarPolicy, &t.LocalityGroup)
	}
	return usererror.DDLUnimplemented("This form of ALTER TABLE")
}

func (d *draft) alterAddColumn(t *Table, a *ast.AddColumn) error {
	if a.IfNotExists && t.Column(a.Column.Name.Name) != nil {
		return d.nothing()
	}
	if a.Column.PrimaryKey {
		return usererror.AddKeyColumn(t.FullName(), a.Column.Name.Name)
	}
	if a.Column.PlacementKey != nil {
		return usererror.AddPlacementKey(t.FullName(), a.Column.Name.Name)
	}
	if err := d.addColumn(t, a.Column); err != nil {
		return err
	}
	c := t.Columns[len(t.Columns)-1]
	if c.NotNull && c.Default == nil && c.Generated == nil && c.Identity == nil {
		return usererror.AddNotNullColumn(t.FullName(), c.Name)
	}
	if err := d.compileColumn(t, c); err != nil {
		return err
	}
	if err := checkGenerated(t); err != nil {
		return err
	}
	if c.Default != nil || c.Stored {
		d.change.Columns = append(d.change.Columns, ColumnBackfill{Table: t, Column: c})
	}
	return nil
}

func (d *draft) dropColumn(t *Table, a *ast.DropColumn) error {
	d.reading(a.Name)
	c, err := t.column(a.Name)
	if err != nil {
		return err
	}
	if err := d.checkUnused(t, c); err != nil {
		return err
	}
	t.Columns = slices.Delete(t.Columns, c.Ordinal, c.Ordinal+1)
	for i, c := range t.Columns {
		c.Ordinal = i
	}
	return nil
}

// checkUnused returns an error if something depends on the column, so that it cannot be dropped.
func (d *draft) checkUnused(t *Table, c *Column) error {
	if c.KeyOrdinal >= 0 {
		return usererror.DropKeyColumn(t.FullName(), c.Name)
	}
	if c.PlacementKey {
		return usererror.DropPlacementKey(t.FullName(), c.Name)
	}
	if fks := d.foreignKeysWith(t, c); fks != "" {
		return usererror.DropColumnInForeignKey(t.FullName(), c.Name, fks)
	}
	for _, i := range t.Indexes {
		if i.has(c) {
			return usererror.DropIndexedColumn(t.FullName(), c.Name, i.FullName())
		}
	}
	for _, g := range t.Columns {
		if g != c && g.reads(c) {
			return usererror.DropColumnInGenerated(t.FullName(), c.Name, g.Name)
		}
	}
	for _, ck := range t.Checks {
		if slices.Contains(ck.Expr.Uses, c) {
			return usererror.DropColumnInCheck(c.Name, ck.Name)
		}
	}
	if err := checkUnnamed("column `"+c.Name+"`", d.dependentsOf(t.ID, usesColumn(c.ID))); err != nil {
		return err
	}
	if t.expiresBy(c) {
		return usererror.RowDeletionPolicyColumn(c.Name, t.FullName())
	}
	if roles := d.grantedOn(t, c); roles != "" {
		return usererror.DropGrantedColumn(t.FullName(), c.Name, roles)
	}
	if streams := d.streamsNaming(t, c); streams != nil {
		return usererror.DropWatchedColumn(t.FullName()+"."+c.Name, len(streams), namesOf(streams, changeStreamName))
	}
	return nil
}

// has reports whether entries of the index contain the column, or whether the column decides which rows have an entry
// (WHERE c IS NOT NULL).
func (i *Index) has(c *Column) bool {
	return i.keys(c) || slices.Contains(i.Storing, c) || slices.Contains(i.NotNullColumns, c)
}

// keys reports whether the column is in i.Key, the part of the stored key that the definition of the index lists.
func (i *Index) keys(c *Column) bool {
	return slices.ContainsFunc(i.Key, func(p KeyPart) bool { return p.Column == c })
}

func (d *draft) addConstraint(t *Table, s *ast.TableConstraint) error {
	name := ""
	if s.Name != nil {
		name = strings.Clone(s.Name.Name)
	}
	switch c := s.Constraint.(type) {
	case *ast.Check:
		return d.addCheck(t, name, c)
	case *ast.ForeignKey:
		return d.addForeignKey(t, name, c)
	}
	return usererror.SeveralPrimaryKeys(t.FullName())
}

func (d *draft) addCheck(t *Table, name string, s *ast.Check) error {
	c := &Check{Name: name, Expr: &Expr{SQL: d.src.InParens(s.Check, s.Rparen)}}
	if name == "" {
		c.Name = d.generateName(t.Schema, "CK_"+t.Name, t.FullName()+" CHECK "+c.Expr.SQL)
		c.NameGenerated = true
	} else if err := d.checkConstraintName("Check Constraint", t, name); err != nil {
		return err
	}
	if err := d.compileCheck(t, c); err != nil {
		return err
	}
	t.Checks = append(t.Checks, c)
	d.name(t, c.Name, nameOfConstraint)
	d.change.Validations = append(d.change.Validations, Validation{Kind: ValidateCheck, Table: t, Check: c})
	return nil
}

func (d *draft) dropConstraint(t *Table, name string) error {
	for i, c := range t.Checks {
		if sameName(c.Name, name) {
			t.Checks = slices.Delete(t.Checks, i, i+1)
			d.unname(t, c.Name)
			return nil
		}
	}
	for _, fk := range t.ForeignKeys {
		if sameName(fk.Name, name) {
			d.dropForeignKey(fk)
			return nil
		}
	}
	return usererror.ConstraintNotFound(name, t.FullName())
}

package schema

import (
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// renaming is a table and the name that a statement gives it.
type renaming struct {
	table *Table
	from  string // its full name before
	to    string // in its schema
}

// renameTable is ALTER TABLE t RENAME TO ..., which may add a synonym.
func (d *draft) renameTable(t *Table, s *ast.RenameTo) error {
	to, err := d.newName(t, s.Name.Name)
	if err != nil {
		return err
	}
	list := []renaming{{t, t.FullName(), to}}
	if err := d.giveNames(list); err != nil {
		return err
	}
	if s.AddSynonym != nil {
		if err := d.addSynonym(t, s.AddSynonym.Name.Name); err != nil {
			return err
		}
	}
	return d.revalidateRenamed(list)
}

// renameTables is RENAME TABLE a TO b, c TO d, ... The tables change names at once, so that they may swap them. A name that an earlier part
// of the statement gives stands for its table in later parts, unless a table that has the name itself is still to be renamed.
func (d *draft) renameTables(s *ast.RenameTable) error {
	var list []renaming
	for _, r := range s.Tos {
		at, err := d.toRename(&list, r.Old.Name)
		if err != nil {
			return err
		}
		if list[at].to, err = d.newName(list[at].table, r.New.Name); err != nil {
			return err
		}
	}
	if err := d.giveNames(list); err != nil {
		return err
	}
	return d.revalidateRenamed(list)
}

// toRename is the place in list of the table that a part of RENAME TABLE names; a table that is new to the list is added.
func (d *draft) toRename(list *[]renaming, name string) (int, error) {
	t := d.Table(name)
	if t != nil && !slices.ContainsFunc(*list, func(r renaming) bool { return r.table.ID == t.ID }) {
		*list = append(*list, renaming{table: d.own(t), from: t.FullName()})
		return len(*list) - 1, nil
	}
	at := slices.IndexFunc(*list, func(r renaming) bool { return sameName(fullName(r.table.Schema, r.to), name) })
	if at < 0 {
		return 0, usererror.SchemaObjectNotFound("Table", name)
	}
	return at, nil
}

// newName checks a new name for a table, and returns it without its schema.
func (d *draft) newName(t *Table, name string) (string, error) {
	name, err := t.withoutSchema(name)
	if err != nil {
		return "", err
	}
	return strings.Clone(name), checkName("Table", name)
}

// withoutSchema takes the schema away from a name that a statement gives to something in the schema of t: it must be that one.
func (t *Table) withoutSchema(name string) (string, error) {
	schema, rest, ok := strings.Cut(name, ".")
	if !ok {
		return name, nil
	}
	if !sameName(schema, t.Schema) {
		return "", usererror.NameInOtherSchema(name, t.FullName())
	}
	return rest, nil
}

// giveNames gives tables their new names; indexes, foreign keys and change streams follow.
func (d *draft) giveNames(list []renaming) error {
	for _, r := range list {
		d.unname(r.table, r.table.Name)
	}
	for _, r := range list {
		if err := d.checkFree(r.table.Schema, r.to); err != nil {
			return err
		}
		r.table.Name = r.to
		d.name(r.table, r.to, nameOfTable)
	}
	d.renamed = true
	for _, r := range list {
		if err := d.recompile(r.table); err != nil {
			return err
		}
	}
	return nil
}

// revalidateRenamed compiles the views and functions that name a renamed table, which must find another table, or the same one by its
// synonym, under the old name.
func (d *draft) revalidateRenamed(list []renaming) error {
	for _, r := range list {
		if err := d.revalidate("rename TABLE", r.from, d.dependentsOf(r.table.ID, nil)); err != nil {
			return err
		}
	}
	return nil
}

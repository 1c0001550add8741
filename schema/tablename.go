package schema

import (
	"slices"
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// renaming is a table with its old and its new name.
type renaming struct {
	table *Table
	from  string // the table's old full name
	to    string // the new name, in the same schema
}

// renameTable runs ALTER TABLE t RENAME TO u, with or without ADD SYNONYM.
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

// renameTables runs RENAME TABLE a TO b, c TO d, ... All tables change their names at the same time, so two tables can
// swap names. A later part of the statement may call a table by the name that an earlier part gives it. But if another
// table has that name, and no earlier part has renamed that other table, the name means the other table.
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

// toRename returns the index in list of the table that one part of RENAME TABLE names. It appends the table if it is
// not in the list yet.
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

// withoutSchema removes the schema from name, a new name for t or for a synonym of it. The schema must be that of t.
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

// giveNames gives tables their new names, and compiles their expressions again.
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

// revalidateRenamed compiles again the views and functions that name a renamed table. They compile only if a table
// still has the old name: another table, or the renamed table if the old name is now its synonym.
func (d *draft) revalidateRenamed(list []renaming) error {
	for _, r := range list {
		if err := d.revalidate("rename TABLE", r.from, d.dependentsOf(r.table.ID, nil)); err != nil {
			return err
		}
	}
	return nil
}

// A table can have a second name in its schema, its synonym. Reads, queries and writes can use the synonym, but DDL
// cannot. Source: https://cloud.google.com/spanner/docs/table-name-synonym.

// TableOrSynonym returns the table whose name or synonym is name, ignoring case, or nil.
func (c *Catalog) TableOrSynonym(name string) *Table {
	if found, ok := c.names.Get(strings.ToLower(name)); ok && (found.kind == nameOfTable || found.kind == nameOfSynonym) {
		return c.TableByID(found.table)
	}
	return nil
}

func (d *draft) addSynonym(t *Table, name string) error {
	name, err := t.withoutSchema(name)
	if err != nil {
		return err
	}
	if err := checkName("Synonym", name); err != nil {
		return err
	}
	if t.Synonym != "" {
		return usererror.SynonymExists(t.Synonym, t.FullName())
	}
	if err := d.checkFree(t.Schema, name); err != nil {
		return err
	}
	t.Synonym = strings.Clone(name)
	d.name(t, name, nameOfSynonym)
	return nil
}

// addSynonyms adds the synonyms that CREATE TABLE lists. It returns an error if there are several.
func (d *draft) addSynonyms(t *Table, list []*ast.Synonym) error {
	for _, s := range list {
		if err := d.addSynonym(t, s.Name.Name); err != nil {
			return err
		}
	}
	return nil
}

func (d *draft) dropSynonym(t *Table, name string) error {
	name, err := t.withoutSchema(name)
	if err != nil {
		return err
	}
	if t.Synonym == "" || !sameName(t.Synonym, name) {
		return usererror.SynonymNotFound(name, t.FullName())
	}
	d.unname(t, t.Synonym)
	t.Synonym = ""
	return d.revalidate("drop SYNONYM", name, d.dependentsOf(t.ID, nil))
}

func (t *Table) synonymSQL() string { return "SYNONYM(" + quote(t.Synonym) + ")" }

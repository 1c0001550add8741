package schema

import (
	"strings"

	"github.com/cloudspannerecosystem/memefish/ast"

	"github.com/crowfoot-db/crowfoot/usererror"
)

// A table may have a second name in its schema, its synonym. Reads, queries and writes find the table by it, but DDL
// does not. Source: https://cloud.google.com/spanner/docs/table-name-synonym.

// TableOrSynonym returns the table with the name or synonym name, ignoring case, or nil.
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

// addSynonyms adds the synonyms that CREATE TABLE lists. There may be only one.
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

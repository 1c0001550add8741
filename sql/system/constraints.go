package system

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
)

// constraint is any constraint of a table, declared or implied.
type constraint struct {
	kind     string // PRIMARY KEY, UNIQUE, FOREIGN KEY or CHECK
	name     string
	table    *schema.Table
	enforced bool

	key    []*schema.Column // what KEY_COLUMN_USAGE lists: the columns of a key
	clause string           // of a CHECK
	fk     *schema.ForeignKey

	usedTable *schema.Table    // what CONSTRAINT_TABLE_USAGE lists: the table itself, or the referenced one
	used      []*schema.Column // of usedTable: what the constraint is about
}

// constraints lists those of some tables. Names of implied ones are Spanner's; tools match on them.
func constraints(tables []*schema.Table) []constraint {
	var list []constraint
	for _, t := range tables {
		if hasKey(t) {
			key := keyColumns(t.Key)
			list = append(list, constraint{kind: "PRIMARY KEY", name: "PK_" + t.Name, table: t, key: key, usedTable: t, used: key})
		}
		for _, c := range t.Columns {
			if c.NotNull {
				list = append(list, constraint{
					kind: "CHECK", name: "CK_IS_NOT_NULL_" + t.Name + "_" + c.Name, table: t, clause: c.Name + " IS NOT NULL",
					usedTable: t, used: []*schema.Column{c},
				})
			}
		}
		for _, c := range t.Checks {
			list = append(list, constraint{kind: "CHECK", name: c.Name, table: t, clause: c.Expr.SQL, usedTable: t, used: c.Expr.Uses})
		}
		for _, i := range t.Indexes {
			if i.Managed && i.Unique {
				key := keyColumns(i.Key)
				list = append(list, constraint{kind: "UNIQUE", name: i.Name, table: t, key: key, usedTable: t, used: key})
			}
		}
		for _, fk := range t.ForeignKeys {
			list = append(list, constraint{
				kind: "FOREIGN KEY", name: fk.Name, table: t, key: fk.Columns, fk: fk, usedTable: fk.Referenced, used: fk.ReferencedColumns,
			})
		}
	}
	for i := range list {
		list[i].enforced = list[i].fk == nil || !list[i].fk.NotEnforced
	}
	return list
}

func keyColumns(key []schema.KeyPart) []*schema.Column {
	var list []*schema.Column
	for _, p := range key {
		list = append(list, p.Column)
	}
	return list
}

func tableConstraints(b *builder) {
	for _, c := range constraints(b.wanted()) {
		b.add("", c.table.Schema, c.name, "", c.table.Schema, c.table.Name, c.kind, "NO", "NO", yesNo(c.enforced))
	}
}

func checkConstraints(b *builder) {
	for _, c := range constraints(b.all()) {
		if c.kind == "CHECK" {
			b.add("", c.table.Schema, c.name, c.clause, committed)
		}
	}
}

func keyColumnUsage(b *builder) {
	for _, c := range constraints(b.wanted()) {
		for i, col := range c.key {
			var position any
			if c.fk != nil {
				position = positionIn(referencedKey(c.fk), c.fk.ReferencedColumns[i])
			}
			b.add("", c.table.Schema, c.name, "", c.table.Schema, c.table.Name, col.Name, i+1, position)
		}
	}
}

// referencedKey is the key that makes referenced rows unique, or nil if a foreign key that is not enforced has none.
func referencedKey(fk *schema.ForeignKey) []schema.KeyPart {
	switch {
	case fk.ReferencedIndex != nil:
		return fk.ReferencedIndex.Key
	case refersToKey(fk):
		return fk.Referenced.Key
	}
	return nil
}

// refersToKey says whether the referenced columns are the whole primary key.
func refersToKey(fk *schema.ForeignKey) bool {
	if len(fk.ReferencedColumns) != len(fk.Referenced.Key) {
		return false
	}
	for _, c := range fk.ReferencedColumns {
		if c.KeyOrdinal < 0 {
			return false
		}
	}
	return true
}

// positionIn is the place of a column in a key, from 1, or nil for NULL.
func positionIn(key []schema.KeyPart, c *schema.Column) any {
	for i, p := range key {
		if p.Column == c {
			return i + 1
		}
	}
	return nil
}

func referentialConstraints(b *builder) {
	referring := slices.DeleteFunc(b.all(), func(t *schema.Table) bool { return len(t.ForeignKeys) == 0 })
	for _, c := range constraints(referring) {
		if c.fk == nil {
			continue
		}
		var catalog, schemaName, unique any
		if c.fk.ReferencedIndex != nil {
			catalog, schemaName, unique = "", c.usedTable.Schema, c.fk.ReferencedIndex.Name
		} else if refersToKey(c.fk) {
			catalog, schemaName, unique = "", c.usedTable.Schema, "PK_"+c.usedTable.Name
		}
		rule := "NO ACTION"
		if c.fk.Cascade {
			rule = "CASCADE"
		}
		b.add("", c.table.Schema, c.name, catalog, schemaName, unique, "SIMPLE", "NO ACTION", rule, committed)
	}
}

func constraintTableUsage(b *builder) {
	for _, c := range constraints(b.all()) {
		if b.wants(c.usedTable) {
			b.add("", c.usedTable.Schema, c.usedTable.Name, "", c.table.Schema, c.name)
		}
	}
}

func constraintColumnUsage(b *builder) {
	for _, c := range constraints(b.all()) {
		if !b.wants(c.usedTable) {
			continue
		}
		for _, col := range c.used {
			b.add("", c.usedTable.Schema, c.usedTable.Name, col.Name, "", c.table.Schema, c.name)
		}
	}
}

package system

import (
	"maps"
	"slices"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
)

// constraint is a constraint of a table. It may be declared, or implied by a key or by NOT NULL.
type constraint struct {
	kind     string // PRIMARY KEY, UNIQUE, FOREIGN KEY, CHECK or PLACEMENT KEY
	name     string
	table    *schema.Table
	enforced bool
	state    string

	key    []*schema.Column // the columns of a key, which KEY_COLUMN_USAGE lists
	clause string           // the condition of a CHECK
	fk     *schema.ForeignKey

	// usedTable is the table that CONSTRAINT_TABLE_USAGE lists. For a foreign key, that is the referenced table. For any
	// other constraint, it is the table that has the constraint.
	usedTable *schema.Table
	used      []*schema.Column // the columns of usedTable that the constraint uses
}

// constraints returns the constraints of the given tables. Implied constraints have the same names as in Spanner,
// because tools search for these names.
func (b *builder) constraints(tables []*schema.Table) []constraint {
	var list []constraint
	for _, t := range tables {
		if hasKey(t) {
			key := schema.KeyColumns(t.Key)
			list = append(list, constraint{kind: "PRIMARY KEY", name: keyPrefix + t.Name, table: t, key: key, usedTable: t, used: key})
		}
		for _, c := range t.Columns {
			if c.PlacementKey {
				list = append(list, constraint{kind: "PLACEMENT KEY", name: placementPrefix + t.Name, table: t, usedTable: t, used: []*schema.Column{c}})
			}
			if c.NeedsValue() {
				list = append(list, constraint{
					kind: "CHECK", name: notNullPrefix + t.Name + "_" + c.Name, table: t, clause: c.Name + " IS NOT NULL", state: stateOfNotNull(c),
					usedTable: t, used: []*schema.Column{c},
				})
			}
		}
		for _, c := range t.Checks {
			list = append(list, constraint{kind: "CHECK", name: c.Name, table: t, clause: c.Expr.SQL, state: b.stateOfCheck(t, c), usedTable: t, used: c.Expr.Uses})
		}
		for _, i := range indexesOf(t) {
			if i.Managed && i.Unique {
				key := schema.KeyColumns(i.Key)
				list = append(list, constraint{kind: "UNIQUE", name: i.Name, table: t, key: key, usedTable: t, used: key})
			}
		}
		for _, fk := range t.ForeignKeys {
			list = append(list, constraint{
				kind: "FOREIGN KEY", name: fk.Name, table: t, key: fk.Columns, fk: fk, state: b.stateOfForeignKey(fk), usedTable: fk.Referenced, used: fk.ReferencedColumns,
			})
		}
	}
	for i := range list {
		list[i].enforced = list[i].fk == nil || !list[i].fk.NotEnforced || list[i].state != committed
	}
	return list
}

// The prefixes of the names of implied constraints.
const (
	keyPrefix       = "PK_"
	notNullPrefix   = "CK_IS_NOT_NULL_"
	placementPrefix = "PLACEMENT_KEY_"
)

func stateOfNotNull(c *schema.Column) string {
	if c.NotNull {
		return committed
	}
	return validating // a schema change is making the column NOT NULL
}

func (b *builder) stateOfCheck(t *schema.Table, c *schema.Check) string {
	for _, v := range b.validations {
		if v.Kind == schema.ValidateCheck && v.Table.ID == t.ID && v.Check.Name == c.Name {
			return validating
		}
	}
	return committed
}

func (b *builder) stateOfForeignKey(fk *schema.ForeignKey) string {
	for _, v := range b.validations {
		if v.Kind != schema.ValidateForeignKey || v.Table.ID != fk.Table.ID || v.ForeignKey.Name != fk.Name {
			continue
		}
		for _, i := range []*schema.Index{fk.Index, fk.ReferencedIndex} {
			if i != nil && i.State == schema.IndexWriteOnly {
				return backfillingIndexes
			}
		}
		return validatingData
	}
	return committed
}

// ofTables returns all constraints about which the query on b.table selects rows. It sometimes returns other
// constraints, too, whose rows the query's own condition drops. It is for a system table in which TABLE_NAME is the
// table that has the constraint.
func (b *builder) ofTables() []constraint {
	if _, some := b.want["TABLE_NAME"]; some {
		return b.constraints(b.tables())
	}
	return b.ofNames()
}

// ofNames returns all constraints that the query on b.table selects by CONSTRAINT_SCHEMA and CONSTRAINT_NAME. It
// sometimes returns other constraints, too, whose rows the query's own condition drops.
func (b *builder) ofNames() []constraint {
	if names, some := b.want["CONSTRAINT_NAME"]; some {
		return b.constraints(b.withConstraints(names))
	}
	return b.constraints(b.all("CONSTRAINT_SCHEMA"))
}

// ofUsed returns all constraints about which the query on b.table selects rows. It sometimes returns other constraints,
// too, whose rows the query's own condition drops. It is for a system table in which TABLE_NAME is the table that the
// constraint uses. For a foreign key, that is the referenced table.
func (b *builder) ofUsed() []constraint {
	if _, some := b.want["TABLE_NAME"]; !some {
		return b.ofNames()
	}
	list := b.tables()
	for _, t := range list {
		for _, fk := range b.catalog.ReferencedBy(t) {
			if !slices.Contains(list, fk.Table) {
				list = append(list, fk.Table)
			}
		}
	}
	return b.constraints(list)
}

// withConstraints returns all tables that have a constraint with one of the names. It may also return other tables,
// because the name of an implied NOT NULL constraint does not tell where its table's name ends. The query on b.table
// then drops the rows of those constraints that its condition does not select.
func (b *builder) withConstraints(names map[string]bool) []*schema.Table {
	implied := map[string]bool{} // table names that the name of an implied constraint may contain
	found := map[*schema.Table]bool{}
	for name := range names {
		for _, prefix := range []string{keyPrefix, placementPrefix} {
			if t, ok := strings.CutPrefix(name, prefix); ok {
				implied[t] = true
			}
		}
		if rest, ok := strings.CutPrefix(name, notNullPrefix); ok {
			for i, c := range rest {
				if c == '_' {
					implied[rest[:i]] = true
				}
			}
		}
		for _, s := range b.schemas("CONSTRAINT_SCHEMA") {
			if t := b.catalog.ConstrainedTable(path(s, name)); t != nil {
				found[t] = true
			}
		}
	}
	for _, t := range slices.Concat(b.named("CONSTRAINT_SCHEMA", implied), b.withIndexes("CONSTRAINT_SCHEMA", names)) {
		found[t] = true
	}
	return slices.Collect(maps.Keys(found))
}

func tableConstraints(b *builder) {
	for _, c := range b.ofTables() {
		b.add("", c.table.Schema, c.name, "", c.table.Schema, c.table.Name, c.kind, "NO", "NO", yesNo(c.enforced))
	}
}

func checkConstraints(b *builder) {
	for _, c := range b.ofNames() {
		if c.kind == "CHECK" && b.seesAnyOf(c.table) {
			b.add("", c.table.Schema, c.name, c.clause, c.state)
		}
	}
}

func keyColumnUsage(b *builder) {
	for _, c := range b.ofTables() {
		for i, col := range c.key {
			var position any
			if c.fk != nil {
				position = positionIn(referencedKey(c.fk), c.fk.ReferencedColumns[i])
			}
			b.add("", c.table.Schema, c.name, "", c.table.Schema, c.table.Name, col.Name, i+1, position)
		}
	}
}

// referencedKey returns the key that makes the referenced rows unique. It returns nil if there is none, as may happen
// for a foreign key that is not enforced.
func referencedKey(fk *schema.ForeignKey) []schema.KeyPart {
	switch {
	case fk.ReferencedIndex != nil:
		return fk.ReferencedIndex.Key
	case refersToKey(fk):
		return fk.Referenced.Key
	}
	return nil
}

// refersToKey reports whether the referenced columns are the whole primary key of the referenced table.
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

// positionIn returns the position of a column in a key, from 1; nil, which means NULL, if the column is not in the
// key.
func positionIn(key []schema.KeyPart, c *schema.Column) any {
	for i, p := range key {
		if p.Column == c {
			return i + 1
		}
	}
	return nil
}

func referentialConstraints(b *builder) {
	for _, c := range b.ofNames() {
		if c.fk == nil || !b.seesAnyOf(c.table) {
			continue
		}
		var catalog, schemaName, unique any
		if c.fk.ReferencedIndex != nil {
			catalog, schemaName, unique = "", c.usedTable.Schema, c.fk.ReferencedIndex.Name
		} else if refersToKey(c.fk) {
			catalog, schemaName, unique = "", c.usedTable.Schema, keyPrefix+c.usedTable.Name
		}
		rule := "NO ACTION"
		if c.fk.Cascade {
			rule = "CASCADE"
		}
		b.add("", c.table.Schema, c.name, catalog, schemaName, unique, "SIMPLE", "NO ACTION", rule, c.state)
	}
}

func constraintTableUsage(b *builder) {
	for _, c := range b.ofUsed() {
		b.add("", c.usedTable.Schema, c.usedTable.Name, "", c.table.Schema, c.name)
	}
}

func constraintColumnUsage(b *builder) {
	for _, c := range b.ofUsed() {
		for _, col := range c.used {
			b.add("", c.usedTable.Schema, c.usedTable.Name, col.Name, "", c.table.Schema, c.name)
		}
	}
}

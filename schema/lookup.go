package schema

import (
	"iter"
	"slices"
	"strings"
)

// NewCatalog returns the catalog of an empty database.
func NewCatalog() *Catalog {
	return &Catalog{NextID: 1}
}

// Tables yields the tables in order of creation, in which parents come before children.
func (c *Catalog) Tables() iter.Seq[*Table] { return valuesOf(c.tables.All()) }

// TablesBackward yields the tables in the opposite order.
func (c *Catalog) TablesBackward() iter.Seq[*Table] { return valuesOf(c.tables.Backward()) }

func valuesOf[K, V any](pairs iter.Seq2[K, V]) iter.Seq[V] {
	return func(yield func(V) bool) {
		for _, v := range pairs {
			if !yield(v) {
				return
			}
		}
	}
}

// Table returns the table called name ("t" or "schema.t"), ignoring case, or nil.
func (c *Catalog) Table(name string) *Table {
	if found, ok := c.names.Get(strings.ToLower(name)); ok && found.kind == nameOfTable {
		return c.TableByID(found.table)
	}
	return nil
}

// Index returns the index called name ("i" or "schema.i"), ignoring case, or nil.
func (c *Catalog) Index(name string) *Index {
	if found, ok := c.names.Get(strings.ToLower(name)); ok && found.kind == nameOfIndex {
		return c.TableByID(found.table).Index(name)
	}
	return nil
}

// ConstrainedTable returns the table that has the CHECK constraint or foreign key called name ("c" or "schema.c"), ignoring case, or nil.
func (c *Catalog) ConstrainedTable(name string) *Table {
	if found, ok := c.names.Get(strings.ToLower(name)); ok && found.kind == nameOfConstraint {
		return c.TableByID(found.table)
	}
	return nil
}

// TableByID returns the table with an ID, or nil.
func (c *Catalog) TableByID(id TableID) *Table {
	t, _ := c.tables.Get(id)
	return t
}

// IndexByID returns the index with an ID, or nil.
func (c *Catalog) IndexByID(id TableID) *Index {
	if table, ok := c.indexes.Get(id); ok {
		return c.TableByID(table).indexByID(id)
	}
	return nil
}

// Children returns the tables whose Parent is t.
func (c *Catalog) Children(t *Table) (list []*Table) {
	for x := range c.referrersOf(t) {
		if x.Parent == t {
			list = append(list, x)
		}
	}
	return list
}

// ReferencedBy returns the foreign keys to t.
func (c *Catalog) ReferencedBy(t *Table) (list []*ForeignKey) {
	for x := range c.referrersOf(t) {
		for _, fk := range x.ForeignKeys {
			if fk.Referenced == t {
				list = append(list, fk)
			}
		}
	}
	return list
}

// referrersOf yields the tables that refer to t, in order of their creation.
func (c *Catalog) referrersOf(t *Table) iter.Seq[*Table] {
	return func(yield func(*Table) bool) {
		for r := range c.referrers.From(reference(t.ID) << 32) {
			if TableID(r>>32) != t.ID || !yield(c.TableByID(TableID(r))) {
				return
			}
		}
	}
}

func (t *Table) indexByID(id TableID) *Index {
	if at := slices.IndexFunc(t.Indexes, func(i *Index) bool { return i.ID == id }); at >= 0 {
		return t.Indexes[at]
	}
	return nil
}

func (t *Table) columnByID(id ColumnID) *Column {
	if at := slices.IndexFunc(t.Columns, func(c *Column) bool { return c.ID == id }); at >= 0 {
		return t.Columns[at]
	}
	return nil
}

func (t *Table) columnsByID(ids []ColumnID) []*Column {
	list := make([]*Column, len(ids))
	for at, id := range ids {
		list[at] = t.columnByID(id)
	}
	return list
}

// FullName returns the table's name as SQL writes it: schema.name, or name in the default schema.
func (t *Table) FullName() string { return fullName(t.Schema, t.Name) }

// FullName returns the index's name as SQL writes it.
func (i *Index) FullName() string { return fullName(i.Schema, i.Name) }

func fullName(schema, name string) string {
	if schema == "" {
		return name
	}
	return schema + "." + name
}

// Column returns the column called name, ignoring case, or nil. It finds only columns that users can name.
func (t *Table) Column(name string) *Column {
	for _, c := range t.Columns {
		if c.State == ColumnReadWrite && strings.EqualFold(c.Name, name) {
			return c
		}
	}
	return nil
}

// Index returns the table's index called name ("i" or "schema.i"), ignoring case, or nil.
func (t *Table) Index(name string) *Index {
	for _, i := range t.Indexes {
		if strings.EqualFold(i.FullName(), name) {
			return i
		}
	}
	return nil
}

// Path returns the chain of parents from the root of the interleave tree down to t, which is last.
func (t *Table) Path() []*Table {
	depth := 1
	for p := t.Parent; p != nil; p = p.Parent {
		depth++
	}
	path := make([]*Table, depth)
	for p := t; p != nil; p = p.Parent {
		depth--
		path[depth] = p
	}
	return path
}

// Root returns the root table of the interleave tree of t.
func (t *Table) Root() *Table {
	for t.Parent != nil {
		t = t.Parent
	}
	return t
}

// TakesCommitTimestamp reports whether the commit timestamp may be written to the column col of t. The column must have
// the option allow_commit_timestamp. A key column needs it also in all tables above and below t that share it
// (https://cloud.google.com/spanner/docs/commit-timestamp#keys-indexes).
func (c *Catalog) TakesCommitTimestamp(t *Table, col *Column) bool {
	if !col.AllowCommitTimestamp || col.KeyOrdinal < 0 {
		return col.AllowCommitTimestamp
	}
	top := t
	for top.Parent != nil && col.KeyOrdinal < len(top.Parent.Key) {
		top = top.Parent
	}
	return c.keyTakesCommitTimestamp(top, col.KeyOrdinal)
}

func (c *Catalog) keyTakesCommitTimestamp(t *Table, part int) bool {
	if !t.Key[part].Column.AllowCommitTimestamp {
		return false
	}
	return !slices.ContainsFunc(c.Children(t), func(child *Table) bool { return !c.keyTakesCommitTimestamp(child, part) })
}

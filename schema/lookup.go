package schema

import "strings"

// NewCatalog returns the catalog of an empty database.
func NewCatalog() *Catalog {
	return &Catalog{NextID: 1, Options: Options{}, tables: map[string]*Table{}, indexes: map[string]*Index{}}
}

// Table returns the table called name ("t" or "schema.t"), ignoring case, or nil.
func (c *Catalog) Table(name string) *Table { return c.tables[strings.ToLower(name)] }

// Index returns the index called name ("i" or "schema.i"), ignoring case, or nil.
func (c *Catalog) Index(name string) *Index { return c.indexes[strings.ToLower(name)] }

// FullName is the table's name as SQL writes it: schema.name, or name in the default schema.
func (t *Table) FullName() string { return fullName(t.Schema, t.Name) }

// FullName is the index's name as SQL writes it.
func (i *Index) FullName() string { return fullName(i.Schema, i.Name) }

func fullName(schema, name string) string {
	if schema == "" {
		return name
	}
	return schema + "." + name
}

// Column returns the column that users call name, ignoring case, or nil.
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

// Path is the chain of parents from the root of the interleave tree down to t, which is last.
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

// Root is the topmost table of the interleave tree that t is in.
func (t *Table) Root() *Table {
	for t.Parent != nil {
		t = t.Parent
	}
	return t
}

// TakesCommitTimestamp says whether the commit timestamp may be written to a column of t: it has the option allow_commit_timestamp,
// and so have, for a key column, all columns that share the key in tables above and below t
// (https://cloud.google.com/spanner/docs/commit-timestamp#keys-indexes).
func (t *Table) TakesCommitTimestamp(c *Column) bool {
	if !c.AllowCommitTimestamp || c.KeyOrdinal < 0 {
		return c.AllowCommitTimestamp
	}
	top := t
	for top.Parent != nil && c.KeyOrdinal < len(top.Parent.Key) {
		top = top.Parent
	}
	return top.keyTakesCommitTimestamp(c.KeyOrdinal)
}

func (t *Table) keyTakesCommitTimestamp(part int) bool {
	if !t.Key[part].Column.AllowCommitTimestamp {
		return false
	}
	for _, child := range t.Children {
		if !child.keyTakesCommitTimestamp(part) {
			return false
		}
	}
	return true
}

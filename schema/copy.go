package schema

// copyTables copies tables that point at each other, so that the copies do.
// No table points at one that is not among them.
func copyTables(tables []*Table) map[*Table]*Table {
	c := copier{
		tables:  make(map[*Table]*Table, len(tables)),
		columns: map[*Column]*Column{},
		indexes: map[*Index]*Index{},
		keys:    map[*ForeignKey]*ForeignKey{},
	}
	for _, t := range tables {
		n := *t
		c.tables[t] = &n
		for _, col := range t.Columns {
			n := *col
			c.columns[col] = &n
		}
		for _, i := range t.Indexes {
			n := *i
			c.indexes[i] = &n
		}
		for _, fk := range t.ForeignKeys {
			n := *fk
			c.keys[fk] = &n
		}
	}
	for _, n := range c.tables {
		c.redirect(n)
	}
	return c.tables
}

type copier struct {
	tables  map[*Table]*Table
	columns map[*Column]*Column
	indexes map[*Index]*Index
	keys    map[*ForeignKey]*ForeignKey
}

// redirect makes everything in a copied table point at copies.
func (c *copier) redirect(t *Table) {
	t.Columns = each(t.Columns, c.columns)
	t.Children = each(t.Children, c.tables)
	t.Indexes = each(t.Indexes, c.indexes)
	t.ForeignKeys = each(t.ForeignKeys, c.keys)
	t.ReferencedBy = each(t.ReferencedBy, c.keys)
	t.Key = parts(t.Key, c.columns)
	t.Parent = c.tables[t.Parent]
	for _, col := range t.Columns {
		col.Default, col.OnUpdate, col.Generated = c.expr(col.Default), c.expr(col.OnUpdate), c.expr(col.Generated)
	}
	if p := t.RowDeletionPolicy; p != nil {
		t.RowDeletionPolicy = &RowDeletionPolicy{Column: c.columns[p.Column], Days: p.Days}
	}
	checks := make([]*Check, len(t.Checks))
	for i, ck := range t.Checks {
		n := *ck
		n.Expr = c.expr(ck.Expr)
		checks[i] = &n
	}
	t.Checks = checks
	for _, i := range t.Indexes {
		i.Table, i.Parent = c.tables[i.Table], c.tables[i.Parent]
		i.pointAt(c.columns)
	}
	for _, fk := range t.ForeignKeys {
		fk.Table, fk.Referenced = c.tables[fk.Table], c.tables[fk.Referenced]
		fk.Columns, fk.ReferencedColumns = each(fk.Columns, c.columns), each(fk.ReferencedColumns, c.columns)
		fk.Index, fk.ReferencedIndex = c.indexes[fk.Index], c.indexes[fk.ReferencedIndex]
	}
}

// each maps a slice; nil stays nil.
func each[T any](from []*T, to map[*T]*T) []*T {
	if from == nil {
		return nil
	}
	s := make([]*T, len(from))
	for i, f := range from {
		s[i] = to[f]
	}
	return s
}

// pointAt makes a copied index point at copies of its columns.
func (i *Index) pointAt(columns map[*Column]*Column) {
	i.Key, i.Suffix = parts(i.Key, columns), parts(i.Suffix, columns)
	i.Storing = each(i.Storing, columns)
	i.NotNullColumns = each(i.NotNullColumns, columns)
}

func parts(from []KeyPart, to map[*Column]*Column) []KeyPart {
	s := make([]KeyPart, len(from))
	for i, p := range from {
		s[i] = KeyPart{Column: to[p.Column], Desc: p.Desc}
	}
	return s
}

func (c *copier) expr(e *Expr) *Expr {
	if e == nil {
		return nil
	}
	return &Expr{SQL: e.SQL, Uses: each(e.Uses, c.columns), Eval: e.Eval}
}

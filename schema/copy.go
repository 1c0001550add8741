package schema

import "slices"

// copyLinks copies a table with its indexes and foreign keys. Both tables share their columns and expressions, and the
// copy points at the same other tables.
func (t *Table) copyLinks() *Table {
	n := *t
	n.Indexes = make([]*Index, len(t.Indexes))
	for at, i := range t.Indexes {
		copied := *i
		copied.Table = &n
		n.Indexes[at] = &copied
	}
	n.ForeignKeys = make([]*ForeignKey, len(t.ForeignKeys))
	for at, fk := range t.ForeignKeys {
		copied := *fk
		copied.Table = &n
		if fk.Index != nil {
			copied.Index = n.Indexes[slices.Index(t.Indexes, fk.Index)]
		}
		n.ForeignKeys[at] = &copied
	}
	return &n
}

// sharesColumns reports whether two tables share their columns. Then one is a copyLinks of the other, or both are
// copies of the same table, and at most the tables to which they point differ.
func (t *Table) sharesColumns(o *Table) bool {
	return len(t.Columns) > 0 && len(t.Columns) == len(o.Columns) && t.Columns[0] == o.Columns[0]
}

// redirect makes a copied table point at the draft's versions of other tables, their columns and their indexes.
func (d *draft) redirect(t *Table) {
	t.Parent = d.counterpart(t.Parent)
	for _, i := range t.Indexes {
		i.Parent = d.counterpart(i.Parent)
	}
	for _, fk := range t.ForeignKeys {
		fk.Referenced = d.counterpart(fk.Referenced)
		fk.ReferencedColumns = fk.Referenced.counterparts(fk.ReferencedColumns)
		if fk.ReferencedIndex != nil {
			fk.ReferencedIndex = fk.Referenced.indexByID(fk.ReferencedIndex.ID)
		}
	}
}

// counterpart returns the draft's table with the ID of t; nil for nil.
func (d *draft) counterpart(t *Table) *Table {
	if t == nil {
		return nil
	}
	return d.TableByID(t.ID)
}

// counterparts returns the columns of t with the IDs of columns of another copy of it.
func (t *Table) counterparts(columns []*Column) []*Column {
	return t.columnsByID(storeColumns(columns))
}

// copyColumns gives a table, which copyLinks has made, its own copies of columns and expressions.
func (t *Table) copyColumns() {
	columns := make(map[*Column]*Column, len(t.Columns))
	for _, c := range t.Columns {
		copied := *c
		columns[c] = &copied
	}
	t.Columns = each(t.Columns, columns)
	t.Key = parts(t.Key, columns)
	for _, c := range t.Columns {
		c.Default, c.OnUpdate, c.Generated = c.Default.over(columns), c.OnUpdate.over(columns), c.Generated.over(columns)
	}
	if p := t.RowDeletionPolicy; p != nil {
		t.RowDeletionPolicy = &RowDeletionPolicy{Column: columns[p.Column], Days: p.Days}
	}
	checks := make([]*Check, len(t.Checks))
	for at, ck := range t.Checks {
		copied := *ck
		copied.Expr = ck.Expr.over(columns)
		checks[at] = &copied
	}
	t.Checks = checks
	for _, i := range t.Indexes {
		i.pointAt(columns)
	}
	for _, fk := range t.ForeignKeys {
		fk.Columns = each(fk.Columns, columns)
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

// pointAt replaces the columns of a copied index by their copies.
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

// over returns a copy of the expression that reads copies of its columns; nil for nil.
func (e *Expr) over(columns map[*Column]*Column) *Expr {
	if e == nil {
		return nil
	}
	return &Expr{SQL: e.SQL, Uses: each(e.Uses, columns), Functions: e.Functions, Eval: e.Eval, bundle: e.bundle}
}

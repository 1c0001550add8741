package schema

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/schema/immutable"
)

// Change says what a statement requires for existing data. The new catalog may serve requests only after Columns and
// Indexes are filled and Validations have passed. From then on, data of dropped objects is garbage. Until then, other
// catalogs serve requests. The method Filling returns the catalog that serves while columns and indexes are filled.
// ValidatingUnique returns the catalog that serves while the entries of UNIQUE indexes are compared. Expecting returns
// the catalog that serves while rows are checked against redefined columns and constraints.
//
// The order of the work is: first Columns; then Indexes, because their entries may contain the new columns; then
// Validations, because foreign keys are looked up in Indexes.
type Change struct {
	// Nothing says that the statement changed nothing, for example because of IF NOT EXISTS. The new catalog is then
	// the old one.
	Nothing bool
	// Created is the table that the statement has created, or nil. The table has no rows.
	Created *Table
	// Columns lists new columns whose values must be computed and stored in every existing row.
	Columns []ColumnBackfill
	// Indexes lists indexes of the new catalog that must get an entry for every existing row. The statement fails if
	// two rows have the same key in a UNIQUE index.
	Indexes []*Index
	// Replaced lists the old versions of indexes that the statement rebuilds. Their new versions, with the same names,
	// are in Indexes.
	Replaced []*Index
	// Validations lists conditions that every existing row must meet. If a row does not, the statement fails and the
	// old catalog stays.
	Validations []Validation
	// DroppedTables and DroppedIndexes list the tables and indexes of the old catalog whose keys the new catalog does
	// not read: those that the statement has dropped, and the old versions of indexes that it has rebuilt.
	DroppedTables  []*Table
	DroppedIndexes []*Index
}

// OfRows reports whether existing rows must be read, to fill columns or indexes or to validate the rows.
func (ch *Change) OfRows() bool { return ch.Fills() || len(ch.Validations) > 0 }

// Fills reports whether existing rows must get values of new columns or entries in new indexes.
func (ch *Change) Fills() bool { return len(ch.Columns)+len(ch.Indexes) > 0 }

// Redefines reports whether existing values must meet the conditions of redefined columns or constraints. It returns
// false if the change also fills columns or indexes.
func (ch *Change) Redefines() bool {
	return !ch.Fills() && slices.ContainsFunc(ch.Validations, func(v Validation) bool { return v.Column != nil || v.Replaces != nil })
}

// Unique returns a validation for each new index whose entries must be compared (see ChecksUnique).
func (ch *Change) Unique() (list []Validation) {
	for _, i := range ch.Indexes {
		if i.ChecksUnique() {
			list = append(list, Validation{Kind: ValidateUnique, Table: i.Table, Index: i})
		}
	}
	return list
}

// ChecksUnique reports whether writes must check that no other row has the same declared key, which is Index.Key. A
// UNIQUE index whose Suffix is empty needs no check: its stored keys are its declared keys, so two rows cannot have the
// same one.
func (i *Index) ChecksUnique() bool { return i.Unique && len(i.Suffix) > 0 }

// Filling returns the catalog that serves requests while new columns and indexes are filled. c is the new catalog that
// Apply has returned together with ch. In the result, writes maintain the new columns and indexes, but reads do not use
// them. Indexes that will be replaced still exist. Foreign keys that need an incomplete index are not enforced. A new
// table does not exist yet, because its foreign keys would be looked up in incomplete indexes.
func (c *Catalog) Filling(ch *Change) *Catalog { return c.filling(ch, IndexWriteOnly) }

// ValidatingUnique returns the catalog that serves requests next, after the catalog that Filling returns, while the
// entries of new UNIQUE indexes are compared. A transaction that wrote under Filling's catalog may have looked for an
// equal key while entries were missing. If it has not committed when this catalog is published, it is aborted (see
// Dependencies). Later transactions find all entries.
func (c *Catalog) ValidatingUnique(ch *Change) *Catalog { return c.filling(ch, IndexValidateUnique) }

func (c *Catalog) filling(ch *Change, unique IndexState) *Catalog {
	d := c.draft(nil, nil)
	if ch.Created != nil {
		d.leave(ch.Created)
	}
	for _, b := range ch.Columns {
		d.copyOf(b.Table).Columns[b.Column.Ordinal].State = ColumnWriteOnly
	}
	for _, i := range ch.Indexes {
		t := d.copyOf(i.Table)
		state := IndexWriteOnly
		if i.ChecksUnique() {
			state = unique
		}
		t.Indexes[slices.Index(i.Table.Indexes, i)].State = state
	}
	for _, old := range ch.Replaced {
		d.bringBack(old)
	}
	for _, v := range ch.Validations {
		if v.Kind == ValidateForeignKey && len(ch.Indexes) > 0 {
			d.copyOf(v.Table).ForeignKeys[slices.Index(v.Table.ForeignKeys, v.ForeignKey)].NotEnforced = true
		}
	}
	d.measure()
	return d.Catalog
}

// bringBack puts a copy of a replaced index before its replacement in the table's list, so that a search for their
// common name finds the old index.
func (d *draft) bringBack(old *Index) {
	t := d.copyOf(old.Table)
	n := *old
	n.on(t)
	at := slices.Index(t.Indexes, t.Index(old.FullName()))
	t.Indexes = append(t.Indexes, t.Indexes[at])
	t.Indexes[at] = &n
	d.enterIndex(&n)
}

// on makes the index i belong to t, which is a copy of i's table. Afterwards i refers to the columns and the ancestors
// of t.
func (i *Index) on(t *Table) {
	columns := map[*Column]*Column{}
	for at, c := range i.Table.Columns {
		columns[c] = t.Columns[at]
	}
	for p := t; i.Parent != nil && p != nil; p = p.Parent {
		if p.ID == i.Parent.ID {
			i.Parent = p
			break
		}
	}
	i.Table = t
	i.pointAt(columns)
}

// Expecting returns the catalog that serves requests while existing rows are checked against the new definitions in ch.
// ch.Redefines must be true. c is the old catalog, on which Apply was called. In the result, reads find the columns as
// they are in c. Writes must obey both the current and the new definitions (Column.Becoming, Check.Becoming). So rows
// that are written meanwhile are valid whether the change succeeds or not.
func (c *Catalog) Expecting(ch *Change) *Catalog {
	d := c.draft(nil, nil)
	for _, v := range ch.Validations {
		t := d.copyOf(v.Table)
		if v.Check != nil {
			at := slices.IndexFunc(t.Checks, func(ck *Check) bool { return sameName(ck.Name, v.Check.Name) })
			t.Checks[at].Becoming = v.Check
			continue
		}
		col := t.Columns[v.Column.Ordinal]
		col.Becoming = v.Column
		if col.Type.Equal(v.Column.Type) {
			col.Default = v.Column.Default
		}
	}
	d.measure()
	return d.Catalog
}

// copyOf returns the draft's own copy of a table.
func (d *draft) copyOf(t *Table) *Table { return d.own(d.TableByID(t.ID)) }

// After returns the catalog that serves requests after a schema change has failed. The change should have led from c to
// the catalog newest. The result is a copy of c that does not give out the IDs that newest has given out already.
func (c *Catalog) After(newest *Catalog) *Catalog {
	d := c.draft(nil, nil)
	d.NextID = max(d.NextID, newest.NextID)
	immutable.Differences(c.tables, newest.tables, func(_ TableID, old, failed *Table) {
		if old != nil && failed != nil && failed.NextColumn > old.NextColumn {
			d.copyOf(old).NextColumn = failed.NextColumn
		}
	})
	d.measure()
	return d.Catalog
}

// Without returns the tables and indexes that c has and the catalog other does not have.
func (c *Catalog) Without(other *Catalog) (tables []*Table, indexes []*Index) {
	immutable.Differences(c.tables, other.tables, func(_ TableID, t, of *Table) {
		if of == nil {
			tables = append(tables, t)
		}
	})
	immutable.Differences(c.indexes, other.indexes, func(id TableID, _, of TableID) {
		if of == 0 {
			indexes = append(indexes, c.IndexByID(id))
		}
	})
	return tables, indexes
}

// WithVersion returns a copy of the catalog that has version v.
func (c *Catalog) WithVersion(v Version) *Catalog {
	n := *c
	n.Version = v
	return &n
}

// ColumnBackfill is a new column whose value must be computed and stored in existing rows. The value is that of the
// column's Default or, if the column is a stored generated one, that of its Generated expression.
type ColumnBackfill struct {
	Table  *Table
	Column *Column
}

// Validation is one condition that all rows of Table must meet.
type Validation struct {
	Kind  ValidationKind
	Table *Table // in the new catalog
	// Column is the new definition of a column, for conditions on one column. Old is its earlier definition, under
	// which the existing rows were written.
	Column, Old *Column
	Check       *Check      // for ValidateCheck
	Replaces    *Check      // the earlier definition of Check, or nil if it is new
	ForeignKey  *ForeignKey // for ValidateForeignKey
	// Placed and Placement are set if Kind is ValidatePlacement. The condition is then that no row has the value
	// Placement in Placed, the placement key column.
	Placed    *Column
	Placement string
	Index     *Index // for ValidateUnique
}

// ValidationKind is a kind of Validation.
type ValidationKind uint8

const (
	ValidateNotNull         ValidationKind = iota // Column is never NULL
	ValidateLength                                // no value of Column is longer than its MaxLength
	ValidateVectorLength                          // Column has VectorLength elements, none of them NULL
	ValidateUTF8                                  // Column, which was BYTES, holds valid UTF-8 of at most MaxLength characters
	ValidateCommitTimestamp                       // Column is never in the future
	ValidateCheck                                 // Check is TRUE or NULL
	ValidateParents                               // every row has its parent row
	ValidateForeignKey                            // every referenced key exists
	ValidatePlacement                             // no row has the value Placement in Placed
	ValidateUnique                                // no two entries of Index have the same declared key
	ValidateEnum                                  // Column has only numbers that its ENUM type defines
	ValidateComputed                              // Column is generated, and computes the same values as Old
)

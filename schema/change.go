package schema

import "slices"

// Change says what a statement means for data that exists already. The new
// catalog may serve only after Columns and Indexes are filled and Validations
// have passed; what was dropped is garbage once the new catalog serves. While
// they are filled, the catalog that Filling returns serves, and while the entries
// of UNIQUE indexes are compared, the one that ValidatingUnique returns; while rows
// are compared with columns and constraints that are redefined, the one that Expecting returns.
//
// Order: Columns, then Indexes, which may hold them, then Validations, since
// foreign keys are looked up in Indexes.
type Change struct {
	// Nothing says that the statement changed nothing (IF [NOT] EXISTS): the catalog is the old one.
	Nothing bool
	// Created, of the new catalog, is a new table, which has no rows.
	Created *Table
	// Columns get their values computed and stored in every row that exists.
	Columns []ColumnBackfill
	// Indexes, of the new catalog, get an entry for every row that exists; a UNIQUE one may refuse.
	Indexes []*Index
	// Replaced are indexes of the new catalog as they were before: those of Indexes with the same names take their places.
	Replaced []*Index
	// Validations must hold for every row that exists, or the statement fails and the old catalog stays.
	Validations []Validation
	// DroppedTables and DroppedIndexes, of the old catalog, own keys that the new catalog does not read.
	DroppedTables  []*Table
	DroppedIndexes []*Index
}

// OfRows says that existing rows must be filled or validated.
func (ch *Change) OfRows() bool { return ch.Fills() || len(ch.Validations) > 0 }

// Fills says that existing rows get new columns or index entries.
func (ch *Change) Fills() bool { return len(ch.Columns)+len(ch.Indexes) > 0 }

// Redefines says that there is nothing to fill, but existing values must meet other conditions than so far: columns or constraints are defined anew.
func (ch *Change) Redefines() bool {
	return !ch.Fills() && slices.ContainsFunc(ch.Validations, func(v Validation) bool { return v.Column != nil || v.Replaces != nil })
}

// Unique are the validations of the new indexes that are UNIQUE by less than the whole of their stored keys.
func (ch *Change) Unique() (list []Validation) {
	for _, i := range ch.Indexes {
		if i.ChecksUnique() {
			list = append(list, Validation{Kind: ValidateUnique, Table: i.Table, Index: i})
		}
	}
	return list
}

// ChecksUnique says that two rows could have entries with the same declared key, which the index forbids.
func (i *Index) ChecksUnique() bool { return i.Unique && len(i.Suffix) > 0 }

// Filling returns the catalog that serves while the new columns and indexes of c are filled; Apply has made c with ch. In it
// they are written but not read, the indexes that they replace still exist, and foreign keys that need an index that
// is not complete are not enforced. A new table is not there yet: its rows would refer to others through indexes that are not complete.
func (c *Catalog) Filling(ch *Change) *Catalog { return c.filling(ch, IndexWriteOnly) }

// ValidatingUnique returns the catalog that serves, after that of Filling, while the entries of new UNIQUE indexes are compared. What was
// written before it may have looked for an equal key among entries that were not complete: transactions that have, and that have not
// committed, are aborted (Dependencies). Those that come after it find all entries.
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

// bringBack puts a copy of an index that was replaced before the one that replaces it, so that it is found by their name.
func (d *draft) bringBack(old *Index) {
	t := d.copyOf(old.Table)
	n := *old
	n.on(t)
	at := slices.Index(t.Indexes, t.Index(old.FullName()))
	t.Indexes = append(t.Indexes, t.Indexes[at])
	t.Indexes[at] = &n
	d.enterIndex(&n)
}

// on makes an index one of t, a copy of its table.
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

// Expecting returns the catalog that serves while existing values are validated against ch, which Apply has made
// of c and which Redefines columns or constraints. Reads find the columns as they are in c; writes must also obey what the columns are to become
// (Column.Becoming, Check.Becoming). So rows that are written meanwhile are good whether or not the change is made.
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

// copyOf is the draft's own copy of a table.
func (d *draft) copyOf(t *Table) *Table { return d.own(d.TableByID(t.ID)) }

// After returns a catalog like c to take the place of newest, which a schema change has made of c and that failed. Numbers that were given out
// meanwhile are not given out again.
func (c *Catalog) After(newest *Catalog) *Catalog {
	d := c.draft(nil, nil)
	d.NextID = max(d.NextID, newest.NextID)
	differences(c.tables, newest.tables, func(_ TableID, old, failed *Table) {
		if old != nil && failed != nil && failed.NextColumn > old.NextColumn {
			d.copyOf(old).NextColumn = failed.NextColumn
		}
	})
	d.measure()
	return d.Catalog
}

// Without are the tables and indexes of c that another version does not have.
func (c *Catalog) Without(other *Catalog) (tables []*Table, indexes []*Index) {
	differences(c.tables, other.tables, func(_ TableID, t, of *Table) {
		if of == nil {
			tables = append(tables, t)
		}
	})
	differences(c.indexes, other.indexes, func(id TableID, _, of TableID) {
		if of == 0 {
			indexes = append(indexes, c.IndexByID(id))
		}
	})
	return tables, indexes
}

// WithVersion returns the catalog as another version.
func (c *Catalog) WithVersion(v Version) *Catalog {
	n := *c
	n.Version = v
	return &n
}

// ColumnBackfill is a new column that existing rows need a value of: its Default, or its stored Generated expression.
type ColumnBackfill struct {
	Table  *Table
	Column *Column
}

// Validation is one condition on the rows of Table.
type Validation struct {
	Kind  ValidationKind
	Table *Table // in the new catalog
	// Column, of the new catalog, for conditions on one column; Old is the same column as the rows were written with.
	Column, Old *Column
	Check       *Check      // for ValidateCheck
	Replaces    *Check      // Check as it was if it is no new one, or nil
	ForeignKey  *ForeignKey // for ValidateForeignKey
	// Placed, of the new catalog, is a placement key, and Placement is the name that it may no longer have, for ValidatePlacement.
	Placed    *Column
	Placement string
	Index     *Index // for ValidateUnique
}

// ValidationKind is a kind of Validation.
type ValidationKind uint8

const (
	ValidateNotNull         ValidationKind = iota // Column is never NULL
	ValidateLength                                // Column is no longer than its MaxLength
	ValidateVectorLength                          // Column has VectorLength elements, none of them NULL
	ValidateUTF8                                  // Column, so far BYTES, is valid UTF-8 (and no longer than MaxLength)
	ValidateCommitTimestamp                       // Column is never in the future
	ValidateCheck                                 // Check is TRUE or NULL
	ValidateParents                               // every row has its parent row
	ValidateForeignKey                            // every referenced key exists
	ValidatePlacement                             // Placed is not Placement
	ValidateUnique                                // no two entries of Index have the same declared key
	ValidateEnum                                  // Column has only numbers of its ENUM type
	ValidateComputed                              // Column, which is generated, has the values that Old has
)

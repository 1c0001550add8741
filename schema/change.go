package schema

import "slices"

// Change says what a statement means for data that exists already. The new
// catalog may serve only after Columns and Indexes are filled and Validations
// have passed; what was dropped is garbage once the new catalog serves. While
// they are filled, a catalog that HoldBack was called for serves; while columns are
// validated, one that Expecting returns.
//
// Order: Columns, then Indexes, which may hold them, then Validations, since
// foreign keys are looked up in Indexes.
type Change struct {
	// Nothing says that the statement changed nothing (IF [NOT] EXISTS, ANALYZE): the catalog is the old one.
	Nothing bool
	// Columns get their values computed and stored in every row that exists.
	Columns []ColumnBackfill
	// Indexes, of the new catalog, get an entry for every row that exists; a UNIQUE one may refuse.
	Indexes []*Index
	// Replaced are indexes of the new catalog as they were before: those of Indexes with the same names take their places.
	Replaced []*Index
	// Validations must hold for every row that exists, or the statement fails and the old catalog stays.
	Validations []Validation
	// DroppedTables and DroppedIndexes, of the old catalog, own keys that nobody reads any more.
	DroppedTables  []*Table
	DroppedIndexes []*Index
}

// HoldBack changes c, which Apply has just made with ch, to what serves while
// new columns and indexes are filled: these are written but not read, indexes
// that others replace are still there, and foreign keys that need an index that
// is not complete are not enforced. It says whether there is anything to fill.
func (c *Catalog) HoldBack(ch *Change) bool {
	for _, b := range ch.Columns {
		b.Column.State = ColumnWriteOnly
	}
	for _, i := range ch.Indexes {
		i.State = IndexWriteOnly
	}
	for _, old := range ch.Replaced {
		t, name := old.Table, key(old.Schema, old.Name)
		at := slices.Index(t.Indexes, c.indexes[name])
		t.Indexes = append(t.Indexes, t.Indexes[at])
		t.Indexes[at], c.indexes[name] = old, old // first, so that it is found by name
	}
	for _, v := range ch.Validations {
		if v.Kind == ValidateForeignKey && len(ch.Indexes) > 0 {
			v.ForeignKey.NotEnforced = true
		}
	}
	return len(ch.Columns)+len(ch.Indexes) > 0
}

// OfColumns says that there is nothing to fill, but existing values of columns must meet new conditions.
func (ch *Change) OfColumns() bool {
	return len(ch.Columns)+len(ch.Indexes) == 0 && len(ch.Validations) > 0 && ch.Validations[0].Column != nil
}

// Expecting returns what serves, after c, while existing values are held against a change of columns that Apply has made of
// c: a catalog with the columns as they are, since nothing else is certain, in which writes obey what they are to become as well.
func (c *Catalog) Expecting(ch *Change) *Catalog {
	d := c.draft(nil, nil)
	for _, v := range ch.Validations {
		col := d.own(c.Table(v.Table.FullName())).Columns[v.Column.Ordinal]
		col.Becoming = v.Column
		if col.Type.Equal(v.Column.Type) {
			col.Default = v.Column.Default
		}
	}
	d.Version++
	return d.Catalog
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
	ForeignKey  *ForeignKey // for ValidateForeignKey
}

// ValidationKind is a kind of Validation.
type ValidationKind uint8

const (
	ValidateNotNull         ValidationKind = iota // Column is never NULL
	ValidateLength                                // Column is no longer than its MaxLength
	ValidateUTF8                                  // Column, so far BYTES, is valid UTF-8 (and no longer than MaxLength)
	ValidateCommitTimestamp                       // Column is never in the future
	ValidateCheck                                 // Check is TRUE or NULL
	ValidateParents                               // every row has its parent row
	ValidateForeignKey                            // every referenced key exists
)

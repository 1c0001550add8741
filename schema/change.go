package schema

// Change says what a statement means for data that exists already. The new
// catalog may serve only after Columns and Indexes are filled and Validations
// have passed; what was dropped is garbage once the new catalog serves.
//
// Order: Columns, then Indexes, which may hold them, then Validations, since
// foreign keys are looked up in Indexes. Other kinds of Validations may come first.
type Change struct {
	// Nothing says that the statement changed nothing (IF [NOT] EXISTS): the catalog is the old one.
	Nothing bool
	// Columns get their values computed and stored in every row that exists.
	Columns []ColumnBackfill
	// Indexes, of the new catalog, get an entry for every row that exists; a UNIQUE one may refuse.
	Indexes []*Index
	// Validations must hold for every row that exists, or the statement fails and the old catalog stays.
	Validations []Validation
	// DroppedTables and DroppedIndexes, of the old catalog, own keys that nobody reads any more.
	DroppedTables  []*Table
	DroppedIndexes []*Index
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

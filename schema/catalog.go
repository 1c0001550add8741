// Package schema is the catalog of one database: its tables, columns, indexes
// and constraints at one version, DDL in, DDL out.
//
// A Catalog and everything that hangs off it is immutable once it is
// published; a schema change makes a new one, which shares with the old one what it does not change. Objects carry small numbers
// (TableID, ColumnID) that stay with them for life and are never given out
// again: keys and rows are written with numbers, not names.
//
// Imports of this module: usererror, value.
package schema

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/value"
)

// TableID numbers a table or an index for life; both share one sequence,
// since both own a key space. IDs start at 1. An index whose entries change
// shape is filled anew, under a new number.
type TableID uint32

// ColumnID numbers a column of a table for life; IDs start at 1.
type ColumnID uint32

// Version counts the schema changes of a database.
type Version uint64

// Catalog is the schema of a database at one version.
type Catalog struct {
	// Database is the database's id: ALTER DATABASE must name it, if it is set, and is printed with it.
	Database string
	Version  Version
	Schemas  []string        // named schemas, in order of creation; replaced, never changed
	Options  Options         // replaced, never changed
	NextID   TableID         // the next TableID to give out
	Streams  []*ChangeStream // in order of creation; replaced, never changed

	// Versions of a schema share the nodes of these trees, and the tables, that are the same in both.
	tables    *tree[TableID, *Table]
	indexes   *tree[TableID, TableID] // the table of each index
	names     *tree[string, named]    // by full name in lower case: tables, indexes, constraints, change streams and objects
	referrers *tree[reference, struct{}]
	objects   *tree[TableID, Object]

	size int // the length of what DDL prints of the tables and the objects
}

// named is what has a name: a table, an index or a constraint of it, a change stream, or an object.
type named struct {
	table TableID // or the number of a change stream or an object
	kind  nameKind
}

type nameKind uint8

const (
	nameOfTable nameKind = iota
	nameOfIndex
	nameOfConstraint
	nameOfChangeStream
	nameOfObject
	nameOfSynonym // of a table
)

// reference is a table in the upper 32 bits, and in the lower ones a table that refers to it as its parent or by foreign keys. They stand
// in the catalog and not in the table: a new child does not change its parent.
type reference uint64

func referenceOf(referenced, referrer *Table) reference {
	return reference(referenced.ID)<<32 | reference(referrer.ID)
}

// Options are what ALTER DATABASE ... SET OPTIONS sets, as text by name, only those that are set.
type Options map[string]string

// Table is a table as users define it, or a system table (INFORMATION_SCHEMA, SPANNER_SYS).
type Table struct {
	ID      TableID
	Schema  string // "" is the default schema
	Name    string
	Columns []*Column // in order, those being back-filled last; a Column's Ordinal is its place here
	Key     []KeyPart // the primary key; may be empty: at most one row

	Parent     *Table // of INTERLEAVE IN [PARENT], else nil
	Interleave Interleave
	Synonym    string   // another name, in the same schema; "" if there is none
	Indexes    []*Index // in order of creation
	Checks     []*Check
	NextColumn ColumnID

	RowDeletionPolicy *RowDeletionPolicy // or nil
	ColumnarPolicy    ColumnarPolicy
	LocalityGroup     string // of the option locality_group; "" if it is not set

	ForeignKeys []*ForeignKey // from this table, in order of creation

	// ProtoBundle, if not nil, has the PROTO and ENUM types that columns or expressions of the table name.
	ProtoBundle *ProtoBundle

	// Rows, for system tables only, produces the rows as they are now. It may leave out rows in which a STRING column, by its name, has none
	// of the values in want.
	Rows func(ctx context.Context, want map[string]map[string]bool) ([][]value.Value, error)
	// FoundBy, for system tables only, are columns with a value of which Rows finds rows without making all of them.
	FoundBy []*Column

	size int // the length of what DDL prints of the table, its indexes and constraints
}

// Interleave says how a table hangs under its Parent.
type Interleave uint8

const (
	NotInterleaved     Interleave = iota
	InterleaveIn                  // INTERLEAVE IN: stored together, nothing enforced
	InterleaveNoAction            // INTERLEAVE IN PARENT ... ON DELETE NO ACTION
	InterleaveCascade             // INTERLEAVE IN PARENT ... ON DELETE CASCADE
)

// KeyPart is one part of a primary or index key.
type KeyPart struct {
	Column *Column
	Desc   bool
}

// Column is one column of a table.
type Column struct {
	ID      ColumnID
	Ordinal int // place in Table.Columns, from 0; -1 if a plan has made the column, to compute it of others
	Name    string
	Type    *value.Type
	// MaxLength is the limit of STRING(n) in characters, of BYTES(n) in bytes, also for the
	// elements of an ARRAY of these; MAX is the limit of a cell (MaxStringLength, MaxBytesLength). 0 for other types.
	MaxLength            int64
	LengthIsMax          bool  // written STRING(MAX)
	VectorLength         int64 // how many elements each array has, as vector_length says; 0 if it is not set
	NotNull              bool
	Hidden               bool
	AllowCommitTimestamp bool
	LocalityGroup        string     // as of a Table
	PlacementKey         bool       // of a STRING column: its values are names of placements
	Default              *Expr      // DEFAULT (e), or nil; of an identity column the next value
	OnUpdate             *Expr      // ON UPDATE (e), or nil
	Identity             *Generator // of GENERATED BY DEFAULT AS IDENTITY, or nil
	Generated            *Expr      // AS (e), or nil
	Stored               bool       // of a generated column
	KeyOrdinal           int        // place in the primary key, -1 if not part of it
	State                ColumnState
	// Becoming is the column as a schema change under way redefines it, or nil. Writes obey it already; reads do not rely
	// on it. It is not stored.
	Becoming *Column
}

// NeedsValue says whether rows that are written must have a value in the column.
func (c *Column) NeedsValue() bool { return c.NotNull || c.Becoming != nil && c.Becoming.NotNull }

// ColumnState says who may use a column.
type ColumnState uint8

const (
	ColumnReadWrite ColumnState = iota // complete
	ColumnWriteOnly                    // being back-filled: written with every new row, but no user can name it
)

// Check is a CHECK constraint.
type Check struct {
	Name string
	// NameGenerated says that the name was not written but made: DDL does not print it.
	NameGenerated bool
	Expr          *Expr
	// Becoming is the constraint as a schema change under way redefines it, or nil. Writes obey both. It is not stored.
	Becoming *Check
}

// ForeignKey is a FOREIGN KEY constraint.
type ForeignKey struct {
	Name          string
	NameGenerated bool
	Table         *Table
	Columns       []*Column
	Referenced    *Table
	// ReferencedColumns stand in the order of Columns.
	ReferencedColumns []*Column
	Cascade           bool // ON DELETE CASCADE
	NotEnforced       bool
	// Index, of Table, has Columns as its first key parts; nil if Table's primary key serves.
	Index *Index
	// ReferencedIndex, of Referenced, is unique on ReferencedColumns; nil if they are the primary key.
	ReferencedIndex *Index
}

// Expr is an SQL expression over the columns of one row. SQL is its text as
// written, without outer parentheses. Uses are the columns it reads.
type Expr struct {
	SQL  string
	Uses []*Column
	// Functions are those of users that it calls, itself or by way of others, in the order of their numbers.
	Functions []*Function
	// Eval computes it; args are the values of Uses in order. Set by the Compiler.
	Eval func(args []value.Value) (value.Value, error)
	// Peek, if not nil, is Eval for the bytes of the one argument, a PROTO that is not NULL. The value may refer to them.
	Peek func(message []byte) (value.Value, error)

	bundle *ProtoBundle           // of the table that it was compiled for; nil if that names no types
	origin atomic.Pointer[origin] // see computedFrom; nil until it is first asked for
}

// Compiler turns the text of an expression over the columns of t, a table of c, into an Expr whose
// value has type want. SQL stands above this package, so it is handed in.
type Compiler interface {
	// NextValue makes the function that takes the next value of a generator; name is the generator's for messages.
	NextValue(name string, g *Generator) func([]value.Value) (value.Value, error)
	// CompileView analyzes the query of a view over the tables and objects of c: its columns, and what it names.
	CompileView(c *Catalog, sql string) ([]ViewColumn, []Use, error)
	// CompileFunction analyzes the Text of a function over the tables and objects of c: its signature, and what it names.
	CompileFunction(c *Catalog, f *Function) (Signature, []Use, error)
	CompileExpr(c *Catalog, t *Table, sql string, want *value.Type) (*Expr, error)
	// Now is the time at which a statement runs.
	Now() time.Time
}

// Index is a secondary index.
type Index struct {
	ID           TableID
	Schema       string
	Name         string
	Table        *Table
	Unique       bool
	NullFiltered bool
	Key          []KeyPart // as declared
	// Suffix are the primary key parts of Table that Key does not hold, in key order with their direction:
	// the stored key is Key then Suffix.
	Suffix  []KeyPart
	Storing []*Column
	Parent  *Table // of INTERLEAVE IN, else nil
	State   IndexState
	// Managed says that a foreign key made the index, not a user.
	Managed bool
	// NotNullColumns are the columns whose NULLs keep a row out (all of Key for NullFiltered, or those of WHERE c IS NOT NULL).
	NotNullColumns []*Column
	ColumnarPolicy ColumnarPolicy
	LocalityGroup  string // as of a Table
}

// IndexState says who may use an index.
type IndexState uint8

const (
	IndexReadWrite      IndexState = iota // complete
	IndexWriteOnly                        // being back-filled: kept up to date by writes, but not read
	IndexValidateUnique                   // UNIQUE, filled and not read yet: writes are checked against all entries, and the entries against each other
)

// Package schema is the catalog of one database: its tables, columns, indexes and constraints at one version. It reads
// DDL, applies it to a Catalog, and prints a Catalog as DDL.
//
// A Catalog and everything that it points to is immutable once it is published. A schema change makes a new Catalog,
// which shares the unchanged parts with the old one. Objects have small numbers (TableID, ColumnID) that never change
// and are never used again for another object, because stored keys and rows contain these numbers instead of names.
//
// Imports of this module: schema/descriptor, schema/immutable, schema/syntax, usererror, value.
package schema

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/crowfoot-db/crowfoot/schema/immutable"
	"github.com/crowfoot-db/crowfoot/value"
)

// TableID identifies a table or an index. It never changes. Tables and indexes take their IDs from one sequence,
// because each has a key space of its own. IDs start at 1. If a statement changes what the entries of an index
// contain, the index gets a new ID and is filled again.
type TableID uint32

// ColumnID identifies a column of a table. It never changes. IDs start at 1.
type ColumnID uint32

// Version counts the schema changes of a database.
type Version uint64

// Catalog is the schema of a database at one version.
type Catalog struct {
	// Database is the database's id. If it is set, GetDatabaseDdl prints it in ALTER DATABASE.
	Database string
	Version  Version
	Schemas  []string        // named schemas, in order of creation; never changed in place
	Options  Options         // never changed in place
	NextID   TableID         // the next TableID to give out
	Streams  []*ChangeStream // in order of creation; never changed in place

	// Successive versions of a schema share the unchanged nodes of these maps, and the unchanged tables.
	tables    *immutable.Map[TableID, *Table]
	indexes   *immutable.Map[TableID, TableID] // maps the ID of an index to that of its table
	names     *immutable.Map[string, named]    // maps full names in lower case to what they stand for
	referrers *immutable.Map[reference, struct{}]
	objects   *immutable.Map[TableID, Object]

	size int // the length in bytes of the DDL text of the tables and the objects
}

// named is what a name in Catalog.names stands for: a table, its synonym, one of its indexes or constraints, a change
// stream, or an object.
type named struct {
	// table is the ID of the change stream or object that has the name. For any other kind of name, it is the ID of the
	// table that has the name, or of the table to which the synonym, index or constraint belongs.
	table TableID
	kind  nameKind
}

type nameKind uint8

const (
	nameOfTable nameKind = iota
	nameOfIndex
	nameOfConstraint
	nameOfChangeStream
	nameOfObject
	nameOfSynonym // the name is a Table.Synonym
)

// reference says that one table, the referrer, refers to another table, as its child or by a foreign key. The lower 32
// bits are the ID of the referrer. The upper 32 bits are the ID of the other table. References are stored in the
// catalog, and not in the tables to which they lead, so that a new child does not change its parent.
type reference uint64

func referenceOf(referenced, referrer *Table) reference {
	return reference(referenced.ID)<<32 | reference(referrer.ID)
}

// Options holds the options of a database that ALTER DATABASE ... SET OPTIONS has set. It maps the name of each option
// to the option's value as text.
type Options map[string]string

// Table is a user's table or a system table (INFORMATION_SCHEMA, SPANNER_SYS).
type Table struct {
	ID     TableID
	Schema string // "" is the default schema
	Name   string
	// Columns are in order of creation, so a column that is being back-filled comes last. Each Column's Ordinal is its
	// index in this list.
	Columns []*Column
	Key     []KeyPart // the primary key; if it is empty, the table has at most one row

	Parent     *Table // the table in INTERLEAVE IN [PARENT]; nil for a root table
	Interleave Interleave
	Synonym    string   // another name, in the same schema; "" if there is none
	Indexes    []*Index // in order of creation
	Checks     []*Check
	NextColumn ColumnID

	RowDeletionPolicy *RowDeletionPolicy // nil if the table has none
	ColumnarPolicy    ColumnarPolicy
	LocalityGroup     string // the option locality_group; "" if it is not set

	ForeignKeys []*ForeignKey // from this table, in order of creation

	// ProtoBundle defines the PROTO and ENUM types that the table's columns or expressions name; nil if they name none.
	ProtoBundle *ProtoBundle

	// Rows returns the current rows of a system table; it is nil for other tables. want maps names of STRING columns to
	// sets of values. Rows may leave out a row if its value in such a column is not in the column's set.
	Rows func(ctx context.Context, want map[string]map[string]bool) ([][]value.Value, error)
	// FoundBy lists columns of a system table. If the argument want of the function Rows has values for one of these
	// columns, Rows is fast, because it does not have to make all rows.
	FoundBy []*Column

	size int // the length in bytes of the DDL text of the table, its indexes and constraints
}

// Interleave says how a table is interleaved in its Parent.
type Interleave uint8

const (
	NotInterleaved     Interleave = iota
	InterleaveIn                  // INTERLEAVE IN: rows are stored with the parent's, but need not have a parent row
	InterleaveNoAction            // INTERLEAVE IN PARENT ... ON DELETE NO ACTION
	InterleaveCascade             // INTERLEAVE IN PARENT ... ON DELETE CASCADE
)

// KeyPart is one part of a primary or index key.
type KeyPart struct {
	Column *Column
	Desc   bool
}

// KeyColumns returns the columns of the parts of a key, in their order.
func KeyColumns(key []KeyPart) []*Column {
	columns := make([]*Column, len(key))
	for i, part := range key {
		columns[i] = part.Column
	}
	return columns
}

// Column is one column of a table.
type Column struct {
	ID      ColumnID
	Ordinal int // index in Table.Columns; -1 for a computed column that a query plan has added
	Name    string
	Type    *value.Type
	// MaxLength is the limit of STRING(n) in characters or of BYTES(n) in bytes. In an ARRAY it is the limit of each
	// element. For STRING(MAX) and BYTES(MAX) it is MaxStringLength and MaxBytesLength. It is 0 for other types.
	MaxLength            int64
	LengthIsMax          bool  // DDL gave the length as MAX, as in STRING(MAX)
	VectorLength         int64 // number of elements of each array (vector_length); 0 if it is not set
	NotNull              bool
	Hidden               bool
	AllowCommitTimestamp bool
	LocalityGroup        string     // the option locality_group; "" if it is not set
	PlacementKey         bool       // its values are names of placements (PLACEMENT KEY)
	Default              *Expr      // DEFAULT (e), or nil; in an identity column, it takes the next value of Identity
	OnUpdate             *Expr      // ON UPDATE (e), or nil
	Identity             *Generator // the generator of GENERATED BY DEFAULT AS IDENTITY, or nil
	Generated            *Expr      // AS (e), or nil
	Stored               bool       // the column is a generated one with the word STORED
	KeyOrdinal           int        // index in Table.Key; -1 if the column is not in the primary key
	State                ColumnState
	// Becoming is the new definition of the column while a schema change redefines it, else nil. Writes must obey it
	// already, but reads must not rely on it. Becoming is not stored.
	Becoming *Column
}

// NeedsValue reports whether rows that are written now must have a value that is not NULL in the column.
func (c *Column) NeedsValue() bool { return c.NotNull || c.Becoming != nil && c.Becoming.NotNull }

// ColumnState says whether reads and writes use a column.
type ColumnState uint8

const (
	ColumnReadWrite ColumnState = iota // complete: users can read and write it
	ColumnWriteOnly                    // being back-filled: new rows get a value, but users cannot name the column
)

// Check is a CHECK constraint.
type Check struct {
	Name string
	// NameGenerated says that the statement gave no name, so that the name was generated. DDL does not print such a
	// name.
	NameGenerated bool
	Expr          *Expr
	// Becoming is the new definition of the constraint while a schema change redefines it, else nil. Writes must obey
	// both definitions. Becoming is not stored.
	Becoming *Check
}

// ForeignKey is a FOREIGN KEY constraint.
type ForeignKey struct {
	Name          string
	NameGenerated bool
	Table         *Table
	Columns       []*Column
	Referenced    *Table
	// ReferencedColumns are in the order of Columns.
	ReferencedColumns []*Column
	Cascade           bool // ON DELETE CASCADE
	NotEnforced       bool
	// Index is an index of Table whose key begins with Columns; nil if the primary key of Table begins with them, or
	// if the constraint is not enforced.
	Index *Index
	// ReferencedIndex is a unique index of Referenced on ReferencedColumns; nil if they are the primary key, or if
	// the constraint is not enforced.
	ReferencedIndex *Index
}

// Expr is an SQL expression over the columns of one row. SQL is the expression as the user wrote it, without outer
// parentheses. Uses lists the columns that the expression reads.
type Expr struct {
	SQL  string
	Uses []*Column
	// Functions lists the user-defined functions that the expression calls, directly or through other functions, in
	// the order of their IDs.
	Functions []*Function
	// Eval computes the expression. args are the values of the columns in Uses, in order. The Compiler sets Eval.
	Eval func(args []value.Value) (value.Value, error)
	// Peek, if not nil, computes the expression as Eval does, from one argument: the encoded bytes of a PROTO that is
	// not NULL. The result may refer to these bytes.
	Peek func(message []byte) (value.Value, error)

	bundle *ProtoBundle           // the ProtoBundle of the table for which the expression was compiled; may be nil
	origin atomic.Pointer[origin] // the result of computedFrom; nil until the first call
}

// Compiler compiles SQL expressions for this package. The SQL packages implement it. They import this package, so it
// cannot import them, and callers pass a Compiler in.
type Compiler interface {
	// NextValue returns a function that takes the next value of generator g. name is the generator's name in error
	// messages.
	NextValue(name string, g *Generator) func([]value.Value) (value.Value, error)
	// CompileView analyzes the query of a view over the tables and objects of c. It returns the view's columns, and
	// the tables and objects that the query names.
	CompileView(c *Catalog, sql string) ([]ViewColumn, []Use, error)
	// CompileFunction analyzes f.Text(), which is a CREATE FUNCTION statement, over the tables and objects of c. It
	// returns the function's signature, and the tables and objects that the statement names.
	CompileFunction(c *Catalog, f *Function) (Signature, []Use, error)
	CompileExpr(c *Catalog, t *Table, sql string, want *value.Type) (*Expr, error)
	// Now returns the time at which the statement runs.
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
	Key          []KeyPart // the key as declared, without Suffix
	// Suffix lists the parts of the table's primary key that are not in Key, in key order, with their direction. The
	// stored key of an entry is Key, then Suffix.
	Suffix  []KeyPart
	Storing []*Column
	Parent  *Table // the table in INTERLEAVE IN; nil if the index is not interleaved
	State   IndexState
	// Managed says that a foreign key created the index, not a user.
	Managed bool
	// NotNullColumns lists the columns for which rows with NULL have no entry in the index: all columns of Key if
	// NullFiltered is true, and the columns that the index definition names in WHERE c IS NOT NULL.
	NotNullColumns []*Column
	ColumnarPolicy ColumnarPolicy
	LocalityGroup  string // the option locality_group; "" if it is not set
}

// IndexState says whether reads and writes use an index.
type IndexState uint8

const (
	IndexReadWrite      IndexState = iota // complete: reads and writes use it
	IndexWriteOnly                        // being back-filled: writes keep it up to date, but reads do not use it
	IndexValidateUnique                   // UNIQUE, filled: its entries are being compared; reads do not use it
)

// NewCatalog returns the catalog of an empty database.
func NewCatalog() *Catalog {
	return &Catalog{NextID: 1}
}

// Tables yields the tables in order of creation, so parents come before their children.
func (c *Catalog) Tables() iter.Seq[*Table] { return valuesOf(c.tables.All()) }

// TablesBackward yields the tables in reverse order of creation, so children come before their parents.
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

// Table returns the table called name ("t" or "schema.t"), ignoring case, or nil if there is none.
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

// ConstrainedTable returns the table with the CHECK constraint or foreign key called name ("c" or "schema.c"),
// ignoring case, or nil.
func (c *Catalog) ConstrainedTable(name string) *Table {
	if found, ok := c.names.Get(strings.ToLower(name)); ok && found.kind == nameOfConstraint {
		return c.TableByID(found.table)
	}
	return nil
}

// TableByID returns the table with the given ID, or nil.
func (c *Catalog) TableByID(id TableID) *Table {
	t, _ := c.tables.Get(id)
	return t
}

// IndexByID returns the index with the given ID, or nil.
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

// ReferencedBy returns the foreign keys of all tables that reference t.
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

// referrersOf yields the tables that refer to t, as its children or by foreign keys, in order of their creation.
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

// Column returns the column called name, ignoring case, or nil. It finds only columns that users can name, and no
// column that is being back-filled.
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

// TakesCommitTimestamp reports whether the commit timestamp may be written to column col of table t. The column must
// have the option allow_commit_timestamp. If col is a key column, the same key column must have the option in all
// ancestors and descendants of t that share it (https://cloud.google.com/spanner/docs/commit-timestamp#keys-indexes).
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

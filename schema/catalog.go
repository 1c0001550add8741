// Package schema is the catalog of one database: its tables, columns, indexes and constraints at one version. It reads
// DDL, applies it to a Catalog, and prints a Catalog as DDL.
//
// A Catalog and all that it points to is immutable once it is published. A schema change makes a new Catalog, which
// shares the unchanged parts with the old one. Objects have small numbers (TableID, ColumnID) that never change and are
// never given out again: stored keys and rows contain these numbers, not names.
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

// TableID identifies a table or an index. It never changes. Both share one sequence of numbers, since both own a key
// space. IDs start at 1. If the form of an index's entries changes, the index gets a new ID and is filled again.
type TableID uint32

// ColumnID identifies a column of a table. It never changes. IDs start at 1.
type ColumnID uint32

// Version counts the schema changes of a database.
type Version uint64

// Catalog is the schema of a database at one version.
type Catalog struct {
	// Database is the database's id. If it is set, ALTER DATABASE must name it, and GetDatabaseDdl prints it.
	Database string
	Version  Version
	Schemas  []string        // named schemas, in order of creation; never changed in place
	Options  Options         // never changed in place
	NextID   TableID         // the next TableID to give out
	Streams  []*ChangeStream // in order of creation; never changed in place

	// Successive versions of a schema share the nodes of these maps, and the tables, that are the same in both.
	tables    *immutable.Map[TableID, *Table]
	indexes   *immutable.Map[TableID, TableID] // the table of each index
	names     *immutable.Map[string, named]    // by full name in lower case: tables, indexes, constraints, change streams and objects
	referrers *immutable.Map[reference, struct{}]
	objects   *immutable.Map[TableID, Object]

	size int // the length of the DDL text of the tables and the objects
}

// named is the bearer of a name: a table, an index or a constraint of a table, a change stream, or an object.
type named struct {
	table TableID // or the ID of a change stream or an object
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

// reference is a pair of tables. Its upper 32 bits are the ID of a table, the lower 32 bits the ID of a table that
// refers to it, as its parent or by foreign keys. References stand in the catalog and not in the table, so that a new
// child does not change its parent.
type reference uint64

func referenceOf(referenced, referrer *Table) reference {
	return reference(referenced.ID)<<32 | reference(referrer.ID)
}

// Options holds the options that ALTER DATABASE ... SET OPTIONS has set: their values as text, by name.
type Options map[string]string

// Table is a user's table or a system table (INFORMATION_SCHEMA, SPANNER_SYS).
type Table struct {
	ID      TableID
	Schema  string // "" is the default schema
	Name    string
	Columns []*Column // in order, columns under back-fill last; a Column's Ordinal is its index here
	Key     []KeyPart // the primary key; if it is empty, the table has at most one row

	Parent     *Table // of INTERLEAVE IN [PARENT], else nil
	Interleave Interleave
	Synonym    string   // another name, in the same schema; "" if there is none
	Indexes    []*Index // in order of creation
	Checks     []*Check
	NextColumn ColumnID

	RowDeletionPolicy *RowDeletionPolicy // or nil
	ColumnarPolicy    ColumnarPolicy
	LocalityGroup     string // the option locality_group; "" if it is not set

	ForeignKeys []*ForeignKey // from this table, in order of creation

	// ProtoBundle defines the PROTO and ENUM types that the table's columns or expressions name; nil if they name none.
	ProtoBundle *ProtoBundle

	// Rows returns the current rows of a system table; it is nil for other tables. want maps names of STRING columns to
	// sets of values. Rows may leave out rows whose value in such a column is not in the set.
	Rows func(ctx context.Context, want map[string]map[string]bool) ([][]value.Value, error)
	// FoundBy lists columns of a system table. Given a value of such a column, Rows finds the rows without making all
	// of them.
	FoundBy []*Column

	size int // the length of the DDL text of the table, its indexes and constraints
}

// Interleave says how a table is interleaved in its Parent.
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
	Ordinal int // index in Table.Columns, from 0; -1 for a column that a query plan has added to compute it from others
	Name    string
	Type    *value.Type
	// MaxLength is the limit of STRING(n) in characters and of BYTES(n) in bytes, also for the elements of an ARRAY.
	// For MAX it is the limit of a cell (MaxStringLength, MaxBytesLength). It is 0 for other types.
	MaxLength            int64
	LengthIsMax          bool  // written STRING(MAX)
	VectorLength         int64 // the number of elements of each array, from vector_length; 0 if it is not set
	NotNull              bool
	Hidden               bool
	AllowCommitTimestamp bool
	LocalityGroup        string     // as in Table
	PlacementKey         bool       // of a STRING column: its values are names of placements
	Default              *Expr      // DEFAULT (e), or nil; for an identity column it takes the next value
	OnUpdate             *Expr      // ON UPDATE (e), or nil
	Identity             *Generator // of GENERATED BY DEFAULT AS IDENTITY, or nil
	Generated            *Expr      // AS (e), or nil
	Stored               bool       // for a generated column: STORED
	KeyOrdinal           int        // position in the primary key, -1 if not part of it
	State                ColumnState
	// Becoming is the new definition of the column while a schema change redefines it, else nil. Writes must obey it
	// already, but reads must not rely on it. It is not stored.
	Becoming *Column
}

// NeedsValue reports whether the column may not be NULL in rows that are written now.
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
	// NameGenerated says that the statement gave no name, so that one was generated. DDL does not print it.
	NameGenerated bool
	Expr          *Expr
	// Becoming is the new definition of the constraint while a schema change redefines it, else nil. Writes must obey
	// both. It is not stored.
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
	// Index is an index of Table whose first key parts are Columns; nil if Table's primary key serves instead.
	Index *Index
	// ReferencedIndex is an index of Referenced that is unique on ReferencedColumns; nil if these are the primary key.
	ReferencedIndex *Index
}

// Expr is an SQL expression over the columns of one row. SQL is its text as written, without outer parentheses. Uses
// lists the columns that it reads.
type Expr struct {
	SQL  string
	Uses []*Column
	// Functions lists the user-defined functions that the expression calls, directly or through others, in the order of
	// their IDs.
	Functions []*Function
	// Eval computes the expression. args are the values of Uses, in order. The Compiler sets it.
	Eval func(args []value.Value) (value.Value, error)
	// Peek, if not nil, does the same as Eval for one argument: the bytes of a PROTO that is not NULL. The result may
	// refer to these bytes.
	Peek func(message []byte) (value.Value, error)

	bundle *ProtoBundle           // of the table that it was compiled for; nil if the expression names no such types
	origin atomic.Pointer[origin] // see computedFrom; nil until the first call
}

// Compiler compiles the text of an expression over the columns of t, a table of c. The value of the resulting Expr has
// the type want. The SQL packages implement it; they import this package, so callers pass a Compiler in.
type Compiler interface {
	// NextValue returns the function that takes the next value of a generator. Messages call the generator name.
	NextValue(name string, g *Generator) func([]value.Value) (value.Value, error)
	// CompileView analyzes the query of a view over the tables and objects of c. It returns the view's columns, and the
	// tables and objects that the query names.
	CompileView(c *Catalog, sql string) ([]ViewColumn, []Use, error)
	// CompileFunction analyzes the Text of a function over the tables and objects of c. It returns the function's
	// signature, and the tables and objects that the text names.
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
	Key          []KeyPart // as declared
	// Suffix lists the primary key parts of Table that Key does not hold, in key order, with their direction. The
	// stored key is Key, then Suffix.
	Suffix  []KeyPart
	Storing []*Column
	Parent  *Table // of INTERLEAVE IN, else nil
	State   IndexState
	// Managed says that a foreign key created the index, not a user.
	Managed bool
	// NotNullColumns lists the columns in which a NULL keeps a row out of the index: all of Key for NullFiltered, or
	// those of WHERE c IS NOT NULL.
	NotNullColumns []*Column
	ColumnarPolicy ColumnarPolicy
	LocalityGroup  string // as in Table
}

// IndexState says who may use an index.
type IndexState uint8

const (
	IndexReadWrite      IndexState = iota // complete
	IndexWriteOnly                        // being back-filled: writes keep it up to date, but reads do not use it
	IndexValidateUnique                   // UNIQUE, filled, not read yet: writes and the schema change check its entries for duplicates
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

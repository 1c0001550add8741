// Package tree is a statement after name resolution and type checking, as
// Crowfoot holds it: immutable, without text positions, without any handle of
// the analyzer's library. sql/analyze makes it, sql/plan reads it.
//
// It follows GoogleSQL's resolved tree: every column that a scan produces has a
// ColumnRef of its own, unique in the statement; expressions refer to columns
// by it and to nothing else; implicit casts are explicit.
//
// Imports of this module: schema, value.
package tree

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// Col is a column produced by a scan, unique within a statement.
type Col struct {
	ID   int
	Name string // for people; may be empty
	Type *value.Type
}

// Statement is one of *Query, *Insert, *Update, *Delete, *Procedure, *ChangeStreamRead.
type Statement interface{ statement() }

// Output is a column of a statement's result, with the name the user sees ("" if none).
type Output struct {
	Name string
	Col  Col
}

// Query is a SELECT (or pipe query, or graph query).
type Query struct {
	Scan    Scan
	Output  []Output
	AsValue bool // SELECT AS STRUCT/VALUE: one output column
	Hints   Hints
}

// Hints are the hints at one place, names in upper case without the spanner. prefix.
type Hints map[string]Expr

// BaseTable is the value of FORCE_INDEX that asks for the table itself.
const BaseTable = "_BASE_TABLE"

// Insert is INSERT in all forms. Rows come from Values or from Query.
type Insert struct {
	Table   *schema.Table
	Columns []*schema.Column
	Mode    InsertMode
	// Rows are the rows of VALUES: a nil Expr is DEFAULT.
	Rows     [][]Expr
	Query    *Query    // INSERT ... SELECT; else nil
	Assert   Expr      // ASSERT_ROWS_MODIFIED n, or nil
	Conflict *Conflict // ON CONFLICT, or nil
	Return   *Returning
	Hints    Hints
}

// InsertMode says what INSERT does with a row whose key is taken.
type InsertMode uint8

const (
	InsertOrFail InsertMode = iota
	InsertOrIgnore
	InsertOrUpdate
)

// Conflict is ON CONFLICT: what INSERT does with a row that clashes with an existing one.
type Conflict struct {
	// Target says which clash is meant: of the primary key (Key), or of a unique index. With neither, any of them.
	Key   bool
	Index *schema.Index
	// Update is DO UPDATE SET Set WHERE Where, else DO NOTHING. Old is the existing row. New (EXCLUDED) is the row that was to be
	// inserted; it may be nil if no expression refers to it.
	Update   bool
	Old, New *TableScan
	Set      []Assignment
	Where    Expr
}

// Update is UPDATE: From is a scan of Table (joined with FROM, if given) under the WHERE; the columns of Scan that are Table's are
// the rows to change.
type Update struct {
	Table  *schema.Table
	Scan   *TableScan // the table itself: its Cols are what Where, Set and Return refer to
	Where  Expr
	From   Scan // UPDATE ... FROM, or nil
	Set    []Assignment
	Assert Expr
	Return *Returning
	Hints  Hints
}

// Assignment is SET Column = Value; a nil Value is DEFAULT.
type Assignment struct {
	Column *schema.Column
	Value  Expr
}

// Delete is DELETE.
type Delete struct {
	Table  *schema.Table
	Scan   *TableScan
	Where  Expr
	Assert Expr
	Return *Returning
	Hints  Hints
}

// Returning is THEN RETURN. Exprs[i] makes Output[i]; it refers to the Cols of Scan: the row after the change (before it, for DELETE).
type Returning struct {
	Scan   *TableScan // the changed table with the columns that Exprs refer to
	Exprs  []Expr     // nil at Action
	Output []Output
	// Action is the place in Output of WITH ACTION's column, -1 without.
	Action int
}

// Procedure is CALL name(args).
type Procedure struct {
	Name string
	Args []Expr
}

// ChangeStreamRead is SELECT ChangeRecord FROM READ_<stream>(args). Args are a literal or a parameter for each of start_timestamp, end_timestamp,
// partition_token, heartbeat_milliseconds and read_options.
type ChangeStreamRead struct {
	Stream *schema.ChangeStream
	Args   []Expr
	Output Output
}

func (*Query) statement()            {}
func (*Insert) statement()           {}
func (*Update) statement()           {}
func (*Delete) statement()           {}
func (*Procedure) statement()        {}
func (*ChangeStreamRead) statement() {}

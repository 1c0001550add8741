// Package tree represents a statement after name resolution and type checking. A tree is immutable. It contains
// neither positions in the SQL text nor objects of the analyzer's library. sql/analyze makes trees, and sql/plan
// reads them. A plan uses the nodes of this package for expressions that need no resolving (sql/plan/expr.go).
//
// Trees have nearly the form of GoogleSQL's resolved trees. Every column that a scan returns is a Col with an ID that
// is unique in the statement. Expressions refer to columns only by their Col. Each implicit cast of the statement is
// a Cast in the tree.
//
// Imports of this module: schema, value.
package tree

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// Col is a column that a scan returns. Its ID is unique within a statement.
type Col struct {
	ID   int
	Name string // the name for printing; may be empty
	Type *value.Type
}

// Statement is one of *Query, *Insert, *Update, *Delete, *Procedure, *ChangeStreamRead.
type Statement interface{ statement() }

// Output is a column of a statement's result, with the name that the user sees ("" if it has none).
type Output struct {
	Name string
	Col  Col
}

// Query is a SELECT or a pipe query.
type Query struct {
	Scan    Scan
	Output  []Output
	AsValue bool // the query is SELECT AS STRUCT, SELECT AS VALUE or SELECT AS T: it has one output column
	Hints   Hints
}

// Hints are the hints at one place of a statement. Names are in upper case and without the prefix "spanner.".
type Hints map[string]Expr

// BaseTable is the value of the hint FORCE_INDEX by which a statement asks to read the table itself and no index.
const BaseTable = "_BASE_TABLE"

// Insert is INSERT in all forms. The rows come from Rows or from Query.
type Insert struct {
	Table   *schema.Table
	Columns []*schema.Column
	Mode    InsertMode
	// Rows are the rows of VALUES. A nil Expr is DEFAULT.
	Rows     [][]Expr
	Query    *Query    // the query of INSERT ... SELECT; nil if the rows come from Rows
	Assert   Expr      // the n of ASSERT_ROWS_MODIFIED n; nil if there is no such clause
	Conflict *Conflict // the clause ON CONFLICT; nil if there is none
	Return   *Returning
	Hints    Hints
}

// InsertMode tells what INSERT does with a row whose key exists already.
type InsertMode uint8

const (
	InsertOrFail InsertMode = iota
	InsertOrIgnore
	InsertOrUpdate
)

// Conflict is ON CONFLICT: what INSERT does with a row that conflicts with an existing one.
type Conflict struct {
	// The conflict target is the primary key if Key is set, or the unique index Index. If neither is set, it is the
	// primary key and all unique indexes.
	Key   bool
	Index *schema.Index
	// If Update is set, the action is DO UPDATE SET Set WHERE Where; otherwise it is DO NOTHING. Set and Where refer
	// to the Cols of two scans: the Cols of Old hold the existing row, and those of New (EXCLUDED) the row that
	// INSERT could not insert. New may be nil if no expression refers to it.
	Update   bool
	Old, New *TableScan
	Set      []Assignment
	Where    Expr
}

// Update is UPDATE. It changes the rows of Scan for which Where is TRUE. If From is not nil, Where applies to the
// rows of Scan joined with those of From.
type Update struct {
	Table  *schema.Table
	Scan   *TableScan // the table itself; Where, Set and Return refer to its Cols
	Where  Expr
	From   Scan // the scan of the clause FROM; nil if there is none
	Set    []Assignment
	Assert Expr
	Return *Returning
	Hints  Hints
}

// Assignment is SET Column = Value. A nil Value is DEFAULT.
type Assignment struct {
	Column *schema.Column
	Value  Expr
}

// Delete is DELETE. It deletes the rows of Scan for which Where is TRUE.
type Delete struct {
	Table  *schema.Table
	Scan   *TableScan
	Where  Expr
	Assert Expr
	Return *Returning
	Hints  Hints
}

// Returning is THEN RETURN. Exprs[i] computes Output[i]. Exprs refer to the Cols of Scan, which hold the row after
// the change, or for DELETE the row before it.
type Returning struct {
	Scan   *TableScan // the changed table, with those columns that Exprs refer to
	Exprs  []Expr     // nil at the index Action
	Output []Output
	// Action is the index in Output of the column of WITH ACTION; -1 if there is none.
	Action int
}

// Procedure is CALL name(args).
type Procedure struct {
	Name string
	Args []Expr
}

// ChangeStreamRead is SELECT ChangeRecord FROM READ_<stream>(args). Args has five literals or parameters:
// start_timestamp, end_timestamp, partition_token, heartbeat_milliseconds and read_options.
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

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
	"google.golang.org/protobuf/reflect/protoreflect"

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

// Scan produces rows.
type Scan interface{ Cols() []Col }

type (
	// TableScan reads a table. Columns[i] is produced as Out[i]; only columns that the statement uses are listed.
	TableScan struct {
		Table     *schema.Table
		Columns   []*schema.Column
		Out       []Col
		Alias     string
		Hints     Hints // FORCE_INDEX, ...
		ForUpdate bool  // FOR UPDATE
	}
	// ViewScan reads a view: Input is its query, with the columns that the statement uses, which are Out.
	ViewScan struct {
		View  *schema.View
		Input Scan
		Out   []Col
	}
	// SingleRow produces one row without columns.
	SingleRow struct{}
	// Filter keeps the rows for which Cond is TRUE.
	Filter struct {
		Input Scan
		Cond  Expr
	}
	// Project adds computed columns to those of Input, and outputs Out (any of both, in any order).
	Project struct {
		Input Scan
		Exprs []Computed
		Out   []Col
		Hints Hints
	}
	// Join combines Left and Right. Cond may be nil (cross).  Right may refer to columns of Left if Lateral.
	Join struct {
		Kind        JoinKind
		Left, Right Scan
		Cond        Expr
		Lateral     bool
		Hints       Hints
	}
	// ArrayScan is UNNEST: for each row of Input (nil: one row) each element of each of Arrays; Cond and Outer as in a join.
	ArrayScan struct {
		Input  Scan
		Arrays []Expr
		Elems  []Col // one for each array
		Offset *Col  // WITH OFFSET
		Cond   Expr
		Outer  bool // LEFT JOIN UNNEST
		Zip    ZipMode
		Hints  Hints
	}
	// Aggregate groups Input. GroupBy and Aggs name the output.
	Aggregate struct {
		Input   Scan
		GroupBy []Computed
		Aggs    []AggCall
		Hints   Hints
		// GroupingSets are places in GroupBy; nil for plain GROUP BY. Grouping are GROUPING() outputs.
		GroupingSets [][]int
		Grouping     []GroupingCall
	}
	// OrderBy sorts.
	OrderBy struct {
		Input Scan
		Keys  []SortKey
	}
	// Limit skips Offset rows (nil: none) and passes Count (nil: all).
	Limit struct {
		Input         Scan
		Count, Offset Expr
	}
	// SetOp is UNION, INTERSECT, EXCEPT of several inputs. Columns[i][j] is the column of Inputs[i] that becomes Out[j].
	SetOp struct {
		Kind    SetOpKind
		All     bool
		Inputs  []Scan
		Columns [][]Col
		Out     []Col
		Hints   Hints
	}
	// With defines named subqueries, visible in those after and in Body.
	With struct {
		Defs []WithDef
		Body Scan
	}
	// WithRef reads a named subquery; Columns of the definition become Out.
	WithRef struct {
		Name string // unique in the statement
		Out  []Col
	}
	// Sample is TABLESAMPLE.
	Sample struct {
		Input   Scan
		Method  string // BERNOULLI, RESERVOIR
		Size    Expr
		Percent bool
		Seed    Expr
	}
)

// WithDef is one named subquery of a With.
type WithDef struct {
	Name string
	Scan Scan
	Out  []Col // the columns of Scan that references see, in order
}

// JoinKind is the kind of a join.
type JoinKind uint8

const (
	InnerJoin JoinKind = iota
	LeftJoin
	RightJoin
	FullJoin
)

// SetOpKind is the kind of a set operation.
type SetOpKind uint8

const (
	Union SetOpKind = iota
	Intersect
	Except
)

// ZipMode says how a multiway UNNEST treats arrays of different lengths.
type ZipMode uint8

const (
	ZipPad ZipMode = iota
	ZipTruncate
	ZipStrict
)

// Computed is a column and the expression that makes it.
type Computed struct {
	Col  Col
	Expr Expr
}

// SortKey is one key of ORDER BY. NULLs come first ascending and last descending unless said.
type SortKey struct {
	Expr       Expr
	Desc       bool
	NullsFirst bool // always set as it applies, also where the text does not say
	Collation  string
}

// AggCall is an aggregate function over the rows of a group.
type AggCall struct {
	Col      Col
	Func     *Function
	Args     []Expr
	Distinct bool
	// IGNORE NULLS and RESPECT NULLS; with neither the function decides.
	IgnoreNulls, RespectNulls bool
	OrderBy                   []SortKey // within the aggregate
	Limit                     Expr
	// Having is HAVING MAX/MIN e: only rows at the extreme count.
	Having    Expr
	HavingMax bool
	// Where is a condition on the rows that count, or nil.
	Where Expr
	// Failure is a column that holds an error of the aggregate, which then is NULL, for $with_side_effects; nil: errors are raised.
	Failure *Col
}

// GroupingCall is GROUPING(GroupBy[Key]).
type GroupingCall struct {
	Col Col
	Key int
}

// Function names a function with the signature the analyzer chose.
type Function struct {
	Name string // GoogleSQL's own name in lower case: "$add", "concat", "safe_cast" never (see Cast)
	Args []*value.Type
	Type *value.Type // result
	// Safe: SAFE.f(): an error becomes NULL.
	Safe bool
	// Fields, for functions on PROTO, are paths of fields from the message down: of ProtoField and HasProtoField the one that is read, of the others the one that
	// each value among the arguments is for.
	Fields [][]protoreflect.FieldDescriptor
}

// Functions on PROTO. GoogleSQL has nodes of its own for them.
const (
	ProtoField    = "$proto_field"     // proto.field
	HasProtoField = "$has_proto_field" // proto.has_field
	MakeProto     = "$make_proto"      // NEW T(value AS field, ...)
	ReplaceFields = "replace_fields"   // REPLACE_FIELDS(proto, value AS field, ...)
	SetFields     = "$set_fields"      // SET column.field = value, ...: as REPLACE_FIELDS, but messages on the way are made
)

// Expr is a scalar expression; Type is the type of its value.
type Expr interface{ Type() *value.Type }

type (
	// Literal is a constant.
	Literal struct {
		T     *value.Type
		Value value.Value
	}
	// Param is a query parameter. Name is in lower case.
	Param struct {
		T    *value.Type
		Name string
	}
	// Ref is a column of a scan in scope, possibly of an enclosing query.
	Ref struct{ Col Col }
	// Call applies a scalar function.
	Call struct {
		Func *Function
		Args []Expr
		// Lambdas stand for arguments of function type, at the places where Args is nil.
		Lambdas []*Lambda
	}
	// Lambda is (Params) -> Body.
	Lambda struct {
		Params []Col
		Body   Expr
	}
	// Cast converts; Safe turns an error into NULL. Format and Zone are nil if not given.
	Cast struct {
		Arg          Expr
		T            *value.Type
		Safe         bool
		Format, Zone Expr
	}
	// Subquery is a scalar, array, EXISTS or IN subquery.
	Subquery struct {
		T       *value.Type
		Kind    SubqueryKind
		Scan    Scan
		Out     Col  // the one column of Scan (any, for EXISTS)
		In      Expr // left side of IN
		Ordered bool // ARRAY(... ORDER BY): order matters
		Hints   Hints
	}
	// MakeStruct builds a STRUCT.
	MakeStruct struct {
		T      *value.Type
		Fields []Expr
	}
	// GetField takes a field of a STRUCT.
	GetField struct {
		T     *value.Type
		Arg   Expr
		Index int
	}
	// GetJSONField takes a member of a JSON object.
	GetJSONField struct {
		Arg  Expr
		Name string
	}
	// Let is WITH(a AS e, ..., body).
	Let struct {
		Defs []Computed
		Body Expr
	}
)

// SubqueryKind is the kind of a subquery expression.
type SubqueryKind uint8

const (
	ScalarSubquery SubqueryKind = iota
	ArraySubquery
	ExistsSubquery
	InSubquery
)

func (e *Literal) Type() *value.Type      { return e.T }
func (e *Param) Type() *value.Type        { return e.T }
func (e *Ref) Type() *value.Type          { return e.Col.Type }
func (e *Call) Type() *value.Type         { return e.Func.Type }
func (e *Cast) Type() *value.Type         { return e.T }
func (e *Subquery) Type() *value.Type     { return e.T }
func (e *MakeStruct) Type() *value.Type   { return e.T }
func (e *GetField) Type() *value.Type     { return e.T }
func (e *GetJSONField) Type() *value.Type { return value.JSONType }
func (e *Let) Type() *value.Type          { return e.Body.Type() }

func (s *TableScan) Cols() []Col { return s.Out }
func (s *ViewScan) Cols() []Col  { return s.Out }
func (s *SingleRow) Cols() []Col { return nil }
func (s *Filter) Cols() []Col    { return s.Input.Cols() }
func (s *Project) Cols() []Col   { return s.Out }
func (s *Join) Cols() []Col {
	return append(append([]Col(nil), s.Left.Cols()...), s.Right.Cols()...)
}
func (s *ArrayScan) Cols() []Col {
	var cols []Col
	if s.Input != nil {
		cols = append(cols, s.Input.Cols()...)
	}
	cols = append(cols, s.Elems...)
	if s.Offset != nil {
		cols = append(cols, *s.Offset)
	}
	return cols
}
func (s *Aggregate) Cols() []Col {
	var cols []Col
	for _, g := range s.GroupBy {
		cols = append(cols, g.Col)
	}
	for _, a := range s.Aggs {
		cols = append(cols, a.Col)
		if a.Failure != nil {
			cols = append(cols, *a.Failure)
		}
	}
	for _, g := range s.Grouping {
		cols = append(cols, g.Col)
	}
	return cols
}
func (s *OrderBy) Cols() []Col { return s.Input.Cols() }
func (s *Limit) Cols() []Col   { return s.Input.Cols() }
func (s *SetOp) Cols() []Col   { return s.Out }
func (s *With) Cols() []Col    { return s.Body.Cols() }
func (s *WithRef) Cols() []Col { return s.Out }
func (s *Sample) Cols() []Col  { return s.Input.Cols() }

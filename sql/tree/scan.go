package tree

import "github.com/crowfoot-db/crowfoot/schema"

// Scan produces rows.
type Scan interface{ Cols() []Col }

type (
	// TableScan reads a table. Out[i] is the column Columns[i] of the table. Both lists have only the columns that
	// the statement uses.
	TableScan struct {
		Table     *schema.Table
		Columns   []*schema.Column
		Out       []Col
		Alias     string
		Hints     Hints // hints of the table, such as FORCE_INDEX
		ForUpdate bool  // the rows are locked by FOR UPDATE
	}
	// ViewScan reads a view. Input is the view's query. Out has those columns of Input that the statement uses.
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
	// Project adds computed columns to those of Input. Out has the columns that it returns, which may be columns of
	// Input and computed ones, in any order.
	Project struct {
		Input Scan
		Exprs []Computed
		Out   []Col
		Hints Hints
	}
	// Join joins Left and Right. Cond is nil for a cross join. With Lateral, Right may refer to columns of Left.
	Join struct {
		Kind        JoinKind
		Left, Right Scan
		Cond        Expr
		Lateral     bool
		Hints       Hints
	}
	// ArrayScan is UNNEST. For each row of Input, or once if Input is nil, it returns a row for each element of
	// Arrays. If there are several arrays, each row has the next element of every array. Cond is the condition of the
	// join with Input.
	ArrayScan struct {
		Input  Scan
		Arrays []Expr
		Elems  []Col // Elems[i] is the column for the elements of Arrays[i]
		Offset *Col  // the column of WITH OFFSET; nil if there is none
		Cond   Expr
		Outer  bool // LEFT JOIN UNNEST: rows of Input without elements are returned with NULLs
		Zip    ZipMode
		Hints  Hints
	}
	// Aggregate groups the rows of Input. Its columns are those of GroupBy, Aggs and Grouping.
	Aggregate struct {
		Input   Scan
		GroupBy []Computed
		Aggs    []AggCall
		Hints   Hints
		// GroupingSets holds, for each grouping set, the positions of its expressions in GroupBy; it is nil for plain
		// GROUP BY. Grouping holds the GROUPING() calls.
		GroupingSets [][]int
		Grouping     []GroupingCall
	}
	// OrderBy sorts the rows of Input.
	OrderBy struct {
		Input Scan
		Keys  []SortKey
	}
	// Limit skips the first Offset rows (none if Offset is nil) and returns the next Count rows (all if Count is
	// nil).
	Limit struct {
		Input         Scan
		Count, Offset Expr
	}
	// SetOp is UNION, INTERSECT or EXCEPT of several inputs. Column Columns[i][j] of Inputs[i] becomes Out[j].
	SetOp struct {
		Kind    SetOpKind
		All     bool
		Inputs  []Scan
		Columns [][]Col
		Out     []Col
		Hints   Hints
	}
	// With defines named subqueries. Later definitions and Body may refer to them.
	With struct {
		Defs []WithDef
		Body Scan
	}
	// WithRef reads a named subquery. The columns of its definition become Out.
	WithRef struct {
		Name string // unique in the statement
		Out  []Col
	}
	// Sample is TABLESAMPLE.
	Sample struct {
		Input   Scan
		Method  string // BERNOULLI or RESERVOIR
		Size    Expr
		Percent bool
		Seed    Expr
	}
)

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

// WithDef is one named subquery of a With.
type WithDef struct {
	Name string
	Scan Scan
	Out  []Col // the columns of Scan that a WithRef returns, in order
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

// ZipMode tells what an UNNEST of several arrays does if the arrays have different lengths.
type ZipMode uint8

const (
	ZipPad ZipMode = iota
	ZipTruncate
	ZipStrict
)

// Computed is an expression and the column that holds its value.
type Computed struct {
	Col  Col
	Expr Expr
}

// SortKey is one key of ORDER BY. By default NULLs come first in ascending order and last in descending order.
type SortKey struct {
	Expr       Expr
	Desc       bool
	NullsFirst bool // whether NULLs come first; if the statement does not say it, the default for Desc
	Collation  string
}

// AggCall is an aggregate function over the rows of a group.
type AggCall struct {
	Col      Col
	Func     *Function
	Args     []Expr
	Distinct bool
	// IgnoreNulls is IGNORE NULLS, and RespectNulls is RESPECT NULLS. If neither is set, the field
	// fn.Aggregate.IgnoresNulls of the function (package sql/fn) decides.
	IgnoreNulls, RespectNulls bool
	OrderBy                   []SortKey // ORDER BY within the call
	Limit                     Expr
	// Having is e in HAVING MAX e (if HavingMax is set) or HAVING MIN e. The function then reads only the rows in which
	// e has its greatest or least value.
	Having    Expr
	HavingMax bool
	// Where, if not nil, is a condition: the function reads only the rows for which it is TRUE.
	Where Expr
	// Failure, if not nil, is a column for an error of the function. If an error occurs, it is put into this column,
	// and the function's value is NULL. The GoogleSQL function $with_side_effects later reads the column and raises
	// the error. If Failure is nil, an error ends the statement.
	Failure *Col
}

// GroupingCall is GROUPING(GroupBy[Key]).
type GroupingCall struct {
	Col Col
	Key int
}

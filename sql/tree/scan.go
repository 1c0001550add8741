package tree

import "github.com/crowfoot-db/crowfoot/schema"

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

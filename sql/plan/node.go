package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Node is a physical operator. A row of it is Width values. Expressions of the
// operator above refer to a column by its place in the row (Slot).
type Node interface {
	Width() int
	// inputs are the operators that feed this one, in order.
	inputs() []Node
	// exprs are the expressions that this operator computes.
	exprs() []Expr
}

type (
	// Unit is one row without columns.
	Unit struct{}
	// Empty is no row.
	Empty struct{ Types []*value.Type }
	// Scan reads a table, or an index of it, in key order. Its row is Columns.
	Scan struct {
		Table   *schema.Table
		Index   *schema.Index // nil: the table itself
		Columns []*schema.Column
		Alias   string
		// Seeks are the keys to read: the union of them, in key order, each row once. Nil reads everything.
		Seeks   []Seek
		Reverse bool
		// Merge is how many leading key parts tell apart the ordered streams that are read as one: the rows come in the order of the key parts
		// after these. 0: the rows come in key order. If MergeKey is set, the streams are merged by these parts of the key instead, which
		// may be among the first ones, too: they are the same in all rows of a stream.
		Merge    int
		MergeKey []MergePart
		// Chosen says that the planner has chosen Index for a range of its keys, though a row of the table must be read for each entry, and no hint
		// names it.
		Chosen bool
		// Ordered says that the query wants the rows in this order.
		Ordered bool
		// Wanted, for a system table, are the values of columns that the query wants. Residual tests for them too.
		Wanted []ColumnValues
		// Residual is a condition that rows must pass; nil if there is none.
		Residual Expr
		// Limit is the maximum number of rows that are read, not counting those that Residual drops; nil for all.
		Limit Expr
		// Exclusive asks for exclusive locks (FOR UPDATE, DML, hints).
		Exclusive bool
		// Method says whether the scan may read a columnar copy.
		Method ScanMethod
	}
	// Filter keeps the rows for which Cond is TRUE.
	Filter struct {
		Input Node
		Cond  Expr
	}
	// Compute makes a new row of each.
	Compute struct {
		Input Node
		Exprs []Expr
		Names []string // for people
	}
	// Apply runs Right for each row of Left, after putting columns of that row in the registers of Bind.
	// Its row is Left's and then Right's (Left's alone for semi joins).
	Apply struct {
		Kind        JoinKind // not FullJoin
		Left, Right Node
		Bind        []Bind
		// BackJoin says that Right reads the table of the index that Left reads, one row for each.
		BackJoin bool
	}
	// HashJoin keeps Right's rows in a hash table by RightKeys and looks up Left's by LeftKeys. Left's order is kept,
	// but for the unmatched rows of Right in a FullJoin, which come last. NULL keys match nothing.
	// Without keys each row of Left is paired with each row of Right.
	HashJoin struct {
		Kind                JoinKind
		Left, Right         Node
		LeftKeys, RightKeys []Expr
		// Cond is over the joined row; nil is TRUE.
		Cond Expr
	}
	// Unnest runs through arrays: its row is Input's, one element of each of Arrays, and the offset if wanted.
	Unnest struct {
		Input  Node
		Arrays []Expr
		Names  []string // of the elements, for people
		Offset bool
		Outer  bool // a row of Input without elements is kept, with NULLs
		Zip    tree.ZipMode
		Cond   Expr // over the output row; nil is TRUE
	}
	// Aggregate makes one row of each group: Keys, then Aggs, and last the errors of those Aggs that put errors off. Stream says that the
	// rows of a group come one after the other. Without Keys there is one group, even if there are no rows.
	Aggregate struct {
		Input  Node
		Keys   []Expr
		Names  []string // of Keys, for people
		Aggs   []Agg
		Stream bool
		// Sets are the grouping sets, as places in Keys; nil is one set of all. Grouping are the keys whose GROUPING()
		// follow Aggs in the row.
		Sets     [][]int
		Grouping []int
		PutOff   []int // the places in Aggs of those that put errors off
	}
	// Sort sorts, and with Limit keeps only so many rows.
	// Sort sorts. Its input comes sorted by the first Major keys already: rows that are equal by these are sorted by the rest (Minor Sort).
	Sort struct {
		Input Node
		Keys  []SortKey
		Major int
		Limit Expr // nil: all
	}
	// Limit skips Offset rows and passes Count; either may be nil.
	Limit struct {
		Input         Node
		Count, Offset Expr
	}
	// UnionAll passes the rows of all Inputs: one after the other, or, with Order, merged. The inputs then come in that order, and with Limit only
	// so many rows are passed.
	UnionAll struct {
		Inputs []Node
		Order  []SortKey // plain slots
		Limit  Expr      // nil: all
	}
	// SetOp is INTERSECT or EXCEPT of Left and Right, whose rows have the same columns of these Types.
	SetOp struct {
		Kind        tree.SetOpKind
		All         bool
		Left, Right Node
		Types       []*value.Type
	}
	// With computes the rows of Defs when SpoolScans in Body ask for them, once each.
	With struct {
		Defs []Spool
		Body Node
	}
	// SpoolScan reads Spool Number again.
	SpoolScan struct {
		Number int
		Name   string
		Types  []*value.Type
	}
	// Sample is TABLESAMPLE.
	Sample struct {
		Input   Node
		Percent bool // each row with this probability in percent, else Size rows in all
		Size    Expr
		Seed    Expr // of REPEATABLE, or nil
	}
)

// ColumnValues are values of a column.
type ColumnValues struct {
	Column *schema.Column
	Values []Expr
	Array  bool // the only one of Values is an array of them
}

// Spool is one named subquery of a With.
type Spool struct {
	Number int
	Name   string
	Plan   Node
}

// JoinKind is the kind of a join as it runs.
type JoinKind uint8

const (
	InnerJoin JoinKind = iota
	LeftJoin
	FullJoin
	SemiJoin // rows of Left that some row of Right joins
	AntiJoin // rows of Left that no row of Right joins
)

// Agg is an aggregate function over the rows of a group.
type Agg struct {
	Func     *tree.Function
	Args     []Expr
	Name     string // for people
	Distinct bool
	// IGNORE NULLS and RESPECT NULLS; with neither the function decides.
	IgnoreNulls, RespectNulls bool
	OrderBy                   []SortKey
	Limit                     Expr
	Having                    Expr // only rows where Having is greatest (HavingMax) or least count
	HavingMax                 bool
	Where                     Expr // only rows for which it is TRUE count
}

// SortKey is one key of an order.
type SortKey struct {
	Expr       Expr
	Desc       bool
	NullsFirst bool
	Collation  string
}

// Seek is a set of keys of a table or index: those that begin with any tuple
// of Parts (the cross product of what they allow), narrowed by Range on the
// key part that follows. If Tuples is set, it stands for Parts.
type Seek struct {
	Parts  []SeekPart
	Range  *SeekRange
	Tuples *SeekTuples
}

// SeekPart is what one key part may be: any of Values, any element of Array, NULL if Null, or, if Each, every value that the table or index has in
// that place, if it lies in Among (nil for all). A NULL among the values of Values and Array equals nothing, unless NullSafe.
type SeekPart struct {
	Values         []Expr
	Array          Expr
	Null, NullSafe bool
	Each           bool
	Among          *SeekRange
}

// MergePart is a part of a key by which streams are merged, in its order in the key or inverted.
type MergePart struct {
	Part     int
	Inverted bool
}

// SeekTuples are whole prefixes of a key, from an array of structs: key part i is field Fields[i] of the element.
type SeekTuples struct {
	Array  Expr
	Fields []int
	Types  []*value.Type // of the key parts
}

// SeekRange bounds one key part. A bound that is NULL lets nothing pass; nil
// is no bound. NULLs are never in a range.
type SeekRange struct {
	Low, High         Expr
	LowOpen, HighOpen bool
	// Prefix is what the part begins with; with Like, what the pattern holds before its first wildcard.
	Prefix Expr
	Like   bool
}

// DML is a DML statement. Its rows are those of THEN RETURN; without it there are none.
type DML struct {
	Kind  Kind
	Table *schema.Table
	// Input makes the rows to write. INSERT: one value for each of Columns, of the rows of VALUES in Rows if Input is nil.
	// UPDATE: the primary key, then one value for each of Columns. DELETE: the primary key, then the columns of the
	// table that Return refers to (ReturnColumns).
	Input   Node
	Rows    [][]Expr // a nil Expr is DEFAULT
	Columns []*schema.Column
	// Default[i] says that SET Columns[i] = DEFAULT.
	Default []bool
	Mode    tree.InsertMode
	Assert  Expr
	Return  *Returning
	// Conflict is ON CONFLICT of INSERT, or nil.
	Conflict *Conflict
	// Distinct says that Input may hold a key more than once, which is an error (UPDATE ... FROM).
	Distinct bool
}

// Conflict says what INSERT does with a row that clashes with an existing one: with the same primary key (Key), with
// the same key in Index, or, with neither, in any of these ways.
type Conflict struct {
	Key   bool
	Index *schema.Index
	// Update is DO UPDATE: it changes Columns of the existing row to Set, if Where (nil is TRUE) is TRUE. Otherwise it is DO NOTHING. Set
	// and Where are over the columns Old of the existing row, followed by the columns New of the row that is not inserted.
	Update   bool
	Old, New []*schema.Column
	Columns  []*schema.Column
	Set      []Expr // nil is DEFAULT
	Where    Expr
}

// Returning is THEN RETURN: Exprs over rows of Columns of the changed table.
type Returning struct {
	Columns []*schema.Column
	Exprs   []Expr
	// Action is the place among Exprs of WITH ACTION's column (whose Expr is nil), -1 without.
	Action int
}

func (n *Unit) Width() int    { return 0 }
func (n *Empty) Width() int   { return len(n.Types) }
func (n *Scan) Width() int    { return len(n.Columns) }
func (n *Filter) Width() int  { return n.Input.Width() }
func (n *Compute) Width() int { return len(n.Exprs) }
func (n *Apply) Width() int   { return joinWidth(n.Kind, n.Left, n.Right) }
func (n *HashJoin) Width() int {
	return joinWidth(n.Kind, n.Left, n.Right)
}
func (n *Unnest) Width() int {
	w := n.Input.Width() + len(n.Arrays)
	if n.Offset {
		w++
	}
	return w
}
func (n *Aggregate) Width() int {
	return len(n.Keys) + len(n.Aggs) + len(n.Grouping) + len(n.PutOff)
}
func (n *Sort) Width() int      { return n.Input.Width() }
func (n *Limit) Width() int     { return n.Input.Width() }
func (n *UnionAll) Width() int  { return n.Inputs[0].Width() }
func (n *SetOp) Width() int     { return len(n.Types) }
func (n *With) Width() int      { return n.Body.Width() }
func (n *SpoolScan) Width() int { return len(n.Types) }
func (n *Sample) Width() int    { return n.Input.Width() }
func (n *DML) Width() int {
	if n.Return == nil {
		return 0
	}
	return len(n.Return.Exprs)
}

func joinWidth(k JoinKind, left, right Node) int {
	if k == SemiJoin || k == AntiJoin {
		return left.Width()
	}
	return left.Width() + right.Width()
}

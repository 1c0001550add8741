package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Node is a physical operator. Each of its rows is a list of Width values. The expressions of the operator above
// refer to a value by its index in the row (Slot).
type Node interface {
	Width() int
	// inputs returns the operators whose rows this operator reads, in order.
	inputs() []Node
	// exprs returns the expressions that this operator computes. An expression that the operator does not have is
	// nil in the list.
	exprs() []Expr
}

type (
	// Unit returns one row without columns.
	Unit struct{}
	// Empty returns no rows.
	Empty struct{ Types []*value.Type }
	// Scan reads a table, or one of its indexes, in key order. Its rows hold the values of Columns.
	Scan struct {
		Table   *schema.Table
		Index   *schema.Index // nil for the table itself
		Columns []*schema.Column
		Alias   string
		// Seeks are the sets of keys to read. The scan reads their union in key order, each row once. If Seeks is
		// nil, the scan reads everything.
		Seeks   []Seek
		Reverse bool
		// If Merge is not 0, the scan reads several sorted streams and merges them: one stream for each combination
		// of values of the first Merge key parts. The rows then come in the order of the key parts that follow. If
		// MergeKey is set, the rows come in the order of its key parts instead. MergeKey can include some of the
		// first Merge parts, which have one value within a stream. If Merge is 0, the rows come in key order.
		Merge    int
		MergeKey []MergePart
		// Chosen says that the planner, not a hint, has chosen to read a range of Index, and that the plan looks up
		// the table's row for each index entry.
		Chosen bool
		// Ordered says that the query needs the rows in the order of this scan.
		Ordered bool
		// Wanted, for a system table, holds the values with which the query compares columns. The table can use them to
		// compute fewer rows. Residual contains these comparisons, too.
		Wanted []ColumnValues
		// Residual is a condition that each returned row fulfils; nil if there is none.
		Residual Expr
		// Limit is the maximum number of rows that the scan returns; rows that Residual drops do not count. nil
		// means no limit.
		Limit Expr
		// Exclusive says that the scan takes exclusive locks (FOR UPDATE, DML, hints).
		Exclusive bool
		// Method says whether the scan is allowed to read a columnar copy of the table or index.
		Method ScanMethod
	}
	// Filter returns the rows of Input for which Cond is TRUE.
	Filter struct {
		Input Node
		Cond  Expr
	}
	// Compute computes a new row with the values of Exprs from each row of Input.
	Compute struct {
		Input Node
		Exprs []Expr
		Names []string // shown in printed plans
	}
	// Apply runs Right once for each row of Left. Before that, it puts columns of the row in the registers of Bind.
	// A row of its result is a row of Left followed by a row of Right. For semi and anti joins it is a row of Left
	// alone.
	Apply struct {
		Kind        JoinKind // not FullJoin
		Left, Right Node
		Bind        []Bind
		// BackJoin says that Left reads an index, and that Right reads the table's row for each index entry.
		BackJoin bool
	}
	// HashJoin puts the rows of Right in a hash table by RightKeys, and looks up LeftKeys of each row of Left in
	// the table. The result has the order of Left. In a FullJoin the rows of Right without a match come last. A key
	// with NULL matches nothing. If there are no keys, each row of Left is paired with each row of Right.
	HashJoin struct {
		Kind                JoinKind
		Left, Right         Node
		LeftKeys, RightKeys []Expr
		// Cond is a further condition on the joined row; nil means TRUE.
		Cond Expr
	}
	// Unnest computes Arrays from each row of Input and returns a row for each element. The row holds the row of
	// Input, one element of each array, and the index of the element if Offset is set.
	Unnest struct {
		Input  Node
		Arrays []Expr
		Names  []string // names of the elements, shown in printed plans
		Offset bool
		Outer  bool // as in a LEFT JOIN, a row of Input that no element joins is returned with NULLs for the elements
		Zip    tree.ZipMode
		Cond   Expr // a condition on the returned row; nil means TRUE
	}
	// Aggregate returns one row for each group. The row holds Keys, then Aggs, then Grouping, and last the errors
	// of the Aggs in PutOff. Stream says that the rows of a group follow each other in Input. Without Keys there is
	// one group, even if there are no rows.
	Aggregate struct {
		Input  Node
		Keys   []Expr
		Names  []string // names of Keys, shown in printed plans
		Aggs   []Agg
		Stream bool
		// Sets are the grouping sets, as indexes in Keys; nil means one set with all keys. Grouping holds the
		// indexes of the keys for which the row has GROUPING(key).
		Sets     [][]int
		Grouping []int
		PutOff   []int // indexes in Aggs of the functions whose errors become values instead of ending the statement
	}
	// Sort sorts its input by Keys. With Limit it returns only the first Limit rows. If Major is not 0, the input
	// is already sorted by the first Major keys, and only rows that are equal in these keys are sorted, by the
	// other keys (Minor Sort).
	Sort struct {
		Input Node
		Keys  []tree.SortKey
		Major int
		Limit Expr // the greatest number of rows; nil for all
	}
	// Limit skips Offset rows and then returns at most Count rows. Offset and Count can be nil: then nothing is
	// skipped, or there is no limit.
	Limit struct {
		Input         Node
		Count, Offset Expr
	}
	// UnionAll returns the rows of all Inputs, one input after the other. If Order is set, the rows of each input
	// already come in this order, and UnionAll merges the inputs. It then returns at most Limit rows.
	UnionAll struct {
		Inputs []Node
		Order  []tree.SortKey // each Expr is a plain Slot
		Limit  Expr           // nil for all rows
	}
	// SetOp is INTERSECT or EXCEPT of Left and Right. The rows of both have columns of the same Types.
	SetOp struct {
		Kind        tree.SetOpKind
		All         bool
		Left, Right Node
		Types       []*value.Type
	}
	// With runs Body. It computes the rows of each Spool of Defs once, when the first SpoolScan in Body reads that
	// Spool.
	With struct {
		Defs []Spool
		Body Node
	}
	// SpoolScan reads the rows of the Spool with this Number.
	SpoolScan struct {
		Number int
		Name   string
		Types  []*value.Type
	}
	// Sample is the operator TABLESAMPLE.
	Sample struct {
		Input   Node
		Percent bool // true: return each row with a probability of Size percent; false: return Size rows in all
		Size    Expr
		Seed    Expr // the argument of REPEATABLE, or nil
	}
)

// ColumnValues holds the values with which a query compares a column. The query does not need a row that has none of
// these values in Column.
type ColumnValues struct {
	Column *schema.Column
	Values []Expr
	Array  bool // Values holds one expression: an array of the values
}

// Spool is one named subquery of a With.
type Spool struct {
	Number int
	Name   string
	Plan   Node
}

// JoinKind is the kind of a join in a physical plan.
type JoinKind uint8

const (
	InnerJoin JoinKind = iota
	LeftJoin
	FullJoin
	SemiJoin // returns the rows of the left input that match at least one row of the right input
	AntiJoin // returns the rows of the left input that match no row of the right input
)

// Agg is an aggregate function over the rows of a group.
type Agg struct {
	Func     *tree.Function
	Args     []Expr
	Name     string // shown in printed plans
	Distinct bool
	// IgnoreNulls says that the call has IGNORE NULLS, and RespectNulls that it has RESPECT NULLS. If it has
	// neither, the function itself decides whether it skips NULLs.
	IgnoreNulls, RespectNulls bool
	OrderBy                   []tree.SortKey
	Limit                     Expr
	Having                    Expr // HAVING MAX or HAVING MIN: use only rows in which Having is greatest or least
	HavingMax                 bool
	Where                     Expr // use only rows for which Where is TRUE; nil means all rows
}

// Seek is a set of keys of a table or index. It contains each key whose first parts match Parts and whose next part
// lies in Range. If Tuples is set, Tuples determines the first parts instead of Parts.
type Seek struct {
	Parts  []SeekPart
	Range  *SeekRange
	Tuples *SeekTuples
}

// SeekPart lists the values that one key part can have: any of Values, any element of Array, and NULL if Null is set.
// If Each is set, the key part can have any value that occurs in the table or index and lies in the range Among (nil
// for all values). A NULL in Values or Array matches a key part that is NULL if NullSafe is set, else it matches
// nothing.
type SeekPart struct {
	Values         []Expr
	Array          Expr
	Null, NullSafe bool
	Each           bool
	Among          *SeekRange
}

// MergePart is one of the key parts by which a scan merges its streams. Part is the index of the key part. The merged
// rows are sorted by it in the direction (ASC or DESC) that it has in the key, or in the opposite direction if Inverted
// is set.
type MergePart struct {
	Part     int
	Inverted bool
}

// SeekTuples takes the values of the first key parts from the elements of an array of structs: the value of key
// part i is field Fields[i] of the element.
type SeekTuples struct {
	Array  Expr
	Fields []int
	Types  []*value.Type // the types of the key parts
}

// SeekRange is a range of values of one key part. If a bound is nil, the range has no end on that side. If the
// value of a bound is NULL, the range is empty. NULL is never in a range.
type SeekRange struct {
	Low, High         Expr
	LowOpen, HighOpen bool
	// Prefix is a string or bytes with which the key part must begin. If Like is set, Prefix is a LIKE pattern, and
	// the part must begin with the characters before the pattern's first wildcard.
	Prefix Expr
	Like   bool
}

// DML is a DML statement. It returns the rows of THEN RETURN, or none without that clause.
type DML struct {
	Kind  Kind
	Table *schema.Table
	// Input computes the rows to write. For INSERT, a row has one value for each of Columns; if Input is nil, Rows
	// holds the rows of VALUES. For UPDATE, a row has the primary key, then one value for each of Columns. For
	// DELETE, it has the primary key, then the columns of the table to which Return refers.
	Input   Node
	Rows    [][]Expr // a nil Expr is DEFAULT
	Columns []*schema.Column
	// Default[i] says that the statement has SET Columns[i] = DEFAULT.
	Default []bool
	Mode    tree.InsertMode
	Assert  Expr
	Return  *Returning
	// Conflict is the clause ON CONFLICT of an INSERT, or nil.
	Conflict *Conflict
	// Distinct says that it is an error if a key occurs twice in Input. It is set for UPDATE ... FROM, whose join can
	// find the same row more than once.
	Distinct bool
}

// Conflict says what INSERT does with a row that conflicts with an existing row. The conflict is that both have the
// same primary key (if Key is set), or the same key in Index. If neither is set, an equal primary key and an equal
// key in any unique index are both conflicts.
type Conflict struct {
	Key   bool
	Index *schema.Index
	// Update means DO UPDATE: if Where is TRUE (nil means TRUE), Columns of the existing row are set to the values
	// of Set. Without Update, the clause is DO NOTHING. Set and Where are computed over a row that holds the columns
	// Old of the existing row, followed by the columns New of the row that INSERT could not insert.
	Update   bool
	Old, New []*schema.Column
	Columns  []*schema.Column
	Set      []Expr // nil is DEFAULT
	Where    Expr
}

// Returning is the clause THEN RETURN. Exprs are computed over rows that hold Columns of the changed table.
type Returning struct {
	Columns []*schema.Column
	Exprs   []Expr
	// Action is the index in Exprs of the column of WITH ACTION; that Expr is nil. Without WITH ACTION, Action is
	// -1.
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

func (n *Unit) inputs() []Node      { return nil }
func (n *Empty) inputs() []Node     { return nil }
func (n *Scan) inputs() []Node      { return nil }
func (n *Filter) inputs() []Node    { return []Node{n.Input} }
func (n *Compute) inputs() []Node   { return []Node{n.Input} }
func (n *Apply) inputs() []Node     { return []Node{n.Left, n.Right} }
func (n *HashJoin) inputs() []Node  { return []Node{n.Left, n.Right} }
func (n *Unnest) inputs() []Node    { return []Node{n.Input} }
func (n *Aggregate) inputs() []Node { return []Node{n.Input} }
func (n *Sort) inputs() []Node      { return []Node{n.Input} }
func (n *Limit) inputs() []Node     { return []Node{n.Input} }
func (n *UnionAll) inputs() []Node  { return n.Inputs }
func (n *SetOp) inputs() []Node     { return []Node{n.Left, n.Right} }
func (n *With) inputs() []Node {
	var list []Node
	for _, d := range n.Defs {
		list = append(list, d.Plan)
	}
	return append(list, n.Body)
}
func (n *SpoolScan) inputs() []Node { return nil }
func (n *Sample) inputs() []Node    { return []Node{n.Input} }
func (n *DML) inputs() []Node {
	if n.Input == nil {
		return nil
	}
	return []Node{n.Input}
}

func (n *Unit) exprs() []Expr  { return nil }
func (n *Empty) exprs() []Expr { return nil }
func (n *Scan) exprs() []Expr {
	var list []Expr
	for i := range n.Seeks {
		list = append(list, n.Seeks[i].exprs()...)
	}
	for _, w := range n.Wanted {
		list = append(list, w.Values...)
	}
	return append(list, n.Residual, n.Limit)
}
func (n *Filter) exprs() []Expr  { return []Expr{n.Cond} }
func (n *Compute) exprs() []Expr { return n.Exprs }
func (n *Apply) exprs() []Expr   { return nil }
func (n *HashJoin) exprs() []Expr {
	list := append(append([]Expr(nil), n.LeftKeys...), n.RightKeys...)
	return append(list, n.Cond)
}
func (n *Unnest) exprs() []Expr {
	return append(append([]Expr(nil), n.Arrays...), n.Cond)
}
func (n *Aggregate) exprs() []Expr {
	list := append([]Expr(nil), n.Keys...)
	for _, a := range n.Aggs {
		list = append(list, a.Args...)
		list = append(list, tree.SortExprs(a.OrderBy)...)
		list = append(list, a.Limit, a.Having, a.Where)
	}
	return list
}
func (n *Sort) exprs() []Expr      { return append(tree.SortExprs(n.Keys), n.Limit) }
func (n *Limit) exprs() []Expr     { return []Expr{n.Count, n.Offset} }
func (n *UnionAll) exprs() []Expr  { return append(tree.SortExprs(n.Order), n.Limit) }
func (n *SetOp) exprs() []Expr     { return nil }
func (n *With) exprs() []Expr      { return nil }
func (n *SpoolScan) exprs() []Expr { return nil }
func (n *Sample) exprs() []Expr    { return []Expr{n.Size, n.Seed} }
func (n *DML) exprs() []Expr {
	var list []Expr
	for _, r := range n.Rows {
		list = append(list, r...)
	}
	list = append(list, n.Assert)
	if c := n.Conflict; c != nil {
		list = append(append(list, c.Set...), c.Where)
	}
	if n.Return != nil {
		list = append(list, n.Return.Exprs...)
	}
	return list
}

func (s *Seek) exprs() []Expr {
	var list []Expr
	for _, p := range s.Parts {
		list = append(list, p.Values...)
		list = append(list, p.Array)
		list = append(list, p.Among.exprs()...)
	}
	list = append(list, s.Range.exprs()...)
	if s.Tuples != nil {
		list = append(list, s.Tuples.Array)
	}
	return list
}

func (r *SeekRange) exprs() []Expr {
	if r == nil {
		return nil
	}
	return []Expr{r.Low, r.High, r.Prefix}
}

// Walk calls f for n and for every operator below n, including those in the plans of subqueries.
func Walk(n Node, f func(Node)) {
	if n == nil {
		return
	}
	f(n)
	for _, e := range n.exprs() {
		tree.Walk(e, func(e Expr) {
			if q, ok := e.(*Subquery); ok {
				Walk(q.Plan, f)
			}
		})
	}
	for _, in := range n.inputs() {
		Walk(in, f)
	}
}

// KeyColumns returns the columns of the stored key that a scan reads. The key of an index includes its suffix.
func KeyColumns(n *Scan) []*schema.Column {
	key := n.Table.Key
	if n.Index != nil {
		key = concat(n.Index.Key, n.Index.Suffix)
	}
	return schema.KeyColumns(key)
}

// Field returns the name and the type of column number slot (from 0) of n's rows. The name is shown in printed plans
// and can be empty.
func Field(n Node, slot int) (string, *value.Type) {
	switch n := n.(type) {
	case *Empty:
		return "", n.Types[slot]
	case *Scan:
		return n.Columns[slot].Name, n.Columns[slot].Type
	case *Compute:
		return n.Names[slot], n.Exprs[slot].Type()
	case *Apply:
		return joinField(n.Left, n.Right, slot)
	case *HashJoin:
		return joinField(n.Left, n.Right, slot)
	case *Unnest:
		w := n.Input.Width()
		switch {
		case slot < w:
			return Field(n.Input, slot)
		case slot < w+len(n.Arrays):
			return n.Names[slot-w], n.Arrays[slot-w].Type().Elem
		}
		return "offset", value.Int64Type
	case *Aggregate:
		if slot < len(n.Keys) {
			return n.Names[slot], n.Keys[slot].Type()
		}
		if slot -= len(n.Keys); slot < len(n.Aggs) {
			return n.Aggs[slot].Name, n.Aggs[slot].Func.Type
		}
		if slot -= len(n.Aggs); slot < len(n.Grouping) {
			return "grouping", value.Int64Type
		}
		return "", value.BytesType
	case *UnionAll:
		return Field(n.Inputs[0], slot)
	case *SetOp:
		name, _ := Field(n.Left, slot)
		return name, n.Types[slot]
	case *With:
		return Field(n.Body, slot)
	case *SpoolScan:
		return "", n.Types[slot]
	}
	return Field(n.inputs()[0], slot) // all other operators return rows with the columns of their input
}

// Types returns the types of the columns of n's rows.
func Types(n Node) []*value.Type {
	types := make([]*value.Type, n.Width())
	for i := range types {
		_, types[i] = Field(n, i)
	}
	return types
}

func joinField(left, right Node, slot int) (string, *value.Type) {
	if w := left.Width(); slot >= w {
		return Field(right, slot-w)
	}
	return Field(left, slot)
}

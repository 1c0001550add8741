package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// Node is a physical operator. Each of its rows is a list of Width values. The expressions of the operator above refer to a value by its
// place in the row (Slot).
type Node interface {
	Width() int
	// inputs returns the operators that feed this one, in order.
	inputs() []Node
	// exprs returns the expressions that this operator computes. A nil stands for an expression that it does not have.
	exprs() []Expr
}

type (
	// Unit gives one row without columns.
	Unit struct{}
	// Empty gives no rows.
	Empty struct{ Types []*value.Type }
	// Scan reads a table, or an index of it, in key order. Its rows hold Columns.
	Scan struct {
		Table   *schema.Table
		Index   *schema.Index // nil: the table itself
		Columns []*schema.Column
		Alias   string
		// Seeks are the key ranges to read. The scan reads their union in key order, each row once. Nil reads everything.
		Seeks   []Seek
		Reverse bool
		// Merge is the number of leading key parts whose values tell apart the sorted streams that the scan merges. The rows come in the
		// order of the key parts after these. If it is 0, the rows come in key order. If MergeKey is set, the streams are merged by these
		// parts of the key instead. They may include leading parts, which have the same values in all rows of one stream.
		Merge    int
		MergeKey []MergePart
		// Chosen says that the planner, not a hint, has chosen Index for a range of its keys, and that each entry needs a lookup of the
		// table's row.
		Chosen bool
		// Ordered says that the query needs the rows in the order of this scan.
		Ordered bool
		// Wanted, for a system table, holds the values that the query requires of columns. Residual also tests for them.
		Wanted []ColumnValues
		// Residual is a condition that rows must pass; nil if there is none.
		Residual Expr
		// Limit is the maximum number of rows that the scan gives, not counting rows that Residual drops; nil for all.
		Limit Expr
		// Exclusive asks for exclusive locks (FOR UPDATE, DML, hints).
		Exclusive bool
		// Method says whether the scan may read a columnar copy of the table or index.
		Method ScanMethod
	}
	// Filter keeps the rows for which Cond is TRUE.
	Filter struct {
		Input Node
		Cond  Expr
	}
	// Compute makes a new row of Exprs from each row of Input.
	Compute struct {
		Input Node
		Exprs []Expr
		Names []string // shown in printed plans
	}
	// Apply runs Right for each row of Left, after putting columns of that row in the registers of Bind. Its row is a row of Left followed
	// by one of Right, or a row of Left alone for semi and anti joins.
	Apply struct {
		Kind        JoinKind // not FullJoin
		Left, Right Node
		Bind        []Bind
		// BackJoin says that Left reads an index, and Right reads the table's row for each entry.
		BackJoin bool
	}
	// HashJoin keeps Right's rows in a hash table by RightKeys and looks up Left's by LeftKeys. The output has Left's order, but the
	// unmatched rows of Right in a FullJoin come last. NULL keys match nothing. Without keys each row of Left is paired with each row of
	// Right.
	HashJoin struct {
		Kind                JoinKind
		Left, Right         Node
		LeftKeys, RightKeys []Expr
		// Cond is a further condition over the joined row; nil is TRUE.
		Cond Expr
	}
	// Unnest makes a row for each element of Arrays: the row of Input, one element of each array, and the offset if Offset is set.
	Unnest struct {
		Input  Node
		Arrays []Expr
		Names  []string // of the elements, shown in printed plans
		Offset bool
		Outer  bool // a row of Input without elements is kept, with NULLs
		Zip    tree.ZipMode
		Cond   Expr // over the output row; nil is TRUE
	}
	// Aggregate makes one row of each group: Keys, then Aggs, then Grouping, and last the errors of the Aggs in PutOff. Stream says that
	// the rows of a group come one after the other. Without Keys there is one group, even if there are no rows.
	Aggregate struct {
		Input  Node
		Keys   []Expr
		Names  []string // of Keys, shown in printed plans
		Aggs   []Agg
		Stream bool
		// Sets are the grouping sets, as places in Keys; nil means one set of all keys. Grouping holds the places of the keys whose
		// GROUPING() the row has.
		Sets     [][]int
		Grouping []int
		PutOff   []int // places in Aggs of the functions whose errors become values instead of failing the statement
	}
	// Sort sorts its input by Keys, and with Limit keeps only the first rows. The input is already sorted by the first Major keys: only
	// rows that are equal in these are sorted by the rest (Minor Sort).
	Sort struct {
		Input Node
		Keys  []tree.SortKey
		Major int
		Limit Expr // nil: all
	}
	// Limit skips Offset rows and then passes at most Count rows; either may be nil.
	Limit struct {
		Input         Node
		Count, Offset Expr
	}
	// UnionAll passes the rows of all Inputs, one input after the other. With Order, each input is sorted, and UnionAll merges them. It
	// then passes no more than Limit rows.
	UnionAll struct {
		Inputs []Node
		Order  []tree.SortKey // each Expr is a plain Slot
		Limit  Expr           // nil: all
	}
	// SetOp is INTERSECT or EXCEPT of Left and Right. The rows of both have columns of the same Types.
	SetOp struct {
		Kind        tree.SetOpKind
		All         bool
		Left, Right Node
		Types       []*value.Type
	}
	// With runs Body. It computes the rows of each of Defs once, when the first SpoolScan in Body asks for them.
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
		Percent bool // true: keep each row with a probability of Size percent; false: keep Size rows in all
		Size    Expr
		Seed    Expr // of REPEATABLE, or nil
	}
)

// ColumnValues are the values that a query requires of a column.
type ColumnValues struct {
	Column *schema.Column
	Values []Expr
	Array  bool // Values holds one expression, an array of the values
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
	SemiJoin // rows of Left that some row of Right joins
	AntiJoin // rows of Left that no row of Right joins
)

// Agg is an aggregate function over the rows of a group.
type Agg struct {
	Func     *tree.Function
	Args     []Expr
	Name     string // shown in printed plans
	Distinct bool
	// IgnoreNulls and RespectNulls stand for IGNORE NULLS and RESPECT NULLS; with neither, the function decides.
	IgnoreNulls, RespectNulls bool
	OrderBy                   []tree.SortKey
	Limit                     Expr
	Having                    Expr // only rows where Having is greatest (HavingMax) or least count
	HavingMax                 bool
	Where                     Expr // only rows for which it is TRUE count
}

// Seek is a set of keys of a table or index. A key is in it if its first parts match Parts and the part after them lies in Range. If Tuples
// is set, it takes the place of Parts.
type Seek struct {
	Parts  []SeekPart
	Range  *SeekRange
	Tuples *SeekTuples
}

// SeekPart lists the values that one key part may have: any of Values, any element of Array, NULL if Null is set, or, if Each is set, every
// value in Among (nil for all) that the table or index has in that place. A NULL in Values or Array equals nothing, unless NullSafe is set.
type SeekPart struct {
	Values         []Expr
	Array          Expr
	Null, NullSafe bool
	Each           bool
	Among          *SeekRange
}

// MergePart is a part of a key by which streams are merged, in the key's own direction or inverted.
type MergePart struct {
	Part     int
	Inverted bool
}

// SeekTuples are prefixes of a key that come from an array of structs: key part i is field Fields[i] of the element.
type SeekTuples struct {
	Array  Expr
	Fields []int
	Types  []*value.Type // of the key parts
}

// SeekRange bounds one key part. A nil bound is no bound. A bound whose value is NULL admits no key. NULLs are never in a range.
type SeekRange struct {
	Low, High         Expr
	LowOpen, HighOpen bool
	// Prefix is the text that the part begins with. If Like is set, Prefix is a LIKE pattern: the text before its first wildcard counts.
	Prefix Expr
	Like   bool
}

// DML is a DML statement. With THEN RETURN it gives the rows of that clause, otherwise none.
type DML struct {
	Kind  Kind
	Table *schema.Table
	// Input makes the rows to write. For INSERT a row has one value for each of Columns; if Input is nil, Rows holds the rows of VALUES.
	// For UPDATE it has the primary key, then one value for each of Columns. For DELETE it has the primary key, then the columns of the
	// table that Return refers to.
	Input   Node
	Rows    [][]Expr // a nil Expr is DEFAULT
	Columns []*schema.Column
	// Default[i] says that the statement has SET Columns[i] = DEFAULT.
	Default []bool
	Mode    tree.InsertMode
	Assert  Expr
	Return  *Returning
	// Conflict is the clause ON CONFLICT of INSERT, or nil.
	Conflict *Conflict
	// Distinct says that the keys in Input must be distinct: UPDATE ... FROM may find a row more than once, which is an error.
	Distinct bool
}

// Conflict says how INSERT treats a row that clashes with an existing one. The two may have the same primary key (Key), or the same key in
// Index. If neither is set, either kind of clash counts.
type Conflict struct {
	Key   bool
	Index *schema.Index
	// Update means DO UPDATE: it sets Columns of the existing row to the values of Set, if Where is TRUE (nil is TRUE). Without Update the
	// clause is DO NOTHING. Set and Where are expressions over the columns Old of the existing row, followed by the columns New of the row
	// that is not inserted.
	Update   bool
	Old, New []*schema.Column
	Columns  []*schema.Column
	Set      []Expr // nil is DEFAULT
	Where    Expr
}

// Returning is THEN RETURN: it computes Exprs over rows that hold Columns of the changed table.
type Returning struct {
	Columns []*schema.Column
	Exprs   []Expr
	// Action is the place of WITH ACTION's column among Exprs, whose Expr is nil. Without WITH ACTION it is -1.
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

// Walk calls f for n and every operator under it, including those in the plans of subqueries.
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
	var columns []*schema.Column
	for _, part := range key {
		columns = append(columns, part.Column)
	}
	return columns
}

// Field returns the name and the type of a column of n's row. The name is shown in printed plans and may be empty.
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
	return Field(n.inputs()[0], slot) // n passes on the rows of its input
}

// Types returns the types of the columns of n's row.
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

package analyze

import (
	"strconv"
	"strings"

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
)

func (w *walker) scan(n googlesql.ResolvedScanNode) tree.Scan {
	switch n := n.(type) {
	case *googlesql.ResolvedTableScan:
		if v := w.view(n); v != nil {
			return w.viewScan(n, v)
		}
		return w.tableScan(n)
	case *googlesql.ResolvedSingleRowScan:
		return &tree.SingleRow{}
	case *googlesql.ResolvedFilterScan:
		return &tree.Filter{Input: w.scan(get(n.InputScan())), Cond: w.expr(get(n.FilterExpr()))}
	case *googlesql.ResolvedProjectScan:
		return w.projectScan(n)
	case *googlesql.ResolvedJoinScan:
		return w.joinScan(n)
	case *googlesql.ResolvedArrayScan:
		return w.arrayScan(n)
	case *googlesql.ResolvedAggregateScan:
		return w.aggregateScan(n)
	case *googlesql.ResolvedOrderByScan:
		w.hints(get(n.HintList()), noHints)
		return &tree.OrderBy{Input: w.scan(get(n.InputScan())), Keys: w.sortKeys(listed(w.lib.engine, n.OrderByItemList, n.OrderByItemListSize, n.OrderByItemList2))}
	case *googlesql.ResolvedLimitOffsetScan:
		input := w.scan(get(n.InputScan()))
		return &tree.Limit{Input: input, Count: w.optional(get(n.Limit())), Offset: w.optional(get(n.Offset()))}
	case *googlesql.ResolvedSetOperationScan:
		return w.setOperation(n)
	case *googlesql.ResolvedWithScan:
		return w.withScan(n)
	case *googlesql.ResolvedWithRefScan:
		w.hints(get(n.HintList()), noHints)
		name := w.withName(get(n.WithQueryName()))
		w.counts.name(name)
		return &tree.WithRef{Name: name, Out: w.columnList(n)}
	case *googlesql.ResolvedSampleScan:
		return w.sampleScan(n)
	case *googlesql.ResolvedTVFScan:
		refuse(usererror.ChangeStreamCombined(functionName(n)))
	case *googlesql.ResolvedBarrierScan:
		return w.scan(get(n.InputScan()))
	}
	unsupported(get(n.NodeKindString()))
	return nil
}

func (w *walker) tableScan(n *googlesql.ResolvedTableScan) *tree.TableScan {
	t := w.table(get(n.Table()))
	scan := &tree.TableScan{
		Table:     t,
		Out:       w.cols(get(n.ColumnList())),
		Alias:     get(n.Alias()),
		ForUpdate: get(n.LockMode()) != nil,
		Hints:     w.hints(get(n.HintList()), tableHints),
	}
	for _, i := range get(n.ColumnIndexList()) {
		scan.Columns = append(scan.Columns, t.Columns[i])
	}
	checkForceIndex(scan)
	w.definition.reads(scan)
	return scan
}

func (w *walker) table(n googlesql.TableNode) *schema.Table {
	return w.lib.tables[get(n.GetSerializationId())]
}

func (w *walker) projectScan(n *googlesql.ResolvedProjectScan) tree.Scan {
	defer enter(&w.counts.subselects, limitNestedSubselects, maxNestedSubselects)()
	return &tree.Project{
		Input: w.scan(get(n.InputScan())),
		Exprs: w.computed(listed(w.lib.engine, n.ExprList, n.ExprListSize, n.ExprList2)),
		Out:   w.columnList(n),
		Hints: w.hints(get(n.HintList()), noHints),
	}
}

func (w *walker) computed(list []*googlesql.ResolvedComputedColumn) []tree.Computed {
	out := make([]tree.Computed, len(list))
	for i, c := range list {
		out[i] = tree.Computed{Col: w.col(get(c.Column())), Expr: w.expr(get(c.Expr()))}
	}
	return out
}

var joinKinds = map[googlesql.ResolvedJoinScanEnums_JoinType]tree.JoinKind{
	googlesql.ResolvedJoinScanEnums_JoinTypeInner: tree.InnerJoin,
	googlesql.ResolvedJoinScanEnums_JoinTypeLeft:  tree.LeftJoin,
	googlesql.ResolvedJoinScanEnums_JoinTypeRight: tree.RightJoin,
	googlesql.ResolvedJoinScanEnums_JoinTypeFull:  tree.FullJoin,
}

func (w *walker) joinScan(n *googlesql.ResolvedJoinScan) tree.Scan {
	w.counts.join()
	return &tree.Join{
		Kind:    joinKinds[get(n.JoinType())],
		Left:    w.scan(get(n.LeftScan())),
		Right:   w.scan(get(n.RightScan())),
		Cond:    w.optional(get(n.JoinExpr())),
		Lateral: get(n.IsLateral()),
		Hints:   w.hints(get(n.HintList()), joinHints),
	}
}

func (w *walker) arrayScan(n *googlesql.ResolvedArrayScan) tree.Scan {
	var input tree.Scan
	if n := get(n.InputScan()); n != nil {
		input = w.scan(n) // the input is translated first, because the arrays refer to its columns
	}
	scan := &tree.ArrayScan{
		Input:  input,
		Arrays: w.exprs(get(n.ArrayExprList())),
		Elems:  w.cols(get(n.ElementColumnList())),
		Cond:   w.optional(get(n.JoinExpr())),
		Outer:  get(n.IsOuter()),
		Zip:    w.zipMode(get(n.ArrayZipMode())),
		Hints:  w.hints(get(n.HintList()), arrayHints),
	}
	if offset := get(n.ArrayOffsetColumn()); offset != nil {
		col := w.col(get(offset.Column()))
		scan.Offset = &col
	}
	return scan
}

// zipMode returns the mode of an UNNEST of several arrays. The mode must be a literal.
func (w *walker) zipMode(n googlesql.ResolvedExprNode) tree.ZipMode {
	if n == nil {
		return tree.ZipPad
	}
	literal, ok := w.expr(n).(*tree.Literal)
	if !ok {
		unsupported("A mode of UNNEST that is not a constant")
	}
	switch strings.ToUpper(literal.Value.AsString()) {
	case "TRUNCATE":
		return tree.ZipTruncate
	case "STRICT":
		return tree.ZipStrict
	}
	return tree.ZipPad
}

func (w *walker) sortKeys(list []*googlesql.ResolvedOrderByItem) []tree.SortKey {
	keys := make([]tree.SortKey, len(list))
	for i, item := range list {
		desc := get(item.IsDescending())
		key := tree.SortKey{Expr: w.expr(get(item.ColumnRef())), Desc: desc, NullsFirst: !desc}
		switch get(item.NullOrder()) {
		case googlesql.ResolvedOrderByItemEnums_NullOrderModeNullsFirst:
			key.NullsFirst = true
		case googlesql.ResolvedOrderByItemEnums_NullOrderModeNullsLast:
			key.NullsFirst = false
		}
		if name := get(item.CollationName()); name != nil {
			literal, ok := w.expr(name).(*tree.Literal)
			if !ok {
				unsupported("COLLATE with a parameter")
			}
			key.Collation = literal.Value.AsString()
		}
		keys[i] = key
	}
	return keys
}

var setOps = map[googlesql.ResolvedSetOperationScanEnums_SetOperationType]struct {
	kind tree.SetOpKind
	all  bool
}{
	googlesql.ResolvedSetOperationScanEnums_SetOperationTypeUnionAll:          {tree.Union, true},
	googlesql.ResolvedSetOperationScanEnums_SetOperationTypeUnionDistinct:     {tree.Union, false},
	googlesql.ResolvedSetOperationScanEnums_SetOperationTypeIntersectAll:      {tree.Intersect, true},
	googlesql.ResolvedSetOperationScanEnums_SetOperationTypeIntersectDistinct: {tree.Intersect, false},
	googlesql.ResolvedSetOperationScanEnums_SetOperationTypeExceptAll:         {tree.Except, true},
	googlesql.ResolvedSetOperationScanEnums_SetOperationTypeExceptDistinct:    {tree.Except, false},
}

func (w *walker) setOperation(n *googlesql.ResolvedSetOperationScan) tree.Scan {
	op := setOps[get(n.OpType())]
	scan := &tree.SetOp{Kind: op.kind, All: op.all, Out: w.columnList(n), Hints: w.hints(get(n.HintList()), setHints)}
	items := get(n.InputItemList())
	if op.kind == tree.Union {
		w.counts.union(len(items))
	}
	atMost(limitUnions, len(items), maxUnions)
	for _, item := range items {
		scan.Inputs = append(scan.Inputs, w.scan(get(item.Scan())))
		scan.Columns = append(scan.Columns, w.cols(listed(w.lib.engine, item.OutputColumnList, item.OutputColumnListSize, item.OutputColumnList2)))
	}
	return scan
}

func (w *walker) withScan(n *googlesql.ResolvedWithScan) tree.Scan {
	if get(n.Recursive()) {
		unsupported("WITH RECURSIVE")
	}
	scan := &tree.With{}
	for _, entry := range get(n.WithEntryList()) {
		sub := get(entry.WithSubquery())
		def := tree.WithDef{Name: w.withName(get(entry.WithQueryName()))}
		w.counts.define(def.Name, func() { def.Scan = w.scan(sub) })
		def.Out = w.columnList(sub)
		scan.Defs = append(scan.Defs, def)
	}
	scan.Body = w.scan(get(n.Query()))
	return scan
}

// withName makes a name of WITH unique in the whole statement. The library makes it unique only within one SQL text,
// and analyzes the text of each view separately.
func (w *walker) withName(name string) string {
	if w.base == 0 {
		return name
	}
	return name + "$" + strconv.Itoa(w.base)
}

// columnList returns the columns that a scan produces, in the library's order.
func (w *walker) columnList(n googlesql.ResolvedScanNode) []tree.Col {
	lister, ok := n.(interface {
		ColumnList() ([]*googlesql.ResolvedColumn, error)
		ColumnListSize() (int32, error)
		ColumnList2(int32) (*googlesql.ResolvedColumn, error)
	})
	if !ok {
		unsupported(get(n.NodeKindString()))
	}
	return w.cols(listed(w.lib.engine, lister.ColumnList, lister.ColumnListSize, lister.ColumnList2))
}

// sampleScan translates TABLESAMPLE. It accepts what Spanner has: the methods BERNOULLI and RESERVOIR, without
// REPEATABLE.
func (w *walker) sampleScan(n *googlesql.ResolvedSampleScan) tree.Scan {
	method := strings.ToUpper(get(n.Method()))
	if method != "BERNOULLI" && method != "RESERVOIR" {
		unsupported("TABLESAMPLE " + method)
	}
	if get(n.RepeatableArgument()) != nil {
		unsupported("TABLESAMPLE with REPEATABLE")
	}
	if get(n.PartitionByListSize()) > 0 || get(n.WeightColumn()) != nil {
		unsupported("TABLESAMPLE with PARTITION BY or WITH WEIGHT")
	}
	return &tree.Sample{
		Input:   w.scan(get(n.InputScan())),
		Method:  method,
		Size:    w.expr(get(n.Size())),
		Percent: get(n.Unit()) == googlesql.ResolvedSampleScanEnums_SampleUnitPercent,
	}
}

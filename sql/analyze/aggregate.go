package analyze

import (
	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/sql/tree"
)

func (w *walker) aggregateScan(n *googlesql.ResolvedAggregateScan) tree.Scan {
	defer enter(&w.counts.groupBys, limitNestedGroupBys, maxNestedGroupBys)()
	if get(n.GroupingSetListSize()) > 0 || get(n.GroupingCallListSize()) > 0 {
		unsupported("GROUP BY with ROLLUP, CUBE or GROUPING SETS")
	}
	scan := &tree.Aggregate{
		Input:   w.scan(get(n.InputScan())),
		GroupBy: w.computed(get(n.GroupByList())),
		Hints:   w.hints(get(n.HintList()), groupHints),
	}
	atMost(limitGroupByColumns, len(scan.GroupBy), maxGroupByColumns)
	for _, c := range get(n.AggregateList()) {
		call, ok := get(c.Expr()).(*googlesql.ResolvedAggregateFunctionCall)
		if !ok {
			unsupported("This kind of aggregate")
		}
		agg := w.aggCall(w.col(get(c.Column())), call)
		if deferred, ok := c.(*googlesql.ResolvedDeferredComputedColumn); ok {
			failure := w.col(get(deferred.SideEffectColumn()))
			agg.Failure = &failure
		}
		scan.Aggs = append(scan.Aggs, agg)
	}
	return scan
}

func (w *walker) aggCall(col tree.Col, n *googlesql.ResolvedAggregateFunctionCall) tree.AggCall {
	w.counts.function()
	if get(n.GroupByListSize()) > 0 || get(n.HavingExpr()) != nil {
		unsupported("Multi-level aggregation")
	}
	args := w.arguments(n.ResolvedFunctionCallBase)
	nulls := get(n.NullHandlingModifier())
	call := tree.AggCall{
		Col:          col,
		Func:         w.function(n.ResolvedFunctionCallBase, args, col.Type),
		Args:         args,
		Distinct:     get(n.Distinct()),
		IgnoreNulls:  nulls == googlesql.ResolvedNonScalarFunctionCallBaseEnums_NullHandlingModifierIgnoreNulls,
		RespectNulls: nulls == googlesql.ResolvedNonScalarFunctionCallBaseEnums_NullHandlingModifierRespectNulls,
		OrderBy:      w.sortKeys(get(n.OrderByItemList())),
		Limit:        w.optional(get(n.Limit())),
		Where:        w.optional(get(n.WhereExpr())),
	}
	if having := get(n.HavingModifier()); having != nil {
		call.Having = w.expr(get(having.HavingExpr()))
		call.HavingMax = get(having.Kind()) == googlesql.ResolvedAggregateHavingModifierEnums_HavingModifierKindMax
	}
	return call
}

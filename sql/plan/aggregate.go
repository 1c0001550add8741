package plan

import (
	"github.com/crowfoot-db/crowfoot/sql/tree"
)

func (p *planner) buildAggregate(r *aggregateRel, req request) (built, error) {
	in := request{need: refsOf(r.scalars()...), group: groupColumns(r)}
	in.order, in.prefer = groupOrder(r, req)
	b, err := p.build(r.in, in)
	if err != nil {
		return built{}, err
	}
	n := &Aggregate{Input: b.node, Sets: r.sets}
	out := built{node: n, at: slots{}, distinct: true}
	for _, g := range r.groupBy {
		e, err := p.scalar(g.Expr, b.at)
		if err != nil {
			return built{}, err
		}
		out.at[g.Col.ID] = len(n.Keys)
		n.Keys = append(n.Keys, e)
		n.Names = append(n.Names, g.Col.Name)
	}
	for i := range r.aggs { // only those whose results are used
		call := &r.aggs[i]
		if !req.need[call.Col.ID] && !putsOff(call, req) {
			continue
		}
		a, err := p.aggregate(call, b.at)
		if err != nil {
			return built{}, err
		}
		out.at[call.Col.ID] = len(n.Keys) + len(n.Aggs)
		n.Aggs = append(n.Aggs, a)
	}
	for _, g := range r.grouping {
		out.at[g.Col.ID] = len(n.Keys) + len(n.Aggs) + len(n.Grouping)
		n.Grouping = append(n.Grouping, g.Key)
	}
	for i := range r.aggs {
		if call := &r.aggs[i]; putsOff(call, req) {
			out.at[call.Failure.ID] = n.Width()
			n.PutOff = append(n.PutOff, out.at[call.Col.ID]-len(n.Keys))
		}
	}
	n.stream(&out, b, groupMethod(r.hints))
	return out, nil
}

// putsOff reports whether errors of an aggregate become values of a column instead of failing the statement (see tree.AggCall.Failure).
func putsOff(c *tree.AggCall, req request) bool { return c.Failure != nil && req.need[c.Failure.ID] }

func (p *planner) aggregate(c *tree.AggCall, at slots) (Agg, error) {
	a := Agg{Func: c.Func, Name: c.Col.Name, Distinct: c.Distinct, IgnoreNulls: c.IgnoreNulls, RespectNulls: c.RespectNulls, HavingMax: c.HavingMax}
	var err error
	if a.Args, err = p.scalars(c.Args, at); err != nil {
		return a, err
	}
	if a.OrderBy, err = p.sortKeys(c.OrderBy, at); err != nil {
		return a, err
	}
	rest, err := p.scalars([]tree.Expr{c.Limit, c.Having, c.Where}, at)
	if err != nil {
		return a, err
	}
	a.Limit, a.Having, a.Where = rest[0], rest[1], rest[2]
	return a, nil
}

// groupColumns returns the columns that rows are grouped by; nil if a group key is not a plain column.
func groupColumns(r *aggregateRel) colSet {
	s := colSet{}
	for _, g := range r.groupBy {
		ref, ok := g.Expr.(*tree.Ref)
		if !ok {
			return nil
		}
		s[ref.Col.ID] = true
	}
	return s
}

// groupOrder translates the wanted order of groups to an order of the input rows; order is nil if that is impossible. prefer lists the
// columns of the input that are group keys.
func groupOrder(r *aggregateRel, req request) (order []orderKey, prefer []int) {
	names := map[int]int{}
	for _, g := range r.groupBy {
		if ref, ok := g.Expr.(*tree.Ref); ok {
			names[g.Col.ID] = ref.Col.ID
			prefer = append(prefer, ref.Col.ID)
		}
	}
	for _, k := range req.order {
		below, ok := names[k.col]
		if !ok {
			return nil, prefer
		}
		k.col = below
		order = append(order, k)
	}
	return order, prefer
}

// groupMethod returns the hint GROUP_METHOD: "HASH_GROUP", "STREAM_GROUP" or "".
func groupMethod(h tree.Hints) string {
	for _, name := range []string{"GROUP_METHOD", "GROUP_TYPE"} {
		if e, ok := h[name]; ok {
			if text, ok := hintText(e); ok {
				return text
			}
		}
	}
	return ""
}

// stream decides whether the rows of the input come group by group. If they do, it also derives the order of the groups.
func (n *Aggregate) stream(out *built, in built, method string) {
	var keys []int
	place := map[int]int{} // from a slot of the input to its place among the keys
	for i, e := range n.Keys {
		s, ok := e.(*Slot)
		if !ok {
			return
		}
		keys = append(keys, s.Index)
		place[s.Index] = i
	}
	if n.Sets != nil || len(keys) > 0 && (method == "HASH_GROUP" || !groups(in.order, in.fixed, keys)) {
		return
	}
	n.Stream = true
	out.fixed = map[int]bool{}
	for slot, i := range place {
		if in.fixed[slot] {
			out.fixed[i] = true
		}
	}
	for _, o := range in.order {
		i, ok := place[o.slot]
		if !ok {
			break
		}
		o.slot = i
		out.order = append(out.order, o)
	}
}

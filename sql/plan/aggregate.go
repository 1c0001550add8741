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
	for i := range r.aggs { // skip the aggregates whose results are not used
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

// putsOff reports whether an error of the aggregate becomes a value of the column c.Failure instead of ending the
// statement (see tree.AggCall.Failure).
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

// groupColumns returns the columns by which the rows are grouped. It returns nil if a group key is not a column of
// the input.
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

// groupOrder translates the requested order of the groups to an order of the input rows, which is its first result. The
// order is nil if a requested column is not one by which the rows are grouped. The second result lists the columns of
// the input that are group keys.
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

// groupMethod returns the value of the hint GROUP_METHOD (or GROUP_TYPE), such as "HASH_GROUP" or "STREAM_GROUP".
// It returns "" if there is no such hint.
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

// stream decides whether the input rows come group by group, and sets n.Stream if they do. It then also sets the
// order in which the groups come.
func (n *Aggregate) stream(out *built, in built, method string) {
	var keys []int
	place := map[int]int{} // from the index of a slot of the input to its index in keys
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

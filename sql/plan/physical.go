package plan

import (
	"maps"
	"slices"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// request says which columns of a relation the operator above needs (the field need). The other fields say what it
// prefers: the relation may return its rows in another way.
type request struct {
	need  colSet
	order []orderKey
	// group holds columns. Rows that are equal in all of these columns should follow each other.
	group colSet
	// limit is the number of rows that the operator above will probably read; 0 means all.
	limit float64
	// prefer lists columns (by ID) in the order that they should have in the row.
	prefer []int
}

// orderKey is one key of a sort order. The field col is the Col.ID of the column.
type orderKey struct {
	col              int
	desc, nullsFirst bool
}

// built is a physical operator, with facts about its rows.
type built struct {
	node Node
	at   slots
	// order is the order of the rows. Slot -1 stands for a column that the rows do not hold.
	order []slotOrder
	// fixed holds the slots that have the same value in every row.
	fixed map[int]bool
	// distinct says that no two rows agree in all columns of order.
	distinct bool
	// from maps a slot to its origin, if the origin is known. same maps a slot to an earlier slot that has the same
	// value in every row.
	from map[int]origin
	same map[int]int
}

type slotOrder struct {
	slot       int
	desc       bool
	nullsFirst bool
	notNull    bool // the column contains no NULL, so nullsFirst does not matter
}

// build makes the physical plan of a relation.
func (p *planner) build(r relation, req request) (built, error) {
	switch r := r.(type) {
	case *unitRel:
		return built{node: &Unit{}, at: slots{}}, nil
	case *emptyRel:
		return buildEmpty(r, req), nil
	case *scanRel:
		return p.buildScan(r, req)
	case *filterRel:
		return p.buildFilter(r, req)
	case *computeRel:
		return p.buildCompute(r, req)
	case *barrierRel:
		return p.buildBarrier(r, req)
	case *joinRel:
		return p.buildJoin(r, req)
	case *unnestRel:
		return p.buildUnnest(r, req)
	case *aggregateRel:
		return p.buildAggregate(r, req)
	case *sortRel:
		return p.buildSort(r, req, nil)
	case *limitRel:
		return p.buildLimit(r, req)
	case *unionRel:
		return p.buildUnion(r, req)
	case *setOpRel:
		return p.buildSetOp(r)
	case *withRel:
		return p.buildWith(r, req)
	case *spoolScanRel:
		return buildSpoolScan(r), nil
	case *sampleRel:
		return p.buildSample(r, req)
	}
	return built{}, usererror.UnsupportedQueryShape()
}

// exactly returns an operator that returns the rows of b with exactly the columns cols.
func (b built) exactly(cols []tree.Col) Node {
	fits := b.node.Width() == len(cols)
	for i, c := range cols {
		fits = fits && b.at[c.ID] == i
	}
	if fits {
		return b.node
	}
	n := &Compute{Input: b.node}
	for _, c := range cols {
		n.Exprs = append(n.Exprs, &Slot{T: c.Type, Index: b.at[c.ID], Name: c.Name})
		n.Names = append(n.Names, c.Name)
	}
	return n
}

func buildEmpty(r *emptyRel, req request) built {
	b := built{at: slots{}}
	var types []*value.Type
	for _, c := range r.out {
		if req.need[c.ID] {
			b.at[c.ID] = len(b.at)
			types = append(types, c.Type)
		}
	}
	b.node = &Empty{Types: types}
	return b
}

// with returns a copy of the request that also needs the given columns.
func (req request) with(more colSet) request {
	req.need = maps.Clone(req.need).addAll(more)
	return req
}

func (p *planner) buildFilter(r *filterRel, req request) (built, error) {
	b, err := p.build(r.in, req.with(refsOf(r.conds...)))
	if err != nil {
		return built{}, err
	}
	cond, err := p.all(r.conds, b.at)
	if err != nil {
		return built{}, err
	}
	b.node = &Filter{Input: b.node, Cond: cond}
	return b, nil
}

// buildCompute plans a computeRel. It computes only the columns that req needs. A column that only renames another
// column costs nothing, because both share a slot.
func (p *planner) buildCompute(r *computeRel, req request) (built, error) {
	in := request{need: colSet{}, limit: req.limit}
	in.need.addAll(req.need)
	names := map[int]int{} // maps the Col.ID of a column that only renames an input column to the input column's Col.ID
	var exprs []tree.Computed
	for _, x := range r.exprs {
		delete(in.need, x.Col.ID)
		if ref, ok := x.Expr.(*tree.Ref); ok {
			names[x.Col.ID] = ref.Col.ID
		}
		if req.need[x.Col.ID] {
			exprs = append(exprs, x)
		}
	}
	in.need.addAll(refsOf(tree.ComputedExprs(exprs)...))
	rename(&in, req, names)
	b, err := p.build(r.in, in)
	if err != nil {
		return built{}, err
	}
	return p.addColumns(b, exprs, req)
}

// rename translates the fields order, group and prefer of req to the columns of the input, and adds them to the same
// fields of *in, which is the request for the input's rows. names maps the ID of a column that only renames an
// input column to the ID of that input column.
func rename(in *request, req request, names map[int]int) {
	name := func(id int) int {
		if below, ok := names[id]; ok {
			return below
		}
		return id
	}
	for _, k := range req.order {
		k.col = name(k.col)
		in.order = append(in.order, k)
	}
	for id := range req.group {
		if in.group == nil {
			in.group = colSet{}
		}
		in.group[name(id)] = true
	}
	for _, id := range req.prefer {
		in.prefer = append(in.prefer, name(id))
	}
}

func (p *planner) addColumns(b built, exprs []tree.Computed, req request) (built, error) {
	at := maps.Clone(b.at)
	var made []tree.Computed
	for _, x := range exprs {
		if ref, ok := x.Expr.(*tree.Ref); ok {
			if slot, ok := b.at[ref.Col.ID]; ok {
				at[x.Col.ID] = slot
				continue
			}
		}
		made = append(made, x)
	}
	b.at = at
	if len(made) == 0 {
		return b, nil
	}
	return p.recompute(b, made, req)
}

// recompute adds a Compute. Its rows hold those columns of b that req needs, and after them the new columns (made).
func (p *planner) recompute(b built, made []tree.Computed, req request) (built, error) {
	n := &Compute{Input: b.node}
	out := built{node: n, at: slots{}, distinct: b.distinct}
	moved := map[int]int{} // from slots of b to those of the new row
	for _, id := range columnOrder(req, b.at) {
		slot := b.at[id]
		to, ok := moved[slot]
		if !ok {
			to = len(n.Exprs)
			moved[slot] = to
			name, typ := Field(b.node, slot)
			n.Exprs = append(n.Exprs, &Slot{T: typ, Index: slot, Name: name})
			n.Names = append(n.Names, name)
		}
		out.at[id] = to
	}
	for _, x := range made {
		e, err := p.scalar(x.Expr, b.at)
		if err != nil {
			return built{}, err
		}
		out.at[x.Col.ID] = len(n.Exprs)
		n.Exprs = append(n.Exprs, e)
		n.Names = append(n.Names, x.Col.Name)
	}
	out.order, out.fixed = moveOrder(b, moved)
	out.from, out.same = moveOrigins(b, moved)
	return out, nil
}

// columnOrder returns the IDs of the columns that have a slot and that req needs. The columns in req.prefer come first.
func columnOrder(req request, at slots) []int {
	var list []int
	listed := colSet{}
	for _, id := range req.prefer {
		if _, ok := at[id]; ok && req.need[id] && !listed[id] {
			list = append(list, id)
			listed[id] = true
		}
	}
	var rest []int
	for id := range at {
		if req.need[id] && !listed[id] {
			rest = append(rest, id)
		}
	}
	slices.SortFunc(rest, func(a, b int) int { return at[a] - at[b] })
	return append(list, rest...)
}

// moveOrder translates the order of the rows of b, and the set of slots whose value is the same in all rows, to new
// slot numbers: slot s becomes slot moved[s]. In the order, a slot that is not in moved becomes -1.
func moveOrder(b built, moved map[int]int) ([]slotOrder, map[int]bool) {
	var order []slotOrder
	for _, k := range b.order {
		to, ok := moved[k.slot]
		if !ok {
			to = -1
		}
		k.slot = to
		order = append(order, k)
	}
	fixed := map[int]bool{}
	for slot := range b.fixed {
		if to, ok := moved[slot]; ok {
			fixed[to] = true
		}
	}
	return order, fixed
}

func (p *planner) buildUnnest(r *unnestRel, req request) (built, error) {
	in := request{need: maps.Clone(req.need).addAll(refsOf(r.scalars()...)), order: req.order, prefer: req.prefer}
	b, err := p.build(r.in, in)
	if err != nil {
		return built{}, err
	}
	n := &Unnest{Input: b.node, Outer: r.outer, Zip: r.zip}
	if n.Arrays, err = p.scalars(r.arrays, b.at); err != nil {
		return built{}, err
	}
	at := maps.Clone(b.at)
	next := b.node.Width()
	for _, c := range r.elems {
		at[c.ID] = next
		n.Names = append(n.Names, c.Name)
		next++
	}
	if r.offset != nil {
		at[r.offset.ID] = next
		n.Offset = true
	}
	if n.Cond, err = p.all(r.conds, at); err != nil {
		return built{}, err
	}
	return built{node: n, at: at, order: b.order, fixed: b.fixed}, nil
}

func ids(cols []tree.Col) []int {
	var list []int
	for _, c := range cols {
		list = append(list, c.ID)
	}
	return list
}

// buildExactly builds a relation so that its rows have exactly the columns cols.
func (p *planner) buildExactly(r relation, cols []tree.Col) (Node, error) {
	b, err := p.build(r, request{need: setOf(cols), prefer: ids(cols)})
	if err != nil {
		return nil, err
	}
	return b.exactly(cols), nil
}

func (p *planner) buildSetOp(r *setOpRel) (built, error) {
	left, err := p.buildExactly(r.left, r.leftColumns)
	if err != nil {
		return built{}, err
	}
	right, err := p.buildExactly(r.right, r.rightCols)
	if err != nil {
		return built{}, err
	}
	n := &SetOp{Kind: r.kind, All: r.all, Left: left, Right: right}
	at := slots{}
	for i, c := range r.out {
		at[c.ID] = i
		n.Types = append(n.Types, c.Type)
	}
	return built{node: n, at: at}, nil
}

func (p *planner) buildWith(r *withRel, req request) (built, error) {
	n := &With{}
	for _, d := range r.defs {
		in, err := p.buildExactly(d.in, d.out)
		if err != nil {
			return built{}, err
		}
		n.Defs = append(n.Defs, Spool{Number: d.number, Name: d.name, Plan: in})
	}
	b, err := p.build(r.body, req)
	if err != nil {
		return built{}, err
	}
	n.Body = b.node
	b.node = n
	return b, nil
}

func buildSpoolScan(r *spoolScanRel) built {
	n := &SpoolScan{Number: r.number, Name: r.name}
	at := slots{}
	for i, c := range r.out {
		at[c.ID] = i
		n.Types = append(n.Types, c.Type)
	}
	return built{node: n, at: at}
}

func (p *planner) buildSample(r *sampleRel, req request) (built, error) {
	b, err := p.build(r.in, request{need: req.need, prefer: req.prefer})
	if err != nil {
		return built{}, err
	}
	n := &Sample{Input: b.node, Percent: r.percent}
	if n.Size, err = p.scalar(r.size, slots{}); err != nil {
		return built{}, err
	}
	if n.Seed, err = p.optional(r.seed, slots{}); err != nil {
		return built{}, err
	}
	b.node = n
	return b, nil
}

// sumOf returns LIMIT plus OFFSET, which is the number of rows that the operator below must return. If the sum
// overflows, it is the largest INT64.
func sumOf(count, offset Expr) Expr {
	c, known := count.(*tree.Literal)
	o, also := offset.(*tree.Literal)
	if known && also && !c.Value.IsNull() && !o.Value.IsNull() {
		if sum := c.Value.AsInt64() + o.Value.AsInt64(); c.Value.AsInt64() >= 0 && o.Value.AsInt64() >= 0 && sum >= 0 {
			return &tree.Literal{T: value.Int64Type, Value: value.OfInt64(sum)}
		}
	}
	add := &tree.Call{
		Func: &tree.Function{Name: "$add", Args: []*value.Type{value.Int64Type, value.Int64Type}, Type: value.Int64Type, Safe: true},
		Args: []Expr{count, offset},
	}
	return &tree.Call{
		Func: &tree.Function{Name: "ifnull", Args: []*value.Type{value.Int64Type, value.Int64Type}, Type: value.Int64Type},
		Args: []Expr{add, &tree.Literal{T: value.Int64Type, Value: value.OfInt64(1<<63 - 1)}},
	}
}

// buildUnion plans a UNION ALL. If req has an order and all inputs can return their rows in this order, the union
// merges them.
func (p *planner) buildUnion(r *unionRel, req request) (built, error) {
	var keep []int
	out := built{at: slots{}}
	for j, c := range r.out {
		if req.need[c.ID] {
			out.at[c.ID] = len(keep)
			keep = append(keep, j)
		}
	}
	order, merges := inSlots(req.order, out.at)
	merges = merges && len(order) > 0 && p.merges()
	n := &UnionAll{}
	var from []map[int]origin
	for i, in := range r.inputs {
		want := make([]tree.Col, len(keep))
		for k, j := range keep {
			want[k] = r.columns[i][j]
		}
		below := request{need: setOf(want), limit: req.limit, prefer: ids(want)}
		if merges {
			below.order = r.orderOf(i, req.order)
		}
		b, err := p.build(in, below)
		if err != nil {
			return built{}, err
		}
		have, fixed := b.orderIn(want)
		from = append(from, b.originsOf(want))
		merges = merges && satisfies(have, fixed, b.distinct, order)
		n.Inputs = append(n.Inputs, b.exactly(want))
	}
	out.node, out.from = n, p.unionOrigins(from, len(keep))
	if merges {
		for _, o := range order {
			c := r.out[keep[o.slot]]
			n.Order = append(n.Order, tree.SortKey{Expr: &Slot{T: c.Type, Index: o.slot, Name: c.Name}, Desc: o.desc, NullsFirst: o.nullsFirst})
		}
		out.order = order
	}
	return out, nil
}

// orderOf translates an order of the union's rows to the corresponding columns of input i.
func (r *unionRel) orderOf(i int, order []orderKey) []orderKey {
	var list []orderKey
	for _, k := range order {
		for j, c := range r.out {
			if c.ID == k.col {
				k.col = r.columns[i][j].ID
				break
			}
		}
		list = append(list, k)
	}
	return list
}

// orderIn returns the order of b's rows, and the columns that have the same value in all rows. Both name a column
// by its index in cols.
func (b built) orderIn(cols []tree.Col) ([]slotOrder, map[int]bool) {
	places := map[int]int{}
	for i, c := range cols {
		places[b.at[c.ID]] = i
	}
	return moveOrder(b, places)
}

// originsOf returns the origins of b's slots. The keys of the map are the indexes of the slots' columns in cols.
func (b built) originsOf(cols []tree.Col) map[int]origin {
	from := map[int]origin{}
	for i, c := range cols {
		if o, ok := b.from[b.at[c.ID]]; ok {
			from[i] = o
		}
	}
	return from
}

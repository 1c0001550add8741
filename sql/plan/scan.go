package plan

import (
	"math"
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// choose returns the cheapest access for a request. It does not consider skip scans. If several accesses are equally
// cheap, it returns the first of them; the table comes before its indexes.
func (p *planner) choose(s *scanRel, req request) (*access, error) {
	list, err := p.accesses(s, req.need)
	if err != nil {
		return nil, err
	}
	return p.cheapest(s, list, req), nil
}

func (p *planner) cheapest(s *scanRel, list []*access, req request) *access {
	var best *access
	for _, a := range list {
		p.fit(s, a, req)
		if best == nil || a.cost < best.cost {
			best = a
		}
	}
	return best
}

// fit adds to the cost of an access the cost of the sort or grouping that is still needed for the request. It makes
// the access read in reverse order or merge streams if that saves the sort.
func (p *planner) fit(s *scanRel, a *access, req request) {
	ids := slots{}
	for i, c := range s.out {
		ids[c.ID] = i
	}
	stop := 1.0 // the fraction of the rows that are read until the limit is reached
	if req.limit > 0 && req.limit < a.rows {
		stop = req.limit / a.rows
	}
	if want, ok := inSlots(req.order, ids); ok && len(want) > 0 {
		if sorted := p.arrangeMost(s, a, want); sorted == 0 {
			stop = 1
			a.cost += sortCost(a.rows)
		} else if a.ordered = true; sorted < len(want) {
			a.cost += a.rows * costSort // a minor sort sorts few rows at a time: those that agree in the first keys
		}
	} else if len(req.order) > 0 {
		stop = 1 // an operator above sorts, and reads all rows first
	}
	if len(req.group) > 0 {
		stop = 1
		var keys []int
		for id := range req.group {
			if slot, ok := ids[id]; ok {
				keys = append(keys, slot)
			} else {
				keys = append(keys, -2) // the scan lacks the column: no order has slot -2, so groups returns false
			}
		}
		if order, fixed := s.orderOf(a); groups(order, fixed, keys) {
			a.ordered = true
		} else {
			a.cost += a.rows * costHash
		}
	}
	least := costSeek
	if a.merge > 0 {
		least = a.ranges * costSeek // a merge must find the first row of each stream
		a.cost += a.rows * math.Log2(a.ranges+1) * costSort
	}
	a.cost = math.Max(a.cost*stop, math.Min(a.cost, least))
	if a.skips {
		whole := a.whole + sortCost(a.rows)
		if !a.covering {
			whole += a.rows * stop * (costSeek + 1)
		}
		a.cost = (a.cost + whole) / 2
	}
}

// orderOf returns the order in which an access returns rows, and the columns that have the same value in all rows.
// Both name a column by its index in s.out.
func (s *scanRel) orderOf(a *access) ([]slotOrder, map[int]bool) {
	fixed := map[int]bool{}
	for i, part := range a.key {
		if slot := s.place(part.Column); a.fixed[i] && slot >= 0 {
			fixed[slot] = true
		}
	}
	var order []slotOrder
	for _, m := range a.orderedBy() {
		part := a.key[m.Part]
		desc := part.Desc != m.Inverted
		order = append(order, slotOrder{slot: s.place(part.Column), desc: desc, nullsFirst: !desc, notNull: part.Column.NotNull})
	}
	return order, fixed
}

// orderedBy returns the parts of the key by which the access's rows are sorted, without the parts that have the
// same value in all rows.
func (a *access) orderedBy() []MergePart {
	if a.mergeKey != nil {
		return a.mergeKey
	}
	var list []MergePart
	for i := a.merge; i < len(a.key); i++ {
		if !a.fixed[i] {
			list = append(list, MergePart{Part: i})
		}
	}
	return list
}

// place returns the index of a column in s.out. It returns -1 if the statement does not read the column.
func (s *scanRel) place(c *schema.Column) int {
	for i, have := range s.columns {
		if have == c {
			return i
		}
	}
	return -1
}

func (p *planner) buildScan(s *scanRel, req request) (built, error) {
	list, err := p.accesses(s, req.need)
	if err != nil {
		return built{}, err
	}
	a := p.cheapest(s, append(list, p.skips(s, list, req)...), req)
	var residual []tree.Expr
	for i, c := range s.conds {
		if !a.used[i] {
			residual = append(residual, c)
		}
	}
	if !a.covering {
		return p.buildBackJoin(s, a, residual, req)
	}
	return p.scanNode(s, a, residual, req)
}

// scanNode returns the Scan of an access. The Scan has the columns that the request needs, and those that the
// conditions in residual use.
func (p *planner) scanNode(s *scanRel, a *access, residual []tree.Expr, req request) (built, error) {
	all := setOf(s.out)
	wanted := request{need: colSet{}, prefer: req.prefer}
	for id := range req.with(refsOf(residual...)).need {
		if all[id] {
			wanted.need[id] = true
		}
	}
	places := slots{}
	for i, c := range s.out {
		places[c.ID] = i
	}
	n := &Scan{Table: s.table, Index: a.index, Alias: s.alias, Reverse: a.reverse, Ordered: a.ordered, Merge: a.merge, MergeKey: a.mergeKey, Exclusive: s.exclusive, Method: p.scanMethod(s)}
	if n.Method == ColumnarScan && !a.columnar {
		n.Method = AutomaticScan
	}
	b := built{node: n, at: slots{}, distinct: s.distinct(a)}
	b.from = map[int]origin{}
	row := p.newRow()
	moved := map[int]int{}
	for _, id := range columnOrder(wanted, places) {
		b.at[id] = len(n.Columns)
		b.from[len(n.Columns)] = origin{row, s.columns[places[id]]}
		moved[places[id]] = len(n.Columns)
		n.Columns = append(n.Columns, s.columns[places[id]])
	}
	order, fixed := s.orderOf(a)
	if a.reverse {
		order = reversed(order)
	}
	b.order, b.fixed = moveOrder(built{order: order, fixed: fixed}, moved)
	var err error
	if n.Residual, err = p.all(residual, b.at); err != nil {
		return built{}, err
	}
	for i := range a.seeks {
		sk, err := p.seek(&a.seeks[i], a)
		if err != nil {
			return built{}, err
		}
		n.Seeks = append(n.Seeks, sk)
	}
	if s.table.Rows != nil {
		n.Wanted, err = p.wantedValues(s)
	}
	return b, err
}

// wantedValues returns the values with which the conditions compare STRING columns of a system table. A value is an
// expression that may use columns of enclosing rows, but no columns of this table.
func (p *planner) wantedValues(s *scanRel) ([]ColumnValues, error) {
	var list []ColumnValues
	for _, c := range s.analyze(s.conds).sargs {
		if c.op != sargEqual && c.op != sargIn && c.op != sargArray || c.column.Type.Kind != value.String || slices.ContainsFunc(c.values, hasSubquery) {
			continue
		}
		values, err := p.scalars(c.values, slots{})
		if err != nil {
			return nil, err
		}
		list = append(list, ColumnValues{Column: c.column, Values: values, Array: c.op == sargArray})
	}
	return list, nil
}

// seek compiles a seek of access a. The expressions of a seek may use columns of enclosing rows, but none of the
// scan's own rows.
func (p *planner) seek(sk *seek, a *access) (Seek, error) {
	var out Seek
	if t := sk.tuple; t != nil {
		array, err := p.scalar(t.array, slots{})
		out.Tuples = &SeekTuples{Array: array}
		for _, part := range a.key[:sk.tupleLen] {
			out.Tuples.Fields = append(out.Tuples.Fields, t.place(part.Column))
			out.Tuples.Types = append(out.Tuples.Types, part.Column.Type)
		}
		return out, err
	}
	for _, s := range sk.parts {
		values, err := p.scalars(s.values, slots{})
		if err != nil {
			return Seek{}, err
		}
		switch s.op {
		case sargArray:
			out.Parts = append(out.Parts, SeekPart{Array: values[0]})
		case sargNull:
			out.Parts = append(out.Parts, SeekPart{Null: true})
		case sargEach:
			among, err := p.seekRange(&sk.each)
			if err != nil {
				return Seek{}, err
			}
			out.Parts = append(out.Parts, SeekPart{Each: true, Among: among})
		default:
			out.Parts = append(out.Parts, SeekPart{Values: values})
		}
	}
	r, err := p.seekRange(&sk.bounds)
	out.Range = r
	return out, err
}

// seekRange compiles the bounds of a key part. It returns nil if there are none.
func (p *planner) seekRange(b *rangeSargs) (*SeekRange, error) {
	if !b.any() {
		return nil, nil
	}
	r := &SeekRange{}
	bound := func(s *sarg) (Expr, error) {
		if s == nil {
			return nil, nil
		}
		return p.scalar(s.values[0], slots{})
	}
	var err error
	if r.Low, err = bound(b.low); err != nil {
		return nil, err
	}
	if r.High, err = bound(b.high); err != nil {
		return nil, err
	}
	r.LowOpen = b.low != nil && b.low.op == sargGreater
	r.HighOpen = b.high != nil && b.high.op == sargLess
	r.Like = b.prefix != nil && b.prefix.op == sargLike
	r.Prefix, err = bound(b.prefix)
	return r, err
}

// buildBackJoin plans a scan that reads an index and, for each index entry, the row of the table.
func (p *planner) buildBackJoin(s *scanRel, a *access, residual []tree.Expr, req request) (built, error) {
	entry, row := *s, *s
	entry.columns, entry.out, entry.conds = nil, nil, nil
	row.columns, row.out, row.conds = nil, nil, nil
	var key []tree.Expr
	need := request{need: colSet{}, prefer: req.prefer}
	for i, c := range s.columns {
		if indexHolds(a.index, c) {
			entry.columns = append(entry.columns, c)
			entry.out = append(entry.out, s.out[i])
		} else {
			row.columns = append(row.columns, c)
			row.out = append(row.out, s.out[i])
		}
	}
	for _, part := range s.table.Key {
		col := p.newCol(part.Column.Name, part.Column.Type)
		i := entry.place(part.Column)
		if i < 0 {
			entry.columns = append(entry.columns, part.Column)
			entry.out = append(entry.out, col)
			i = len(entry.out) - 1
		}
		need.need[entry.out[i].ID] = true
		key = append(key, &tree.Ref{Col: entry.out[i]})
	}
	var early, late []tree.Expr // conditions that can be tested on an index entry, and those that need the table's row
	rest := setOf(row.out)
	for _, c := range residual {
		if refsOf(c).intersects(rest) {
			late = append(late, c)
		} else {
			early = append(early, c)
		}
	}
	need.need.addAll(req.need).addAll(refsOf(late...))
	left, err := p.scanNode(&entry, a, early, need)
	if err != nil {
		return built{}, err
	}
	left.node.(*Scan).Chosen = !a.forced && slices.ContainsFunc(a.seeks, func(s seek) bool { return s.bounds.any() })
	return p.joinRow(left, &row, key, late, req)
}

// joinRow plans the Apply of a back join: for each row of left, it reads the table's row that has the primary key
// in key. The parameter late has the conditions that are tested on the table's row.
func (p *planner) joinRow(left built, row *scanRel, key, late []tree.Expr, req request) (built, error) {
	point := &access{key: row.table.Key, covering: true, unique: true}
	sk := seek{}
	for i, part := range row.table.Key {
		sk.parts = append(sk.parts, sarg{op: sargEqual, column: part.Column, values: key[i : i+1]})
	}
	point.seeks = []seek{sk}
	right, err := p.scanNode(row, point, late, req)
	if err != nil {
		return built{}, err
	}
	parts := right.node.(*Scan).Seeks[0].Parts
	for i := range parts {
		parts[i].NullSafe = true // a back join must also find rows with NULL in the key
	}
	return p.apply(InnerJoin, left, right, true), nil
}

// apply joins two operators by an Apply, which runs the right operator once for each row of the left one. The parameter
// backJoin says that the left operator reads an index, and that the right one reads the table's row for each entry.
func (p *planner) apply(kind JoinKind, left, right built, backJoin bool) built {
	n := &Apply{Kind: kind, Left: left.node, Right: right.node, BackJoin: backJoin}
	n.Bind = p.binds(freeRegisters(right.node), left.at)
	for i := range n.Bind {
		n.Bind[i].Name, _ = Field(left.node, n.Bind[i].Slot)
	}
	b := built{node: n, order: left.order, fixed: left.fixed, distinct: left.distinct && (backJoin || kind == SemiJoin || kind == AntiJoin)}
	b.at = joinSlots(kind, left, right)
	b.joinOrigins(n, left, right)
	return b
}

func joinSlots(kind JoinKind, left, right built) slots {
	at := slots{}
	for id, slot := range left.at {
		at[id] = slot
	}
	if kind == SemiJoin || kind == AntiJoin {
		return at
	}
	w := left.node.Width()
	for id, slot := range right.at {
		at[id] = w + slot
	}
	return at
}

// If seeks have lists of values for the leading key parts, the scan can read its rows as several streams: one
// stream for each combination of these values. Each stream is sorted by the key parts that follow. If the scan
// merges the streams, all its rows come in that order.

// merges reports whether scans and unions are allowed to merge sorted streams. The hint
// ALLOW_DISTRIBUTED_MERGE=FALSE forbids it. A query that is divided into partitions does not merge either, because
// a partition is a range of keys whose rows come in key order.
func (p *planner) merges() bool {
	if l, ok := p.hints["ALLOW_DISTRIBUTED_MERGE"].(*tree.Literal); ok && isNever(l) {
		return false
	}
	return !p.options.Batch
}

// arrangeMost makes an access return its rows in a wanted order (the parameter want), or sorted by as many of the first
// keys of that order as possible. It returns the number of these keys.
func (p *planner) arrangeMost(s *scanRel, a *access, want []slotOrder) int {
	_, fixed := s.orderOf(a)
	for n := len(want); n > 0; n-- {
		if (n == len(want) || varies(want[:n], fixed)) && p.arrange(s, a, want[:n]) {
			return n
		}
	}
	return 0
}

// arrange makes an access return its rows in a wanted order (the parameter want), and reports whether that is possible.
// For that, it can make the access read in reverse, or merge the streams that come from lists of values for leading key
// parts.
func (p *planner) arrange(s *scanRel, a *access, want []slotOrder) bool {
	for a.merge = 0; a.merge == 0 || p.merges() && a.merge <= a.listed(); a.merge++ {
		for _, a.reverse = range []bool{false, true} {
			a.mergeKey = s.mergeKey(a, want)
			order, fixed := s.orderOf(a)
			if a.reverse {
				order = reversed(order)
			}
			if satisfies(order, fixed, s.distinct(a), want) {
				return true
			}
		}
	}
	a.merge, a.mergeKey, a.reverse = 0, nil, false
	return false
}

// mergeKey returns the key parts by which the streams of an access must be merged so that the rows come in a wanted
// order (the parameter want). It returns nil if this order has no column of the first a.merge key parts, which tell the
// streams apart. The returned parts have the sequence of the wanted order. Of the key parts after the first a.merge,
// mergeKey returns only those that the wanted order has in the sequence of the key, because each stream is sorted by
// them in that sequence.
func (s *scanRel) mergeKey(a *access, want []slotOrder) []MergePart {
	first := map[int]int{} // maps the slot of a column to the index of its key part, for the first a.merge key parts
	for i, part := range a.key[:a.merge] {
		if slot := s.place(part.Column); slot >= 0 && !a.fixed[i] {
			first[slot] = i
		}
	}
	rest := (&access{key: a.key, fixed: a.fixed, merge: a.merge}).orderedBy()
	var list []MergePart
	found := false
	for _, w := range want {
		if i, ok := first[w.slot]; ok {
			list = append(list, MergePart{Part: i, Inverted: a.key[i].Desc != w.desc != a.reverse})
			delete(first, w.slot)
			found = true
		} else if len(rest) > 0 && s.place(a.key[rest[0].Part].Column) == w.slot {
			list, rest = append(list, rest[0]), rest[1:]
		}
	}
	if !found {
		return nil
	}
	return list
}

// listed returns how many leading key parts every seek binds to values or lists of values.
func (a *access) listed() int {
	if len(a.seeks) == 0 {
		return 0
	}
	n := len(a.key)
	for i := range a.seeks {
		n = min(n, max(len(a.seeks[i].parts), a.seeks[i].tupleLen))
	}
	return n
}

// distinct reports whether no two rows agree in all key parts by which the access sorts. Without a merge of streams
// that is always so. With a merge, these parts and the parts with only one value must include the table's whole key.
func (s *scanRel) distinct(a *access) bool {
	if a.merge == 0 {
		return true
	}
	held := map[*schema.Column]bool{}
	for i, part := range a.key {
		held[part.Column] = a.fixed[i]
	}
	for _, m := range a.orderedBy() {
		held[a.key[m.Part].Column] = true
	}
	for _, k := range s.table.Key {
		if !held[k.Column] {
			return false
		}
	}
	return true
}

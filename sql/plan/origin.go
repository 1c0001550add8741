package plan

import (
	"fmt"
	"maps"

	"github.com/crowfoot-db/crowfoot/schema"
)

// origin says that a slot holds a column of a stored row. Slots with the same row number hold columns of the same stored row.
type origin struct {
	row    int
	column *schema.Column
}

// newRow is a number for the rows that a scan or a union gives.
func (p *planner) newRow() int {
	p.rows++
	return p.rows
}

// joinOrigins finds what is known of the slots of an apply join of left and right. A key part of right that is sought by a slot of left has the
// same value. If right is the stored row that slots of left come from, because its whole key is theirs, its other columns have the same values, too:
// an ORDER BY over them is one over left.
func (b *built) joinOrigins(n *Apply, left, right built) {
	b.from, b.same = left.from, left.same
	s, ok := n.Right.(*Scan)
	if n.Kind != InnerJoin || !ok || len(s.Seeks) != 1 {
		return
	}
	b.from, b.same = maps.Clone(left.from), maps.Clone(left.same)
	if b.from == nil {
		b.from = map[int]origin{}
	}
	if b.same == nil {
		b.same = map[int]int{}
	}
	w := left.node.Width()
	sought := n.soughtBy(s)
	for slot, c := range s.Columns {
		if at, ok := sought[c]; ok {
			b.same[w+slot] = left.first(at)
		}
	}
	row, same := left.rowOf(s, sought)
	for slot, from := range right.from {
		if same {
			from.row = row
			if at, ok := left.holding(from); ok {
				b.same[w+slot] = left.first(at)
			}
		}
		b.from[w+slot] = from
	}
}

// soughtBy are the key columns of the scan on the right that must equal a slot of the left.
func (n *Apply) soughtBy(s *Scan) map[*schema.Column]int {
	slots := map[int]int{}
	for _, b := range n.Bind {
		slots[b.Register] = b.Slot
	}
	key := KeyColumns(s)
	sought := map[*schema.Column]int{}
	for i, part := range s.Seeks[0].Parts {
		if len(part.Values) != 1 {
			continue
		}
		if o, ok := part.Values[0].(*Outer); ok {
			if slot, ok := slots[o.Register]; ok {
				sought[key[i]] = slot
			}
		}
	}
	return sought
}

// rowOf is the number of the row whose key is sought in its table.
func (b built) rowOf(s *Scan, sought map[*schema.Column]int) (row int, ok bool) {
	for i, part := range s.Table.Key {
		slot, ok := sought[part.Column]
		from, known := b.from[slot]
		if !ok || !known || from.column != part.Column || i > 0 && from.row != row {
			return 0, false
		}
		row = from.row
	}
	return row, s.Index == nil && len(s.Table.Key) > 0
}

// holding is the first slot with an origin.
func (b built) holding(o origin) (slot int, ok bool) {
	for slot := range b.node.Width() {
		if from, known := b.from[slot]; known && from == o {
			return slot, true
		}
	}
	return 0, false
}

// first is the first slot that has the same value as a slot in every row.
func (b built) first(slot int) int {
	if same, ok := b.same[slot]; ok {
		return same
	}
	return slot
}

// firsts is an order by slots as one by the first slots that have the same values.
func (b built) firsts(order []slotOrder) []slotOrder {
	out := make([]slotOrder, len(order))
	for i, o := range order {
		o.slot = b.first(o.slot)
		out[i] = o
	}
	return out
}

// moveOrigins is what is known of b's slots in rows whose slots have moved.
func moveOrigins(b built, moved map[int]int) (map[int]origin, map[int]int) {
	from, same := map[int]origin{}, map[int]int{}
	for slot, o := range b.from {
		if to, ok := moved[slot]; ok {
			from[to] = o
		}
	}
	for slot, first := range b.same {
		to, ok := moved[slot]
		if first, also := moved[first]; ok && also {
			same[to] = first
		}
	}
	return from, same
}

// unionOrigins are the origins of a union's slots, those of its inputs being given: they are columns of the same rows if that is so in all
// inputs.
func (p *planner) unionOrigins(inputs []map[int]origin, width int) map[int]origin {
	rows := map[string]int{}
	from := map[int]origin{}
	for slot := range width {
		column, of, known := inputs[0][slot].column, "", true
		for _, in := range inputs {
			known = known && column != nil && in[slot].column == column
			of += fmt.Sprint(in[slot].row, " ")
		}
		if !known {
			continue
		}
		if rows[of] == 0 {
			rows[of] = p.newRow()
		}
		from[slot] = origin{rows[of], column}
	}
	return from
}

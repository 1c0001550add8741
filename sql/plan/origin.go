package plan

import (
	"fmt"
	"maps"

	"github.com/crowfoot-db/crowfoot/schema"
)

// origin says which column of a stored row a slot holds. Slots with the same row number hold columns of the same
// stored row.
type origin struct {
	row    int
	column *schema.Column
}

// newRow returns a new row number, for the stored rows that a scan or a union returns.
func (p *planner) newRow() int {
	p.rows++
	return p.rows
}

// joinOrigins sets the origins of the slots of an apply join, and finds slots that always have equal values. If the
// right side seeks a key part by a slot of the left side, that slot and the key column are equal. If the right side
// seeks its whole key by slots that hold the key of one stored row, then it reads that same row, so the row's other
// columns are equal on both sides, too. An ORDER BY over columns of the right side can then be replaced by one over
// columns of the left side.
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

// soughtBy returns those key columns of the scan s, the right side, that must equal a slot of the left side. The map
// gives the slot for each of these columns.
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

// rowOf returns the row number (see origin) of the stored row that s reads. ok is true only if s reads the table
// itself and slots of b hold the whole key of one row of that table.
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

// holding returns the first slot that has this origin.
func (b built) holding(o origin) (slot int, ok bool) {
	for slot := range b.node.Width() {
		if from, known := b.from[slot]; known && from == o {
			return slot, true
		}
	}
	return 0, false
}

// first returns the first slot that has the same value in every row as the given slot.
func (b built) first(slot int) int {
	if same, ok := b.same[slot]; ok {
		return same
	}
	return slot
}

// firsts replaces each slot of an order by the first slot that has the same value in every row.
func (b built) firsts(order []slotOrder) []slotOrder {
	out := make([]slotOrder, len(order))
	for i, o := range order {
		o.slot = b.first(o.slot)
		out[i] = o
	}
	return out
}

// moveOrigins translates the slot numbers in b.from and b.same: slot s becomes slot moved[s]. The results lack the
// slots that are not in moved.
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

// unionOrigins computes the origins of a union's slots from those of its inputs. A slot has an origin if it holds
// the same column in all inputs. Two slots get the same row number if they hold columns of the same stored row in
// all inputs.
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

package exec

import (
	"bytes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
)

// readRows are rows of the table that UPDATE or DELETE changes, as its input
// has read them from the table, locked exclusively, and in that order: they need not be
// read again to be changed. What lies between the scan and the change may drop
// rows; if it puts them into another order they are read again after all.
type readRows struct {
	scan *plan.Scan // whose rows these are; nil if they are not kept
	rows []table.Stored
	held held
}

// targetOf finds the scan whose rows a statement changes. There is none if the rows come out of an index, or if
// deleting one may delete others that are still to come.
func targetOf(n *plan.DML) *plan.Scan {
	if n.Input == nil || n.Kind == plan.Insert || n.Kind == plan.Delete && cascades(n.Table) {
		return nil
	}
	var found []*plan.Scan
	plan.Walk(n.Input, func(in plan.Node) {
		if s, ok := in.(*plan.Scan); ok && s.Table == n.Table && s.Index == nil && s.Exclusive {
			found = append(found, s)
		}
	})
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// cascades says whether rows of other tables, or others of this one, go with a row.
func cascades(t *schema.Table) bool {
	for _, child := range t.Children {
		if child.Interleave == schema.InterleaveCascade {
			return true
		}
	}
	for _, fk := range t.ReferencedBy {
		if fk.Cascade {
			return true
		}
	}
	return false
}

func (t *readRows) add(r *run, s table.Stored) error {
	t.rows = append(t.rows, s)
	return r.memory.keepBytes(&t.held, rowOverhead+int64(len(s.Key)+len(s.Value)))
}

// take finds the row with a key behind the one taken last.
func (t *readRows) take(key []byte) (table.Stored, bool) {
	for len(t.rows) > 0 {
		s := t.rows[0]
		t.rows[0], t.rows = table.Stored{}, t.rows[1:]
		if bytes.Equal(s.Key, key) {
			return s, true
		}
	}
	return table.Stored{}, false
}

package exec

import (
	"bytes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
)

// readRows keeps the stored rows that the scan of an UPDATE or DELETE has read and locked, in the order of the scan. The statement then need not
// read the rows again to change them. Operators between the scan and the change may drop rows. If they change the order of rows, or if the rows are
// too many for memory, the statement reads rows again.
type readRows struct {
	scan *plan.Scan // the scan that reads the rows; nil if they are not kept
	rows []table.Stored
	held held
}

// targetOf returns the scan that reads the rows that a statement changes. It returns nil if the rows come from an index, or if deleting a row may
// delete other rows of the scan.
func targetOf(catalog *schema.Catalog, n *plan.DML) *plan.Scan {
	if n.Input == nil || n.Kind == plan.Insert || n.Kind == plan.Delete && cascades(catalog, n.Table) {
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

// cascades reports whether deleting a row of t may delete other rows, of t or of other tables.
func cascades(catalog *schema.Catalog, t *schema.Table) bool {
	for _, child := range catalog.Children(t) {
		if child.Interleave == schema.InterleaveCascade {
			return true
		}
	}
	for _, fk := range catalog.ReferencedBy(t) {
		if fk.Cascade {
			return true
		}
	}
	return false
}

func (t *readRows) add(r *run, s table.Stored) error {
	t.rows = append(t.rows, s)
	if err := r.memory.keepBytes(&t.held, rowOverhead+int64(len(s.Key)+len(s.Value))); err != nil || !r.memory.full(t.held) {
		return err
	}
	t.scan, t.rows = nil, nil
	r.memory.release(&t.held)
	return nil
}

// popKey returns the row with a key. It looks only behind the row that it returned last, and drops the rows between.
func (t *readRows) popKey(key []byte) (table.Stored, bool) {
	for len(t.rows) > 0 {
		s := t.rows[0]
		t.rows[0], t.rows = table.Stored{}, t.rows[1:]
		if bytes.Equal(s.Key, key) {
			return s, true
		}
	}
	return table.Stored{}, false
}

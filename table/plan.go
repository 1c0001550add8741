package table

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/crowfoot-db/crowfoot/schema"
)

// plan is what writing a table takes that does not change from row to row. Plans are immutable.
type plan struct {
	table   *schema.Table
	layout  *Layout
	parent  *Layout          // of the table that must have a row for every row here, or nil
	stored  []*schema.Column // what rows' values hold, by ID
	indexes []*indexTarget
	whole   *Projection // of all key and stored columns
	// foreign and referencedBy are the enforced foreign keys from and to the table.
	foreign, referencedBy []*foreignKey
	// computed are all generated columns, each after those it reads; written only those
	// that end up in keys, rows, entries and checks, with what they read.
	computed, written []*schema.Column
	// watched says that rows have enforced children, indexes or foreign keys, so that it must be known what goes.
	watched bool
}

// plans keeps plans of tables that were written of late, each in the place that its table's
// address says. A commit of one row takes less than making its table's plan.
var plans [256]atomic.Pointer[plan]

func planFor(t *schema.Table) (*plan, error) {
	place := &plans[uintptr(unsafe.Pointer(t))/unsafe.Sizeof(*t)%uintptr(len(plans))]
	if p := place.Load(); p != nil && p.table == t {
		return p, nil
	}
	p, err := newPlan(t)
	if err == nil {
		place.Store(p)
	}
	return p, err
}

func newPlan(t *schema.Table) (*plan, error) {
	p := &plan{table: t, layout: TableLayout(t)}
	if t.Interleave == schema.InterleaveNoAction || t.Interleave == schema.InterleaveCascade {
		p.parent = TableLayout(t.Parent)
	}
	for _, x := range t.Indexes {
		p.indexes = append(p.indexes, newIndexTarget(x))
	}
	p.watched = len(t.Indexes) > 0 || len(t.ForeignKeys) > 0 || len(t.ReferencedBy) > 0
	for _, child := range t.Children {
		p.watched = p.watched || child.Interleave != schema.InterleaveIn
	}
	p.foreign, p.referencedBy = newForeignKeys(t.ForeignKeys), newForeignKeys(t.ReferencedBy)
	var err error
	if p.computed, err = orderGenerated(t, func(*schema.Column) bool { return true }); err != nil {
		return nil, err
	}
	if p.written, err = orderGenerated(t, p.writes); err != nil {
		return nil, err
	}
	var base []*schema.Column
	for _, c := range t.Columns {
		if c.Generated != nil && !c.Stored && c.KeyOrdinal < 0 {
			continue
		}
		base = append(base, c)
		if c.KeyOrdinal < 0 {
			p.stored = append(p.stored, c)
		}
	}
	sortByID(p.stored)
	p.whole, err = NewProjection(t, nil, base)
	return p, err
}

// indexTarget is an index as Changes writes it.
type indexTarget struct {
	index   *schema.Index
	layout  *Layout
	storing []*schema.Column // by ID
	uses    []bool           // by ordinal: the columns whose change changes the entry
}

func newIndexTarget(x *schema.Index) *indexTarget {
	t := &indexTarget{index: x, layout: IndexLayout(x), storing: slices.Clone(x.Storing)}
	sortByID(t.storing)
	t.uses = make([]bool, len(x.Table.Columns))
	for _, c := range entryColumns(x) {
		t.uses[c.Ordinal] = true
	}
	for _, c := range x.NotNullColumns {
		t.uses[c.Ordinal] = true
	}
	return t
}

func sortByID(columns []*schema.Column) {
	slices.SortFunc(columns, func(a, b *schema.Column) int { return cmp.Compare(a.ID, b.ID) })
}

// orderGenerated lists the generated columns that are wanted, and those they read, each after what it reads.
func orderGenerated(t *schema.Table, wanted func(*schema.Column) bool) (order []*schema.Column, err error) {
	const visiting, done = 1, 2
	state := make([]uint8, len(t.Columns))
	var visit func(c *schema.Column) error
	visit = func(c *schema.Column) error {
		if c.Generated == nil || state[c.Ordinal] == done {
			return nil
		}
		if state[c.Ordinal] == visiting {
			return fmt.Errorf("column %s.%s is generated from itself", t.FullName(), c.Name)
		}
		state[c.Ordinal] = visiting
		for _, u := range c.Generated.Uses {
			if err := visit(u); err != nil {
				return err
			}
		}
		state[c.Ordinal] = done
		order = append(order, c)
		return nil
	}
	for _, c := range t.Columns {
		if wanted(c) {
			if err := visit(c); err != nil {
				return nil, err
			}
		}
	}
	return order, nil
}

// writes says whether c ends up in a row, an index entry or a check.
func (p *plan) writes(c *schema.Column) bool {
	if c.Stored || c.KeyOrdinal >= 0 {
		return true
	}
	for _, x := range p.indexes {
		if x.uses[c.Ordinal] {
			return true
		}
	}
	for _, k := range p.table.Checks {
		if slices.Contains(k.Expr.Uses, c) {
			return true
		}
	}
	return false
}

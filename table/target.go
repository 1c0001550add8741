package table

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// target is a table as Changes writes it: worked out once, with room for the rows at hand.
type target struct {
	table   *schema.Table
	layout  *Layout
	parent  *Layout          // of the table that must have a row for every row here, or nil
	stored  []*schema.Column // what rows' values hold, by ID
	indexes []*indexTarget
	// generated are the generated columns that writes need, each after those it reads.
	generated []*schema.Column
	// watched says that rows have enforced children, indexes or foreign keys, so that it must be known what goes.
	watched bool

	read    located // of all stored and key columns
	old     []value.Value
	row     []value.Value
	changed []bool // by ordinal: the columns of row that are written
	args    []value.Value
}

// indexTarget is an index as Changes writes it.
type indexTarget struct {
	index   *schema.Index
	layout  *Layout
	storing []*schema.Column // by ID
	uses    []bool           // by ordinal: the columns whose change changes the entry
}

func newTarget(t *schema.Table, virtual bool) (*target, error) {
	g := &target{table: t, layout: TableLayout(t)}
	if t.Interleave == schema.InterleaveNoAction || t.Interleave == schema.InterleaveCascade {
		g.parent = TableLayout(t.Parent)
	}
	for _, x := range t.Indexes {
		g.indexes = append(g.indexes, newIndexTarget(x))
	}
	g.watched = len(t.Indexes) > 0 || len(t.ForeignKeys) > 0 || len(t.ReferencedBy) > 0
	for _, child := range t.Children {
		g.watched = g.watched || child.Interleave != schema.InterleaveIn
	}
	if err := g.orderGenerated(virtual); err != nil {
		return nil, err
	}
	var base []*schema.Column
	for _, c := range t.Columns {
		if c.Generated != nil && !c.Stored && c.KeyOrdinal < 0 {
			continue
		}
		base = append(base, c)
		if c.KeyOrdinal < 0 {
			g.stored = append(g.stored, c)
		}
	}
	sortByID(g.stored)
	p, err := NewProjection(t, nil, base)
	if err != nil {
		return nil, err
	}
	g.read.init(p)
	g.old = make([]value.Value, len(t.Columns))
	g.row = make([]value.Value, len(t.Columns))
	g.changed = make([]bool, len(t.Columns))
	return g, nil
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

// orderGenerated lists the generated columns so that each comes after those it
// reads: all of them, or only those that end up in keys, rows and checks.
func (g *target) orderGenerated(virtual bool) error {
	state := make([]uint8, len(g.table.Columns)) // 1 being visited, 2 done
	var visit func(c *schema.Column) error
	visit = func(c *schema.Column) error {
		if c.Generated == nil || state[c.Ordinal] == 2 {
			return nil
		}
		if state[c.Ordinal] == 1 {
			return fmt.Errorf("column %s.%s is generated from itself", g.table.FullName(), c.Name)
		}
		state[c.Ordinal] = 1
		for _, u := range c.Generated.Uses {
			if err := visit(u); err != nil {
				return err
			}
		}
		state[c.Ordinal] = 2
		g.generated = append(g.generated, c)
		return nil
	}
	for _, c := range g.table.Columns {
		if virtual || c.Stored || c.KeyOrdinal >= 0 || g.reads(c) {
			if err := visit(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// reads says whether an index, a CHECK or a foreign key reads c.
func (g *target) reads(c *schema.Column) bool {
	for _, x := range g.indexes {
		if x.uses[c.Ordinal] {
			return true
		}
	}
	for _, k := range g.table.Checks {
		if slices.Contains(k.Expr.Uses, c) {
			return true
		}
	}
	return false
}

// decode makes the values of a stored row, by ordinal, in row.
func (g *target) decode(row []value.Value, s Stored) error {
	if at := g.layout.walk(s.Key, g.read.offsets); at.where != ownKey {
		return fmt.Errorf("malformed key in %s: %x", g.layout.Name(), s.Key)
	}
	if err := g.read.locate(s.Key, s.Value); err != nil {
		return err
	}
	for i, c := range g.read.p.Columns {
		v, err := g.read.decode(g.read.p.sources[i])
		if err != nil {
			return err
		}
		row[c.Ordinal] = v
	}
	return g.generate(row, nil)
}

// generate computes the generated columns of row: all of them that are not stored, and the
// stored ones that read a changed column (nil: none of these). It notes in changed what it computes.
func (g *target) generate(row []value.Value, changed []bool) error {
	for _, c := range g.generated {
		stored := c.Stored || c.KeyOrdinal >= 0
		if stored && !anyChanged(c.Generated.Uses, changed) {
			continue
		}
		v, err := g.evaluate(c.Generated, row)
		if err != nil {
			return err
		}
		row[c.Ordinal] = v
		if changed != nil && anyChanged(c.Generated.Uses, changed) {
			changed[c.Ordinal] = true
		}
	}
	return nil
}

func anyChanged(columns []*schema.Column, changed []bool) bool {
	if changed == nil {
		return false
	}
	for _, c := range columns {
		if changed[c.Ordinal] {
			return true
		}
	}
	return false
}

// evaluate computes an expression over row.
func (g *target) evaluate(e *schema.Expr, row []value.Value) (value.Value, error) {
	g.args = g.args[:0]
	for _, c := range e.Uses {
		g.args = append(g.args, row[c.Ordinal])
	}
	return e.Eval(g.args)
}

package table

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// Descriptors caches what writers of rows derive from one schema version. It holds a descriptor of each table that was
// written, made at the first write. It lives as long as the version does. Many goroutines may use it at once.
type Descriptors struct {
	catalog *schema.Catalog
	byTable sync.Map // *schema.Table to *descriptor
}

// NewDescriptors returns empty Descriptors for the tables of a catalog.
func NewDescriptors(c *schema.Catalog) *Descriptors { return &Descriptors{catalog: c} }

// Catalog returns the catalog that the tables belong to.
func (d *Descriptors) Catalog() *schema.Catalog { return d.catalog }

// of finds or makes the descriptor of a table.
func (d *Descriptors) of(t *schema.Table) (*descriptor, error) {
	if found, ok := d.byTable.Load(t); ok {
		return found.(*descriptor), nil
	}
	made, err := newDescriptor(d.catalog, t)
	if err != nil {
		return nil, err
	}
	found, _ := d.byTable.LoadOrStore(t, made)
	return found.(*descriptor), nil
}

// descriptor holds what writers of rows derive from the definition of a table. To make it takes longer than a commit of
// one row. A descriptor is immutable.
type descriptor struct {
	table    *schema.Table
	layout   *Layout
	parent   *Layout // of the parent table, if every row must have a parent row; else nil
	children []*schema.Table
	stored   []*schema.Column // the columns that stand in rows' values, by ID
	indexes  []*indexTarget
	whole    *Projection // decodes all stored columns, those of the key included
	// floatKeys lists the columns of the primary key whose values a key cannot hold exactly (see asKeys).
	floatKeys []*schema.Column
	// foreign and referencedBy are the enforced foreign keys from and to the table.
	foreign, referencedBy []*foreignKey
	cascades              *cascades // nil if no foreign key from or to the table is ON DELETE CASCADE
	// computed lists all generated columns, each after those that it reads. written lists only those that keys, rows,
	// index entries and checks need, and the generated columns that these read.
	computed, written []*schema.Column
	// watches are the change streams that watch the table; nil if none does.
	watches []*Watch
	// needsOld says that a writer must read an old row before it overwrites or deletes it. That is so if the table has
	// children, indexes, foreign keys or change streams.
	needsOld bool
}

func newDescriptor(catalog *schema.Catalog, t *schema.Table) (*descriptor, error) {
	d := &descriptor{table: t, layout: TableLayout(t), children: catalog.Children(t)}
	if t.Interleave == schema.InterleaveNoAction || t.Interleave == schema.InterleaveCascade {
		d.parent = TableLayout(t.Parent)
	}
	for _, x := range t.Indexes {
		d.indexes = append(d.indexes, newIndexTarget(x))
	}
	referencedBy := catalog.ReferencedBy(t)
	for _, by := range catalog.Watchers(t) {
		d.watches = append(d.watches, NewWatch(t, by))
	}
	d.needsOld = len(t.Indexes) > 0 || len(t.ForeignKeys) > 0 || len(referencedBy) > 0 || d.watches != nil
	for _, child := range d.children {
		d.needsOld = d.needsOld || child.Interleave != schema.InterleaveIn
	}
	d.foreign, d.referencedBy = newForeignKeys(t.ForeignKeys), newForeignKeys(referencedBy)
	d.cascades = newCascades(d.foreign, d.referencedBy)
	var err error
	if d.computed, err = orderGenerated(t, func(*schema.Column) bool { return true }); err != nil {
		return nil, err
	}
	if d.written, err = orderGenerated(t, d.writes); err != nil {
		return nil, err
	}
	for _, p := range t.Key {
		if value.KeyLoses(p.Column.Type) {
			d.floatKeys = append(d.floatKeys, p.Column)
		}
	}
	var base []*schema.Column
	for _, c := range t.Columns {
		if c.Generated != nil && !c.Stored && c.KeyOrdinal < 0 {
			continue
		}
		base = append(base, c)
		if c.KeyOrdinal < 0 {
			d.stored = append(d.stored, c)
		}
	}
	sortByID(d.stored)
	d.whole, err = NewProjection(t, nil, base)
	return d, err
}

// indexTarget describes an index for Changes.
type indexTarget struct {
	index   *schema.Index
	layout  *Layout
	storing []*schema.Column // by ID
	// exact lists the columns that an entry's value may hold: storing, and the key columns for which isExact is true.
	exact []*schema.Column
	uses  []bool // by ordinal: whether the entry depends on the column
}

func newIndexTarget(x *schema.Index) *indexTarget {
	t := &indexTarget{index: x, layout: IndexLayout(x), storing: slices.Clone(x.Storing)}
	sortByID(t.storing)
	t.exact = t.storing
	for _, p := range t.layout.Key {
		if isExact(p.Column) {
			t.exact = append(slices.Clip(t.exact), p.Column)
		}
	}
	sortByID(t.exact)
	t.uses = make([]bool, len(x.Table.Columns))
	for _, c := range entryColumns(x) {
		t.uses[c.Ordinal] = true
	}
	for _, c := range x.NotNullColumns {
		t.uses[c.Ordinal] = true
	}
	return t
}

// isExact reports whether an index entry also holds a column of its key in its value. It does so where the encoding in
// the key loses something of the value.
func isExact(c *schema.Column) bool { return c.KeyOrdinal < 0 && value.KeyLoses(c.Type) }

// appendValue appends the value of the index's entry for row, and adds the places of commit timestamps to pending.
func (x *indexTarget) appendValue(dst []byte, row []value.Value, pending []Pending) ([]byte, []Pending) {
	columns := x.storing
	if len(x.exact) > len(columns) {
		columns = make([]*schema.Column, 0, len(x.exact))
		for _, c := range x.exact {
			if v := row[c.Ordinal]; slices.Contains(x.storing, c) || !value.Same(v, value.AsKey(v), c.Type) {
				columns = append(columns, c)
			}
		}
	}
	return appendRowValue(dst, columns, row, pending)
}

func sortByID(columns []*schema.Column) {
	slices.SortFunc(columns, func(a, b *schema.Column) int { return cmp.Compare(a.ID, b.ID) })
}

// orderGenerated lists the generated columns that are wanted and the generated columns that these read. Each column
// comes after those that it reads.
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

// writes reports whether a row, a key, an index entry or a check needs the column.
func (d *descriptor) writes(c *schema.Column) bool {
	if c.Stored || c.KeyOrdinal >= 0 {
		return true
	}
	for _, x := range d.indexes {
		if x.uses[c.Ordinal] {
			return true
		}
	}
	for _, k := range d.table.Checks {
		if slices.Contains(k.Expr.Uses, c) {
			return true
		}
	}
	return false
}

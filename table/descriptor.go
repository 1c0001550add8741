package table

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/value"
)

// Descriptors holds the descriptors of the tables of one schema version. The first write to a table makes the table's
// descriptor. A Descriptors lives as long as the schema version. Many goroutines may use it at once.
type Descriptors struct {
	catalog *schema.Catalog
	byTable sync.Map // *schema.Table to *descriptor
}

// NewDescriptors returns empty Descriptors for the tables of a catalog.
func NewDescriptors(c *schema.Catalog) *Descriptors { return &Descriptors{catalog: c} }

// Catalog returns the catalog that the tables belong to.
func (d *Descriptors) Catalog() *schema.Catalog { return d.catalog }

// of returns the descriptor of a table. It makes the descriptor at the first call.
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

// descriptor holds what writers need to know about one table, such as its layout, its index entries and its foreign
// keys. Computing this from the table's definition takes longer than committing one row, so it is cached. A
// descriptor is immutable.
type descriptor struct {
	table    *schema.Table
	layout   *Layout
	parent   *Layout // layout of the parent table, if every row must have a parent row; else nil
	children []*schema.Table
	stored   []*schema.Column // the columns that are stored in the rows' values, sorted by ID
	indexes  []*indexTarget
	whole    *Projection // decodes all stored columns, those of the key included
	// floatKeys lists the columns of the primary key whose values a key cannot represent exactly (see asKeys).
	floatKeys []*schema.Column
	// foreign and referencedBy are the enforced foreign keys from this table and those that refer to it.
	foreign, referencedBy []*foreignKey
	cascades              *cascades // nil if no foreign key from or to the table is ON DELETE CASCADE
	// computed lists all generated columns. Each comes after the generated columns that it reads. written lists only
	// the generated columns that keys, rows, index entries or checks need, directly or through other generated
	// columns.
	computed, written []*schema.Column
	// watches are the change streams that watch the table; nil if none does.
	watches []*Watch
	// needsOld says that a writer must read an old row before it overwrites or deletes that row. This is so if the
	// table has children, indexes, foreign keys or change streams.
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
	storing []*schema.Column // the STORING columns, sorted by ID
	// exact lists the columns that an entry's value can hold: those in storing, and the key columns for which isExact
	// is true.
	exact []*schema.Column
	uses  []bool // by Ordinal: whether the index entry depends on the column
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

// isExact reports whether an index entry holds a column of its key a second time, in its value. It does if the
// encoding in the key loses a part of the value's information, such as the sign of a zero.
func isExact(c *schema.Column) bool { return c.KeyOrdinal < 0 && value.KeyLoses(c.Type) }

// appendValue appends the value of the index entry for row to dst. It adds the positions of pending commit
// timestamps to pending.
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

// orderGenerated lists the generated columns for which the function wanted returns true, and the generated columns that
// they read, directly or not. Each column comes after those that it reads.
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

// writes reports whether a writer needs the value of the column for a row's value, a key, an index entry or a check.
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

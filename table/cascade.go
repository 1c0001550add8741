package table

import (
	"bytes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// actions records what the mutations of one commit do to tables that have foreign keys with ON DELETE CASCADE, and
// finds conflicts. A commit fails in two cases, for any order of its mutations. First: one mutation writes a value to
// which such a foreign key refers, and another deletes the referenced row. Second: a mutation writes a row that a
// cascade of the same commit deletes. DML statements of one transaction may do both, because each statement takes
// effect before the next begins. Source: https://cloud.google.com/spanner/docs/foreign-keys/overview.
type actions struct {
	values []writtenValue
	rows   []writtenRow
	// gone holds the referenced keys whose rows were deleted, each as reference.name returns it.
	gone map[string]bool
	// deleted holds the keys of the rows that a cascade deleted, because they referred to a key in gone.
	deleted map[string]bool
}

// writtenValue records that the commit has written a row of a referenced table. column is the first written column to
// which a foreign key refers.
type writtenValue struct {
	column *schema.Column
	table  *schema.Table
	key    []byte
}

// writtenRow is a row of a referencing table that the commit has written.
type writtenRow struct {
	table *schema.Table
	key   []byte
	// references lists the keys to which the row referred before and after the write, each as reference.name returns
	// it.
	references []string
}

// newActions returns nil if the mutations cannot conflict: if all of them are deletes, or if none is a delete.
func newActions(muts []Mutation) *actions {
	deletes := 0
	for i := range muts {
		if muts[i].Op == Delete {
			deletes++
		}
	}
	if deletes == 0 || deletes == len(muts) {
		return nil
	}
	return &actions{gone: map[string]bool{}, deleted: map[string]bool{}}
}

// cascades holds the foreign keys ON DELETE CASCADE of a table, and the columns of the table to which foreign keys ON
// DELETE CASCADE refer.
type cascades struct {
	from []*foreignKey // the table's own foreign keys ON DELETE CASCADE
	// referenced lists the columns of this table to which foreign keys ON DELETE CASCADE refer.
	referenced []*schema.Column
}

// newCascades makes the cascades of a table from its foreign keys and from those that refer to the table. It returns
// nil if none of them is ON DELETE CASCADE.
func newCascades(from, to []*foreignKey) *cascades {
	var c cascades
	for _, fk := range from {
		if fk.Cascade {
			c.from = append(c.from, fk)
		}
	}
	for _, fk := range to {
		if fk.Cascade {
			c.referenced = append(c.referenced, fk.ReferencedColumns...)
		}
	}
	if c.from == nil && c.referenced == nil {
		return nil
	}
	return &c
}

// name returns a string that identifies the foreign key of r together with the key to which r refers.
func (r reference) name() string { return r.fk.Name + "\x00" + string(r.fk.from.span(r.values).Start) }

// wrote records that b.row was written at key. old is the row that b.row replaced, or nil.
func (a *actions) wrote(b *rowBuilder, key []byte, old []value.Value) {
	if a == nil || b.cascades == nil {
		return
	}
	for _, col := range b.cascades.referenced {
		if b.given[col.Ordinal] || old == nil && (col.Default != nil || col.Generated != nil) {
			a.values = append(a.values, writtenValue{col, b.table, bytes.Clone(key)})
			break
		}
	}
	if b.cascades.from == nil {
		return
	}
	row := writtenRow{table: b.table, key: bytes.Clone(key)}
	for _, fk := range b.cascades.from {
		for _, version := range [][]value.Value{old, b.row} {
			if version == nil {
				continue
			}
			if vals, ok := foreignValues(fk.Columns, version); ok {
				row.references = append(row.references, reference{fk: fk, values: vals}.name())
			}
		}
	}
	a.rows = append(a.rows, row)
}

// cascaded records that the row to which r refers was deleted, so that the cascade deletes the referring rows.
func (a *actions) cascaded(r reference) {
	if a != nil {
		a.gone[r.name()] = true
	}
}

// removed records that a cascade deleted the row at key.
func (a *actions) removed(key []byte) {
	if a != nil {
		a.deleted[string(key)] = true
	}
}

// checkActions returns an error if mutations of the commit conflict. The comment of the type actions lists the
// possible conflicts.
func (c *Changes) checkActions() error {
	if c.actions == nil {
		return nil
	}
	for _, v := range c.actions.values {
		if c.wasDeleted(v.table, v.key) {
			return usererror.ReferencedValueWrittenAndDeleted(v.table.FullName(), v.column.Name)
		}
	}
	for _, r := range c.actions.rows {
		conflict := c.actions.deleted[string(r.key)]
		for _, name := range r.references {
			conflict = conflict || c.actions.gone[name]
		}
		if conflict {
			return usererror.RowWrittenAndDeletedByAction(r.table.FullName())
		}
	}
	return nil
}

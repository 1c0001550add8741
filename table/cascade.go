package table

import (
	"bytes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// actions records what the mutations of one commit do to tables with foreign keys ON DELETE CASCADE, and finds
// conflicts. In one commit, the mutations may not both write a value that such a foreign key refers to and delete its
// row. Nor may they write a row that such a foreign key deletes. Their order does not matter: Spanner does not let it
// decide. DML statements of one transaction may do both, because each takes effect before the next begins. Source:
// https://cloud.google.com/spanner/docs/foreign-keys/overview.
type actions struct {
	values []writtenValue
	rows   []writtenRow
	// gone holds, by reference.name, the referenced keys whose rows were deleted.
	gone map[string]bool
	// deleted holds the keys of the rows that were deleted because they referred to a key in gone.
	deleted map[string]bool
}

// writtenValue is a row of a referenced table that was written. column is the first written column to which a foreign
// key refers.
type writtenValue struct {
	column *schema.Column
	table  *schema.Table
	key    []byte
}

// writtenRow is a row of a referencing table.
type writtenRow struct {
	table *schema.Table
	key   []byte
	// references names, by reference.name, the keys to which the row referred before and after the write.
	references []string
}

// newActions returns nil if the mutations cannot conflict: all of them are deletes, or none is.
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

// cascades holds a table's foreign keys ON DELETE CASCADE, both from and to the table.
type cascades struct {
	from []*foreignKey
	// referenced are the columns of the table that such foreign keys refer to.
	referenced []*schema.Column
}

// newCascades returns nil if no foreign key from or to the table is ON DELETE CASCADE.
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

// name identifies the key to which r refers, among all foreign keys.
func (r reference) name() string { return r.fk.Name + "\x00" + string(r.fk.from.span(r.values).Start) }

// wrote records that b.row was written at key. old is the row that it replaced, or nil.
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

// cascaded records that the row to which r refers was deleted.
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

// checkActions returns an error if the mutations of the commit conflict, as described at actions.
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

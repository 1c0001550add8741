package table

import (
	"slices"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// rowBuilder makes whole rows from the values that a mutation or a DML statement gives for some columns. Its own
// fields depend only on the table, the operation and the list of columns, so they are computed once for many rows.
type rowBuilder struct {
	*target
	op      Op
	columns []*schema.Column
	given   []bool // by Ordinal: whether the column is in columns
	// omitted lists the columns that are neither given nor generated. An insert sets them to their defaults or to
	// NULL.
	omitted []*schema.Column
	// missing is the first omitted column that is NOT NULL and has no default; nil if there is none.
	missing *schema.Column
	// refreshed lists the columns that an update sets to their ON UPDATE expression.
	refreshed []*schema.Column
	// blind says that a new row can be written without reading the row that it replaces.
	blind bool
	// written says for each column, indexed by Ordinal, whether an insert gives it a value. It does if the column is
	// given, has a default, or is generated and stored. written is nil if no change stream watches the table.
	written []bool
	// inserts and updates are the numbers of mutations that an inserted and an updated row count as, without index
	// entries.
	inserts, updates int64
}

// newRowBuilder makes the rowBuilder for mutations and for SQL inserts. columns must include the key columns.
func newRowBuilder(g *target, op Op, columns []*schema.Column) (*rowBuilder, error) {
	b, err := makeRowBuilder(g, op, columns)
	if err != nil {
		return nil, err
	}
	if op != Update && b.missing != nil {
		return nil, usererror.ValueMissing(g.table.FullName(), b.missing.Name)
	}
	return b, b.checkKeyGiven()
}

// newUpdateBuilder makes the rowBuilder for an SQL update. columns must not include key columns.
func newUpdateBuilder(g *target, columns []*schema.Column) (*rowBuilder, error) {
	for _, c := range columns {
		if c.KeyOrdinal >= 0 {
			return nil, usererror.KeyColumnChanged(g.table.FullName(), c.Name)
		}
	}
	return makeRowBuilder(g, Update, columns)
}

func makeRowBuilder(g *target, op Op, columns []*schema.Column) (*rowBuilder, error) {
	b := &rowBuilder{target: g, op: op, columns: columns, given: make([]bool, len(g.table.Columns))}
	for _, c := range columns {
		if b.given[c.Ordinal] {
			return nil, usererror.ColumnRepeated(c.Name)
		}
		switch {
		case c.Generated == nil:
		case c.KeyOrdinal < 0:
			return nil, usererror.WriteToGenerated(g.table.FullName(), c.Name)
		case op != Update:
			return nil, usererror.GeneratedKeyGiven(c.Name)
		}
		b.given[c.Ordinal] = true
	}
	setsSome := b.setsNonKey()
	for _, c := range g.table.Columns {
		if b.given[c.Ordinal] || c.Generated != nil {
			continue
		}
		b.omitted = append(b.omitted, c)
		if b.missing == nil && c.Default == nil && c.NeedsValue() {
			b.missing = c
		}
		if c.OnUpdate != nil && setsSome {
			b.refreshed = append(b.refreshed, c)
		}
	}
	b.blind = b.isBlind()
	if b.watches != nil {
		b.written = b.writtenByInsert()
	}
	b.count()
	return b, nil
}

// setsNonKey reports whether any column outside the key is given.
func (b *rowBuilder) setsNonKey() bool {
	for _, c := range b.columns {
		if c.KeyOrdinal < 0 {
			return true
		}
	}
	return false
}

// checkKeyGiven returns an error if the columns of an Update mutation do not determine the row. The columns must
// include each key column or, for a generated key column, the columns from which it is computed.
func (b *rowBuilder) checkKeyGiven() error {
	if b.op != Update {
		return nil
	}
	for _, p := range b.table.Key {
		c := p.Column
		if b.given[c.Ordinal] {
			continue
		}
		if c.Default != nil {
			return usererror.DefaultKeyMissing(c.Name)
		}
		if c.Generated == nil {
			return usererror.KeyColumnMissing(b.table.FullName(), c.Name)
		}
		for _, u := range c.Generated.Uses {
			if !b.given[u.Ordinal] {
				return usererror.GeneratedKeyMissing(c.Name)
			}
		}
	}
	return nil
}

// isBlind reports whether the new row can be written without reading the old one. This is so if the new row does not
// depend on the old one, and if no index entries, children or references of the old row would have to be deleted.
func (b *rowBuilder) isBlind() bool {
	if b.needsOld || b.op == Insert || b.op == Update {
		return false
	}
	return b.op == Replace || len(b.omitted) == len(b.refreshed)
}

// writtenByInsert returns for each column, indexed by Ordinal, whether it gets a value in a new row. The other columns
// become NULL.
func (b *rowBuilder) writtenByInsert() []bool {
	written := slices.Clone(b.given)
	for _, c := range b.table.Columns {
		if c.Default != nil || c.Generated != nil && c.Stored {
			written[c.Ordinal] = true
		}
	}
	return written
}

// count computes how many mutations an inserted and an updated row count as. Both count the given columns and all key
// columns. An insert also counts stored generated columns and columns with a default. An update also counts the
// stored generated columns that read a given column, and the columns with ON UPDATE.
func (b *rowBuilder) count() {
	var given, filled, refreshed int64
	for _, c := range b.table.Columns {
		switch {
		case b.given[c.Ordinal] || c.KeyOrdinal >= 0:
			given++
		case c.Generated != nil && c.Stored:
			filled++
			if anyChanged(c.Generated.Uses, b.given) {
				refreshed++
			}
		case c.Default != nil:
			filled++
		}
	}
	b.inserts = given + filled
	b.updates = given + refreshed + int64(len(b.refreshed))
}

// fillNew makes a new row in row, with the values vals in b.columns, and checks the value of each column.
func (b *rowBuilder) fillNew(c *Changes, row []value.Value, vals []value.Value) error {
	clear(row)
	b.set(row, vals)
	if err := c.checkValues(b.table, b.columns, row); err != nil {
		return err
	}
	if err := b.fillOmitted(row); err != nil {
		return err
	}
	for _, col := range b.omitted {
		if col.Default == nil {
			continue
		}
		if err := c.checkValue(b.table, col, row[col.Ordinal]); err != nil {
			return err
		}
	}
	if err := b.generateNew(row); err != nil {
		return err
	}
	return c.checkValues(b.table, b.generated, row)
}

// propose makes a new row in row, with the values vals in b.columns. It checks nothing.
func (b *rowBuilder) propose(row []value.Value, vals []value.Value) error {
	clear(row)
	b.set(row, vals)
	if err := b.fillOmitted(row); err != nil {
		return err
	}
	return b.generateNew(row)
}

// checkProposed checks each column of a row that propose has made.
func (b *rowBuilder) checkProposed(c *Changes, row []value.Value) error {
	for _, col := range b.table.Columns {
		if col.Generated != nil {
			continue
		}
		if err := c.checkValue(b.table, col, row[col.Ordinal]); err != nil {
			return err
		}
	}
	return c.checkValues(b.table, b.generated, row)
}

// set puts the given values in row.
func (b *rowBuilder) set(row []value.Value, vals []value.Value) {
	for i, col := range b.columns {
		row[col.Ordinal] = vals[i]
	}
	b.asKeys(row)
}

// asKeys replaces each primary key value in row by the value that the encoded key represents: -0 becomes 0, and all
// NaNs become one.
func (g *target) asKeys(row []value.Value) {
	for _, c := range g.floatKeys {
		row[c.Ordinal] = value.AsKey(row[c.Ordinal])
	}
}

// fillOmitted sets each column in b.omitted to its default, or to NULL if it has none.
func (b *rowBuilder) fillOmitted(row []value.Value) (err error) {
	for _, col := range b.omitted {
		if row[col.Ordinal], err = DefaultOf(col); err != nil {
			return err
		}
	}
	b.asKeys(row)
	return nil
}

// DefaultOf returns the value that a column gets in a new row if the statement gives none: the value of its DEFAULT,
// or NULL.
func DefaultOf(c *schema.Column) (value.Value, error) {
	if c.Default == nil {
		return value.Null(c.Type.Kind), nil
	}
	return c.Default.Eval(nil)
}

// generateNew computes the generated columns of a new row.
func (b *rowBuilder) generateNew(row []value.Value) error {
	for i := range b.changed {
		b.changed[i] = true
	}
	return b.generate(row, b.changed)
}

// fillUpdate changes row from the old values to the new ones, and checks the columns that change.
func (b *rowBuilder) fillUpdate(c *Changes, row []value.Value, vals []value.Value) error {
	b.set(row, vals)
	if err := c.checkValues(b.table, b.columns, row); err != nil {
		return err
	}
	copy(b.changed, b.given)
	for _, p := range b.table.Key {
		b.changed[p.Column.Ordinal] = false
	}
	for _, col := range b.refreshed {
		b.changed[col.Ordinal] = true
		if err := b.fill(c, row, col, col.OnUpdate); err != nil {
			return err
		}
	}
	if err := b.generate(row, b.changed); err != nil {
		return err
	}
	for _, col := range b.generated {
		if !b.changed[col.Ordinal] {
			continue
		}
		if err := c.checkValue(b.table, col, row[col.Ordinal]); err != nil {
			return err
		}
	}
	return nil
}

// fill sets column col of row to the value of the expression e, and checks that value.
func (b *rowBuilder) fill(c *Changes, row []value.Value, col *schema.Column, e *schema.Expr) error {
	v, err := b.evaluate(e, row)
	if err != nil {
		return err
	}
	row[col.Ordinal] = v
	b.asKeys(row)
	return c.checkValue(b.table, col, v)
}

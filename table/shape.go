package table

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// shape is what all rows of one mutation or DML statement share: the columns they give, and what follows from that.
type shape struct {
	*target
	op      Op
	columns []*schema.Column
	given   []bool // by ordinal
	// omitted are the columns, not generated, that an insert fills with defaults or NULL.
	omitted []*schema.Column
	// refreshed are the columns that an update sets by ON UPDATE.
	refreshed []*schema.Column
	// blind says that a row can be written without knowing whether it is there, and as what.
	blind bool
	// inserts and updates are the mutations that a row counts for, without indexes.
	inserts, updates int64
}

// newShape makes the shape of mutations or inserts, whose columns name the key.
func newShape(g *target, op Op, columns []*schema.Column) (*shape, error) {
	s, err := makeShape(g, op, columns)
	if err != nil {
		return nil, err
	}
	return s, s.checkKeyGiven()
}

// newUpdateShape makes the shape of an SQL update, whose columns are not of the key.
func newUpdateShape(g *target, columns []*schema.Column) (*shape, error) {
	for _, c := range columns {
		if c.KeyOrdinal >= 0 {
			return nil, usererror.KeyColumnChanged(g.table.FullName(), c.Name)
		}
	}
	return makeShape(g, Update, columns)
}

func makeShape(g *target, op Op, columns []*schema.Column) (*shape, error) {
	s := &shape{target: g, op: op, columns: columns, given: make([]bool, len(g.table.Columns))}
	for _, c := range columns {
		if s.given[c.Ordinal] {
			return nil, usererror.ColumnRepeated(c.Name)
		}
		if c.Generated != nil && (c.KeyOrdinal < 0 || op != Update) {
			return nil, usererror.WriteToGenerated(g.table.FullName(), c.Name)
		}
		s.given[c.Ordinal] = true
	}
	setsSome := s.setsNonKey()
	for _, c := range g.table.Columns {
		if s.given[c.Ordinal] || c.Generated != nil {
			continue
		}
		if op != Update && c.NeedsValue() && c.Default == nil {
			return nil, usererror.ValueMissing(g.table.FullName(), c.Name)
		}
		s.omitted = append(s.omitted, c)
		if c.OnUpdate != nil && setsSome {
			s.refreshed = append(s.refreshed, c)
		}
	}
	s.blind = s.isBlind()
	s.count()
	return s, nil
}

// setsNonKey says whether any column outside the key is given.
func (s *shape) setsNonKey() bool {
	for _, c := range s.columns {
		if c.KeyOrdinal < 0 {
			return true
		}
	}
	return false
}

// checkKeyGiven sees to it that an update names the row: by all of its key, or by what a generated part is made of.
func (s *shape) checkKeyGiven() error {
	if s.op != Update {
		return nil
	}
	for _, p := range s.table.Key {
		c := p.Column
		if s.given[c.Ordinal] {
			continue
		}
		if c.Generated == nil {
			return usererror.KeyColumnMissing(s.table.FullName(), c.Name)
		}
		for _, u := range c.Generated.Uses {
			if !s.given[u.Ordinal] {
				return usererror.KeyColumnMissing(s.table.FullName(), c.Name)
			}
		}
	}
	return nil
}

// isBlind says whether the row that comes out is the same whatever was there, and nothing hangs on what goes.
func (s *shape) isBlind() bool {
	if s.watched || s.op == Insert || s.op == Update {
		return false
	}
	return s.op == Replace || len(s.omitted) == len(s.refreshed)
}

// count works out the mutation count of one row: the columns written, the key's always among them,
// and what defaults, ON UPDATE and stored generated columns write besides.
func (s *shape) count() {
	var given, filled, refreshed int64
	for _, c := range s.table.Columns {
		switch {
		case s.given[c.Ordinal] || c.KeyOrdinal >= 0:
			given++
		case c.Generated != nil && c.Stored:
			filled++
			if anyChanged(c.Generated.Uses, s.given) {
				refreshed++
			}
		case c.Default != nil:
			filled++
		}
	}
	s.inserts = given + filled
	s.updates = given + refreshed + int64(len(s.refreshed))
}

// begin checks the values of one row and puts them in row; a row of an update must hold the old values already.
func (s *shape) begin(c *Changes, row []value.Value, vals []value.Value) error {
	for i, col := range s.columns {
		if err := c.checkValue(s.table, col, vals[i]); err != nil {
			return err
		}
		row[col.Ordinal] = vals[i]
	}
	return nil
}

// fillNew makes row the new row with these values: defaults, NULLs, generated columns.
func (s *shape) fillNew(c *Changes, row []value.Value, vals []value.Value) error {
	clear(row)
	if err := s.begin(c, row, vals); err != nil {
		return err
	}
	for _, col := range s.omitted {
		if col.Default == nil {
			row[col.Ordinal] = value.Null(col.Type.Kind)
			continue
		}
		if err := s.fill(c, row, col, col.Default); err != nil {
			return err
		}
	}
	for i := range s.changed {
		s.changed[i] = true
	}
	return s.fillGenerated(c, row, false)
}

// fillUpdate changes row, which holds the old values, to what it is after an update.
func (s *shape) fillUpdate(c *Changes, row []value.Value, vals []value.Value) error {
	if err := s.begin(c, row, vals); err != nil {
		return err
	}
	copy(s.changed, s.given)
	for _, p := range s.table.Key {
		s.changed[p.Column.Ordinal] = false
	}
	for _, col := range s.refreshed {
		s.changed[col.Ordinal] = true
		if err := s.fill(c, row, col, col.OnUpdate); err != nil {
			return err
		}
	}
	return s.fillGenerated(c, row, true)
}

// fill computes a column that no value was given for.
func (s *shape) fill(c *Changes, row []value.Value, col *schema.Column, e *schema.Expr) error {
	v, err := s.evaluate(e, row)
	if err != nil {
		return err
	}
	row[col.Ordinal] = v
	return c.checkValue(s.table, col, v)
}

func (s *shape) fillGenerated(c *Changes, row []value.Value, update bool) error {
	if len(s.generated) == 0 {
		return nil
	}
	if err := s.generate(row, s.changed); err != nil {
		return err
	}
	for _, col := range s.generated {
		if !s.changed[col.Ordinal] {
			continue
		}
		if err := c.checkValue(s.table, col, row[col.Ordinal]); err != nil {
			return err
		}
	}
	return nil
}

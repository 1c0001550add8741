package table

import (
	"fmt"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// target is a table that a Changes writes: the table's descriptor, and buffers for the current row.
type target struct {
	*descriptor
	generated []*schema.Column // the generated columns to compute: descriptor.written or descriptor.computed
	read      located          // the row that the last call of decode has read, in stored form
	old       []value.Value
	row       []value.Value
	changed   []bool // by Ordinal: whether the current insert or update writes the column
	args      []value.Value
}

// newTarget makes the target of a table. If virtual is true, its rows get values in all virtual columns, even those
// that no write needs.
func newTarget(d *descriptor, virtual bool) *target {
	t := d.table
	g := &target{descriptor: d, generated: d.written}
	if virtual {
		g.generated = d.computed
	}
	g.read.init(d.whole)
	rows := make([]value.Value, 2*len(t.Columns))
	g.old, g.row = rows[:len(t.Columns):len(t.Columns)], rows[len(t.Columns):]
	g.changed = make([]bool, len(t.Columns))
	return g
}

// decode decodes the stored row s into row, which is indexed by Ordinal, and computes the virtual columns.
func (g *target) decode(row []value.Value, s Stored) error {
	if at := g.layout.walk(s.Key, g.read.offsets); at.where != ownKey {
		return fmt.Errorf("malformed key in %s: %x", g.layout.Name(), s.Key)
	}
	if err := g.read.locate(s.Key, s.Value); err != nil {
		return err
	}
	for i, c := range g.whole.Columns {
		v, err := g.read.decode(g.whole.sources[i])
		if err != nil {
			return err
		}
		row[c.Ordinal] = v
	}
	return g.generate(row, nil)
}

// generate computes the generated columns of row: those that are not stored, and those that are stored and read a
// changed column. The parameter changed says for each column, indexed by Ordinal, whether it has changed; nil means
// that no column has. In this slice, generate also marks the generated columns whose values may now differ.
func (g *target) generate(row []value.Value, changed []bool) error {
	for _, c := range g.generated {
		// In a new row, every column counts as changed, even a column that is computed from no other column.
		affected := changed != nil && (changed[c.Ordinal] || anyChanged(c.Generated.Uses, changed))
		if stored := c.Stored || c.KeyOrdinal >= 0; stored && !affected {
			continue
		}
		v, err := g.evaluate(c.Generated, row)
		if err != nil {
			return err
		}
		if row[c.Ordinal] = v; c.KeyOrdinal >= 0 {
			g.asKeys(row)
		}
		if affected {
			changed[c.Ordinal] = true
			if err := g.checkBecoming(c, row); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkBecoming returns an error if a schema change is giving the generated column c a new expression, and the new
// expression has another value for row than the current one. A schema change sets c.Becoming only if a row, a key or an
// index entry stores the values of c.
func (g *target) checkBecoming(c *schema.Column, row []value.Value) error {
	if c.Becoming == nil || c.Becoming.Generated == nil {
		return nil
	}
	v, err := g.evaluate(c.Becoming.Generated, row)
	if err != nil || sameValue(v, row[c.Ordinal], c.Type) {
		return err
	}
	return usererror.GeneratedValueChanging(g.table.FullName() + "." + c.Name)
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

// evaluate computes the value of an expression for row.
func (g *target) evaluate(e *schema.Expr, row []value.Value) (value.Value, error) {
	g.args = g.args[:0]
	for _, c := range e.Uses {
		g.args = append(g.args, row[c.Ordinal])
	}
	return e.Eval(g.args)
}

package table

import (
	"fmt"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// target is a table that one Changes writes: its descriptor, and buffers for the current rows.
type target struct {
	*descriptor
	generated []*schema.Column // either computed or written
	read      located          // the positions of the stored columns in the row that decode reads
	old       []value.Value
	row       []value.Value
	changed   []bool // by ordinal: whether the column of row is written
	args      []value.Value
}

// newTarget makes the target of a table. If virtual is true, it computes virtual columns even if no write needs them.
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

// decode decodes a stored row into row, by ordinal, and computes its virtual columns.
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

// generate computes the generated columns of row that are not stored, and the stored ones that read a changed column.
// It marks in changed the columns that may now have another value. If changed is nil, no column has changed.
func (g *target) generate(row []value.Value, changed []bool) error {
	for _, c := range g.generated {
		// In a new row every column counts as changed, even one that is computed from no other column.
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

// checkBecoming refuses a row while a schema change redefines a generated column, if the new expression gives another
// value than the current one. Such a column is stored in the row, in a key or in an index.
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

// evaluate computes an expression over row.
func (g *target) evaluate(e *schema.Expr, row []value.Value) (value.Value, error) {
	g.args = g.args[:0]
	for _, c := range e.Uses {
		g.args = append(g.args, row[c.Ordinal])
	}
	return e.Eval(g.args)
}

package table

import (
	"fmt"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// target is a table as one Changes writes it: its descriptor, and buffers for the rows at hand.
type target struct {
	*descriptor
	generated []*schema.Column // computed or written
	read      located          // where the columns of whole stand in the row that is being decoded
	old       []value.Value
	row       []value.Value
	changed   []bool // by ordinal: the columns of row that are written
	args      []value.Value
}

// newTarget makes the target of a table; virtual says that virtual columns are wanted even if nothing that is written needs them.
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

// decode puts the values of a stored row in row, by ordinal.
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

// generate computes the generated columns of row: those that are not stored, and the stored ones that
// read a changed column. It marks in changed the ones that may have another value now. If changed is nil, no column has changed.
func (g *target) generate(row []value.Value, changed []bool) error {
	for _, c := range g.generated {
		// Every column of a new row is changed: also one that is computed from none.
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

// checkBecoming refuses a row in which a generated column that a schema change under way redefines would have another value than it has now. Such a column is
// stored somewhere.
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

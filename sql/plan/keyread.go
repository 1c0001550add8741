package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/sql/fn/library"
	"github.com/crowfoot-db/crowfoot/sql/fn/protobuf"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// keyRead returns a scan whose rows are the whole result of a plan, with the columns in the order of the result. There
// is such a scan if the plan only reads rows of one table or index by key, and returns columns of the table or fields
// of its PROTO columns. For any other plan keyRead returns nil.
func (p *planner) keyRead(root Node) *Scan {
	if s, ok := root.(*Scan); ok && isKeyRead(s) {
		return s
	}
	c, ok := root.(*Compute)
	if !ok {
		return nil
	}
	s, ok := c.Input.(*Scan)
	if !ok || !isKeyRead(s) {
		return nil
	}
	read := *s
	read.Columns = nil
	for i, e := range c.Exprs {
		column := p.fieldColumn(s, e, c.Names[i])
		switch slot, plain := e.(*Slot); {
		case plain:
			column = s.Columns[slot.Index]
		case column == nil:
			return nil
		default:
			read.Method = RowScan
		}
		read.Columns = append(read.Columns, column)
	}
	return &read
}

// fieldColumn returns a field of a PROTO column as a generated column. It returns nil if e is anything else, or if
// the table has a columnar copy, because the copy does not have the field.
func (p *planner) fieldColumn(s *Scan, e Expr, name string) *schema.Column {
	c, ok := e.(*tree.Call)
	if !ok || c.Func.Name != tree.ProtoField || s.Index != nil || p.catalog.TableIsColumnar(s.Table) {
		return nil
	}
	slot, ok := c.Args[0].(*Slot)
	if !ok || s.Columns[slot.Index].Generated != nil && !s.Columns[slot.Index].Stored {
		return nil
	}
	f, err := library.Lookup(c.Func)
	if err != nil {
		return nil
	}
	ctx := &fn.Context{}
	return &schema.Column{Ordinal: -1, KeyOrdinal: -1, Name: name, Type: c.Func.Type, Generated: &schema.Expr{
		Uses: []*schema.Column{s.Columns[slot.Index]},
		Eval: func(args []value.Value) (value.Value, error) { return f.Call(ctx, args) },
		Peek: protobuf.FieldOf(c.Func),
	}}
}

func isKeyRead(s *Scan) bool {
	return s.Residual == nil && s.Table.Rows == nil && s.Merge == 0 && !s.Skips()
}

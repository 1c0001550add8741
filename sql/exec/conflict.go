package exec

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// conflictCode is a compiled ON CONFLICT clause.
type conflictCode struct {
	node  *plan.Conflict
	key   bool                // a row with the same primary key is a conflict
	index []*table.Projection // for each unique index that can conflict, reads the primary key from its entry
	old   *table.Projection
	set   []eval // the assignments; nil is DEFAULT
	where eval
}

func (c *compiler) conflict(n *plan.DML) (*conflictCode, error) {
	code := &conflictCode{node: n.Conflict}
	anyKey := !n.Conflict.Key && n.Conflict.Index == nil
	code.key = n.Conflict.Key || anyKey
	var err error
	for _, x := range n.Table.Indexes {
		if x != n.Conflict.Index && !(anyKey && x.Unique) {
			continue
		}
		p, err := table.NewProjection(n.Table, x, keyColumns(n.Table))
		if err != nil {
			return nil, err
		}
		code.index = append(code.index, p)
	}
	if code.old, err = table.NewProjection(n.Table, nil, n.Conflict.Old); err != nil {
		return nil, err
	}
	if code.set, err = c.exprs(n.Conflict.Set); err != nil {
		return nil, err
	}
	code.where, err = c.optional(n.Conflict.Where)
	return code, err
}

func keyColumns(t *schema.Table) []*schema.Column {
	var list []*schema.Column
	for _, k := range t.Key {
		list = append(list, k.Column)
	}
	return list
}

// insertOrResolve inserts a row. If the row conflicts with an existing one, it does what ON CONFLICT says.
func (d *change) insertOrResolve(columns []*schema.Column, vals []value.Value) error {
	row, err := d.changes.Propose(d.node.Table, columns, vals)
	if err != nil {
		return err
	}
	there, ok, err := d.clash(row)
	if err != nil {
		return err
	}
	if d.touched == nil {
		d.touched = map[string]bool{}
	}
	if !ok {
		if err := d.changes.InsertProposed(d.run.ctx); err != nil {
			return err
		}
		d.touched[string(d.layout.AppendKey(nil, keyOf(d.node.Table, row)))] = true
		return d.changed(row, "INSERT")
	}
	if !d.conflict.node.Update {
		return nil
	}
	if d.touched[string(there)] {
		return usererror.RowAffectedTwice(d.node.Table.FullName(), d.layout.KeyText(there))
	}
	return d.resolve(there, row)
}

// clash returns the key of the existing row that the new row conflicts with.
func (d *change) clash(row []value.Value) (key []byte, ok bool, err error) {
	if d.conflict.key {
		key := d.layout.AppendKey(nil, keyOf(d.node.Table, row))
		if _, ok, err := d.run.view.Get(d.run.ctx, key, table.LockExclusive); ok || err != nil {
			return key, ok, err
		}
	}
	for _, x := range d.conflict.index {
		if key, ok, err := d.clashIn(x, row); ok || err != nil {
			return key, ok, err
		}
	}
	return nil, false, nil
}

// clashIn looks in a unique index for an entry with the key of row. It returns the primary key of the entry.
func (d *change) clashIn(p *table.Projection, row []value.Value) (key []byte, ok bool, err error) {
	for _, c := range p.Index.NotNullColumns {
		if row[c.Ordinal].IsNull() {
			return nil, false, nil
		}
	}
	var vals []value.Value
	for _, k := range p.Index.Key {
		vals = append(vals, row[k.Column.Ordinal])
	}
	spans, err := p.Spans(table.KeySet{Keys: [][]value.Value{vals}})
	if err != nil {
		return nil, false, err
	}
	rows := table.Read{Projection: p, Spans: spans, Lock: table.LockExclusive}.Open(d.run.ctx, d.run.view)
	defer rows.Close()
	if ok, err = rows.Next(); !ok || err != nil {
		return nil, false, err
	}
	return d.layout.AppendKey(nil, rows.Values(nil)), true, nil
}

// resolve applies DO UPDATE to the existing row at key.
func (d *change) resolve(key []byte, proposed []value.Value) error {
	rows := table.Read{Projection: d.conflict.old, Spans: []table.Span{{Start: key}}, Lock: table.LockExclusive}.Open(d.run.ctx, d.run.view)
	defer rows.Close()
	if ok, err := rows.Next(); !ok || err != nil {
		return err
	}
	both := rows.Values(nil)
	for _, c := range d.conflict.node.New {
		both = append(both, proposed[c.Ordinal])
	}
	if ok, err := isTrue(d.conflict.where, d.run, both); !ok || err != nil {
		return err
	}
	vals := make([]value.Value, len(d.conflict.set))
	for i, f := range d.conflict.set {
		var err error
		if f == nil {
			vals[i], err = table.DefaultOf(d.conflict.node.Columns[i])
		} else {
			vals[i], err = f(d.run, both)
		}
		if err != nil {
			return err
		}
	}
	old, ok, err := d.changes.Get(d.run.ctx, key)
	if !ok || err != nil {
		return err
	}
	row, err := d.changes.Update(d.run.ctx, d.node.Table, old, d.conflict.node.Columns, vals)
	if err != nil {
		return err
	}
	d.touched[string(key)] = true
	return d.changed(row, "UPDATE")
}

func keyOf(t *schema.Table, row []value.Value) []value.Value {
	var key []value.Value
	for _, k := range t.Key {
		key = append(key, row[k.Column.Ordinal])
	}
	return key
}

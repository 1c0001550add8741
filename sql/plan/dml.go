package plan

import (
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

func (p *planner) insert(s *tree.Insert) error {
	p.statementHints(s.Hints)
	m := &DML{Kind: Insert, Table: s.Table, Columns: s.Columns, Mode: s.Mode}
	for _, row := range s.Rows {
		for _, e := range row {
			if e != nil {
				p.findWithsIn(e)
			}
		}
		values, err := p.scalars(p.foldAll(row), slots{})
		if err != nil {
			return err
		}
		m.Rows = append(m.Rows, values)
	}
	if s.Query != nil {
		p.findWiths(s.Query.Scan, false)
		r, err := p.lower(s.Query.Scan)
		if err != nil {
			return err
		}
		out := make([]tree.Col, len(s.Query.Output))
		for i, o := range s.Query.Output {
			out[i] = o.Col
		}
		if m.Input, err = p.buildExactly(r, out); err != nil {
			return err
		}
	}
	if s.Conflict != nil {
		var err error
		if m.Conflict, err = p.conflict(s.Conflict); err != nil {
			return err
		}
	}
	return p.finishDML(m, s.Assert, s.Return)
}

// conflict plans the clause ON CONFLICT of an INSERT.
func (p *planner) conflict(s *tree.Conflict) (*Conflict, error) {
	c := &Conflict{Key: s.Key, Index: s.Index, Update: s.Update}
	at := slots{}
	if s.Old != nil {
		c.Old = s.Old.Columns
		for i, col := range s.Old.Out {
			at[col.ID] = i
		}
	}
	if s.New != nil {
		c.New = s.New.Columns
		for i, col := range s.New.Out {
			at[col.ID] = len(c.Old) + i
		}
	}
	for _, a := range s.Set {
		c.Columns = append(c.Columns, a.Column)
		p.findWithsIn(a.Value)
		e, err := p.optional(p.fold(a.Value), at)
		if err != nil {
			return nil, err
		}
		c.Set = append(c.Set, e)
	}
	p.findWithsIn(s.Where)
	var err error
	c.Where, err = p.optional(p.fold(s.Where), at)
	return c, err
}

// finishDML plans the parts that every kind of DML can have: the assertion on the number of rows
// (ASSERT_ROWS_MODIFIED), and THEN RETURN.
func (p *planner) finishDML(m *DML, assert tree.Expr, r *tree.Returning) error {
	p.plan.Kind, p.plan.Root = m.Kind, m
	var err error
	if m.Assert, err = p.optional(p.fold(assert), slots{}); err != nil || r == nil {
		return err
	}
	at := slots{}
	columns, out := returned(r)
	for i, c := range out {
		at[c.ID] = i
	}
	ret := &Returning{Columns: columns, Action: r.Action}
	for i, e := range r.Exprs {
		if i == r.Action {
			ret.Exprs = append(ret.Exprs, nil)
			continue
		}
		p.findWithsIn(e)
		x, err := p.scalar(p.fold(e), at)
		if err != nil {
			return err
		}
		ret.Exprs = append(ret.Exprs, x)
	}
	for _, o := range r.Output {
		p.plan.Columns = append(p.plan.Columns, Column{Name: o.Name, Type: o.Col.Type})
	}
	m.Return = ret
	return nil
}

// returned returns the columns of the changed table that THEN RETURN refers to, and the corresponding output
// columns of the scan.
func returned(r *tree.Returning) (columns []*schema.Column, out []tree.Col) {
	refs := refsOf(r.Exprs...)
	for i, c := range r.Scan.Out {
		if refs[c.ID] {
			columns = append(columns, r.Scan.Columns[i])
			out = append(out, c)
		}
	}
	return columns, out
}

func (p *planner) update(s *tree.Update) error {
	p.statementHints(s.Hints)
	p.findWithsIn(s.Where)
	m := &DML{Kind: Update, Table: s.Table}
	scan := p.lowerTable(s.Scan)
	scan.exclusive = true
	key := p.keyColumns(scan)
	scan.changed = p.options.Batch
	for _, a := range s.Set {
		scan.sets = append(scan.sets, a.Column)
	}
	var in relation = scan
	if s.From != nil {
		p.findWiths(s.From, false)
		from, err := p.lower(s.From)
		if err != nil {
			return err
		}
		m.Distinct = true
		in = &joinRel{kind: InnerJoin, left: scan, right: from}
	}
	in, err := p.filter(in, p.conjuncts(s.Where))
	if err != nil {
		return err
	}
	out := key
	var values []tree.Computed
	for _, a := range s.Set {
		m.Columns = append(m.Columns, a.Column)
		m.Default = append(m.Default, a.Value == nil)
		col := p.newCol(a.Column.Name, a.Column.Type)
		out = append(out, col)
		e := a.Value
		if e == nil {
			e = &tree.Literal{T: a.Column.Type, Value: value.Null(a.Column.Type.Kind)}
		}
		p.findWithsIn(e)
		values = append(values, tree.Computed{Col: col, Expr: p.fold(e)})
	}
	if m.Input, err = p.buildExactly(&computeRel{in: in, exprs: values}, out); err != nil {
		return err
	}
	return p.finishDML(m, s.Assert, s.Return)
}

// keyColumns returns the scan's output columns for the primary key. It adds to the scan the key columns that the
// scan lacks.
func (p *planner) keyColumns(s *scanRel) []tree.Col {
	var key []tree.Col
	for _, part := range s.table.Key {
		key = append(key, p.columnOf(s, part.Column))
	}
	return key
}

// columnOf returns the scan's output column for column c of the table. If the scan does not have the column,
// columnOf adds it.
func (p *planner) columnOf(s *scanRel, c *schema.Column) tree.Col {
	if i := s.place(c); i >= 0 {
		return s.out[i]
	}
	col := p.newCol(c.Name, c.Type)
	s.columns = concat(s.columns, []*schema.Column{c})
	s.out = concat(s.out, []tree.Col{col})
	return col
}

func (p *planner) delete(s *tree.Delete) error {
	p.statementHints(s.Hints)
	p.findWithsIn(s.Where)
	m := &DML{Kind: Delete, Table: s.Table}
	scan := p.lowerTable(s.Scan)
	scan.exclusive, scan.changed = true, p.options.Batch
	out := p.keyColumns(scan)
	if s.Return != nil {
		columns, _ := returned(s.Return)
		for _, c := range columns {
			out = append(out, p.columnOf(scan, c))
		}
	}
	in, err := p.filter(scan, p.conjuncts(s.Where))
	if err != nil {
		return err
	}
	if m.Input, err = p.buildExactly(in, out); err != nil {
		return err
	}
	return p.finishDML(m, s.Assert, s.Return)
}

package plan

import (
	"errors"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// Build plans a resolved statement for the tables of a catalog.
func Build(s tree.Statement, catalog *schema.Catalog, options Options) (*Plan, error) {
	p := newPlanner(options)
	p.catalog = catalog
	var err error
	switch s := s.(type) {
	case *tree.Query:
		err = p.query(s)
	case *tree.Insert:
		err = p.insert(s)
	case *tree.Update:
		err = p.update(s)
	case *tree.Delete:
		err = p.delete(s)
	default:
		err = usererror.UnsupportedQueryShape()
	}
	if err != nil {
		return nil, err
	}
	if !Independent(p.plan.Root) {
		return nil, errors.New("plan refers to rows outside of it")
	}
	return p.plan, nil
}

func (p *planner) query(q *tree.Query) error {
	p.statementHints(q.Hints)
	p.findWiths(q.Scan, false)
	r, err := p.lower(q.Scan)
	if err != nil {
		return err
	}
	out := make([]tree.Col, len(q.Output))
	for i, o := range q.Output {
		out[i] = o.Col
		p.plan.Columns = append(p.plan.Columns, Column{Name: o.Name, Type: o.Col.Type})
	}
	p.plan.Kind = Query
	if p.plan.Root, err = p.buildExactly(r, out); err != nil {
		return err
	}
	if _, hinted := q.Hints["LOCK_SCANNED_RANGES"]; hinted && p.plan.ForUpdate {
		return usererror.ForUpdateWithHint()
	}
	p.plan.Read = p.keyRead(p.plan.Root)
	return nil
}

func (p *planner) statementHints(h tree.Hints) {
	p.hints = h
	if e, ok := h["LOCK_SCANNED_RANGES"]; ok {
		if text, ok := hintText(e); ok && (text == "exclusive" || text == "EXCLUSIVE") {
			p.exclusive = true
		}
	}
}

// RowExpr is an expression that belongs to the definition of a table and not to a statement: a DEFAULT, a generated
// column or a CHECK constraint. It is computed over one row of the table.
type RowExpr struct {
	Expr      Expr
	Registers int
}

// ColumnExpr plans an expression over one row with n columns. The Col.ID of a column in e is the index (0 to n-1)
// of the column in that row.
func ColumnExpr(e tree.Expr, n int) (*RowExpr, error) {
	p := newPlanner(Options{})
	at := slots{}
	for i := range n {
		at[i] = i
	}
	x, err := p.scalar(p.fold(e), at)
	if err != nil {
		return nil, err
	}
	return &RowExpr{Expr: x, Registers: p.plan.Registers}, nil
}

package analyze

import (
	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// target returns the scan of the table that a statement changes, and the table's columns by the column ids of the
// scan.
func (w *walker) target(n *googlesql.ResolvedTableScan) (*tree.TableScan, map[int]*schema.Column) {
	if v := w.view(n); v != nil {
		refuse(usererror.ViewWrite(v.FullName()))
	}
	scan := w.tableScan(n)
	if scan.Table.Rows != nil {
		refuse(usererror.SystemTableWrite(scan.Table.FullName()))
	}
	columns := make(map[int]*schema.Column, len(scan.Out))
	for i, c := range scan.Out {
		columns[c.ID] = scan.Columns[i]
	}
	return scan, columns
}

var insertModes = map[googlesql.ResolvedInsertStmtEnums_InsertMode]tree.InsertMode{
	googlesql.ResolvedInsertStmtEnums_InsertModeOrError:  tree.InsertOrFail,
	googlesql.ResolvedInsertStmtEnums_InsertModeOrIgnore: tree.InsertOrIgnore,
	googlesql.ResolvedInsertStmtEnums_InsertModeOrUpdate: tree.InsertOrUpdate,
}

func (w *walker) insert(n *googlesql.ResolvedInsertStmt) tree.Statement {
	scan, columns := w.target(get(n.TableScan()))
	mode, ok := insertModes[get(n.InsertMode())]
	if !ok {
		unsupported("INSERT OR REPLACE")
	}
	stmt := &tree.Insert{Table: scan.Table, Mode: mode, Hints: w.hints(get(n.HintList()), statementHints)}
	for _, c := range w.cols(get(n.InsertColumnList())) {
		stmt.Columns = append(stmt.Columns, columns[c.ID])
	}
	if query := get(n.Query()); query != nil {
		stmt.Query = &tree.Query{Scan: w.scan(query)}
		for i, c := range w.cols(get(n.QueryOutputColumnList())) {
			stmt.Query.Output = append(stmt.Query.Output, tree.Output{Name: stmt.Columns[i].Name, Col: c})
		}
	}
	for _, row := range listed(w.lib.engine, n.RowList, n.RowListSize, n.RowList2) {
		var values []tree.Expr
		for _, v := range get(row.ValueList()) {
			values = append(values, w.dmlValue(v))
		}
		stmt.Rows = append(stmt.Rows, values)
	}
	stmt.Assert = w.assert(get(n.AssertRowsModified()))
	stmt.Conflict = w.conflict(get(n.OnConflictClause()), scan, columns)
	stmt.Return = w.returning(get(n.Returning()), scan)
	return stmt
}

// pendingCommitTimestamp is the name of the function that stands for the commit timestamp. A call is accepted only as
// the whole value of a column in INSERT or UPDATE, not as a part of an expression.
const pendingCommitTimestamp = "pending_commit_timestamp"

// dmlValue translates a value of VALUES or SET. It returns nil for the keyword DEFAULT.
func (w *walker) dmlValue(n *googlesql.ResolvedDMLValue) tree.Expr {
	switch e := get(n.Value()).(type) {
	case *googlesql.ResolvedDMLDefault:
		return nil
	case *googlesql.ResolvedFunctionCall:
		if f := w.function(e.ResolvedFunctionCallBase, nil, value.TimestampType); f.Name == pendingCommitTimestamp {
			return &tree.Call{Func: f}
		}
		return w.expr(e)
	default:
		return w.expr(e)
	}
}

func (w *walker) assert(n *googlesql.ResolvedAssertRowsModified) tree.Expr {
	if n == nil {
		return nil
	}
	return w.expr(get(n.Rows()))
}

func (w *walker) conflict(n *googlesql.ResolvedOnConflictClause, old *tree.TableScan, columns map[int]*schema.Column) *tree.Conflict {
	if n == nil {
		return nil
	}
	c := &tree.Conflict{Update: get(n.ConflictAction()) == googlesql.ResolvedOnConflictClauseEnums_ConflictActionUpdate, Old: old}
	w.conflictTarget(c, n, columns)
	if scan := get(n.InsertRowScan()); scan != nil {
		c.New = w.tableScan(scan)
	}
	c.Set = w.assignments(get(n.UpdateItemList()), columns)
	c.Where = w.optional(get(n.UpdateWhereExpression()))
	return c
}

// conflictTarget stores in c which primary key or unique index ON CONFLICT names.
func (w *walker) conflictTarget(c *tree.Conflict, n *googlesql.ResolvedOnConflictClause, columns map[int]*schema.Column) {
	t := c.Old.Table
	name := get(n.UniqueConstraintName())
	cols := w.cols(get(n.ConflictTargetColumnList()))
	if name == "" && len(cols) == 0 {
		return
	}
	if name != "" {
		c.Index = t.Index(name)
	} else {
		named := make([]*schema.Column, len(cols))
		for i, col := range cols {
			named[i] = columns[col.ID]
		}
		c.Key = sameColumns(t.Key, named)
		for _, index := range t.Indexes {
			if !c.Key && c.Index == nil && index.Unique && !index.NullFiltered && sameColumns(index.Key, named) {
				c.Index = index
			}
		}
	}
	if !c.Key && (c.Index == nil || !c.Index.Unique || c.Index.NullFiltered) {
		refuse(usererror.NoConflictTarget(t.FullName()))
	}
}

// sameColumns reports whether key consists of exactly the given columns, in any order.
func sameColumns(key []schema.KeyPart, columns []*schema.Column) bool {
	if len(key) != len(columns) {
		return false
	}
	for _, part := range key {
		found := false
		for _, c := range columns {
			found = found || c == part.Column
		}
		if !found {
			return false
		}
	}
	return true
}

func (w *walker) assignments(list []*googlesql.ResolvedUpdateItem, columns map[int]*schema.Column) []tree.Assignment {
	var set []tree.Assignment
	for _, item := range list {
		target, to := get(item.Target()), get(item.SetValue())
		if field, ok := target.(*googlesql.ResolvedGetProtoField); ok && to != nil {
			set = w.fieldAssignment(set, field, to, columns)
			continue
		}
		ref, ok := target.(*googlesql.ResolvedColumnRef)
		if !ok || to == nil {
			unsupported("UPDATE of a part of a column")
		}
		column := columns[w.col(get(ref.Column())).ID]
		if column.KeyOrdinal >= 0 {
			refuse(usererror.UpdateKeyColumn(column.Name))
		}
		set = append(set, tree.Assignment{Column: column, Value: w.dmlValue(to)})
	}
	return set
}

func (w *walker) update(n *googlesql.ResolvedUpdateStmt) tree.Statement {
	scan, columns := w.target(get(n.TableScan()))
	stmt := &tree.Update{Table: scan.Table, Scan: scan, Hints: w.hints(get(n.HintList()), statementHints)}
	if from := get(n.FromScan()); from != nil {
		stmt.From = w.scan(from)
	}
	stmt.Where = w.optional(get(n.WhereExpr()))
	stmt.Set = w.assignments(get(n.UpdateItemList()), columns)
	stmt.Assert = w.assert(get(n.AssertRowsModified()))
	stmt.Return = w.returning(get(n.Returning()), scan)
	return stmt
}

func (w *walker) delete(n *googlesql.ResolvedDeleteStmt) tree.Statement {
	scan, _ := w.target(get(n.TableScan()))
	return &tree.Delete{
		Table:  scan.Table,
		Scan:   scan,
		Where:  w.optional(get(n.WhereExpr())),
		Assert: w.assert(get(n.AssertRowsModified())),
		Return: w.returning(get(n.Returning()), scan),
		Hints:  w.hints(get(n.HintList()), statementHints),
	}
}

func (w *walker) returning(n *googlesql.ResolvedReturningClause, scan *tree.TableScan) *tree.Returning {
	if n == nil {
		return nil
	}
	computed := map[int]tree.Expr{}
	for _, c := range w.computed(get(n.ExprList())) {
		computed[c.Col.ID] = c.Expr
	}
	r := &tree.Returning{Scan: scan, Output: w.output(get(n.OutputColumnList())), Action: -1}
	for _, o := range r.Output {
		e, ok := computed[o.Col.ID]
		if !ok {
			e = &tree.Ref{Col: o.Col}
		}
		r.Exprs = append(r.Exprs, e)
	}
	if get(n.ActionColumn()) != nil {
		r.Action = len(r.Output) - 1
		r.Exprs[r.Action] = nil
	}
	return r
}

package analyze

import (
	"context"
	"slices"
	"strings"

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// The library knows a view as a table. Where a statement scans that table, the walker analyzes SELECT columns FROM
// (the view's query) instead, with only the columns that the statement uses. So the statement's tree is the same as
// if the statement contained the view's query.

// view returns the view that a scan of the library reads; nil if it reads a table.
func (w *walker) view(n *googlesql.ResolvedTableScan) *schema.View {
	if id := get(get(n.Table()).GetSerializationId()); id < 0 {
		return w.lib.views[-1-id]
	}
	return nil
}

func (w *walker) viewScan(n *googlesql.ResolvedTableScan, v *schema.View) tree.Scan {
	if hints := w.hints(get(n.HintList()), tableHints); hints["FORCE_INDEX"] != nil {
		refuse(usererror.ViewForceIndex(v.FullName()))
	}
	lock := get(n.LockMode()) != nil
	out := get(n.ColumnList())
	w.meet(v)
	if w.definition != nil {
		w.definition.use(schema.Use{ID: v.ID})
		w.definition.locks(lock)
		return &tree.ViewScan{View: v, Input: &tree.SingleRow{}, Out: w.cols(out)}
	}
	w.counts.expansion()
	var columns []string
	for _, i := range get(n.ColumnIndexList()) {
		columns = append(columns, v.Columns[i].Name)
	}
	query := w.expand(v, columns, lock)
	scan := &tree.ViewScan{View: v, Input: query.Scan}
	for i, c := range out {
		col := query.Output[i].Col
		w.columns[get(c.ColumnId())] = col
		scan.Out = append(scan.Out, col)
	}
	return scan
}

// meet records o as an object that the statement depends on.
func (w *walker) meet(o schema.Object) {
	if !slices.Contains(w.objects, o) {
		w.objects = append(w.objects, o)
	}
}

// expand analyzes the query of a view for the given columns. The parameter lock says that the statement locks the
// view's rows by FOR UPDATE.
func (w *walker) expand(v *schema.View, columns []string, lock bool) (query *tree.Query) {
	list := "1"
	if len(columns) > 0 {
		for i, c := range columns {
			columns[i] = quoted(c)
		}
		list = strings.Join(columns, ", ")
	}
	text := "SELECT " + list + " FROM (\n" + v.SQL + "\n)"
	if lock {
		text += " FOR UPDATE"
	}
	inner := *w
	inner.literals, inner.nested = nil, true
	inner.lib.addNamed(inner.lib.of.namesIn(v.SQL))
	inner.resolve(w.lib, text, func(n googlesql.ResolvedStatementNode) {
		query = inner.queryStmt(n.(*googlesql.ResolvedQueryStmt))
	})
	query.Scan = unsorted(query.Scan)
	return query
}

// unsorted removes the sort at the end of a scan, since the order of a view's query has no effect on the statement
// that reads the view.
func unsorted(s tree.Scan) tree.Scan {
	switch s := s.(type) {
	case *tree.Project:
		s.Input = unsorted(s.Input)
	case *tree.With:
		s.Body = unsorted(s.Body)
	case *tree.OrderBy:
		return unsorted(s.Input)
	}
	return s
}

// quoted returns a name in back quotes.
func quoted(name string) string {
	return "`" + strings.NewReplacer(`\`, `\\`, "`", "\\`").Replace(name) + "`"
}

// weightOf returns the total weight of the queries of these views and of the views that they read.
func (a *Analyzer) weightOf(views []*schema.View) (weight int) {
	visited := map[*schema.View]bool{}
	for len(views) > 0 {
		v := views[0]
		views = views[1:]
		if visited[v] {
			continue
		}
		visited[v] = true
		own, err := guard(v.SQL, a.columns)
		if err != nil {
			// The query was accepted when the view was created, so it is not refused now. Only its weight is unknown.
			own = slowWeight
		}
		weight += own
		views = append(views, a.namesIn(v.SQL).views...)
	}
	return weight
}

// viewPrefix precedes the query of a view when the query is analyzed. The query begins on line 2.
const viewPrefix = "CREATE VIEW `view` SQL SECURITY INVOKER AS\n"

// View analyzes the query of a view. It returns the view's columns and the objects that the query uses. View fails with
// ctx's error if ctx ends while the query waits until it may be analyzed, or while a heavy query is analyzed.
func (a *Analyzer) View(ctx context.Context, sql string) (columns []schema.ViewColumn, uses []schema.Use, err error) {
	weight, err := guard(sql, a.columns)
	if err != nil {
		return nil, nil, pointed(sql, err)
	}
	w := &walker{catalog: a.catalog}
	w.declare(nil)
	err = engines.run(ctx, weight, a.memory, func(e *engine) {
		l := newLibrary(e, a, a.catalog.ProtoBundle())
		defer l.free()
		l.addNamed(a.namesIn(sql))
		w.begin()
		w.definition = &definition{}
		w.resolve(l, viewPrefix+sql, func(n googlesql.ResolvedStatementNode) {
			columns = w.viewColumns(n.(*googlesql.ResolvedCreateViewStmt))
		})
		uses = w.definition.uses
	})
	if err != nil {
		return nil, nil, pointed(sql, firstLineUp(err))
	}
	return columns, uses, nil
}

// viewColumns returns the columns of a view. It walks through the view's query as through a statement, and so refuses
// the same features of SQL.
func (w *walker) viewColumns(n *googlesql.ResolvedCreateViewStmt) (columns []schema.ViewColumn) {
	if get(n.IsValueTable()) {
		unsupported("A view whose rows are values")
	}
	w.scan(get(n.Query()))
	for _, o := range w.output(get(n.OutputColumnList())) {
		checkOutput(o.Col.Type)
		columns = append(columns, schema.ViewColumn{Name: o.Name, Type: o.Col.Type})
	}
	return columns
}

// definition collects the objects that the text of a view or function names. For a statement the *definition is nil,
// and its methods use and reads do nothing.
type definition struct {
	uses     []schema.Use
	unstable string // the first called function that may give different values for the same arguments; "" if none
}

// use adds u to d.uses. If d.uses has an entry for the same object, use merges u into it.
func (d *definition) use(u schema.Use) {
	if d == nil {
		return
	}
	at := slices.IndexFunc(d.uses, func(have schema.Use) bool { return have.ID == u.ID })
	if at < 0 {
		d.uses = append(d.uses, schema.Use{ID: u.ID})
		at = len(d.uses) - 1
	}
	into := &d.uses[at]
	for _, c := range u.Columns {
		if !slices.Contains(into.Columns, c) {
			into.Columns = append(into.Columns, c)
		}
	}
	for _, i := range u.Indexes {
		if !slices.Contains(into.Indexes, i) {
			into.Indexes = append(into.Indexes, i)
		}
	}
}

// reads adds the table, the columns and the forced index of a scan to d.uses.
func (d *definition) reads(s *tree.TableScan) {
	if d == nil {
		return
	}
	d.locks(s.ForUpdate)
	u := schema.Use{ID: s.Table.ID}
	for _, c := range s.Columns {
		u.Columns = append(u.Columns, c.ID)
	}
	if literal, ok := s.Hints["FORCE_INDEX"].(*tree.Literal); ok {
		if i := s.Table.Index(literal.Value.AsString()); i != nil {
			u.Indexes = append(u.Indexes, i.FullName())
		}
	}
	d.use(u)
}

// locks refuses FOR UPDATE in a definition.
func (d *definition) locks(lock bool) {
	if lock {
		refuse(usererror.LockInDefinition())
	}
}

package analyze

import (
	"strings"

	"github.com/goccy/go-googlesql"

	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

func (w *walker) statement(n googlesql.ResolvedStatementNode) tree.Statement {
	switch n := n.(type) {
	case *googlesql.ResolvedQueryStmt:
		if read := w.changeStreamRead(n); read != nil {
			return read
		}
		return w.queryStmt(n)
	case *googlesql.ResolvedInsertStmt:
		return w.insert(n)
	case *googlesql.ResolvedUpdateStmt:
		return w.update(n)
	case *googlesql.ResolvedDeleteStmt:
		return w.delete(n)
	case *googlesql.ResolvedCallStmt:
		return &tree.Procedure{Name: strings.ToLower(get(get(n.Procedure()).Name())), Args: w.exprs(get(n.ArgumentList()))}
	}
	unsupported("Statement " + get(n.NodeKindString()))
	return nil
}

func (w *walker) queryStmt(n *googlesql.ResolvedQueryStmt) *tree.Query {
	q := &tree.Query{
		Scan:    w.scan(get(n.Query())),
		Output:  w.output(listed(w.lib.engine, n.OutputColumnList, n.OutputColumnListSize, n.OutputColumnList2)),
		AsValue: get(n.IsValueTable()),
		Hints:   w.hints(get(n.HintList()), statementHints),
	}
	for _, o := range q.Output {
		checkOutput(o.Col.Type)
		if o.Col.Type.Kind == value.Array && o.Col.Type.Elem.Kind == value.Struct && isParam(q.Scan, o.Col) {
			refuse(usererror.NullableStructArrayOutput())
		}
	}
	return q
}

// checkOutput refuses a type that a column of a query's result must not have.
func checkOutput(t *value.Type) {
	if t.Kind == value.Struct {
		refuse(usererror.StructOutput())
	}
}

// isParam reports whether a column of the outermost SELECT is nothing but a parameter.
func isParam(s tree.Scan, c tree.Col) bool {
	p, ok := s.(*tree.Project)
	if !ok {
		return false
	}
	for _, e := range p.Exprs {
		if _, param := e.Expr.(*tree.Param); param && e.Col.ID == c.ID {
			return true
		}
	}
	return false
}

func (w *walker) output(list []*googlesql.ResolvedOutputColumn) []tree.Output {
	out := make([]tree.Output, len(list))
	for i, c := range list {
		out[i] = tree.Output{Name: userName(get(c.Name())), Col: w.col(get(c.Column()))}
	}
	return out
}

// userName returns the name that the user sees for a column. The library makes up names that begin with a dollar sign.
// For these userName returns "".
func userName(name string) string {
	if strings.HasPrefix(name, "$") {
		return ""
	}
	return name
}

package schema

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/cloudspannerecosystem/memefish"
	"github.com/cloudspannerecosystem/memefish/ast"
	"github.com/cloudspannerecosystem/memefish/token"

	"github.com/crowfoot-db/crowfoot/schema/syntax"
	"github.com/crowfoot-db/crowfoot/value"
)

// wordCompiler replaces the SQL compiler in tests. It finds the columns that an expression reads by their names: each
// word of the expression that is a column's name counts as a read of that column. An expression with a word that begins
// with "missing" does not compile.
type wordCompiler struct{}

func (wordCompiler) CompileExpr(catalog *Catalog, t *Table, sql string, want *value.Type) (*Expr, error) {
	if _, err := memefish.ParseExpr("", sql); err != nil {
		return nil, fmt.Errorf("Syntax error")
	}
	e := &Expr{SQL: sql, Eval: func([]value.Value) (value.Value, error) { return value.Null(want.Kind), nil }}
	lexer := syntax.NewLexer(sql)
	used := map[*Column]bool{}
	for lexer.Next() == nil && lexer.Token.Kind != token.TokenEOF {
		if lexer.Token.Kind != token.TokenIdent {
			continue
		}
		if f := catalog.Function(lexer.Token.AsString); f != nil {
			e.Functions = append(e.Functions, f)
		}
		c := t.Column(lexer.Token.AsString)
		if c != nil && !used[c] {
			used[c] = true
			e.Uses = append(e.Uses, c)
		}
		if strings.HasPrefix(lexer.Token.AsString, "missing") {
			return nil, fmt.Errorf("Unrecognized name: %s", lexer.Token.AsString)
		}
	}
	return e, nil
}

// Now returns the same time at every call.
func (wordCompiler) Now() time.Time { return time.Date(2026, 8, 1, 12, 0, 0, 1, time.UTC) }

func (wordCompiler) CompileView(c *Catalog, sql string) (columns []ViewColumn, uses []Use, err error) {
	query, err := memefish.ParseQuery("", sql)
	if err != nil {
		return nil, nil, fmt.Errorf("Syntax error")
	}
	selected, ok := query.Query.(*ast.Select)
	if !ok {
		return nil, nil, fmt.Errorf("not a SELECT")
	}
	w := viewWords{catalog: c}
	if selected.From != nil {
		if err := w.source(selected.From.Source); err != nil {
			return nil, nil, err
		}
	}
	for _, item := range selected.Results {
		column, err := w.item(item)
		if err != nil {
			return nil, nil, err
		}
		columns = append(columns, column)
	}
	return columns, w.uses, nil
}

// viewWords finds the tables and views that the query of a view names. It understands only SELECT t.a, t.b AS c FROM t,
// also with joins. A selected column keeps the type that it has in its table or view; any other selected expression has
// the type INT64.
type viewWords struct {
	catalog *Catalog
	uses    []Use
}

func (w *viewWords) source(s ast.TableExpr) error {
	if join, ok := s.(*ast.Join); ok {
		if err := w.source(join.Left); err != nil {
			return err
		}
		return w.source(join.Right)
	}
	name, ok := s.(*ast.TableName)
	if !ok {
		return fmt.Errorf("not a table")
	}
	if v := w.catalog.View(name.Table.Name); v != nil {
		w.uses = append(w.uses, Use{ID: v.ID})
		return nil
	}
	t := w.catalog.TableOrSynonym(name.Table.Name)
	if t == nil {
		return fmt.Errorf("Table not found: %s", name.Table.Name)
	}
	u := Use{ID: t.ID}
	if name.Hint != nil {
		u.Indexes = []string{name.Hint.Records[0].Value.SQL()}
	}
	w.uses = append(w.uses, u)
	return nil
}

func (w *viewWords) item(item ast.SelectItem) (c ViewColumn, err error) {
	c.Type = value.Int64Type
	e := item
	if alias, ok := item.(*ast.Alias); ok {
		c.Name = alias.As.Alias.Name
		e = &ast.ExprSelectItem{Expr: alias.Expr}
	}
	x, ok := e.(*ast.ExprSelectItem)
	if !ok {
		return c, fmt.Errorf("not an expression")
	}
	path, ok := x.Expr.(*ast.Path)
	if !ok {
		return c, nil
	}
	last := path.Idents[1].Name
	c.Name = cmp.Or(c.Name, last)
	c.Type, err = w.column(path.Idents[0].Name, last)
	return c, err
}

// column returns the type of a column of a table or view. If it is a column of a table, column also adds it to the Use of
// that table.
func (w *viewWords) column(of, name string) (*value.Type, error) {
	if v := w.catalog.View(of); v != nil {
		for _, c := range v.Columns {
			if sameName(c.Name, name) {
				return c.Type, nil
			}
		}
		return nil, fmt.Errorf("Name %s not found inside %s", name, of)
	}
	t := w.catalog.TableOrSynonym(of)
	c := t.Column(name)
	if c == nil {
		return nil, fmt.Errorf("Name %s not found inside %s", name, of)
	}
	for i := range w.uses {
		if w.uses[i].ID == t.ID {
			w.uses[i].Columns = append(w.uses[i].Columns, c.ID)
		}
	}
	return c.Type, nil
}

func (wordCompiler) NextValue(string, *Generator) func([]value.Value) (value.Value, error) {
	return func([]value.Value) (value.Value, error) { return value.OfInt64(1), nil }
}

// CompileFunction reports each word that names a table, a view or a function as a Use.
func (wordCompiler) CompileFunction(c *Catalog, f *Function) (s Signature, uses []Use, err error) {
	s.Result.Type = value.Int64Type
	lexer := syntax.NewLexer(f.SQL)
	for lexer.Next() == nil && lexer.Token.Kind != token.TokenEOF {
		switch name := lexer.Token.AsString; {
		case strings.HasPrefix(name, "missing"):
			return s, nil, fmt.Errorf("Unrecognized name: %s", name)
		case name == "RAND":
			s.Unstable = "rand"
		case c.Table(name) != nil:
			uses = append(uses, Use{ID: c.Table(name).ID})
		case c.View(name) != nil:
			uses = append(uses, Use{ID: c.View(name).ID})
		case c.Function(name) != nil:
			uses = append(uses, Use{ID: c.Function(name).ID})
			s.Unstable = cmp.Or(s.Unstable, c.Function(name).Unstable)
		}
	}
	return s, uses, nil
}

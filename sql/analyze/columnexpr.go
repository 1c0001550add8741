package analyze

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// The expression e of a DEFAULT, a generated column or a CHECK is analyzed within the statement
// UPDATE expr SET value = (e) WHERE TRUE, because only in an assignment does GoogleSQL convert an expression to a given
// type. The table expr exists only for this analysis. It has columns of the real table and one more column, value.
// The expression begins on line 2 of the statement. exprSuffix begins with a new line, so that it closes the
// assignment even if the expression ends in a comment.
const (
	exprPrefix = "UPDATE `expr` SET `%s` = (\n"
	exprSuffix = "\n) WHERE TRUE"
)

// Expr analyzes the expression of a DEFAULT, a generated column or a CHECK over the columns of t, a table of the
// catalog. It converts the expression to the type want as an assignment would. The result uses holds the columns that
// e reads: a Ref to uses[i] has the Col.ID i. The result functions holds the user-defined functions that e calls. Expr
// fails with ctx's error if ctx ends while the expression waits for its turn to be analyzed, or during the analysis if
// the expression is a heavy one (see pool).
func Expr(ctx context.Context, catalog *schema.Catalog, t *schema.Table, sql string, want *value.Type) (e tree.Expr, uses []*schema.Column, functions []*schema.Function, err error) {
	weight, err := guard(sql, func(string) int { return 0 })
	if err != nil {
		return nil, nil, nil, pointed(sql, err)
	}
	named := namedColumns(t, sql)
	e, uses, functions, err = exprOver(ctx, weight, catalog, t, named, sql, want)
	// If GoogleSQL refuses the expression, it gets all columns of t, so that its message can suggest one of them.
	if _, user := usererror.As(err); user && len(named) < len(t.Columns) {
		e, uses, functions, err = exprOver(ctx, weight, catalog, t, t.Columns, sql, want)
	}
	return e, uses, functions, err
}

// namedColumns returns the columns of t whose names occur in a text. Expr gives only these columns to GoogleSQL, to
// save time: GoogleSQL takes some microseconds for each column, and a table may have a thousand columns, each with an
// expression.
func namedColumns(t *schema.Table, sql string) (columns []*schema.Column) {
	names := map[string]bool{}
	eachName(sql, func(_, name, _ string) { names[strings.ToLower(name)] = true })
	for _, c := range t.Columns {
		if names[strings.ToLower(c.Name)] {
			columns = append(columns, c)
		}
	}
	return columns
}

// exprOver does what Expr does, but gives GoogleSQL only the given columns of t.
func exprOver(ctx context.Context, weight int, catalog *schema.Catalog, t *schema.Table, columns []*schema.Column, sql string, want *value.Type) (e tree.Expr, uses []*schema.Column, functions []*schema.Function, err error) {
	w := &walker{catalog: catalog}
	w.declare(nil)
	over, target := exprTable(columns, want)
	err = engines.run(ctx, weight, nil, func(in *engine) {
		a := New(catalog, nil)
		l := newLibrary(in, a, t.ProtoBundle)
		defer l.free()
		l.addSequences(catalog.SequencesIn(sql))
		l.add([]*schema.Table{over})
		l.addTypes(typesIn(sql, t.ProtoBundle))
		l.addFunctions(a.namesIn(sql).functions)
		stmt := w.analyze(l, strings.Replace(exprPrefix, "%s", target, 1)+sql+exprSuffix)
		e, uses = columnExpr(stmt)
		functions = functionsOf(w.objects)
	})
	if err != nil {
		return nil, nil, nil, pointed(sql, firstLineUp(err))
	}
	return e, uses, functions, nil
}

// exprTable makes a table with the given columns and one more column of the type want. It returns the table and, in
// target, the name of that column.
func exprTable(columns []*schema.Column, want *value.Type) (over *schema.Table, target string) {
	over = &schema.Table{Name: "expr", Columns: slices.Clone(columns)}
	target = "value"
	for over.Column(target) != nil {
		target += "_"
	}
	over.Columns = append(over.Columns, &schema.Column{Name: target, Type: want, KeyOrdinal: -1})
	return over, target
}

// columnExpr takes the expression out of the UPDATE statement that was made for it.
func columnExpr(stmt tree.Statement) (tree.Expr, []*schema.Column) {
	update, ok := stmt.(*tree.Update)
	if !ok || len(update.Set) != 1 || !isTrue(update.Where) || update.From != nil || update.Return != nil || update.Assert != nil || update.Set[0].Value == nil {
		refuse(usererror.InvalidSQL("Syntax error: Expected one expression [at 1:1]"))
	}
	columns := make(map[int]*schema.Column, len(update.Scan.Out))
	for i, c := range update.Scan.Out {
		columns[c.ID] = update.Scan.Columns[i]
	}
	e := update.Set[0].Value
	return e, number(e, columns)
}

// isTrue reports whether e is the literal TRUE, which is the condition of exprSuffix.
func isTrue(e tree.Expr) bool {
	literal, ok := e.(*tree.Literal)
	return ok && literal.T.Kind == value.Bool && literal.Value.AsBool()
}

// number returns those columns of the table that the expression e reads. In each Ref to such a column it sets the column's ID to the
// index of the column in uses. These IDs are lower than those of the columns that e itself defines, such as the
// parameters of a lambda, since GoogleSQL numbers those after all columns of the table.
func number(e tree.Expr, columns map[int]*schema.Column) (uses []*schema.Column) {
	places := map[int]int{}
	tree.Walk(e, func(e tree.Expr) {
		switch e := e.(type) {
		case *tree.Subquery:
			refuse(usererror.ColumnExprSubquery())
		case *tree.Ref:
			c := columns[e.Col.ID]
			if c == nil {
				return
			}
			if _, ok := places[e.Col.ID]; !ok {
				places[e.Col.ID] = len(uses)
				uses = append(uses, c)
			}
			e.Col.ID = places[e.Col.ID]
		}
	})
	return uses
}

// assigned matches GoogleSQL's error for an expression whose type cannot be converted to that of the assigned column.
var assigned = regexp.MustCompile(`^Value of type (.*) cannot be assigned to \w+, which has type (.*?)( \[at .*)?$`)

// firstLineUp changes the positions in an error from positions in the analyzed statement to positions in the user's
// text, which begins on line 2 of that statement. It also rewords the error that assigned matches.
func firstLineUp(err error) error {
	user := (*usererror.Error)(nil)
	if !errors.As(err, &user) {
		return err
	}
	text := place.ReplaceAllStringFunc(user.Message, func(at string) string {
		m := place.FindStringSubmatch(at)
		line, _ := strconv.Atoi(m[1])
		if line == 1 {
			return "" // the position is before the user's text
		}
		return " [at " + strconv.Itoa(line-1) + ":" + m[2] + "]"
	})
	moved := *user
	moved.Message = assigned.ReplaceAllString(text, "Expected type $2; found $1$3")
	return &moved
}

package analyze

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// systemTable takes the place of the tables of INFORMATION_SCHEMA in these tests.
var systemTable = &schema.Table{
	Schema:  "INFORMATION_SCHEMA",
	Name:    "TABLES",
	Columns: []*schema.Column{{ID: 1, Name: "TABLE_NAME", Type: value.StringType, KeyOrdinal: -1}},
	Rows:    func(context.Context, map[string]map[string]bool) ([][]value.Value, error) { return nil, nil },
}

// TestGolden runs the scripts in testdata. Directives:
//
//	ddl            applies DDL statements, each with a semicolon at the end of its last line
//	analyze        analyzes a statement; prints its tree and the types inferred for parameters
//	   params=(a:INT64, b)  the request's parameters; b has no declared type
//	   unbound              accepts parameters that params does not have
//	   needs                prints the privileges that a role needs for the statement, instead of the tree
//	kind           prints the kind of the statement in each line
//	normalize      prints each line with parameters in place of literals, and the types and values of the literals
//	guard          prints the sizes at which the guard refuses the statements of guard_test.go
//	expr table=t type=T     analyzes an expression over the columns of t, as a value of type T
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		catalog := schema.NewCatalog()
		a := New(catalog, nil, systemTable)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "ddl":
				var err error
				if catalog, err = applyAll(catalog, d.Input); err != nil {
					return printError(err)
				}
				a = New(catalog, nil, systemTable)
				return ""
			case "analyze":
				return runAnalyze(t, a, d)
			case "kind":
				return runKind(d.Input)
			case "normalize":
				return runNormalize(a, d.Input)
			case "guard":
				return runGuard()
			case "expr":
				return runExpr(t, catalog, d)
			}
			t.Fatalf("%s: unknown directive %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

func applyAll(c *schema.Catalog, ddl string) (*schema.Catalog, error) {
	for stmt := range strings.SplitSeq(ddl, ";\n") {
		next, _, err := c.Apply(strings.TrimSuffix(strings.TrimSpace(stmt), ";"), anyExpr{})
		if err != nil {
			return nil, err
		}
		c = next
	}
	return c, nil
}

// anyExpr is a Compiler that accepts every expression. These tests do not compute expressions.
type anyExpr struct{}

func (anyExpr) Now() time.Time { return time.Unix(0, 0) }

func (anyExpr) CompileView(c *schema.Catalog, sql string) ([]schema.ViewColumn, []schema.Use, error) {
	return New(c, nil).View(context.Background(), sql)
}

func (anyExpr) CompileFunction(c *schema.Catalog, f *schema.Function) (schema.Signature, []schema.Use, error) {
	return New(c, nil).Function(context.Background(), f)
}

func (anyExpr) CompileExpr(_ *schema.Catalog, _ *schema.Table, sql string, _ *value.Type) (*schema.Expr, error) {
	return &schema.Expr{SQL: sql}, nil
}

func (anyExpr) NextValue(string, *schema.Generator) func([]value.Value) (value.Value, error) {
	return nil
}

func runAnalyze(t *testing.T, a *Analyzer, d *datadriven.TestData) string {
	params := map[string]*value.Type{}
	for _, arg := range d.CmdArgs {
		if arg.Key == "params" {
			for _, p := range arg.Vals {
				name, typ, _ := strings.Cut(p, ":")
				params[name] = parseType(t, typ)
			}
		}
	}
	stmt, found, err := a.Statement(context.Background(), d.Input, params, Options{AllowUnbound: d.HasArg("unbound")})
	if err != nil {
		return printError(err)
	}
	// tree.Needs must not panic for any statement. So the test calls it for each, even if it does not print the needs.
	needs := tree.Needs(stmt, a.catalog)
	if d.HasArg("needs") {
		return needsText(needs)
	}
	var b strings.Builder
	b.WriteString(tree.Print(stmt))
	for _, name := range slices.Sorted(maps.Keys(found.Inferred)) {
		fmt.Fprintf(&b, "@%s is %s\n", name, found.Inferred[name])
	}
	return b.String()
}

// needsText prints a line for each privilege that a role needs. It prints columns by their ids.
func needsText(list []schema.Need) string {
	var b strings.Builder
	for _, n := range list {
		what := fmt.Sprint(n.Columns)
		switch {
		case n.Member != "":
			what = "member of " + n.Member
		case n.AnyColumn:
			what = "any column"
		case len(n.Columns) == 0:
			what = "whole"
		}
		fmt.Fprintf(&b, "%s on %s %s: %s\n", n.Privilege, n.Kind, n.Name, what)
	}
	return b.String()
}

func parseType(t *testing.T, s string) *value.Type {
	s = strings.TrimSpace(s)
	if s == "" {
		return nil
	}
	if elem, ok := strings.CutPrefix(s, "ARRAY<"); ok {
		return value.ArrayOf(parseType(t, strings.TrimSuffix(elem, ">")))
	}
	for k := value.Bool; k <= value.UUID; k++ {
		if k.String() == s {
			return &value.Type{Kind: k}
		}
	}
	t.Fatalf("no type %q", s)
	return nil
}

func printError(err error) string {
	var user *usererror.Error
	if !errors.As(err, &user) {
		return "INTERNAL: " + err.Error() + "\n"
	}
	return fmt.Sprintf("%s: %s\n", user.Code, user.Text())
}

func runKind(input string) string {
	names := map[Kind]string{OtherKind: "other", QueryKind: "query", InsertKind: "insert", UpdateKind: "update", DeleteKind: "delete", CallKind: "call"}
	var b strings.Builder
	for line := range strings.SplitSeq(input, "\n") {
		fmt.Fprintf(&b, "%s\n", names[KindOf(strings.ReplaceAll(line, `\n`, "\n"))])
	}
	return b.String()
}

func runNormalize(a *Analyzer, input string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(input, "\n") {
		sql := strings.ReplaceAll(line, `\n`, "\n")
		s, ok := Normalize(sql)
		if !ok {
			fmt.Fprintf(&b, "none\n")
			continue
		}
		fmt.Fprintf(&b, "%s\n", strings.ReplaceAll(s.Text, "`", ""))
		types, err := a.LiteralTypes(context.Background(), sql, nil, s.Literals)
		if err != nil {
			b.WriteString("  " + printError(err))
			continue
		}
		for i, l := range s.Literals {
			form := "of unusual form"
			if v, ok := l.As(types[i]); ok {
				form = tree.FormatLiteral(&tree.Literal{T: types[i], Value: v})
			}
			fmt.Fprintf(&b, "  @%s is %s: %s\n", l.Param, types[i], form)
		}
	}
	return b.String()
}

func runExpr(t *testing.T, c *schema.Catalog, d *datadriven.TestData) string {
	var table, typ string
	d.ScanArgs(t, "table", &table)
	d.ScanArgs(t, "type", &typ)
	e, uses, _, err := Expr(t.Context(), c, c.Table(table), d.Input, parseType(t, typ))
	if err != nil {
		return printError(err)
	}
	names := make([]string, len(uses))
	for i, u := range uses {
		names[i] = u.Name
	}
	out := fmt.Sprintf("%s uses (%s)\n", tree.Format(e), strings.Join(names, ", "))
	if f, found := tree.Nondeterministic(e); found {
		out += "not deterministic: " + f + "\n"
	}
	return out
}

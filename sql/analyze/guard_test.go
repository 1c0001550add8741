package analyze

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// nested holds functions that make statements. Each statement nests n levels deep or has n elements, in the way that
// the key names.
var nested = map[string]func(n int) string{
	"parentheses":     func(n int) string { return "SELECT " + nest("(", "1", ")", n) },
	"open":            func(n int) string { return "SELECT " + strings.Repeat("(", n) },
	"close":           func(n int) string { return "SELECT " + strings.Repeat(")", n) },
	"brackets":        func(n int) string { return "SELECT ARRAY_LENGTH(" + nest("[STRUCT(", "1", ")]", n) + ")" },
	"braces":          func(n int) string { return "SELECT " + strings.Repeat("{", n) },
	"plus":            func(n int) string { return "SELECT 1" + strings.Repeat("+1", n) },
	"plus in front":   func(n int) string { return "SELECT " + nest("1+(", "1", ")", n) },
	"minus":           func(n int) string { return "SELECT " + strings.Repeat("- ", n) + "@p" },
	"tilde":           func(n int) string { return "SELECT " + strings.Repeat("~", n) + "1" },
	"not":             func(n int) string { return "SELECT " + strings.Repeat("NOT ", n) + "TRUE" },
	"and":             func(n int) string { return "SELECT TRUE" + strings.Repeat(" AND TRUE", n) },
	"and or":          func(n int) string { return "SELECT TRUE" + strings.Repeat(" AND FALSE OR TRUE", n) },
	"or equal":        func(n int) string { return "SELECT @p = 1" + strings.Repeat(" OR @p = 2", n) },
	"equal":           func(n int) string { return "SELECT " + nest("(1=1)=(", "TRUE", ")", n) },
	"concat":          func(n int) string { return "SELECT 'a'" + strings.Repeat("||'b'", n) },
	"literals":        func(n int) string { return "SELECT 'a'" + strings.Repeat(" 'b'", n) },
	"case":            func(n int) string { return "SELECT " + nest("CASE WHEN TRUE THEN ", "1", " END", n) },
	"case else":       func(n int) string { return "SELECT " + nest("CASE WHEN TRUE THEN 1 ELSE ", "1", " END", n) },
	"open case":       func(n int) string { return "SELECT " + strings.Repeat("CASE ", n) },
	"end":             func(n int) string { return "SELECT 1 " + strings.Repeat("END ", n) },
	"calls":           func(n int) string { return "SELECT " + nest("ABS(", "1", ")", n) },
	"if":              func(n int) string { return "SELECT " + nest("IF(TRUE, 1, ", "1", ")", n) },
	"lambdas":         func(n int) string { return "SELECT " + nest("ARRAY_LENGTH(ARRAY_FILTER([1], e -> 1 = ", "1", "))", n) },
	"subqueries":      func(n int) string { return "SELECT " + nest("(SELECT ", "1", ")", n) },
	"subselects":      func(n int) string { return "SELECT 1 FROM " + nest("(SELECT 1 FROM ", "UNNEST([1])", ")", n) },
	"exists":          func(n int) string { return nest("SELECT EXISTS(", "SELECT 1", ")", n) },
	"union":           func(n int) string { return "SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", n) },
	"nested unions":   func(n int) string { return nest("(", "SELECT 1", " UNION ALL SELECT 1)", n) },
	"intersect":       func(n int) string { return "SELECT 1" + strings.Repeat(" INTERSECT ALL SELECT 1", n) },
	"with":            func(n int) string { return nest("WITH a AS (", "SELECT 1", ") SELECT * FROM a", n) },
	"joins":           func(n int) string { return "SELECT 1 FROM T" + strings.Repeat(" JOIN T USING (K)", n) },
	"cross joins":     func(n int) string { return "SELECT 1 FROM UNNEST([1])" + strings.Repeat(" CROSS JOIN (SELECT 1)", n) },
	"comma joins":     func(n int) string { return "SELECT 1 FROM (SELECT 1)" + strings.Repeat(", (SELECT 1)", n) },
	"unnests":         func(n int) string { return "SELECT 1 FROM UNNEST([1])" + strings.Repeat(", UNNEST([1])", n) },
	"pipes":           func(n int) string { return "FROM UNNEST([1])" + strings.Repeat(" |> WHERE TRUE", n) },
	"pipe extends":    func(n int) string { return "FROM UNNEST([1])" + strings.Repeat(" |> EXTEND 1", n) },
	"dots":            func(n int) string { return "SELECT @j" + strings.Repeat(".a", n) },
	"indexes":         func(n int) string { return "SELECT @j" + strings.Repeat("[0]", n) },
	"types":           func(n int) string { return "SELECT CAST(NULL AS " + nest("STRUCT<ARRAY<", "INT64", ">>", n) + ")" },
	"in values":       func(n int) string { return "SELECT 1 IN (0" + strings.Repeat(",1", n) + ")" },
	"columns":         func(n int) string { return "SELECT 1" + strings.Repeat(",1", n) },
	"parameters":      func(n int) string { return "SELECT @p" + strings.Repeat(",@p", n) },
	"rows":            func(n int) string { return "INSERT INTO T (K) VALUES (1)" + strings.Repeat(",(1)", n) },
	"hints":           func(n int) string { return strings.Repeat("@{a=1}", n) + "SELECT 1" },
	"comments":        func(n int) string { return strings.Repeat("/* ( */", n) + "SELECT 1" },
	"quotes":          func(n int) string { return "SELECT " + strings.Repeat(`'\''"'"`, n) },
	"backslashes":     func(n int) string { return "SELECT '" + strings.Repeat(`\`, n) },
	"semicolons":      func(n int) string { return "SELECT 1" + strings.Repeat(";", n) },
	"long name":       func(n int) string { return "SELECT " + strings.Repeat("a", n) },
	"long string":     func(n int) string { return "SELECT '" + strings.Repeat("é", n) + "'" },
	"long number":     func(n int) string { return "SELECT 1." + strings.Repeat("1", n) },
	"json":            func(n int) string { return "SELECT JSON '" + nest("[", "", "]", n) + "'" },
	"between":         func(n int) string { return "SELECT " + nest("(1 BETWEEN 0 AND ", "1", ")", n) },
	"keywords":        func(n int) string { return "SELECT " + strings.Repeat("SELECT ", n) },
	"like any":        func(n int) string { return "SELECT 'a' LIKE ANY ('a'" + strings.Repeat(",'b'", n) + ")" },
	"order by":        func(n int) string { return "SELECT 1 FROM T ORDER BY K" + strings.Repeat(",K", n) },
	"group by":        func(n int) string { return "SELECT 1 FROM T GROUP BY K" + strings.Repeat(",K+1", n) },
	"dot in call":     func(n int) string { return "SELECT " + nest("a.CASE(", "1", ")", n) },
	"names of clause": func(n int) string { return "SELECT " + strings.Repeat("a.end+", n) + "1" },
}

func nest(open, middle, closing string, n int) string {
	return strings.Repeat(open, n) + middle + strings.Repeat(closing, n)
}

func testAnalyzer(t testing.TB) *Analyzer {
	c, err := applyAll(schema.NewCatalog(), "CREATE TABLE T (K INT64) PRIMARY KEY (K)")
	if err != nil {
		t.Fatal(err)
	}
	return New(c, nil)
}

// sizes returns the values of n for which the tests make a statement. Some are around limits. The largest makes the
// statement almost as long as is allowed.
func sizes(statement func(n int) string) []int {
	part := len(statement(1001)) - len(statement(1000))
	return []int{1, 20, 75, 250, 290, 310, 990, 1010, 5000, 50_000, maxLength/part - 50}
}

// TestNesting analyzes each kind of nested statement at all sizes. It skips statements with n above 5,000 that the
// guard accepts, because their analysis takes long; BenchmarkHostile measures such statements. The result must be a
// tree or an error for the user. If the guard accepted a statement that is nested too deeply for GoogleSQL's library,
// the process would end. The file testdata/guard shows which large sizes the guard accepts. It gives the number of
// tokens for each, because that number bounds the work of the library.
func TestNesting(t *testing.T) {
	a := testAnalyzer(t)
	params := map[string]*value.Type{"p": value.Int64Type, "j": value.JSONType}
	for _, name := range slices.Sorted(maps.Keys(nested)) {
		statement := nested[name]
		for _, n := range sizes(statement) {
			if _, err := guard(statement(n), noColumns); err == nil && n > 5000 {
				continue
			}
			_, _, err := a.Statement(context.Background(), statement(n), params, Options{})
			if _, user := usererror.As(err); err != nil && !user {
				t.Errorf("%s, %d: %.500s", name, n, err)
			}
		}
	}
}

// runGuard prints for each kind of nested statement the first size that the guard refuses. It also prints the sizes
// above 10,000 that the guard accepts, with the number of tokens.
func runGuard() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(nested)) {
		statement := nested[name]
		for _, n := range sizes(statement) {
			if _, err := guard(statement(n), noColumns); err != nil {
				fmt.Fprintf(&b, "%s: %d: %s\n", name, n, err)
				break
			} else if n > 10_000 {
				tokens := 0
				for s := (scanner{sql: statement(n)}); s.next(); {
					tokens++
				}
				fmt.Fprintf(&b, "%s: %d passes, %d tokens\n", name, n, tokens)
			}
		}
	}
	return b.String()
}

// TestLimits: the largest statement within each limit passes, and the next larger one is refused.
func TestLimits(t *testing.T) {
	a := testAnalyzer(t)
	numbered := func(n int, format, sep string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(parts, sep)
	}
	for _, l := range []struct {
		most int
		sql  func(n int) string
		want string
	}{
		{maxLength, func(n int) string { return "SELECT '" + strings.Repeat("é", n-9) + "'" }, "Query string length of 1000001 exceeds maximum allowed length of 1000000"},
		{maxJoins, func(n int) string { return "SELECT 1 FROM " + numbered(n+1, "T t%d", ", ") }, "Number of joins exceeds the maximum allowed limit of 20."},
		{maxUnions, func(n int) string { return "SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", n-1) }, "Number of UNION operations exceeds the maximum allowed limit of 200."},
		{maxInValues, func(n int) string { return "SELECT 1 IN (" + numbered(n, "%d", ",") + ")" }, "Number of values in the IN operator exceeds the maximum allowed limit of 10000."},
		{maxParameters, func(n int) string { return "SELECT " + numbered(n, "@p%d", ",") }, "Number of parameters in query exceeds the maximum allowed limit of 950."},
		{maxGroupByColumns, func(n int) string {
			return "SELECT 1 FROM T GROUP BY " + numbered(n, "CAST(K AS STRING FORMAT '%d')", ",")
		}, "Number of grouping columns exceeds the maximum allowed limit of 1000."},
		{maxStructFields, func(n int) string { return "SELECT STRUCT(" + numbered(n, "K AS k%d", ",") + ").k0 FROM T" }, "Number of struct fields exceeds the maximum allowed limit of 1000."},
		{maxFunctionCalls, func(n int) string { return "SELECT " + strings.Repeat("ABS(1),", n) + "1" }, "Number of functions exceeds the maximum allowed limit of 1000."},
		{maxNestedCalls, func(n int) string { return "SELECT " + nest("ABS(", "1", ")", n) }, "Number of nested boolean predicates exceeds the maximum allowed limit of 75."},
		{maxNestedSubqueries, func(n int) string { return "SELECT " + nest("(SELECT ", "1", ")", n) }, "Number of nested subqueries exceeds the maximum allowed limit of 25."},
		{maxNestedSubselects, func(n int) string { return nest("SELECT a FROM (", "SELECT 1 AS a", ")", n-1) }, "Number of nested subselects exceeds the maximum allowed limit of 60."},
		{maxNestedGroupBys, func(n int) string { return nest("SELECT a FROM (", "SELECT 1 AS a", ") GROUP BY a", n) }, "Number of nested aggregations exceeds the maximum allowed limit of 35."},
		{maxSubqueries, func(n int) string { return "SELECT " + strings.Repeat("(SELECT 1),", n) + "1" }, "Number of child subqueries exceeds the maximum allowed limit of 50."},
		{maxNesting, func(n int) string { return "SELECT " + nest("(", "1", ")", n) }, "Query is nested deeper than the maximum allowed limit of 300. [at 1:308]"},
		{maxAdjacentStrings, func(n int) string { return "SELECT " + strings.Repeat("'a' ", n) }, "Number of string literals in a row exceeds the maximum allowed limit of 1000."},
		{maxSelectColumns, func(n int) string { return "SELECT 1" + strings.Repeat(",1", n-1) }, "Number of columns of a SELECT exceeds the maximum allowed limit of 20000."},
	} {
		if _, _, err := a.Statement(context.Background(), l.sql(l.most), nil, Options{AllowUnbound: true}); err != nil && !strings.Contains(err.Error(), "Syntax error") && !strings.Contains(err.Error(), "subsequent string literals") {
			t.Errorf("at the limit of %q: %v", l.want, err)
		}
		_, _, err := a.Statement(context.Background(), l.sql(l.most+1), nil, Options{AllowUnbound: true})
		if err == nil || err.Error() != l.want {
			t.Errorf("beyond: %v, want %s", err, l.want)
		} else if code := usererror.CodeOf(err); code != codes.InvalidArgument {
			t.Errorf("%v: code %v", err, code)
		}
	}
}

// TestGuardPasses: the guard accepts long statements that are far from Spanner's limits.
func TestGuardPasses(t *testing.T) {
	for name, sql := range map[string]string{
		"rows":                "INSERT INTO T (A, B) VALUES " + strings.Repeat("(-1.5, 'a'), ", 9999) + "(1, 'b')",
		"columns":             "SELECT " + strings.Repeat("t.a + 1, ", 2000) + "1 FROM T t",
		"or":                  "SELECT 1 FROM T WHERE " + strings.Repeat("(t.a = @p AND t.b IS NULL) OR ", 490) + "FALSE",
		"nested or":           "SELECT 1 FROM T WHERE " + nest("(", "t.a = 1", " OR t.b = 2)", 250),
		"case arms":           "SELECT CASE a " + strings.Repeat("WHEN 1 THEN 'x' ", 2000) + "END FROM T",
		"betweens":            "SELECT 1 FROM T WHERE " + strings.Repeat("a BETWEEN 1 AND 2 AND ", 500) + "TRUE",
		"is distinct from":    "SELECT a IS DISTINCT FROM b" + strings.Repeat(", c", 200) + " FROM T",
		"return after select": "INSERT INTO T (A) SELECT A FROM U THEN RETURN A" + strings.Repeat(", B", 200),
		"extract":             "SELECT " + strings.Repeat("EXTRACT(DAY FROM a), ", 200) + "1",
		"order after from":    "SELECT 1 FROM T ORDER BY a" + strings.Repeat(", a", 200),
		"in":                  "SELECT 1 FROM T WHERE a IN (" + strings.Repeat("1, ", 9999) + "2)",
	} {
		if _, err := guard(sql, noColumns); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNotUTF8(t *testing.T) {
	a := testAnalyzer(t)
	for _, sql := range []string{"SELECT '\xff'", "\xc0\x80", "SELECT 1 --\xed\xa0\x80"} {
		if _, _, err := a.Statement(context.Background(), sql, nil, Options{}); usererror.CodeOf(err) != codes.InvalidArgument {
			t.Errorf("%q: %v", sql, err)
		}
	}
}

func noColumns(string) int { return 0 }

// TestColumnsOfSystemTables: a statement that reads a table of INFORMATION_SCHEMA gets more weight with each column of
// that table, as it does with a user's table.
func TestColumnsOfSystemTables(t *testing.T) {
	table := &schema.Table{Schema: "INFORMATION_SCHEMA", Name: "WIDE"}
	for range lightWeight {
		table.Columns = append(table.Columns, &schema.Column{Name: "C", Type: value.Int64Type})
	}
	a := New(schema.NewCatalog(), nil, table)
	weight, err := guard("SELECT * FROM information_schema.`wid\\x65`", a.columns)
	if err != nil || weight <= lightWeight {
		t.Errorf("weight %d: %v", weight, err)
	}
}

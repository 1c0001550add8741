package analyze

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// hostile holds texts whose sizes are near the limits. For most of them GoogleSQL takes long. The table T has 4
// columns, and the table Wide has about a thousand.
var hostile = map[string]string{
	"55,505 ANDs":                      "SELECT 1 FROM T WHERE K=0" + strings.Repeat(" AND K=1", 55_504),
	"111,000 ANDs":                     "SELECT 1 FROM T WHERE TRUE" + strings.Repeat(" AND TRUE", 110_999),
	"500 ORs":                          "SELECT 1 FROM T WHERE K=0" + strings.Repeat(" OR K=1", 499),
	"60,000 comparisons by <":          "SELECT 1 FROM T WHERE K<0" + strings.Repeat(" AND K<1", 60_000),
	"IN, 10,000 integers":              "SELECT 1 FROM T WHERE K IN (0" + strings.Repeat(",1", 9_999) + ")",
	"IN, 10,000 strings":               "SELECT 1 FROM T WHERE S IN (''" + strings.Repeat(",'aaaaaaaa'", 9_999) + ")",
	"IN, 10,000 dates":                 "SELECT 1 FROM T WHERE D IN ('2020-01-01'" + strings.Repeat(",'2020-01-01'", 9_999) + ")",
	"array of 490,000 integers":        heavyText(490_000),
	"array of 20,000 structs":          "SELECT ARRAY(SELECT AS STRUCT a FROM UNNEST([STRUCT(1 AS a, 'x' AS b)" + strings.Repeat(",STRUCT(1 AS a, 'x' AS b)", 19_999) + "]))",
	"10,000 rows":                      "INSERT INTO T (K, S) VALUES (0,'')" + strings.Repeat(",(1,'x')", 9_999),
	"100,000 rows":                     "INSERT INTO T (K, S) VALUES (0,'')" + strings.Repeat(",(1,'x')", 99_999),
	"249,000 rows":                     "INSERT INTO T (K) VALUES (0)" + strings.Repeat(",(1)", 248_999),
	"20,000 columns, literals":         "SELECT 1" + strings.Repeat(",1", maxSelectColumns-1),
	"20,000 columns, names":            "SELECT K" + strings.Repeat(",K", maxSelectColumns-1) + " FROM T",
	"20,000 columns, parameters":       "SELECT @p" + strings.Repeat(",@p", maxSelectColumns-1),
	"900 parameters":                   "SELECT " + numbers(900, "@p%d"),
	"CASE, 10,000 arms":                "SELECT CASE K " + strings.Repeat("WHEN 1 THEN 2 ", 10_000) + "END FROM T",
	"1,000 calls":                      "SELECT " + strings.Repeat("ABS(K),", 999) + "ABS(K) FROM T",
	"75 nested calls":                  "SELECT " + nest("ABS(", "K", ")", 75) + " FROM T",
	"300 parentheses":                  "SELECT " + nest("(", "K", ")", 300) + " FROM T",
	"990 concatenations":               "SELECT S" + strings.Repeat("||S", 990) + " FROM T",
	"nested BETWEENs":                  "SELECT " + nest("(1 BETWEEN 0 AND ", "1.5", ")", 9) + strings.Repeat(", "+nest("(1 BETWEEN 0 AND ", "1.5", ")", 9), 9),
	"200 UNIONs":                       "SELECT K FROM T" + strings.Repeat(" UNION ALL SELECT K FROM T", 199),
	"200 UNIONs of wide tables":        "SELECT * FROM Wide" + strings.Repeat(" UNION ALL SELECT * FROM Wide", 199),
	"21 wide tables":                   "SELECT * FROM " + numbers(21, "Wide w%d"),
	"one wide table":                   "SELECT * FROM Wide",
	"two wide tables":                  "SELECT * FROM Wide JOIN Wide x USING (K)",
	"60 nested subqueries, wide table": nest("SELECT * FROM (", "SELECT * FROM Wide", ")", 59),
	"60 pipe operators, wide table":    "FROM Wide" + strings.Repeat(" |> EXTEND 1", 60),
	"300 pipe operators, wide table":   "FROM Wide" + strings.Repeat(" |> EXTEND 1", 300),
	"25 nested subquery expressions":   "SELECT " + nest("(SELECT ", "K", " FROM T)", 25) + " FROM T",
	"1,000 WITH tables":                "WITH " + numbers(1_000, "c%d AS (SELECT K FROM T)") + " SELECT * FROM c1",
	"columns that double 10 times":     doubling(10),
	"columns that double 20 times":     doubling(20),
	"columns of no table that double":  chain(14, "SELECT 1 AS a, 2 AS b", "SELECT * FROM %[1]s x, %[1]s y"),
	"columns that double in FROM":      chain(14, "SELECT 1 AS a, 2 AS b", "FROM %[1]s x JOIN %[1]s y ON TRUE"),
	"columns that double in pipes":     chain(14, "SELECT 1 AS a, 2 AS b", "FROM %[1]s x |> JOIN %[1]s y ON TRUE"),
	"columns that double in SELECT":    chain(14, "SELECT 1 AS a, 2 AS b", "SELECT x.*, x.* FROM %s x"),
	"fields that double":               chain(14, "SELECT 1 AS s", "SELECT STRUCT(s AS a, s AS b) AS s FROM %s"),
	"100 FROM queries, wide table":     chain(100, "FROM Wide", "FROM %s"),
	"60 nested FROM, wide table":       nest("FROM (", "FROM Wide", ")", 59),
	"10 wide tables, escaped names":    "SELECT * FROM " + numbers(10, "`Wid\\x65` w%d"),
	"pipe operators, wide table, hint": "FROM T |> JOIN@{JOIN_METHOD=HASH_JOIN} Wide USING (K)" + strings.Repeat(" |> EXTEND 1", 60),
	"1,000 columns in GROUP BY":        "SELECT COUNT(*) FROM Wide GROUP BY " + numbers(1_000, "C%d"),
	"60,000 columns in ORDER BY":       "SELECT 1 FROM T ORDER BY K" + strings.Repeat(",K", 59_999),
	"1,000 columns in UPDATE":          "UPDATE Wide SET " + numbers(1_000, "C%d = 1") + " WHERE TRUE",
	"100,000 unknown names":            "SELECT [" + numbers(100_000, "a%d") + "]",
	"string of 990,000 characters":     "SELECT '" + strings.Repeat("a", 990_000) + "'",
	"string of 490,000 escapes":        "SELECT '" + strings.Repeat(`\n`, 490_000) + "'",
	"comment of 990,000 characters":    "SELECT 1 /*" + strings.Repeat("a", 990_000) + "*/",
	"190,000 comments":                 "SELECT 1 " + strings.Repeat("/**/ ", 190_000),
	"JSON of 290,000 numbers":          "SELECT JSON '[1" + strings.Repeat(",12", 290_000) + "]'",
	"20 hints":                         "@{USE_ADDITIONAL_PARALLELISM=TRUE} SELECT 1 FROM T@{FORCE_INDEX=_BASE_TABLE}" + " t" + strings.Repeat(" JOIN@{JOIN_METHOD=HASH_JOIN} (SELECT K FROM T) USING (K)", 20),
	"990,000 semicolons":               "SELECT 1" + strings.Repeat(";", 990_000),
}

// chain returns a query with n+1 named subqueries, a0 to an. The parameter first is the SQL of a0. The parameter each
// is the format for the SQL of every other subquery; its argument is the name of the previous subquery.
func chain(n int, first, each string) string {
	sql := "WITH a0 AS (" + first + ")"
	for i := range n {
		sql += fmt.Sprintf(", a%d AS (%s)", i+1, fmt.Sprintf(each, fmt.Sprintf("a%d", i)))
	}
	return sql + fmt.Sprintf(" SELECT 1 FROM a%d", n)
}

// numbers formats the numbers from 0 to n-1 and joins them by commas.
func numbers(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(parts, ",")
}

// doubling returns a query with n+1 named subqueries, each of which joins the previous subquery with itself.
func doubling(n int) string {
	sql := "WITH a0 AS (SELECT * FROM T)"
	for i := range n {
		sql += fmt.Sprintf(", a%d AS (SELECT * FROM a%d x, a%d y)", i+1, i, i)
	}
	return sql + fmt.Sprintf(" SELECT 1 FROM a%d", n)
}

func hostileAnalyzer(t testing.TB) *Analyzer {
	c, err := applyAll(schema.NewCatalog(), "CREATE TABLE T (K INT64, S STRING(MAX), D DATE, F FLOAT64) PRIMARY KEY (K);\n"+
		"CREATE TABLE Wide (K INT64, "+numbers(1_000, "C%d INT64")+") PRIMARY KEY (K)")
	if err != nil {
		t.Fatal(err)
	}
	return New(c, nil, systemTable)
}

// TestHostileIsHeavy checks the weights of the texts in the variable hostile. Texts that take GoogleSQL more than
// 100 ms on a quiet machine must count as heavy. The last two texts in the variable light are exceptions, because their
// tokens do not show the work; the pool stops their analysis (TestSlowIsHeavy).
func TestHostileIsHeavy(t *testing.T) {
	light := map[string]bool{
		"500 ORs": true, "900 parameters": true, "75 nested calls": true, "300 parentheses": true, "200 UNIONs": true, "one wide table": true,
		"25 nested subquery expressions": true, "20 hints": true,
		"columns that double in SELECT": true, "fields that double": true,
	}
	a := hostileAnalyzer(t)
	for name, sql := range hostile {
		weight, err := guard(sql, a.columns)
		if err == nil && weight <= lightWeight && !light[name] {
			t.Errorf("%s: weight %d", name, weight)
		}
	}
}

// BenchmarkHostile analyzes each of the hostile texts, and many short new statements at the same time. It measures
// the longest time that a short statement takes. It also prints the time for the hostile text itself, and its
// estimated weight. Run it on a quiet machine, with -benchtime 1x.
func BenchmarkHostile(b *testing.B) {
	a := hostileAnalyzer(b)
	for _, name := range slices.Sorted(maps.Keys(hostile)) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				measureHostile(b, a, hostile[name])
			}
		})
	}
}

func measureHostile(b *testing.B, a *Analyzer, sql string) {
	start := time.Now()
	weight, err := guard(sql, a.columns)
	b.ReportMetric(time.Since(start).Seconds()*1e3, "guard-ms")
	if err != nil {
		b.Logf("refused before analysis: %v", err)
		return
	}
	stop := make(chan struct{})
	longest := make(chan time.Duration)
	go func() { longest <- longestWait(b, a, stop) }()
	start = time.Now()
	_, _, err = a.Statement(context.Background(), sql, nil, Options{AllowUnbound: true})
	took := time.Since(start)
	close(stop)
	b.ReportMetric((<-longest).Seconds()*1e3, "others-wait-ms")
	b.ReportMetric(took.Seconds()*1e3, "took-ms")
	b.ReportMetric(float64(weight), "weight")
	if err != nil {
		b.Logf("%v: %.200v", usererror.CodeOf(err), err)
	}
}

// longestWait sends light statements one by one until stop is closed, and returns the longest time that one of them
// took.
func longestWait(b *testing.B, a *Analyzer, stop chan struct{}) (longest time.Duration) {
	for {
		select {
		case <-stop:
			return longest
		default:
		}
		start := time.Now()
		if _, _, err := a.Statement(context.Background(), "SELECT K FROM T WHERE K = @p", nil, Options{AllowUnbound: true}); err != nil {
			b.Error(err)
		}
		longest = max(longest, time.Since(start))
	}
}

// TestDoublingTexts: ten views or functions, each of which names the previous one up to 20 times, expand to up to 20^9
// texts. The analyzer refuses the statement long before it has analyzed them all.
func TestDoublingTexts(t *testing.T) {
	for name, text := range map[string]struct{ first, each, statement string }{
		"UNION ALL":     {"CREATE VIEW V0 SQL SECURITY INVOKER AS SELECT 1 AS x", "CREATE VIEW V%[1]d SQL SECURITY INVOKER AS SELECT v.x FROM V%[2]d AS v" + strings.Repeat(" UNION ALL SELECT v.x FROM V%[2]d AS v", 19), "SELECT x FROM V9"},
		"twice":         {"CREATE VIEW V0 SQL SECURITY DEFINER AS SELECT 1 AS x", "CREATE VIEW V%[1]d SQL SECURITY DEFINER AS SELECT v.x FROM V%[2]d AS v UNION ALL SELECT v.x FROM V%[2]d AS v", "SELECT x FROM V9"},
		"EXCEPT":        {"CREATE VIEW V0 SQL SECURITY INVOKER AS SELECT 1 AS x", "CREATE VIEW V%[1]d SQL SECURITY INVOKER AS SELECT v.x FROM V%[2]d AS v" + strings.Repeat(" EXCEPT ALL SELECT v.x FROM V%[2]d AS v", 19), "SELECT x FROM V9"},
		"joins":         {"CREATE VIEW V0 SQL SECURITY INVOKER AS SELECT 1 AS x", "CREATE VIEW V%[1]d SQL SECURITY INVOKER AS SELECT v.x FROM V%[2]d AS v JOIN V%[2]d AS w ON w.x = v.x JOIN V%[2]d AS u ON w.x = u.x", "SELECT x FROM V9"},
		"subqueries":    {"CREATE VIEW V0 SQL SECURITY INVOKER AS SELECT 1 AS x", "CREATE VIEW V%[1]d SQL SECURITY INVOKER AS SELECT 1 AS x FROM (SELECT 1) WHERE EXISTS (SELECT v.x FROM V%[2]d AS v)" + strings.Repeat(" AND EXISTS (SELECT v.x FROM V%[2]d AS v)", 19), "SELECT x FROM V9"},
		"WITH":          {"CREATE VIEW V0 SQL SECURITY INVOKER AS SELECT 1 AS x", "CREATE VIEW V%[1]d SQL SECURITY INVOKER AS WITH a AS (SELECT v.x FROM V%[2]d AS v), b AS (SELECT v.x FROM V%[2]d AS v), c AS (SELECT v.x FROM V%[2]d AS v) SELECT a.x FROM a WHERE a.x IN (SELECT b.x FROM b) AND a.x IN (SELECT c.x FROM c)", "SELECT x FROM V9"},
		"views by WITH": {"CREATE VIEW V0 SQL SECURITY INVOKER AS SELECT 1 AS x", "CREATE VIEW V%[1]d SQL SECURITY INVOKER AS SELECT v.x FROM V%[2]d AS v UNION ALL SELECT v.x FROM V%[2]d AS v", "WITH " + numbers(100, "c%d AS (SELECT x FROM V5)") + " SELECT x FROM c1"},
		"calls":         {"CREATE FUNCTION F0(x INT64) RETURNS INT64 AS (x)", "CREATE FUNCTION F%[1]d(x INT64) RETURNS INT64 AS (F%[2]d(x) + F%[2]d(x))", "SELECT F9(1)"},
		"structs":       {"CREATE FUNCTION F0(x INT64) RETURNS INT64 AS (x)", "CREATE FUNCTION F%[1]d(x INT64) RETURNS INT64 AS (STRUCT(F%[2]d(x) AS b" + strings.Repeat(", F%[2]d(x) AS a", 19) + ").b)", "SELECT F9(1)"},
		"arguments":     {"CREATE FUNCTION F0(x INT64) RETURNS INT64 AS (x)", "CREATE FUNCTION F%[1]d(x INT64) RETURNS INT64 AS (F%[2]d(F%[2]d(F%[2]d(x))))", "SELECT F9(1)"},
	} {
		t.Run(name, func(t *testing.T) {
			ddl := text.first
			for i := 1; i < 10; i++ {
				ddl += ";\n" + fmt.Sprintf(text.each, i, i-1)
			}
			c, err := applyAll(schema.NewCatalog(), ddl)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = New(c, nil).Statement(t.Context(), text.statement, nil, Options{})
			if code := usererror.CodeOf(err); code != codes.InvalidArgument || !strings.Contains(err.Error(), "exceeds the maximum allowed limit") {
				t.Errorf("%v", err)
			}
		})
	}
}

// TestDoublingWith: a statement is refused if it has more than maxNamed subqueries after each name is replaced by its
// subquery. Here each named subquery names the previous one twice. The limit holds for one chain and for several chains
// together.
func TestDoublingWith(t *testing.T) {
	double := "SELECT x FROM %[1]s UNION ALL SELECT x FROM %[1]s"
	one := func(n int) string {
		return strings.Replace(chain(n, "SELECT 1 AS x", double), "SELECT 1 FROM", "SELECT COUNT(*) FROM", 1)
	}
	for sql, refused := range map[string]bool{
		one(18): false,
		one(19): true,
		one(99): true,
		"SELECT (" + one(17) + "), (" + one(17) + ")":                                         false,
		"SELECT (" + one(18) + "), (" + one(18) + ")":                                         true,
		one(18) + " UNION ALL (" + one(18) + ")":                                              true,
		"SELECT COUNT(*) FROM (" + one(60) + ") WHERE FALSE":                                  true,
		chain(20, "SELECT 1 AS x", "SELECT y.x FROM %[1]s AS y JOIN %[1]s AS z ON y.x = z.x"): true,
	} {
		_, _, err := New(schema.NewCatalog(), nil).Statement(t.Context(), sql, nil, Options{})
		if refused != (usererror.CodeOf(err) == codes.InvalidArgument && strings.Contains(err.Error(), limitNamed)) || !refused && err != nil {
			t.Errorf("%s: %v", sql, err)
		}
	}
}

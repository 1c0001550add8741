package exec_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
)

var (
	seedFlag   = flag.Uint64("seed", 1, "first seed of the random queries")
	roundsFlag = flag.Int("rounds", 300, "how many random queries each test makes")
)

const randomSchema = `
CREATE TABLE T (
  A INT64 NOT NULL, B INT64, S STRING(MAX), F FLOAT64, D DATE, L BOOL, N INT64,
) PRIMARY KEY (A, B DESC);
CREATE INDEX T_S ON T (S);
CREATE INDEX T_F ON T (F DESC, N) STORING (S);
CREATE NULL_FILTERED INDEX T_D ON T (D, L);
CREATE INDEX T_N ON T (N DESC, S DESC);
CREATE TABLE U (
  A INT64 NOT NULL, B INT64, C INT64 NOT NULL, S STRING(MAX), N INT64,
) PRIMARY KEY (A, B DESC, C), INTERLEAVE IN PARENT T;
CREATE INDEX U_N ON U (N);
CREATE INDEX U_A ON U (A, B DESC, N DESC, S), INTERLEAVE IN T;
`

// randomDB returns a database whose tables T and U have rows with few different values, among them NULL and NaN.
func randomDB(t *testing.T, r *rand.Rand) *testDB {
	db := newTestDB(t)
	if out := db.ddl(randomSchema); out != "" {
		t.Fatal(out)
	}
	var insert strings.Builder
	keys := map[string]bool{}
	g := generator{r}
	for range 60 {
		key := fmt.Sprintf("%d, %s", r.IntN(8), g.literal("B"))
		if keys[key] {
			continue
		}
		keys[key] = true
		fmt.Fprintf(&insert, "INSERT INTO T (A, B, S, F, D, L, N) VALUES (%s, %s, %s, %s, %s, %s);\n", key,
			g.literal("S"), g.literal("F"), g.literal("D"), g.literal("L"), g.literal("N"))
		for c := range r.IntN(3) {
			fmt.Fprintf(&insert, "INSERT INTO U (A, B, C, S, N) VALUES (%s, %d, %s, %s);\n", key, c, g.literal("S"), g.literal("N"))
		}
	}
	if out := db.exec(insert.String()); strings.Contains(out, ":") {
		t.Fatal(out)
	}
	return db
}

// generator generates random SQL.
type generator struct{ *rand.Rand }

func (g generator) pick(list ...string) string { return list[g.IntN(len(list))] }

// literal returns a random literal for a column. It is equal or close to values that the column has.
func (g generator) literal(column string) string {
	switch column {
	case "A", "C":
		return fmt.Sprint(g.IntN(8))
	case "B", "N":
		return g.pick("NULL", "0", "1", "2", "3", "5", "-1")
	case "S":
		return g.pick("NULL", "''", "'a'", "'ab'", "'abc'", "'b'", "'a%'", "'ü'")
	case "F":
		return g.pick("NULL", "0.0", "-0.0", "1.5", "-2.5", "CAST('nan' AS FLOAT64)", "CAST('inf' AS FLOAT64)")
	case "D":
		return g.pick("NULL", "DATE '2024-01-01'", "DATE '2024-01-02'", "DATE '1970-01-01'")
	}
	return g.pick("NULL", "TRUE", "FALSE")
}

// typed returns a random literal for a column, cast to the column's type. So a NULL has this type, too.
func (g generator) typed(column string) string {
	types := map[string]string{"A": "INT64", "B": "INT64", "C": "INT64", "N": "INT64", "S": "STRING", "F": "FLOAT64", "D": "DATE", "L": "BOOL"}
	return "CAST(" + g.literal(column) + " AS " + types[column] + ")"
}

var columnsOfT = []string{"A", "B", "S", "F", "D", "L", "N"}

// predicate returns a random condition over T, with AND, OR and NOT nested up to depth. q is the alias of T with a
// dot, or empty.
func (g generator) predicate(q string, depth int) string {
	if depth > 0 {
		switch g.IntN(6) {
		case 0, 1:
			return "(" + g.predicate(q, depth-1) + " AND " + g.predicate(q, depth-1) + ")"
		case 2:
			return "(" + g.predicate(q, depth-1) + " OR " + g.predicate(q, depth-1) + ")"
		case 3:
			return "(NOT " + g.predicate(q, depth-1) + ")"
		}
	}
	c := g.pick(columnsOfT...)
	switch g.IntN(10) {
	case 0:
		return q + c + " IS NULL"
	case 1:
		return q + c + " IS NOT NULL"
	case 2:
		return fmt.Sprintf("%s%s IN (%s, %s)", q, c, g.typed(c), g.typed(c))
	case 3:
		return fmt.Sprintf("%s%s IN UNNEST([%s, %s])", q, c, g.typed(c), g.typed(c))
	case 4:
		return fmt.Sprintf("%s%s BETWEEN %s AND %s", q, c, g.typed(c), g.typed(c))
	case 8:
		return g.pick("IEEE_DIVIDE(1, "+q+"F) > 0", "IEEE_DIVIDE(1, "+q+"F) < 0", "IEEE_DIVIDE("+q+"F, 0) IS NOT NULL")
	case 5:
		return q + "S LIKE " + g.pick("'a%'", "'%b'", "'ab'", "'a_'", "''", "'a\\\\%'")
	case 6:
		return fmt.Sprintf("STARTS_WITH(%sS, %s)", q, g.typed("S"))
	case 7:
		return fmt.Sprintf("(%sA, %sB) IN ((%s, %s), (%s, %s))", q, q, g.literal("A"), g.typed("B"), g.literal("A"), g.typed("B"))
	}
	if g.IntN(2) == 0 {
		return fmt.Sprintf("%s %s %s%s", g.typed(c), g.pick("=", "<", "<=", ">", ">=", "!="), q, c)
	}
	return fmt.Sprintf("%s%s %s %s", q, c, g.pick("=", "=", "<", "<=", ">", ">=", "!="), g.typed(c))
}

// rows runs a query and returns its rows as text.
func (db *testDB) rows(t *testing.T, sql string) []string {
	t.Helper()
	p, err := db.plan(sql, nil)
	if err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
	program, err := exec.Compile(p, table.NewDescriptors(db.catalog))
	if err != nil {
		t.Fatalf("%s\n%v", sql, err)
	}
	return db.rowsOf(t, p, program)
}

// rowsOf runs the program of a plan and returns each row as a line of text.
func (db *testDB) rowsOf(t *testing.T, p *plan.Plan, program *exec.Program) []string {
	t.Helper()
	var lines []string
	read := db.read
	if db.within != nil {
		read = func(f func(table.View) error) error { return f(db.within) }
	}
	err := read(func(view table.View) error {
		rows, err := program.Run(context.Background(), exec.Env{View: view, Functions: db.functions(), Spill: db.spill, SpillAbove: db.spillAbove})
		if err != nil {
			return err
		}
		defer rows.Close()
		for {
			ok, err := rows.Next()
			if err != nil || !ok {
				return err
			}
			var words []string
			for i, v := range rows.Values(nil) {
				words = append(words, printValue(v, p.Columns[i].Type))
			}
			lines = append(lines, strings.Join(words, " "))
		}
	})
	if err != nil {
		t.Errorf("%s%v", plan.Text(p.Proto(nil, nil)), err)
	}
	return lines
}

func (db *testDB) sortedRows(t *testing.T, sql string) []string {
	lines := db.rows(t, sql)
	slices.Sort(lines)
	return lines
}

// unsigned replaces -0 by 0 in rows. If a group has rows with 0 and rows with -0, it can show either as its key. A sort
// can also leave both in any order.
func unsigned(lines []string) []string {
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], "FLOAT64 -0", "FLOAT64 0")
	}
	return lines
}

func compareRows(t *testing.T, db *testDB, seed uint64, a, b string, left, right []string) {
	t.Helper()
	if !slices.Equal(left, right) {
		t.Fatalf("seed %d:\n%s\ngives %q\n%s\ngives %q\n%s%s", seed, a, left, b, right, db.explain(a), db.explain(b))
	}
}

// TestRandomPredicates checks that a random condition selects the same rows in two places: in WHERE, where the scan can
// use keys and indexes, and in a result column that is computed for every row.
func TestRandomPredicates(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(*seedFlag, 0)))
	for seed := *seedFlag; seed < *seedFlag+uint64(*roundsFlag); seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		p := g.predicate("", 3)
		columns := g.pick("A, B", "A, B, S", "B, A, N", "*")
		where := fmt.Sprintf("SELECT %s FROM T WHERE %s", columns, p)
		list := "A, B, S, F, D, L, N"
		if columns != "*" {
			list = columns
		}
		column := fmt.Sprintf("SELECT %s FROM (SELECT *, IFNULL(%s, FALSE) AS p FROM T@{FORCE_INDEX=_BASE_TABLE}) WHERE IF(p, 1, 0) = 1", list, p)
		compareRows(t, db, seed, where, column, db.sortedRows(t, where), db.sortedRows(t, column))
	}
}

// TestRandomOrder checks that a random query with ORDER BY, and often a LIMIT, has the same result in two forms: as it
// is, so that it can use the order of a scan, and with expressions as sort keys, so that all rows must be sorted.
func TestRandomOrder(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(*seedFlag, 0)))
	for seed := *seedFlag; seed < *seedFlag+uint64(*roundsFlag); seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 2))}
		p := g.predicate("", 1)
		var keys, hidden []string
		for _, i := range g.Perm(len(columnsOfT))[:1+g.IntN(3)] {
			c, direction := columnsOfT[i], g.pick("", " DESC")
			keys = append(keys, c+direction)
			hidden = append(hidden, fmt.Sprintf("IF(A >= 0, %s, %s)%s", c, c, direction))
		}
		limit := ""
		if g.IntN(2) == 0 {
			limit = fmt.Sprintf(" LIMIT %d OFFSET %d", g.IntN(5), g.IntN(3))
		}
		columns := strings.ReplaceAll(strings.Join(keys, ", "), " DESC", "")
		byScan := fmt.Sprintf("SELECT %s FROM T WHERE %s ORDER BY %s%s", columns, p, strings.Join(keys, ", "), limit)
		bySort := fmt.Sprintf("SELECT %s FROM T WHERE %s ORDER BY %s%s", columns, p, strings.Join(hidden, ", "), limit)
		compareRows(t, db, seed, byScan, bySort, unsigned(db.rows(t, byScan)), unsigned(db.rows(t, bySort)))
	}
}

// TestRandomJoins checks that a random join returns the same rows with the method that the planner chooses and with a
// method that a hint sets.
func TestRandomJoins(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(*seedFlag, 0)))
	for seed := *seedFlag; seed < *seedFlag+uint64(*roundsFlag); seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 3))}
		on := g.pick("t.A = u.A", "t.A = u.A AND t.B = u.B", "t.N = u.N", "t.S = u.S AND t.N < u.N", "t.N < u.N", "t.A = u.A AND t.B = u.B AND u.C = t.N")
		if g.IntN(3) == 0 {
			on += " AND " + g.predicate("t.", 0)
		}
		kind := g.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")
		where := g.predicate("t.", 1)
		query := func(hint string) string {
			return fmt.Sprintf("SELECT t.A, t.B, u.A, u.B, u.C FROM T t %s%s U u ON %s WHERE %s", kind, hint, on, where)
		}
		plain, forced := query(""), query("@{JOIN_METHOD="+g.pick("HASH_JOIN", "APPLY_JOIN")+"}")
		compareRows(t, db, seed, plain, forced, db.sortedRows(t, plain), db.sortedRows(t, forced))
	}
}

// TestRandomSubqueries checks that random EXISTS and IN subqueries select the same rows in two places: in WHERE, where
// they become joins, and in a result column.
func TestRandomSubqueries(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(*seedFlag, 0)))
	for seed := *seedFlag; seed < *seedFlag+uint64(*roundsFlag); seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 4))}
		inner := g.pick("TRUE", "u.N > 1", "u.S = t.S", "u.A = t.A AND u.B = t.B", "u.N = t.N AND u.S != 'a'")
		cond := g.pick(
			"EXISTS (SELECT 1 FROM U u WHERE "+inner+")",
			"t.N IN (SELECT u.N FROM U u WHERE "+inner+")",
			"t.A IN (SELECT u.C FROM U u WHERE "+inner+")",
			"t.A IN (SELECT u.C FROM U u JOIN T x ON x.A = u.A AND x.B = u.B WHERE "+inner+")",
		)
		if g.IntN(3) == 0 {
			cond = "NOT " + cond
		}
		also := g.predicate("t.", 0)
		join := fmt.Sprintf("SELECT t.A, t.B FROM T t WHERE %s AND %s", cond, also)
		column := fmt.Sprintf("SELECT A, B FROM (SELECT t.A, t.B, IF(%s AND %s, 1, 0) AS p FROM T t) WHERE p + 0 = 1", cond, also)
		compareRows(t, db, seed, join, column, db.sortedRows(t, join), db.sortedRows(t, column))
	}
}

// TestRandomGroups checks that a random GROUP BY query returns the same rows with the method that the planner chooses
// and with a hash table.
func TestRandomGroups(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(*seedFlag, 0)))
	for seed := *seedFlag; seed < *seedFlag+uint64(*roundsFlag); seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 5))}
		key := g.pick("A", "B", "A, B", "S", "F", "N, S", "D", "L, D", "S, A")
		p := g.predicate("", 1)
		plain := fmt.Sprintf("SELECT %s, COUNT(*), SUM(N), MIN(S), COUNT(DISTINCT F) FROM T WHERE %s GROUP BY %s", key, p, key)
		hashed := strings.Replace(plain, "GROUP BY", "GROUP @{GROUP_METHOD=HASH_GROUP} BY", 1)
		compareRows(t, db, seed, plain, hashed, slices.Sorted(slices.Values(unsigned(db.rows(t, plain)))), slices.Sorted(slices.Values(unsigned(db.rows(t, hashed)))))
	}
}

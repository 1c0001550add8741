package exec_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// mergedKeys are the keys in whose order the random queries of TestRandomMerge read. Each has a table, the index
// (or _BASE_TABLE for the table itself), and the columns of the key.
var mergedKeys = []struct{ table, index, columns string }{
	{"T", "_BASE_TABLE", "A B"},
	{"T", "T_F", "F N"},
	{"T", "T_D", "D L"},
	{"T", "T_N", "N S"},
	{"U", "_BASE_TABLE", "A B C"},
	{"U", "U_A", "A B N S"},
	{"V", "V_N", "N S A"},
}

// TestRandomMerge checks that a random query that can use a merge of streams, a skip scan or a minor sort
// (plan.Scan.Merge, plan.Scan.Skips and plan.Sort.Major) returns the same rows, in the same order, as another form of
// the query that sorts all rows. Some queries run in a read-write transaction that has already written rows.
func TestRandomMerge(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(*seedFlag, 0)))
	manyValues(t, db)
	merged, skipped, minor := 0, 0, 0
	for seed := *seedFlag; seed < *seedFlag+uint64(*roundsFlag); seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 6))}
		q := g.merged()
		if g.IntN(4) == 0 {
			q = g.united()
		}
		if p, err := db.plan(q.merge, nil); err == nil {
			plan.Walk(p.Root, func(n plan.Node) {
				if s, ok := n.(*plan.Scan); ok && s.Merge > 0 {
					merged++
				} else if ok && s.Skips() {
					skipped++
				} else if s, ok := n.(*plan.Sort); ok && s.Major > 0 {
					minor++
				}
			})
		}
		compare := func() { compareRows(t, db, seed, q.merge, q.sort, db.rows(t, q.merge), db.rows(t, q.sort)) }
		if g.IntN(2) == 0 {
			compare()
			continue
		}
		tx := db.txns.Begin(txn.Options{})
		db.within = tx
		g.writes(t, db, tx)
		compare()
		db.within = nil
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
	if merged < *roundsFlag/5 || skipped < *roundsFlag/40 || minor < *roundsFlag/40 {
		t.Errorf("of %d queries, %d merge, %d skip without merging, and %d sort rows that are equal by the first keys", *roundsFlag, merged, skipped, minor)
	}
}

// manyValues creates a table V with an index whose first key part has more different values than a skip scan looks
// for.
func manyValues(t *testing.T, db *testDB) {
	t.Helper()
	if out := db.ddl("CREATE TABLE V (A INT64 NOT NULL, N INT64, S STRING(MAX)) PRIMARY KEY (A);\nCREATE INDEX V_N ON V (N, S DESC);\n"); out != "" {
		t.Fatal(out)
	}
	db.exec(`INSERT INTO V (A, N, S) SELECT n, IF(n < 20, NULL, MOD(n, 1050)), CAST(MOD(n, 5) AS STRING) FROM UNNEST(GENERATE_ARRAY(0, 1100)) AS n;`)
}

// writes runs random DML statements in the transaction w. They insert, update and delete rows of T and U.
func (g generator) writes(t *testing.T, db *testDB, w table.Writer) {
	t.Helper()
	for range 1 + g.IntN(4) {
		sql := g.pick(
			fmt.Sprintf("UPDATE T SET N = %s, S = %s WHERE A = %s", g.typed("N"), g.typed("S"), g.literal("A")),
			fmt.Sprintf("UPDATE T SET F = %s WHERE N = %s", g.typed("F"), g.typed("N")),
			fmt.Sprintf("INSERT OR UPDATE INTO T (A, B, D, L) VALUES (%s, %s, %s, %s)", g.literal("A"), g.literal("B"), g.literal("D"), g.literal("L")),
			fmt.Sprintf("DELETE FROM U WHERE C = %s", g.literal("C")),
			fmt.Sprintf("UPDATE U SET N = %s WHERE A > %s", g.typed("N"), g.literal("A")),
		)
		p, err := db.plan(sql, nil)
		if err != nil {
			t.Fatalf("%s\n%v", sql, err)
		}
		program, err := exec.Compile(p, table.NewDescriptors(db.catalog))
		if err != nil {
			t.Fatalf("%s\n%v", sql, err)
		}
		rows, err := program.Run(context.Background(), exec.Env{Writer: w, Functions: db.functions()})
		if err != nil {
			t.Fatalf("%s\n%v", sql, err)
		}
		rows.Close()
	}
}

// orderedQuery is one query, in SQL, in two forms. For the first form, the planner can choose a merge of streams. For
// the second form, all rows must be sorted.
type orderedQuery struct{ merge, sort string }

func (g generator) merged() orderedQuery {
	k := mergedKeys[g.IntN(len(mergedKeys))]
	key := strings.Fields(k.columns)
	lead := 1 + g.IntN(len(key)-1)
	var conds []string
	for i, c := range key {
		switch {
		case i < lead && g.IntN(4) > 0:
			conds = append(conds, g.listed(c))
		case i == lead && g.IntN(2) == 0 || k.index == "T_D":
			conds = append(conds, fmt.Sprintf("%s %s %s", c, g.pick("<", "<=", ">", ">=", "="), g.typed(c)))
		}
	}
	if lead+1 < len(key) && g.IntN(4) == 0 { // a condition for the rows after a given row in the order of the key
		c, next, op := key[lead], key[lead+1], g.pick("<", ">")
		v := g.typed(c)
		conds = append(conds, fmt.Sprintf("(%s %s %s OR %s = %s AND %s %s %s)", c, op, v, c, v, next, g.pick("<", ">"), g.typed(next)))
	}
	if g.IntN(5) == 0 {
		conds = append(conds, g.pick("MOD(A, 2) = 0", "A IS NOT NULL", "A > 1"))
	}
	if k.index == "T_D" {
		conds = append(conds, "D IS NOT NULL", "L IS NOT NULL")
	}
	if len(conds) == 0 {
		conds = append(conds, "TRUE")
	}
	flip := g.IntN(2) == 0
	var keys, hidden []string
	ordered := slices.Clone(key[lead:])
	if g.IntN(3) == 0 {
		ordered = slices.Insert(ordered, g.IntN(len(ordered)+1), key[g.IntN(lead)])
	}
	for _, c := range ordered {
		desc := c == "B" || k.index == "T_F" && c == "F" || k.index == "T_N" || k.index == "U_A" && c == "N" ||
			k.table == "V" && c == "S"
		direction := ""
		if desc != flip {
			direction = " DESC"
		}
		if g.IntN(6) == 0 || slices.Contains(key[:lead], c) {
			direction = g.pick("", " DESC")
		}
		keys = append(keys, c+direction)
		hidden = append(hidden, fmt.Sprintf("IF(A >= 0, %s, %s)%s", c, c, direction))
	}
	limit := ""
	if g.IntN(4) > 0 {
		limit = fmt.Sprintf(" LIMIT %d", g.IntN(12))
	}
	columns := strings.ReplaceAll(strings.Join(keys, ", "), " DESC", "")
	where := strings.Join(conds, " AND ")
	if g.IntN(6) == 0 { // a subquery without LIMIT, whose rows are sorted by the whole key
		order := strings.ReplaceAll(k.columns, " ", ", ")
		return orderedQuery{
			merge: fmt.Sprintf("SELECT * FROM (SELECT %s FROM %s@{FORCE_INDEX=%s} WHERE %s) ORDER BY %s", order, k.table, k.index, where, order),
			sort:  fmt.Sprintf("SELECT %s FROM %s@{FORCE_INDEX=_BASE_TABLE} WHERE IF(%s, 1, 0) = 1 ORDER BY %s", order, k.table, where, order),
		}
	}
	return orderedQuery{
		merge: fmt.Sprintf("SELECT %s FROM %s@{FORCE_INDEX=%s} WHERE %s ORDER BY %s%s", columns, k.table, k.index, where, strings.Join(keys, ", "), limit),
		sort:  fmt.Sprintf("SELECT %s FROM %s@{FORCE_INDEX=_BASE_TABLE} WHERE IF(%s, 1, 0) = 1 ORDER BY %s%s", columns, k.table, where, strings.Join(hidden, ", "), limit),
	}
}

// united returns a query over a union of queries of T. The result of the union is joined with T again.
func (g generator) united() orderedQuery {
	direction := g.pick("", " DESC")
	limit := ""
	if g.IntN(3) > 0 {
		limit = fmt.Sprintf(" LIMIT %d", g.IntN(12))
	}
	var inputs []string
	for range 1 + g.IntN(4) {
		in := fmt.Sprintf("SELECT A, B, N, S FROM T@{FORCE_INDEX=%%s} WHERE B IS NOT NULL AND %s", g.predicate("", g.IntN(2)))
		if g.IntN(3) == 0 {
			in = fmt.Sprintf("(%s ORDER BY N%s, S%s, A, B LIMIT %d)", in, direction, direction, 1+g.IntN(6))
		}
		inputs = append(inputs, in)
	}
	union := strings.Join(inputs, " UNION ALL ")
	query := func(index, by, of string) string {
		x := fmt.Sprintf("SELECT A, B FROM (%s) ORDER BY %s%s", strings.ReplaceAll(union, "%s", index), by, limit)
		return fmt.Sprintf("SELECT t.N, t.S FROM (%s) x JOIN T t ON t.A = x.A AND t.B = x.B ORDER BY %s", x, of)
	}
	keys := func(form string) string {
		return fmt.Sprintf(form, "N") + direction + ", " + fmt.Sprintf(form, "S") + direction
	}
	return orderedQuery{merge: query("T_N", keys("%s"), keys("t.%s")), sort: query("_BASE_TABLE", keys("IF(A >= 0, %[1]s, %[1]s)"), keys("IF(t.A >= 0, t.%[1]s, t.%[1]s)"))}
}

// listed returns a random condition that allows one or several values of column c.
func (g generator) listed(c string) string {
	numbers := c == "A" || c == "B" || c == "C" || c == "N"
	switch g.IntN(8) {
	case 0:
		return fmt.Sprintf("%s = %s", c, g.typed(c))
	case 1:
		return fmt.Sprintf("(%s = %s OR %s IN (%s, %s))", c, g.typed(c), c, g.typed(c), g.typed(c))
	case 2:
		return fmt.Sprintf("(%s = %s OR %s IS NULL)", c, g.typed(c), c)
	case 3:
		return fmt.Sprintf("%s IN UNNEST([%s, %s, %s, %s])", c, g.typed(c), g.typed(c), g.typed(c), g.typed(c))
	case 4:
		if numbers {
			return fmt.Sprintf("%s IN UNNEST(GENERATE_ARRAY(-700, 700))", c)
		}
		return c + " IS NOT NULL"
	}
	return fmt.Sprintf("%s IN (%s, %s, %s)", c, g.typed(c), g.typed(c), g.typed(c))
}

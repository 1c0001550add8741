package exec_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/crowfoot-db/crowfoot/sql/analyze"
	"github.com/crowfoot-db/crowfoot/sql/plan"
)

// TestHostileStatements checks that the planner makes few allocations for the largest and most deeply nested
// statements that the analyzer accepts. It would make very many if its work grew exponentially with the nesting or the
// number of joins. The test does not measure time, because time also depends on other programs on the machine.
func TestHostileStatements(t *testing.T) {
	// The planner may make at most maxAllocations allocations and maxNodes plan nodes for each word of the statement.
	const maxAllocations, maxNodes = 4000, 2
	db := randomDB(t, rand.New(rand.NewPCG(1, 0)))
	nest := func(n int, open, middle, end string) string {
		return strings.Repeat(open, n) + middle + strings.Repeat(end, n)
	}
	var joins, lists strings.Builder
	for i := range 18 {
		fmt.Fprintf(&joins, " JOIN U u%d ON u%d.A = t.A AND u%d.N = t.N", i, i, i)
	}
	chain := "U t0"
	for i := 1; i < 18; i++ {
		chain = fmt.Sprintf("(U t%d LEFT JOIN %s ON t%d.A = t%d.A)", i, chain, i-1, i)
	}
	for i := range 5000 {
		fmt.Fprintf(&lists, "%d, ", i)
	}
	for name, sql := range map[string]string{
		"joins":        "SELECT t.A FROM T t" + joins.String(),
		"right-deep":   "SELECT T.A FROM T LEFT JOIN " + chain + " ON t17.A = T.A",
		"not in":       "SELECT A FROM T WHERE " + nest(20, "N NOT IN (SELECT N FROM U WHERE ", "TRUE", ")"),
		"exists":       "SELECT A FROM T WHERE " + nest(20, "EXISTS (SELECT 1 FROM U WHERE U.A = T.A AND ", "TRUE", ")"),
		"scalar or":    "SELECT A FROM T WHERE " + nest(20, "A = 1 OR B = (SELECT MAX(N) FROM U WHERE ", "TRUE", ")"),
		"in list":      "SELECT A FROM T WHERE A IN (" + lists.String() + "1) AND B IN (" + lists.String() + "1)",
		"and":          "SELECT A FROM T WHERE " + strings.Repeat("A > 1 AND ", 300) + "TRUE",
		"or":           "SELECT A FROM T WHERE " + strings.Repeat("(A = 1 AND B = 2) OR ", 300) + "FALSE",
		"and or":       "SELECT A FROM T WHERE " + nest(30, "(A = 1 OR (B = 2 AND ", "TRUE", "))"),
		"projections":  "SELECT A FROM " + nest(30, "(SELECT A, A + 1 AS B FROM ", "T", ")"),
		"unions":       "SELECT A FROM (" + strings.Repeat("SELECT A FROM T UNION ALL ", 100) + "SELECT A FROM T) WHERE A = 1",
		"struct equal": "SELECT A FROM T WHERE " + nest(12, "(A, ", "B", ")") + " = " + nest(12, "(1, ", "2", ")"),
	} {
		t.Run(name, func(t *testing.T) {
			stmt, _, err := db.analyzer.Statement(context.Background(), sql, nil, analyze.Options{})
			if err != nil {
				t.Skip(err)
			}
			words := float64(len(strings.Fields(sql)))
			var p *plan.Plan
			allocations := testing.AllocsPerRun(1, func() {
				if p, err = plan.Build(stmt, db.catalog, plan.Options{}); err != nil {
					t.Fatal(err)
				}
			})
			nodes := float64(len(p.Proto(nil, nil).PlanNodes))
			t.Logf("for each of %v words: %.1f allocations, %.2f nodes", words, allocations/words, nodes/words)
			if allocations > maxAllocations*words {
				t.Errorf("%v words were planned with %v allocations", words, allocations)
			}
			if nodes > maxNodes*words {
				t.Errorf("%v words became %v nodes", words, nodes)
			}
		})
	}
}

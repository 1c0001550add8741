package exec_test

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestRandomViews checks that a query of a view returns the same rows as the query that has the SQL of the view in
// place of the view's name. Both must also have the same plan, except if the view V has its definer's rights: the plan
// can then have a barrier (plan/barrier.go) that the plan of the bare SQL does not have.
func TestRandomViews(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(*seedFlag, 0)))
	for seed := *seedFlag; seed < *seedFlag+uint64(*roundsFlag)/20; seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 9))}
		below, above := g.view("T"), g.view("V")
		security := g.pick("INVOKER", "DEFINER")
		out := db.ddl("CREATE OR REPLACE VIEW V SQL SECURITY " + security + " AS " + below + ";\n" +
			"CREATE OR REPLACE VIEW W SQL SECURITY INVOKER AS " + above + ";\n")
		if out != "" {
			t.Fatalf("seed %d: %s", seed, out)
		}
		inline := map[string]string{"V": "(" + below + ")", "W": "(" + strings.ReplaceAll(above, "FROM V AS", "FROM ("+below+") AS") + ")"}
		for range 6 {
			of := g.pick("V", "W")
			query := g.overView()
			view, text := strings.ReplaceAll(query, "$view", of), strings.ReplaceAll(query, "$view", inline[of])
			if a, b := db.explain(view), db.explain(text); a != b && security == "INVOKER" {
				t.Fatalf("seed %d:\n%s\nhas the plan\n%s\n%s\nhas the plan\n%s", seed, view, a, text, b)
			}
			compareRows(t, db, seed, view, text, db.sortedRows(t, view), db.sortedRows(t, text))
		}
	}
}

// view returns the SQL of a random view over the table or view that its argument names. That table or view must have
// the columns of T. The random view has these columns too.
func (g generator) view(of string) string {
	p := g.predicate("t.", 2)
	switch g.IntN(5) {
	case 0:
		return "SELECT t.A, t.B, t.S, t.F, t.D, t.L, t.N FROM " + of + " AS t WHERE " + p
	case 1:
		return "SELECT t.N AS A, t.B + 1 AS B, CONCAT(t.S, 'a') AS S, t.F, t.D, NOT t.L AS L, t.A AS N FROM " + of + " AS t WHERE " + p
	case 2:
		return "SELECT t.A, t.B, MAX(t.S) AS S, MIN(t.F) AS F, MAX(t.D) AS D, LOGICAL_OR(t.L) AS L, COUNT(*) AS N FROM " + of + " AS t WHERE " + p + " GROUP BY t.A, t.B"
	case 3:
		return "SELECT t.A, u.B, u.S, t.F, t.D, t.L, (SELECT MAX(x.N) FROM U AS x WHERE x.A = t.A) AS N FROM " + of + " AS t LEFT JOIN U AS u ON u.A = t.A AND u.B = t.B WHERE " + p
	}
	return "SELECT t.A, t.B, t.S, t.F, t.D, t.L, t.N FROM " + of + " AS t WHERE " + p +
		" UNION ALL SELECT u.A, u.B, u.S, CAST(NULL AS FLOAT64), CAST(NULL AS DATE), TRUE, u.N FROM U AS u"
}

// overView returns a random query of $view, which the caller replaces by the name or the SQL of a view.
func (g generator) overView() string {
	p := g.predicate("v.", 2)
	switch g.IntN(5) {
	case 0:
		return "SELECT v.A, v.S FROM $view AS v WHERE " + p
	case 1:
		return "SELECT COUNT(*), SUM(v.N) FROM $view AS v WHERE " + p + " GROUP BY v.L"
	case 2:
		return "SELECT v.N, t.S FROM $view AS v JOIN T AS t ON t.A = v.A AND t.B = v.B WHERE " + p
	case 3:
		return "SELECT v.A FROM T AS v WHERE v.N IN (SELECT x.N FROM $view AS x WHERE x.A = v.A) OR " + p
	}
	return "SELECT v.A, v.B, w.D FROM $view AS v LEFT JOIN $view AS w ON w.A = v.A AND " + p
}

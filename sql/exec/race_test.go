package exec_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/table"
)

// TestConcurrentRuns checks that several goroutines can run one program at once. Each run must return as many rows as a
// run alone, with the same first row.
func TestConcurrentRuns(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(1, 0)))
	for _, sql := range []string{
		"SELECT A, S FROM T WHERE A = 3",
		"SELECT IF(N > 1, UPPER(S), 'x'), COALESCE(N, A) FROM T WHERE S LIKE 'a%' OR N IN (1, 2)",
		"SELECT t.A, COUNT(*), ARRAY_AGG(u.S ORDER BY u.S LIMIT 2) FROM T t JOIN U u ON t.A = u.A GROUP BY t.A",
		"SELECT A, (SELECT MAX(N) FROM U WHERE U.A = T.A), N IN (SELECT N FROM U) FROM T",
		"WITH w AS (SELECT A, N FROM T) SELECT x.A FROM w x JOIN w y ON x.N = y.A",
	} {
		p, err := db.plan(sql, nil)
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		program, err := exec.Compile(p, table.NewDescriptors(db.catalog))
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		want := db.rowsOf(t, p, program)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 20 {
					if got := db.rowsOf(t, p, program); len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
						t.Errorf("%s: got %q, alone %q", sql, got, want)
					}
				}
			})
		}
		wg.Wait()
	}
}

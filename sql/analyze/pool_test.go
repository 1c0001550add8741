package analyze

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// turns is a pool of which tests use only the queues: statements wait for their turn and give it back, but none is
// analyzed.
type turns struct {
	*pool
	got []int // weights of the statements that got a turn, in the order of their turns
}

// send waits for a turn in a new goroutine, and then appends the weight to the field got.
func (p *turns) send(ctx context.Context, weight int) {
	go func() {
		q := &p.light
		if weight > lightWeight {
			q = &p.heavy
		}
		if p.wait(ctx, q, weight) == nil {
			p.got = append(p.got, weight)
		}
	}()
	synctest.Wait()
}

// TestLightPassesHeavy: a light statement gets a turn at once, even while heavy statements have all turns for heavy
// statements and further heavy statements wait.
func TestLightPassesHeavy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &turns{pool: newPool()}
		const heavy = lightWeight + 1
		for range heavyEngines + 3 {
			p.send(t.Context(), heavy)
		}
		p.send(t.Context(), 1)
		if got, want := fmt.Sprint(p.got), fmt.Sprint([]int{heavy, heavy, 1}); got != want {
			t.Errorf("turns %s, want %s", got, want)
		}
		for range 3 {
			p.done(&p.heavy)
			synctest.Wait()
		}
		if len(p.got) != heavyEngines+4 {
			t.Errorf("turns %v: a heavy statement still waits", p.got)
		}
	})
}

// TestLighterFirst: the lightest of the waiting heavy statements gets the next turn, but at most maxPassed later
// statements pass an earlier one.
func TestLighterFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &turns{pool: newPool()}
		for range heavyEngines {
			p.send(t.Context(), 1_000_000)
		}
		p.got = nil
		p.send(t.Context(), 900_000)
		for i := range maxPassed + 2 {
			p.send(t.Context(), 20_000-i)
		}
		for range maxPassed + 3 {
			p.done(&p.heavy)
			synctest.Wait()
		}
		for i, weight := range p.got {
			if heavy := weight == 900_000; heavy != (i == maxPassed) {
				t.Errorf("turns %v: the heaviest statement was to have turn %d", p.got, maxPassed)
				break
			}
		}
		if p.got[0] != 20_000-maxPassed-1 {
			t.Errorf("turns %v: the lightest statement was to have the first", p.got)
		}
	})
}

// TestWaitEnds: a statement stops waiting at the deadline of its request. If it has got its turn just then, the turn
// becomes free.
func TestWaitEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool()
		for range lightEngines {
			if err := p.wait(t.Context(), &p.light, 1); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := p.wait(ctx, &p.light, 1); err != context.DeadlineExceeded {
			t.Errorf("the wait ended with %v", err)
		}
		if len(p.light.waiting) != 0 {
			t.Errorf("%d statements wait", len(p.light.waiting))
		}
		w := p.light.join(1)
		p.done(&p.light)
		p.light.leave(w) // as if the statement's context ended just after the statement got its turn
		if p.light.free != 1 {
			t.Errorf("%d turns are free, want 1", p.light.free)
		}
	})
}

// TestBesideHeavy: while the maximum number of heavy statements is analyzed, a light statement is analyzed too. A
// further heavy statement must wait, so it fails because its context has ended.
func TestBesideHeavy(t *testing.T) {
	a := testAnalyzer(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var beside func(n int)
	beside = func(n int) {
		if n == 0 {
			stmt, _, err := a.Statement(t.Context(), "SELECT K FROM T", nil, Options{})
			if err != nil || !strings.Contains(tree.Print(stmt), "K#") {
				t.Errorf("a light statement: %v", err)
			}
			if _, _, err := a.Statement(ctx, heavyText(10_000), nil, Options{}); err != context.Canceled {
				t.Errorf("a heavy statement that must wait: %v", err)
			}
			return
		}
		err := engines.run(t.Context(), lightWeight+1, nil, func(e *engine) {
			e.leave()
			beside(n - 1)
			e.enter()
		})
		if err != nil {
			t.Error(err)
		}
	}
	beside(heavyEngines)
}

// heavyText returns a query of an array with n values.
func heavyText(n int) string { return "SELECT [1" + strings.Repeat(",1", n-1) + "]" }

// TestLimitsWithoutLibrary: a text beyond one of Spanner's limits is refused even while the pool has no engine to
// lend.
func TestLimitsWithoutLibrary(t *testing.T) {
	p := engines
	engines = &pool{}
	t.Cleanup(func() { engines = p })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := testAnalyzer(t)
	parameters := make([]string, maxParameters+1)
	for i := range parameters {
		parameters[i] = fmt.Sprintf("@p%d", i)
	}
	for sql, want := range map[string]string{
		"SELECT '" + strings.Repeat("x", maxLength) + "'":                     "Query string length of 1000009 exceeds maximum allowed length of 1000000",
		"SELECT 1 FROM T WHERE K=1" + strings.Repeat(" AND K=1", 55_504):      "Number of functions exceeds the maximum allowed limit of 1000.",
		"SELECT 1 FROM T WHERE K=1" + strings.Repeat(" OR K=2", 1000):         "Number of functions exceeds the maximum allowed limit of 1000.",
		"SELECT " + strings.Repeat("ABS(K),", 1001) + "K FROM T":              "Number of functions exceeds the maximum allowed limit of 1000.",
		"SELECT 'a'" + strings.Repeat("||'a'", 1001):                          "Number of functions exceeds the maximum allowed limit of 1000.",
		"SELECT 1 FROM T WHERE K IN (1" + strings.Repeat(",1", 10_000) + ")":  "Number of values in the IN operator exceeds the maximum allowed limit of 10000.",
		"SELECT " + strings.Join(parameters, ","):                             "Number of parameters in query exceeds the maximum allowed limit of 950.",
		"SELECT ARRAY(SELECT STRUCT(1" + strings.Repeat(",1", 1000) + "))":    "Number of struct fields exceeds the maximum allowed limit of 1000.",
		"SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 201):               "Number of UNION operations exceeds the maximum allowed limit of 200.",
		"SELECT 1 FROM T GROUP BY 1" + strings.Repeat(",1", 1000):             "Number of grouping columns exceeds the maximum allowed limit of 1000.",
		"SELECT 1 FROM T" + strings.Repeat(", T", 65):                         "Number of joins exceeds the maximum allowed limit of 20.",
		"SELECT " + strings.Repeat("(", 301) + "1" + strings.Repeat(")", 301): "Query is nested deeper than the maximum allowed limit of 300. [at 1:308]",
	} {
		if _, _, err := a.Statement(ctx, sql, nil, Options{AllowUnbound: true}); err == nil || err.Error() != want {
			t.Errorf("%.50s...: %v, want %s", sql, err, want)
		}
	}
	if _, _, err := a.Statement(ctx, "SELECT 1", nil, Options{}); err != context.Canceled {
		t.Errorf("a statement within the limits: %v", err)
	}
	if _, _, _, err := Expr(ctx, a.catalog, a.catalog.Table("T"), "1", value.Int64Type); err != context.Canceled {
		t.Errorf("an expression: %v", err)
	}
}

// TestHeavyIsCharged: the memory for a heavy statement's engine is charged to the budget. A statement is refused if
// the budget has too little memory left for its engine.
func TestHeavyIsCharged(t *testing.T) {
	budget := memory.NewBudget(100 << 20)
	p := newPool()
	var reserved int64
	err := p.run(t.Context(), lightWeight+1, budget, func(*engine) { reserved = budget.Usage().Reserved })
	if err != nil || reserved < engineBytes {
		t.Errorf("%d bytes were taken: %v", reserved, err)
	}
	if reserved := budget.Usage().Reserved; reserved != 0 {
		t.Errorf("%d bytes are left", reserved)
	}
	err = p.run(t.Context(), 1_000_000, budget, func(*engine) { t.Error("an engine was lent") })
	if usererror.CodeOf(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	if err := p.run(t.Context(), 1, budget, func(*engine) { reserved = budget.Usage().Reserved }); err != nil || reserved != 0 {
		t.Errorf("a light statement took %d bytes: %v", reserved, err)
	}
}

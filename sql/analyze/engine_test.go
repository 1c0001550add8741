package analyze

import (
	"context"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestInterrupt: GoogleSQL's library stops its work for a heavy statement when the statement's context ends.
func TestInterrupt(t *testing.T) {
	a := testAnalyzer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	// For this many names the library takes a minute or more, so the call ends early only if the library is stopped.
	sql := "SELECT K" + strings.Repeat(",K", 200_000) + " FROM T"
	w := &walker{catalog: a.catalog}
	w.declare(nil)
	err := a.with(ctx, lightWeight+1, sql, func(l *library) {
		cancel()
		w.analyze(l, sql)
	})
	if err != context.Canceled {
		t.Errorf("the analysis ended with %v", err)
	}
	if _, _, err := a.Statement(t.Context(), "SELECT K FROM T", nil, Options{}); err != nil {
		t.Error(err)
	}
}

// TestWalkEnds: the walk through the tree of a heavy statement ends when the statement's context ends.
func TestWalkEnds(t *testing.T) {
	a := testAnalyzer(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := a.with(ctx, lightWeight+1, "", func(l *library) {
		cancel()
		for { // this loop acts like the walk through an endless tree
			l.engine.entered = l.engine.entered.Add(-restAfter)
			l.engine.rest()
		}
	})
	if err != context.Canceled {
		t.Errorf("the walk ended with %v", err)
	}
}

// TestSlowIsHeavy: a statement of low weight takes too long, either in GoogleSQL's library or in the walk through the
// tree. The pool stops the statement and gives it an engine for itself.
func TestSlowIsHeavy(t *testing.T) {
	a := testAnalyzer(t)
	sql := "SELECT K" + strings.Repeat(",K", 200_000) + " FROM T"
	for name, work := range map[string]func(l *library){
		"library": func(l *library) {
			w := &walker{catalog: a.catalog}
			w.declare(nil)
			w.analyze(l, sql)
		},
		"walk": func(l *library) {
			for { // this loop acts like the walk through an endless tree
				l.engine.entered = l.engine.entered.Add(-restAfter)
				l.engine.rest()
			}
		},
	} {
		calls := 0
		err := a.with(t.Context(), lightWeight, sql, func(l *library) {
			if calls++; !l.engine.discard {
				work(l)
			}
		})
		if err != nil || calls != 2 {
			t.Errorf("%s: %d calls: %v", name, calls, err)
		}
	}
	if _, _, err := a.Statement(t.Context(), "SELECT K FROM T", nil, Options{}); err != nil {
		t.Error(err)
	}
}

// TestTooMuchMemory: a statement fails with RESOURCE_EXHAUSTED when GoogleSQL's library has used the maximum memory of
// an engine. The next statement is analyzed as usual.
func TestTooMuchMemory(t *testing.T) {
	a := testAnalyzer(t)
	err := a.with(t.Context(), 1, "T", func(l *library) {
		l.engine.core.MaxMem = uint64(len(l.engine.core.Memory)) + 1<<20
		w := &walker{catalog: a.catalog}
		w.declare(nil)
		w.analyze(l, heavyText(100_000))
	})
	if usererror.CodeOf(err) != codes.ResourceExhausted {
		t.Error(err)
	}
	if _, _, err := a.Statement(t.Context(), "SELECT K FROM T", nil, Options{}); err != nil {
		t.Error(err)
	}
}

// TestRest: while one goroutine walks through a large tree in its engine, another goroutine can enter another engine.
func TestRest(t *testing.T) {
	var entered atomic.Bool
	var other sync.WaitGroup
	err := engines.run(t.Context(), 1, nil, func(e *engine) {
		other.Go(func() {
			err := engines.run(t.Context(), 1, nil, func(*engine) { entered.Store(true) })
			if err != nil {
				t.Error(err)
			}
		})
		for !entered.Load() {
			e.entered = e.entered.Add(-restAfter)
			e.rest()
		}
	})
	if err != nil {
		t.Error(err)
	}
	other.Wait()
}

// TestParallel analyzes light and heavy statements side by side. Each gets the same tree as when it is analyzed
// alone.
func TestParallel(t *testing.T) {
	a := fuzzAnalyzer(t)
	texts := []string{heavyText(6_000), "SELECT * FROM T JOIN U USING (K)", "SELECT S, COUNT(*) FROM T WHERE N > 1.5 GROUP BY S", "INSERT INTO U (K, V) VALUES (1, 2), (3, NULL)"}
	want := make([]string, len(texts))
	dump := func(i int) string {
		stmt, _, err := a.Statement(t.Context(), texts[i], nil, Options{})
		if err != nil {
			t.Error(err)
			return ""
		}
		return tree.Print(stmt)
	}
	for i := range texts {
		want[i] = dump(i)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 10 {
				if at := (i + j) % len(texts); dump(at) != want[at] {
					t.Errorf("%.50s...: the tree is another one", texts[at])
				}
			}
		})
	}
	all.Wait()
}

// TestNoFinalizers: no handle keeps the finalizer that the library sets for it. A finalizer could run while another
// engine is the current one, and would then free memory of that engine.
func TestNoFinalizers(t *testing.T) {
	a := fuzzAnalyzer(t)
	queued := []metrics.Sample{{Name: "/gc/finalizers/queued:finalizers"}}
	count := func() uint64 {
		runtime.GC()
		metrics.Read(queued)
		return queued[0].Value.Uint64()
	}
	before := count()
	for _, sql := range goldenStatements(t) {
		if err := checkText(a, sql); err != nil {
			t.Error(err)
		}
	}
	a.Release()
	if got := count(); got != before {
		t.Errorf("%d finalizers ran", got-before)
	}
}

// TestBuiltInsAreShared: an engine's catalog for a schema has no built-in functions of its own until a text names a
// sequence. Then the catalog gets them, because GoogleSQL looks for sequences only in a catalog that itself has the
// functions.
func TestBuiltInsAreShared(t *testing.T) {
	catalog, err := applyAll(schema.NewCatalog(), "CREATE TABLE T (K INT64, V STRING(MAX)) PRIMARY KEY (K);\nCREATE SEQUENCE Numbers BIT_REVERSED_POSITIVE")
	if err != nil {
		t.Fatal(err)
	}
	a := New(catalog, nil)
	for _, c := range []struct {
		sql   string
		whole bool
	}{{"SELECT UPPER(V) FROM T", false}, {"SELECT GET_NEXT_SEQUENCE_VALUE(SEQUENCE Numbers)", true}, {"SELECT LOWER(V) FROM T", true}} {
		err := a.with(t.Context(), 1, c.sql, func(l *library) {
			w := &walker{catalog: a.catalog}
			w.declare(nil)
			w.analyze(l, c.sql)
			if own := len(get(l.root.FunctionNames())) > 100; own != c.whole {
				t.Errorf("%s: the schema has functions of its own: %v", c.sql, own)
			}
		})
		if err != nil {
			t.Errorf("%s: %v", c.sql, err)
		}
	}
}

// TestColumnsOfExpression: GoogleSQL gets only the columns that an expression names. If GoogleSQL refuses the
// expression, it then gets all columns, so that its message can suggest one.
func TestColumnsOfExpression(t *testing.T) {
	catalog, err := applyAll(schema.NewCatalog(), "CREATE TABLE T (K INT64, Amount INT64, `Value` INT64) PRIMARY KEY (K)")
	if err != nil {
		t.Fatal(err)
	}
	of := catalog.Table("T")
	for sql, want := range map[string]string{"amount + 1": "Amount", "`value` * K": "K Value", "expr.Amount": "Amount", "'Amount'": "", "1": ""} {
		var names []string
		for _, c := range namedColumns(of, sql) {
			names = append(names, c.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%s names %q, want %q", sql, got, want)
		}
		if _, uses, _, err := Expr(t.Context(), catalog, of, sql, value.StringType); err == nil && len(uses) != len(names) {
			t.Errorf("%s reads %d columns", sql, len(uses))
		}
	}
	if _, _, _, err := Expr(t.Context(), catalog, of, "Amoun + 1", value.Int64Type); err == nil || !strings.Contains(err.Error(), "Did you mean Amount?") {
		t.Errorf("a misspelt column: %v", err)
	}
}

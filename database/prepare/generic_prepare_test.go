package prepare_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/cache"
	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/stats"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestPrepareOnce sends one text many times at once to a schema version that has not prepared it. All requests must get
// the same statement.
func TestPrepareOnce(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	var wg sync.WaitGroup
	got := make([]*prepare.Statement, 16)
	for i := range got {
		wg.Go(func() {
			var err error
			if got[i], err = b.prepare("SELECT T.V FROM T JOIN T AS U USING (K) WHERE U.V > @p", nil, prepare.Options{AllowUnbound: true}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, s := range got {
		if s != got[0] {
			t.Fatal("the text was prepared more than once")
		}
	}
}

// TestDistinctLiteralsSharePlan prepares one statement with many different literals, and checks that the statements
// share a plan.
func TestDistinctLiteralsSharePlan(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64, S STRING(MAX)) PRIMARY KEY (K)")
	text := func(i int) string { return fmt.Sprintf("SELECT V FROM T WHERE K = %d AND S != 'it'", i) }
	for i := range prepare.TextsBeforeGeneric {
		b.mustPrepare(text(i))
	}
	one, other := b.mustPrepare(text(100)), b.mustPrepare(text(101))
	if one.Prepared != other.Prepared || !one.Shares() {
		t.Fatal("no plan is shared")
	}
	if one.Text != stats.TextOf(text(100)) || other.Text != stats.TextOf(text(101)) {
		t.Errorf("the texts are %v and %v", one.Text, other.Text)
	}
	if one.FirstUse() {
		t.Error("the text that was prepared last has paid for the plan")
	}
	for i := range 20_000 {
		b.mustPrepare(text(i))
	}
	if statements, texts := one.Preparer().Kept(); statements != prepare.TextsBeforeGeneric || texts != 1 {
		t.Errorf("%d statements and %d normalized texts are kept", statements, texts)
	}
	if s := b.mustPrepare(text(0)); s.Shares() {
		t.Error("a text that was prepared by itself is found no more")
	}

	// An error must quote the text with its literals. A text with options must get a plan of its own. For example, a
	// client that asks to see the plan must see the literals of its own text.
	_, err := b.prepare("SELECT V FROM T WHERE K = 99999999999999999999 AND S != 'it'", nil, prepare.Options{})
	wantCode(t, err, codes.InvalidArgument)
	if !strings.Contains(err.Error(), "[at 1:27]") {
		t.Errorf("the place is missing: %v", err)
	}
	for _, opts := range []prepare.Options{{Verbatim: true}, {AllowUnbound: true}, {Batch: true}} {
		s, err := b.prepare(text(102), nil, opts)
		if err != nil || s.Shares() {
			t.Errorf("%+v: %v, %v", opts, s, err)
		}
	}
	// A plan is not shared with another schema version.
	b.alter("ALTER TABLE T DROP COLUMN S")
	_, err = b.prepare(text(200), nil, prepare.Options{})
	wantCode(t, err, codes.InvalidArgument)
}

// TestGenericPlanWithParameters checks the generic plan of texts that have both literals and parameters of the request.
// The plan must have a parameter of the right type for each literal, and must keep the parameters of the request.
func TestGenericPlanWithParameters(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V FLOAT64) PRIMARY KEY (K)")
	text := func(i int) string {
		return fmt.Sprintf("SELECT K FROM T WHERE V > @low AND K < %d AND K != @no AND V < %d", i, i)
	}
	params := map[string]*value.Type{"low": value.Float64Type, "no": nil}
	var s *prepare.Statement
	for i := range prepare.TextsBeforeGeneric + 1 {
		var err error
		if s, err = b.prepare(text(i), params, prepare.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	for i, p := range s.Plan.Params {
		if v, ok := s.Literal(i); ok {
			got[p.Name] = fmt.Sprint(p.Type, " ", v.Kind())
		} else {
			got[p.Name] = "given"
		}
	}
	if want := "map[$i0:INT64 INT64 $i1:FLOAT64 FLOAT64 low:given no:given]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if len(s.Undeclared) != 1 || s.Undeclared[0].Name != "no" || !s.Undeclared[0].Type.Equal(value.Int64Type) {
		t.Errorf("undeclared are %v", s.Undeclared)
	}
	// A text with other declared types is another statement, with a plan of its own.
	if s, err := b.prepare(text(50), map[string]*value.Type{"low": value.Float64Type, "no": value.Int64Type}, prepare.Options{}); err != nil || s.Shares() {
		t.Errorf("%v, %v", s, err)
	}
}

// TestNoGenericPlan checks that texts for which a generic plan would be wrong share no plan.
func TestNoGenericPlan(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64, J JSON) PRIMARY KEY (K)")
	for _, text := range []string{
		"SELECT V = %[1]d FROM T GROUP BY V = %[1]d",        // with parameters, the two expressions would differ
		"SELECT K FROM T WHERE 2 = %d",                      // planning folds the condition, so plans differ
		"SELECT K FROM T WHERE V = 60 * %d",                 // planning folds the product, so plans differ
		"SELECT K FROM T WHERE %d NOT IN (SELECT V FROM T)", // normalization keeps this literal
	} {
		for i := range 2 * prepare.TextsBeforeGeneric {
			if s := b.mustPrepare(fmt.Sprintf(text, i)); s.Shares() {
				t.Errorf("%s shares a plan", s.Text.SQL)
			}
		}
	}
}

// TestManyTexts normalizes more texts than the cache may hold. The cache must stay within its limit.
func TestManyTexts(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	p := b.mustPrepare("SELECT 2").Preparer()
	for i := range 3 * cache.Entries {
		p.Normalize(fmt.Sprintf("SELECT K AS k%d FROM T WHERE K = 1", i), nil, prepare.Options{})
	}
	if _, texts := p.Kept(); texts > 2*cache.Entries {
		t.Errorf("%d normalized texts are kept", texts)
	}
	if p.Has("SELECT 1") {
		t.Error("what was never prepared is found")
	}
}

// TestGenericPlanConcurrently checks that several goroutines can prepare texts at once that differ only in literals,
// and that such texts share a plan afterwards.
func TestGenericPlanConcurrently(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 20 {
				if _, err := b.prepare(fmt.Sprintf("SELECT V FROM T WHERE K = %d", g*100+i), nil, prepare.Options{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	s := b.mustPrepare("SELECT V FROM T WHERE K = 7 -- again")
	if !s.Shares() {
		t.Error("no plan is shared")
	}
}

// BenchmarkDistinctLiterals prepares statements with a literal that is different each time.
func BenchmarkDistinctLiterals(b *testing.B) {
	bed := create(b, "CREATE TABLE T (K INT64, V INT64, S STRING(MAX)) PRIMARY KEY (K)")
	for _, statement := range []struct{ name, text string }{
		{"point", "SELECT V, S FROM T WHERE K = %d"},
		{"update", "UPDATE T SET V = V + 1, S = 'name' WHERE K = %d"},
		{"insert", "INSERT INTO T (K, V, S) VALUES (%d, 17, 'name')"},
		{"folded", "SELECT V FROM T WHERE K = %d + 0"}, // no plan is shared, since planning adds the numbers
	} {
		b.Run(statement.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if _, err := bed.prepare(fmt.Sprintf(statement.text, int64(i)+time.Now().UnixNano()), nil, prepare.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package analyze

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// FuzzStatement looks for three faults: a text that gives neither a tree nor an error for the user, a tree that cannot
// be printed, and a statement for which KindOf returns the wrong kind.
func FuzzStatement(f *testing.F) {
	for _, sql := range goldenStatements(f) {
		f.Add(sql)
	}
	for _, statement := range nested {
		f.Add(statement(3))
	}
	a := fuzzAnalyzer(f)
	f.Fuzz(func(t *testing.T, sql string) {
		if err := checkText(a, sql); err != nil {
			t.Fatal(err)
		}
	})
}

func fuzzAnalyzer(t testing.TB) *Analyzer {
	c, err := applyAll(schema.NewCatalog(), `CREATE TABLE T (K INT64, S STRING(MAX), N NUMERIC, C TIMESTAMP) PRIMARY KEY (K);
CREATE UNIQUE INDEX I ON T (S);
CREATE TABLE U (K INT64, V INT64) PRIMARY KEY (K);
CREATE TABLE Singers (SingerId INT64, Name STRING(MAX), Born DATE, Score FLOAT64, Tags ARRAY<STRING(MAX)>, Updated TIMESTAMP) PRIMARY KEY (SingerId);
CREATE INDEX SingersByName ON Singers (Name);
CREATE TABLE Albums (SingerId INT64, AlbumId INT64, Title STRING(MAX), Price NUMERIC) PRIMARY KEY (SingerId, AlbumId)`)
	if err != nil {
		t.Fatal(err)
	}
	return New(c, nil, systemTable)
}

// checkText analyzes a text, with and without its literals, and returns an error if the result has one of the faults
// that FuzzStatement looks for.
func checkText(a *Analyzer, sql string) error {
	params := map[string]*value.Type{"p": value.Int64Type}
	stmt, _, err := a.Statement(context.Background(), sql, params, Options{AllowUnbound: true})
	normalized, ok := Normalize(sql)
	if err != nil {
		if _, user := usererror.As(err); !user {
			return err
		}
		return nil
	}
	if tree.Print(stmt) == "" {
		return errors.New("the tree is empty")
	}
	if got, want := KindOf(sql), kindOfTree(stmt); got != want {
		return fmt.Errorf("KindOf is %d, the statement is %d", got, want)
	}
	if !ok {
		return nil
	}
	for _, l := range normalized.Literals {
		params[l.Param] = l.Type
	}
	if _, _, err := a.Statement(context.Background(), normalized.Text, params, Options{AllowUnbound: true}); err != nil && usererror.CodeOf(err) == codes.Internal {
		return fmt.Errorf("with parameters in the place of literals: %w", err)
	}
	return nil
}

var (
	randomTexts = flag.Int("texts", 500, "how many texts TestRandomTexts makes")
	randomSeed  = flag.Uint64("seed", 1, "of TestRandomTexts")
)

// TestRandomTexts looks for the same faults as FuzzStatement. It runs without the fuzzer's instrumentation, which
// takes minutes and gigabytes to build for the library. It deletes, doubles, swaps and mixes tokens of the golden
// statements.
func TestRandomTexts(t *testing.T) {
	a := fuzzAnalyzer(t)
	var texts [][]string
	var pool []string
	for _, sql := range goldenStatements(t) {
		var tokens []string // each with the white space before it
		end := 0
		for s := (scanner{sql: sql}); s.next(); end = s.pos {
			tokens = append(tokens, sql[end:s.pos])
		}
		texts = append(texts, tokens)
		pool = append(pool, tokens...)
	}
	random := rand.New(rand.NewPCG(*randomSeed, 0))
	trees := 0
	for i := range *randomTexts {
		tokens := slices.Clone(texts[random.IntN(len(texts))])
		for range 1 + random.IntN(4) {
			tokens = mutate(random, tokens, pool)
		}
		sql := strings.Join(tokens, "")
		if err := checkText(a, sql); err != nil {
			t.Errorf("seed %d, text %d: %q: %.2000v", *randomSeed, i, sql, err)
		}
		if _, _, err := a.Statement(context.Background(), sql, nil, Options{AllowUnbound: true}); err == nil {
			trees++
		}
	}
	t.Logf("%d of %d texts are statements", trees, *randomTexts)
}

// alike returns a random token from the pool that begins like token: a word for a word, a number for a number. It
// tries 20 times, and then returns token itself.
func alike(random *rand.Rand, token string, pool []string) string {
	class := func(token string) byte {
		switch c := strings.TrimSpace(token)[0]; {
		case c >= '0' && c <= '9':
			return '0'
		case c >= 'a' && c <= 'z':
			return 'a'
		case c >= 'A' && c <= 'Z':
			return 'A'
		default:
			return c
		}
	}
	for range 20 {
		if other := pool[random.IntN(len(pool))]; class(other) == class(token) {
			return other
		}
	}
	return token
}

func mutate(random *rand.Rand, tokens, pool []string) []string {
	if len(tokens) == 0 {
		return tokens
	}
	i, j := random.IntN(len(tokens)), random.IntN(len(tokens))
	switch random.IntN(8) {
	case 0:
		return slices.Delete(tokens, i, i+1)
	case 1:
		return slices.Insert(tokens, i, " "+tokens[j])
	case 2:
		tokens[i], tokens[j] = tokens[j], tokens[i]
	case 3, 4, 5, 6:
		tokens[i] = " " + alike(random, tokens[i], pool)
	case 7:
		return slices.Insert(tokens, i, " "+pool[random.IntN(len(pool))])
	}
	return tokens
}

// goldenStatements returns the statements of the golden scripts.
func goldenStatements(t testing.TB) []string {
	files, err := filepath.Glob("testdata/*")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			continue
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range strings.Split(string(data), "\nanalyze")[1:] {
			_, d, _ = strings.Cut(d, "\n")
			sql, _, _ := strings.Cut(d, "\n----")
			list = append(list, sql)
		}
	}
	return list
}

func kindOfTree(s tree.Statement) Kind {
	switch s.(type) {
	case *tree.Query:
		return QueryKind
	case *tree.Insert:
		return InsertKind
	case *tree.Update:
		return UpdateKind
	case *tree.Delete:
		return DeleteKind
	case *tree.Procedure:
		return CallKind
	}
	return OtherKind
}

// TestConcurrent analyzes different statements on two schemas at once. Meanwhile one of the two schemas is released
// again and again.
func TestConcurrent(t *testing.T) {
	a, b := testAnalyzer(t), New(schema.NewCatalog(), nil, systemTable)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 20 {
				sql := fmt.Sprintf("SELECT K + %d FROM T WHERE K = @p%d", j, i)
				stmt, found, err := a.Statement(context.Background(), sql, map[string]*value.Type{fmt.Sprint("P", i): nil}, Options{})
				if err != nil {
					t.Errorf("%s: %v", sql, err)
					return
				}
				if text := tree.Print(stmt); !strings.Contains(text, fmt.Sprintf("$add(K#1, %d)", j)) || len(found.Inferred) != 1 {
					t.Errorf("%s: %s", sql, text)
				}
				if _, _, err := b.Statement(context.Background(), "SELECT 1 FROM T", nil, Options{}); err == nil {
					t.Error("a table of the other schema was found")
				}
				if i == 0 {
					a.Release()
				}
			}
		})
	}
	wg.Wait()
}

// TestMemoryLevel: the memory of thousands of statements and hundreds of schemas is freed without finalizers. Go's
// collector is off, so that finalizers do not run. The library's memory never shrinks, so the test compares its size at
// the beginning and at the end.
func TestMemoryLevel(t *testing.T) {
	const (
		statements = 3000
		schemas    = 200
		slack      = 32 << 20 // bytes; if nothing were freed, the statements would take 300 MiB, the schemas 150 MiB
	)
	var ddl []string
	for i := range 20 {
		ddl = append(ddl, fmt.Sprintf("CREATE TABLE T%d (K INT64, A STRING(MAX), B ARRAY<STRING(MAX)>, C NUMERIC) PRIMARY KEY (K)", i))
	}
	c, err := applyAll(schema.NewCatalog(), strings.Join(ddl, ";\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := New(c, nil)
	statement := func(a *Analyzer, i int) {
		sql := fmt.Sprintf("SELECT x.A, COUNT(*) AS n%d FROM T1 x JOIN T2 y USING (K) WHERE x.C > %d GROUP BY x.A ORDER BY n%d", i, i, i)
		if _, _, err := a.Statement(context.Background(), sql, nil, Options{}); err != nil {
			t.Fatal(err)
		}
	}
	statement(a, 0)
	before := liveHeap()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	for i := range statements {
		statement(a, i)
	}
	for i := range schemas {
		b := New(c, nil)
		statement(b, i)
		b.Release()
	}
	if grown := int64(liveHeap()) - int64(before); grown > slack {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // the second collection frees objects that finalizers kept alive
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestWithoutZones: in a process whose library finds no zone database, timestamp literals still have the right zone.
// The test runs itself in a child process.
func TestWithoutZones(t *testing.T) {
	const child = "CROWFOOT_TEST_WITHOUT_ZONES"
	if os.Getenv(child) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestWithoutZones$")
		cmd.Env = append(os.Environ(), child+"=1", "TZDIR="+t.TempDir())
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	stmt, _, err := New(schema.NewCatalog(), nil).Statement(context.Background(), "SELECT TIMESTAMP '2024-07-01 00:00:00', TIMESTAMP '2024-07-01 00:00:00Z'", nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text := tree.Print(stmt); !strings.Contains(text, "2024-07-01T07:00:00Z") || !strings.Contains(text, "2024-07-01T00:00:00Z") {
		t.Error(text)
	}
}

func BenchmarkStatement(b *testing.B) {
	a := testAnalyzer(b)
	for name, sql := range map[string]string{
		"point":  "SELECT K FROM T WHERE K = @p",
		"insert": "INSERT INTO T (K) VALUES (@p)",
		"select": "SELECT 1",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := a.Statement(context.Background(), sql, map[string]*value.Type{"p": value.Int64Type}, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkKindOf(b *testing.B) {
	for b.Loop() {
		KindOf("@{USE_ADDITIONAL_PARALLELISM=TRUE} SELECT * FROM T WHERE K = @p")
	}
}

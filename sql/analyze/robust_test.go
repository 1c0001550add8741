package analyze

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/crowfoot-db/crowfoot/fault"
	"github.com/crowfoot-db/crowfoot/schema"
	"github.com/crowfoot-db/crowfoot/sql/tree"
	"github.com/crowfoot-db/crowfoot/value"
)

// FuzzStatement looks for a text that is neither a statement nor an error for the user, for a tree that does not print, and for a
// kind that KindOf does not tell.
func FuzzStatement(f *testing.F) {
	for _, sql := range goldenStatements(f) {
		f.Add(sql)
	}
	for _, shape := range shapes {
		f.Add(shape(3))
	}
	c, err := applyAll(schema.NewCatalog(), "CREATE TABLE T (K INT64, S STRING(MAX), A ARRAY<INT64>, J JSON) PRIMARY KEY (K);\nCREATE UNIQUE INDEX I ON T (S)")
	if err != nil {
		f.Fatal(err)
	}
	a := New(c, systemTable)
	f.Fuzz(func(t *testing.T, sql string) {
		stmt, _, err := a.Statement(sql, map[string]*value.Type{"p": value.Int64Type}, Options{AllowUnbound: true})
		if err != nil {
			var user *fault.Error
			if !errors.As(err, &user) {
				t.Fatal(err)
			}
			return
		}
		if tree.Print(stmt) == "" {
			t.Fatal("the tree is empty")
		}
		if got, want := KindOf(sql), kindOfTree(stmt); got != want {
			t.Fatalf("KindOf is %d, the statement is %d", got, want)
		}
	})
}

// goldenStatements are the statements of the golden scripts.
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

// TestConcurrent analyzes different statements on two schemas at once, while one of the schemas is given back again and again.
func TestConcurrent(t *testing.T) {
	a, b := shapeAnalyzer(t), New(schema.NewCatalog(), systemTable)
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for j := range 20 {
				sql := fmt.Sprintf("SELECT K + %d FROM T WHERE K = @p%d", j, i)
				stmt, inferred, err := a.Statement(sql, map[string]*value.Type{fmt.Sprint("P", i): nil}, Options{})
				if err != nil {
					t.Errorf("%s: %v", sql, err)
					return
				}
				if text := tree.Print(stmt); !strings.Contains(text, fmt.Sprintf("$add(K#1, %d)", j)) || len(inferred) != 1 {
					t.Errorf("%s: %s", sql, text)
				}
				if _, _, err := b.Statement("SELECT 1 FROM T", nil, Options{}); err == nil {
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

// TestMemoryLevel checks that memory does not depend on finalizers: with Go's collector off, thousands of statements and hundreds of
// schemas leave the library's memory, which never shrinks, as it was.
func TestMemoryLevel(t *testing.T) {
	const (
		statements = 3000
		schemas    = 200
		slack      = 32 << 20 // unfreed, the statements would take 300 MiB, the schemas 150 MiB
	)
	var ddl []string
	for i := range 20 {
		ddl = append(ddl, fmt.Sprintf("CREATE TABLE T%d (K INT64, A STRING(MAX), B ARRAY<STRING(MAX)>, C NUMERIC) PRIMARY KEY (K)", i))
	}
	c, err := applyAll(schema.NewCatalog(), strings.Join(ddl, ";\n"))
	if err != nil {
		t.Fatal(err)
	}
	a := New(c)
	statement := func(a *Analyzer, i int) {
		sql := fmt.Sprintf("SELECT x.A, COUNT(*) AS n%d FROM T1 x JOIN T2 y USING (K) WHERE x.C > %d GROUP BY x.A ORDER BY n%d", i, i, i)
		if _, _, err := a.Statement(sql, nil, Options{}); err != nil {
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
		b := New(c)
		statement(b, i)
		b.Release()
	}
	if grown := int64(liveHeap()) - int64(before); grown > slack {
		t.Errorf("the heap grew by %d MiB", grown>>20)
	}
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers kept goes with the second
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestWithoutZones analyzes in a process of its own, whose library finds no zone database: literals are in the right zone still.
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
	stmt, _, err := New(schema.NewCatalog()).Statement("SELECT TIMESTAMP '2024-07-01 00:00:00', TIMESTAMP '2024-07-01 00:00:00Z'", nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text := tree.Print(stmt); !strings.Contains(text, "2024-07-01T07:00:00Z") || !strings.Contains(text, "2024-07-01T00:00:00Z") {
		t.Error(text)
	}
}

func BenchmarkStatement(b *testing.B) {
	a := shapeAnalyzer(b)
	for name, sql := range map[string]string{
		"point":  "SELECT K FROM T WHERE K = @p",
		"insert": "INSERT INTO T (K) VALUES (@p)",
		"select": "SELECT 1",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := a.Statement(sql, map[string]*value.Type{"p": value.Int64Type}, Options{}); err != nil {
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

package database

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// idle creates databases with 20 tables each. It returns the heap bytes and the goroutines per database.
func (b *bed) idle(databases int) (heap, goroutines float64) {
	b.t.Helper()
	var tables []string
	for i := range 20 {
		tables = append(tables, fmt.Sprintf("CREATE TABLE Table%d (Id INT64 NOT NULL, Name STRING(100), Amount NUMERIC, Paid BOOL, Created TIMESTAMP) PRIMARY KEY (Id)", i))
	}
	const first = 5 // the first databases are not measured, since they allocate memory that all databases share
	before, running := 0, 0
	for i := range first + databases {
		if i == first {
			before, running = heapBytes(), runtime.NumGoroutine()
		}
		instance := fmt.Sprint("projects/p/instances/many-", i/maxDatabasesPerInstance)
		if i%maxDatabasesPerInstance == 0 {
			if _, err := b.CreateInstance(Instance{Name: instance, NodeCount: 1}); err != nil {
				b.t.Fatal(err)
			}
		}
		if _, err := b.CreateDatabase(b.t.Context(), fmt.Sprint(instance, "/databases/db-", i), tables); err != nil {
			b.t.Fatal(err)
		}
	}
	n := float64(databases)
	return float64(heapBytes()-before) / n, float64(runtime.NumGoroutine()-running) / n
}

// TestIdleDatabase checks that a database without requests takes little memory, since a process may have thousands of
// them. The memory of the process is about twice the heap that the test measures.
func TestIdleDatabase(t *testing.T) {
	heap, goroutines := open(t, vfs.NewMem()).idle(40)
	if heap > 90<<10 || goroutines > 3.5 {
		t.Errorf("%.0f bytes of the heap and %.1f goroutines", heap, goroutines)
	}
}

// BenchmarkIdleDatabases reports the memory of one of 500 idle databases. Run it with -benchtime 1x.
func BenchmarkIdleDatabases(b *testing.B) {
	for b.Loop() {
		b.Chdir(b.TempDir())
		heap, goroutines := open(b, vfs.Default).idle(500)
		b.ReportMetric(heap/1024, "KiB/database")
		b.ReportMetric(goroutines, "goroutines/database")
	}
}

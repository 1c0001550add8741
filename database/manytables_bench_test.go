package database

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/schema"
)

// BenchmarkManyTables creates two databases of 5,000 tables each, one by one, then opens them again. It reports the
// time of the last CREATE TABLE, of the first query after it, and of a CREATE INDEX, an ALTER TABLE, a DROP INDEX,
// GetDatabaseDdl, a query of INFORMATION_SCHEMA and a start. It also reports the memory of the process after the start.
// Run it with -benchtime 1x.
func BenchmarkManyTables(b *testing.B) {
	for b.Loop() {
		b.Chdir(b.TempDir())
		one := open(b, vfs.Default)
		for i := range 2 {
			db, err := one.CreateDatabase(b.Context(), fmt.Sprint(testName, i), nil)
			if err != nil {
				b.Fatal(err)
			}
			one.db = db
			one.alter(tableStatements(0, schema.MaxTables-1)...)
		}
		took := func(what string, f func()) {
			began := time.Now()
			f()
			b.ReportMetric(float64(time.Since(began).Microseconds())/1000, what+"-ms")
		}
		took("create-table", func() { one.alter(tableStatements(schema.MaxTables-1, schema.MaxTables)...) })
		took("first-query", func() { one.query("SELECT COUNT(*) FROM Table7 JOIN Table8 USING (K0)") })
		took("create-index", func() { one.alter("CREATE INDEX ByColumn7 ON Table7(Column7)") })
		took("alter-hub", func() { one.alter("ALTER TABLE Table0 ADD COLUMN More INT64") })
		took("drop-index", func() { one.alter("DROP INDEX ByColumn7") })
		took("ddl", func() { one.db.DDL() })
		took("columns-of-a-table", func() {
			one.query("SELECT COLUMN_NAME FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = '' AND TABLE_NAME = 'Table7'")
		})
		one.shut(one.store)
		one.Registry, one.db = nil, nil
		took("start", func() { one = open(b, vfs.Default) })
		b.ReportMetric(float64(heapBytes())/(1<<20), "heap-MiB")
		b.ReportMetric(residentMiB(b), "resident-MiB")
	}
}

// residentMiB returns the memory of the process in MiB. It skips the benchmark on systems that do not have
// /proc/self/status.
func residentMiB(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	var kib float64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		b.Fatal(err)
	}
	return kib / 1024
}

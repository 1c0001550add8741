package exec_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
)

// cpuTime returns the CPU time that the process has used.
func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkColumns reports the CPU time that a query takes for each row, when its scans read columns. The columns
// are Arrow arrays in memory.
func BenchmarkColumns(b *testing.B) {
	db := benchDB(b)
	snapshot, err := db.txns.Snapshot(b.Context(), txn.Bound{})
	if err != nil {
		b.Fatal(err)
	}
	for _, q := range []struct{ name, sql string }{
		{"count", "SELECT COUNT(*) FROM D"},
		{"few-groups", "SELECT K, COUNT(*), SUM(F), AVG(F) FROM D GROUP BY K"},
		{"text-groups", "SELECT S, COUNT(*), MIN(Id), MAX(F) FROM D GROUP BY S"},
		{"two-keys", "SELECT K, S, COUNT(*), SUM(F) FROM D GROUP BY K, S"},
		{"many-groups", "SELECT Id, COUNT(*) FROM D GROUP @{GROUP_METHOD=HASH_GROUP} BY Id"},
		{"sums", "SELECT COUNT(*), SUM(F), AVG(F), SUM(K) FROM D"},
		{"sum-of-product", "SELECT SUM(F * (1 - F)), SUM(K + 1) FROM D WHERE K < 20"},
		{"filter", "SELECT COUNT(*) FROM D WHERE K = 7 AND F > 100"},
		{"rows", "SELECT Id, K, S, F FROM D WHERE F >= 0"},
	} {
		b.Run(q.name, func(b *testing.B) {
			p, err := db.plan(q.sql, nil)
			if err != nil {
				b.Fatal(err)
			}
			program, err := exec.Compile(p, table.NewDescriptors(db.catalog))
			if err != nil {
				b.Fatal(err)
			}
			var made *arrowSource
			sources := &arrowSources{view: snapshot, recordBytes: 1 << 20}
			env := exec.Env{View: snapshot, Functions: db.functions(), Columns: func(read exec.ColumnRead) (exec.ColumnSource, error) {
				if made == nil {
					s, err := sources.open(read)
					if err != nil {
						return nil, err
					}
					made = s.(*arrowSource)
				}
				again := *made
				return &again, nil
			}}
			benchRun(b, program, env)
			b.ReportAllocs()
			begin := cpuTime(b)
			b.ResetTimer()
			for range b.N {
				benchRun(b, program, env)
			}
			b.ReportMetric(float64(cpuTime(b)-begin)/float64(b.N)/benchRows, "cpu-ns/row")
		})
	}
}

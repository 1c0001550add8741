package exec_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
)

const benchRows = 100_000

// benchDB returns a database for benchmarks. Table R has benchRows rows of about 1 kB: an id, a group (ten rows each),
// and ten strings of 100 bytes. Table C has two rows for each row of R. Table D has benchRows short rows, and its
// column K has 25 different values.
func benchDB(b *testing.B) *testDB {
	b.Helper()
	db := newTestDB(b)
	var cols []string
	for i := range 10 {
		cols = append(cols, fmt.Sprintf("S%d STRING(100)", i))
	}
	ddl := "CREATE TABLE R (Id INT64 NOT NULL, G INT64, " + strings.Join(cols, ", ") + ") PRIMARY KEY (Id);\n" +
		"CREATE INDEX R_G ON R (G);\n" +
		"CREATE TABLE C (Id INT64 NOT NULL, N INT64 NOT NULL, V INT64) PRIMARY KEY (Id, N);\n" +
		"CREATE TABLE D (Id INT64 NOT NULL, K INT64, S STRING(20), F FLOAT64) PRIMARY KEY (Id);\n"
	if out := db.ddl(ddl); out != "" {
		b.Fatal(out)
	}
	r, c, d := db.catalog.Table("R"), db.catalog.Table("C"), db.catalog.Table("D")
	text := value.OfString(strings.Repeat("x", 100))
	for from := int64(0); from < benchRows; from += 2000 {
		rows := table.Mutation{Op: table.Insert, Table: r, Columns: r.Columns}
		children := table.Mutation{Op: table.Insert, Table: c, Columns: c.Columns}
		facts := table.Mutation{Op: table.Insert, Table: d, Columns: d.Columns}
		for id := from; id < from+2000; id++ {
			row := []value.Value{value.OfInt64(id), value.OfInt64(id / 10)}
			for range 10 {
				row = append(row, text)
			}
			rows.Rows = append(rows.Rows, row)
			k := id * 7919 % 25
			facts.Rows = append(facts.Rows, []value.Value{value.OfInt64(id), value.OfInt64(k), value.OfString(fmt.Sprint("segment ", k)), value.OfFloat64(float64(id) / 7)})
			for n := range int64(2) {
				children.Rows = append(children.Rows, []value.Value{value.OfInt64(id), value.OfInt64(n), value.OfInt64(id)})
			}
		}
		err := db.write(func(w table.Writer) error {
			_, err := table.Apply(context.Background(), w, table.NewDescriptors(db.catalog), []table.Mutation{rows, children, facts}, db.now)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return db
}

// BenchmarkPointRead compares reading one row by SQL with reading the row by package table, as the Read API does.
func BenchmarkPointRead(b *testing.B) {
	db := benchDB(b)
	snapshot, err := db.txns.Snapshot(context.Background(), txn.Bound{})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("sql", func(b *testing.B) {
		p, err := db.plan("SELECT * FROM R WHERE Id = @id", map[string]*value.Type{"id": value.Int64Type})
		if err != nil || p.Read == nil {
			b.Fatal(err, "no key read")
		}
		program, err := exec.Compile(p, table.NewDescriptors(db.catalog))
		if err != nil {
			b.Fatal(err)
		}
		env := exec.Env{View: snapshot, Functions: db.functions()}
		var wire []byte
		b.ReportAllocs()
		for i := range b.N {
			env.Params = []value.Value{value.OfInt64(int64(i*7919) % benchRows)}
			rows, err := program.Run(context.Background(), env)
			if err != nil {
				b.Fatal(err)
			}
			if ok, err := rows.Next(); !ok || err != nil {
				b.Fatal(ok, err)
			}
			wire = rows.AppendWire(wire[:0])
			rows.Close()
		}
	})
	b.Run("table", func(b *testing.B) {
		r := db.catalog.Table("R")
		p, err := table.NewProjection(r, nil, r.Columns)
		if err != nil {
			b.Fatal(err)
		}
		var wire []byte
		b.ReportAllocs()
		for i := range b.N {
			spans, err := p.Spans(table.KeySet{Keys: [][]value.Value{{value.OfInt64(int64(i*7919) % benchRows)}}})
			if err != nil {
				b.Fatal(err)
			}
			rows := table.Read{Projection: p, Spans: spans}.Open(context.Background(), snapshot)
			if ok, err := rows.Next(); !ok || err != nil {
				b.Fatal(ok, err)
			}
			wire = rows.AppendWire(wire[:0])
			rows.Close()
		}
	})
}

// BenchmarkQuery reports the time that a query takes for each row that it scans or joins.
func BenchmarkQuery(b *testing.B) {
	db := benchDB(b)
	snapshot, err := db.txns.Snapshot(context.Background(), txn.Bound{})
	if err != nil {
		b.Fatal(err)
	}
	for _, q := range []struct {
		name, sql string
		rows      int
	}{
		{"scan", "SELECT Id, V FROM C", 2 * benchRows},
		{"filter", "SELECT Id FROM C WHERE V < 0 OR N = 7", 2 * benchRows},
		{"project", "SELECT Id + N, V * 2 FROM C", 2 * benchRows},
		{"count", "SELECT COUNT(*) FROM C", 2 * benchRows},
		{"stream-group", "SELECT Id, SUM(V) FROM C GROUP BY Id", 2 * benchRows},
		{"hash-group", "SELECT V, COUNT(*) FROM C GROUP BY V", 2 * benchRows},
		{"few-groups", "SELECT K, COUNT(*), SUM(F), AVG(F) FROM D GROUP BY K", benchRows},
		{"text-groups", "SELECT S, COUNT(*), MIN(Id), MAX(F) FROM D GROUP BY S", benchRows},
		{"sums", "SELECT COUNT(*), SUM(F), AVG(F), SUM(K) FROM D", benchRows},
		{"sum-of-product", "SELECT SUM(F * (1 - F)), SUM(K + 1) FROM D WHERE K < 20", benchRows},
		{"sort", "SELECT Id FROM C ORDER BY V DESC, N", 2 * benchRows},
		{"top", "SELECT Id FROM C ORDER BY V DESC, N LIMIT 10", 2 * benchRows},
		{"hash-join", "SELECT r.Id, c.V FROM R r JOIN @{JOIN_METHOD=HASH_JOIN} C c ON r.Id = c.Id", 2 * benchRows},
		{"apply-join", "SELECT r.Id, c.V FROM R@{FORCE_INDEX=R_G} r JOIN @{JOIN_METHOD=APPLY_JOIN} C c ON r.Id = c.Id", benchRows},
		{"back-join", "SELECT S1 FROM R@{FORCE_INDEX=R_G} WHERE G >= 0", benchRows},
	} {
		b.Run(q.name, func(b *testing.B) {
			p, err := db.plan(q.sql, nil)
			if err != nil {
				b.Fatal(err)
			}
			p.Read = nil // this measures the operators, not a key read
			program, err := exec.Compile(p, table.NewDescriptors(db.catalog))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			begin := cpuTime(b)
			for range b.N {
				benchRun(b, program, exec.Env{View: snapshot, Functions: db.functions()})
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(q.rows), "ns/row")
			b.ReportMetric(float64(cpuTime(b)-begin)/float64(b.N)/float64(q.rows), "cpu-ns/row")
		})
	}
}

// BenchmarkSmallQuery runs queries that read few rows, so that it mainly measures how long a query takes to begin
// and end.
func BenchmarkSmallQuery(b *testing.B) {
	db := benchDB(b)
	snapshot, err := db.txns.Snapshot(context.Background(), txn.Bound{})
	if err != nil {
		b.Fatal(err)
	}
	for _, q := range []struct{ name, sql string }{
		{"point", "SELECT K, F FROM D WHERE Id = 77"},
		{"point-filter", "SELECT K + 1, F FROM D WHERE Id = 77 AND F > 1"},
		{"join", "SELECT r.Id, c.V FROM R r JOIN C c ON r.Id = c.Id WHERE r.Id = 77"},
		{"exists", "SELECT Id FROM D WHERE Id < 20 AND EXISTS (SELECT 1 FROM C WHERE C.Id = D.Id AND C.V > 3)"},
		{"count", "SELECT COUNT(*), SUM(F) FROM D WHERE Id < 5"},
		{"group", "SELECT K, COUNT(*), SUM(F) FROM D WHERE Id < 5 GROUP BY K"},
		{"counts", "SELECT Id, (SELECT COUNT(*) FROM C WHERE C.Id = D.Id) FROM D WHERE Id < 20"},
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
			b.ReportAllocs()
			begin := cpuTime(b)
			for range b.N {
				benchRun(b, program, exec.Env{View: snapshot, Functions: db.functions()})
			}
			b.ReportMetric(float64(cpuTime(b)-begin)/float64(b.N), "cpu-ns/op")
		})
	}
}

func benchRun(b *testing.B, program *exec.Program, env exec.Env) exec.Stats {
	rows, err := program.Run(context.Background(), env)
	if err != nil {
		b.Fatal(err)
	}
	for {
		ok, err := rows.Next()
		if err != nil {
			b.Fatal(err)
		}
		if !ok {
			break
		}
	}
	rows.Close()
	return rows.Stats()
}

// BenchmarkBulkDML measures a statement that changes a thousand rows. The database is in memory, and the commit is
// not measured.
func BenchmarkBulkDML(b *testing.B) {
	db := benchDB(b)
	for name, sql := range map[string]string{
		"update": "UPDATE R SET S0 = 'y' WHERE Id BETWEEN @id AND @id + 999",
		"delete": "DELETE FROM R WHERE Id BETWEEN @id AND @id + 999",
		"insert": "INSERT INTO C (Id, N, V) SELECT Id, N + 2, V FROM C WHERE Id BETWEEN @id AND @id + 499",
	} {
		b.Run(name, func(b *testing.B) {
			p, err := db.plan(sql, map[string]*value.Type{"id": value.Int64Type})
			if err != nil {
				b.Fatal(err)
			}
			program, err := exec.Compile(p, table.NewDescriptors(db.catalog))
			if err != nil {
				b.Fatal(err)
			}
			var changed int64
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				tx := db.txns.Begin(txn.Options{})
				env := exec.Env{Writer: tx, Functions: db.functions(), Params: []value.Value{value.OfInt64(int64(i) * 1000 % (benchRows - 1000))}}
				rows, err := program.Run(context.Background(), env)
				if err != nil {
					b.Fatal(err)
				}
				changed += rows.RowCount()
				if err := tx.Rollback(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(changed), "ns/row")
		})
	}
}

// BenchmarkSpill runs queries over five million rows, once with all rows in memory and once with at most 64 MiB of
// them.
func BenchmarkSpill(b *testing.B) {
	const rows = 5_000_000
	db := newTestDB(b)
	list := make([]value.Value, rows)
	for i := range list {
		list[i] = value.OfInt64(int64(i) * 7919 % rows)
	}
	dir, err := spill.Open(vfs.Default, b.TempDir()+"/spill")
	if err != nil {
		b.Fatal(err)
	}
	const numbers = "(SELECT x, CONCAT('row number ', CAST(x AS STRING)) AS s FROM UNNEST(@n) x)"
	for _, q := range []struct{ name, sql string }{
		{"sort", "SELECT x, s FROM " + numbers + " ORDER BY x"},
		{"group", "SELECT s, COUNT(*) FROM " + numbers + " GROUP BY s"},
		{"join", "SELECT a.s, b.s FROM " + numbers + " a JOIN@{JOIN_METHOD=HASH_JOIN} " + numbers + " b ON a.x = b.x"},
	} {
		p, err := db.plan(q.sql, map[string]*value.Type{"n": value.ArrayOf(value.Int64Type)})
		if err != nil {
			b.Fatal(err)
		}
		program, err := exec.Compile(p, new(table.Descriptors))
		if err != nil {
			b.Fatal(err)
		}
		for _, share := range []int64{1 << 30, 64 << 20} {
			b.Run(fmt.Sprintf("%s/%dMiB", q.name, share>>20), func(b *testing.B) {
				env := exec.Env{Functions: db.functions(), Params: []value.Value{value.OfArray(list)}, Spill: dir, SpillAbove: share}
				var stats exec.Stats
				for range b.N {
					stats = benchRun(b, program, env)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
				b.ReportMetric(float64(stats.MemoryPeak)/(1<<20), "MiB-kept")
				b.ReportMetric(float64(stats.Spilled.Bytes)/(1<<20), "MiB-spilled")
			})
		}
	}
}

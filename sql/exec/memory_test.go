package exec_test

import (
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestMemory checks that statements that cannot spill count the memory of the rows that they keep, and fail if these
// rows exceed MaxMemory. Each row refers to a string of 1 MiB. All rows refer to the same string, so that the test
// itself takes little memory.
func TestMemory(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(1, 0)))
	db.spill = nil
	const size = 1 << 20
	text := value.OfString(strings.Repeat("x", size))
	for name, sql := range map[string]string{
		"sort":           "SELECT x, s FROM (SELECT x, @s AS s FROM UNNEST(@n) x) ORDER BY x DESC",
		"group":          "SELECT x, s, COUNT(*) FROM (SELECT x, @s AS s FROM UNNEST(@n) x) GROUP BY x, s",
		"array_agg":      "SELECT ARRAY_LENGTH(ARRAY_AGG(@s)) FROM UNNEST(@n) x",
		"ordered agg":    "SELECT ARRAY_LENGTH(ARRAY_AGG(@s ORDER BY x)) FROM UNNEST(@n) x",
		"distinct":       "SELECT COUNT(DISTINCT y) FROM (SELECT IF(x >= 0, [@s, CAST(x AS STRING)], NULL) AS z FROM UNNEST(@n) x), UNNEST([ARRAY_TO_STRING(z, '')]) y",
		"hash join":      "SELECT a FROM UNNEST([1]) a JOIN@{JOIN_METHOD=HASH_JOIN} (SELECT x, @s AS s FROM UNNEST(@n) x) b ON a = b.x AND LENGTH(b.s) > a",
		"with":           "WITH w AS (SELECT x, @s AS s FROM UNNEST(@n) x) SELECT COUNT(*) FROM w a JOIN w b ON a.x = b.x AND LENGTH(a.s) = LENGTH(b.s)",
		"except":         "SELECT 1, @s EXCEPT DISTINCT SELECT x, @s FROM UNNEST(@n) x",
		"array subquery": "SELECT ARRAY_LENGTH(ARRAY(SELECT @s FROM UNNEST(@n) x))",
	} {
		t.Run(name, func(t *testing.T) {
			for _, rows := range []int{100, exec.MaxMemory/size + 1} {
				if name == "distinct" && rows > 100 {
					continue // the strings of this query all differ, so they would really take more than MaxMemory
				}
				list := make([]value.Value, rows)
				for i := range list {
					list[i] = value.OfInt64(int64(i))
				}
				stats, err := db.cost(sql, map[string]value.Value{"s": text, "n": value.OfArray(list)})
				switch {
				case rows == 100 && err != nil:
					t.Errorf("%d rows: %v", rows, err)
				case rows == 100 && (stats.MemoryPeak < 100*size || stats.MemoryPeak > 220*size):
					t.Errorf("%d rows of 1 MiB: a peak of %d bytes", rows, stats.MemoryPeak)
				case rows != 100 && usererror.CodeOf(err) != codes.OutOfRange:
					t.Errorf("%d rows: %v, want that it is too much", rows, err)
				}
			}
		})
	}
}

// TestHeapIsCharged checks that a statement is charged for the memory that its rows take: the heap may grow by at
// most a quarter more than the peak of the charged bytes.
func TestHeapIsCharged(t *testing.T) {
	db := newTestDB(t)
	db.spill = nil
	// With so many entries, a hash table has doubled not long ago, and more than half of its slots are free. So it
	// takes much memory for each entry, which the statement must be charged for.
	const rows = 120_000
	list := make([]value.Value, rows)
	for i := range list {
		list[i] = value.OfInt64(int64(i))
	}
	params := map[string]value.Value{"n": value.OfArray(list)}
	for name, sql := range map[string]string{
		"group":         "SELECT x, COUNT(*), SUM(x) FROM UNNEST(@n) x GROUP BY x",
		"distinct":      "SELECT DISTINCT x FROM UNNEST(@n) x",
		"except":        "SELECT x FROM UNNEST(@n) x EXCEPT DISTINCT SELECT -x FROM UNNEST(@n) x",
		"hash join":     "SELECT x, y FROM UNNEST(@n) x JOIN@{JOIN_METHOD=HASH_JOIN} UNNEST(@n) y ON x = y",
		"computed keys": "SELECT x FROM UNNEST(@n) x JOIN@{JOIN_METHOD=HASH_JOIN} UNNEST(@n) y ON REPEAT(CAST(x AS STRING), 20) = REPEAT(CAST(y AS STRING), 20)",
		"in":            "SELECT x FROM UNNEST(@n) x WHERE x IN (SELECT y * 2 FROM UNNEST(@n) y) OR x = 5",
		"sort":          "SELECT x FROM UNNEST(@n) x ORDER BY REPEAT(CAST(x AS STRING), 20)",
		"ordered":       "SELECT ARRAY_LENGTH(ARRAY_AGG(x ORDER BY REPEAT(CAST(x AS STRING), 20))) FROM UNNEST(@n) x",
	} {
		before := heap()
		var grown int64
		stats, err := db.costThen(sql, params, func() { grown = heap() - before })
		if err != nil || grown > stats.MemoryPeak*5/4 {
			t.Errorf("%s: the heap grew by %d bytes, and %d were charged: %v", name, grown, stats.MemoryPeak, err)
		}
	}
}

// heap returns how many bytes of the heap are in use after a garbage collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestMinorSortLimit checks that a minor sort (a sort of rows that are already sorted by the first keys) with a LIMIT
// drops the rows that come after the limit, even if all rows are equal by the first keys. So the query's peak memory
// must stay below 1 MiB.
func TestMinorSortLimit(t *testing.T) {
	db := newTestDB(t)
	db.ddl("CREATE TABLE E (A INT64, B INT64, S STRING(MAX)) PRIMARY KEY (A, B DESC)")
	db.exec("INSERT INTO E (A, B, S) SELECT 1, n, REPEAT('x', 1000) FROM UNNEST(GENERATE_ARRAY(1, 5000)) n")
	stats, err := db.cost("SELECT S FROM E ORDER BY A, B LIMIT 5", nil)
	if err != nil || stats.RowsScanned != 5000 || stats.MemoryPeak > 1<<20 {
		t.Errorf("%d rows scanned, a peak of %d bytes: %v", stats.RowsScanned, stats.MemoryPeak, err)
	}
}

// TestLargestLimit checks that a sort with the largest possible LIMIT returns all rows and counts their memory.
func TestLargestLimit(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(1, 0)))
	const rows, size = 2_000, 1_000
	list := make([]value.Value, rows)
	for i := range list {
		list[i] = value.OfInt64(int64(i))
	}
	params := map[string]value.Value{"s": value.OfString(strings.Repeat("x", size)), "n": value.OfArray(list)}
	stats, err := db.cost("SELECT x, s FROM (SELECT x, @s AS s FROM UNNEST(@n) x) ORDER BY x DESC LIMIT 9223372036854775807", params)
	if err != nil || stats.RowsReturned != rows || stats.MemoryPeak < rows*size || stats.MemoryPeak > 2*rows*size {
		t.Errorf("%d rows, a peak of %d bytes: %v", stats.RowsReturned, stats.MemoryPeak, err)
	}
}

// cost runs a query to its end and returns the statistics of the run.
func (db *testDB) cost(sql string, params map[string]value.Value) (stats exec.Stats, err error) {
	return db.costThen(sql, params, func() {})
}

// costThen runs a query to its end and returns the statistics of the run. The parameter first is a function that
// costThen calls after it has read the first row.
func (db *testDB) costThen(sql string, params map[string]value.Value, first func()) (stats exec.Stats, err error) {
	p, err := db.plan(sql, map[string]*value.Type{"s": value.StringType, "n": value.ArrayOf(value.Int64Type)})
	if err != nil {
		return stats, err
	}
	env := exec.Env{Functions: db.functions()}
	for _, q := range p.Params {
		env.Params = append(env.Params, params[q.Name])
	}
	err = db.read(func(view table.View) error {
		env.View = view
		rows, err := db.run(p, env)
		if err != nil {
			return err
		}
		defer rows.Close()
		ok, err := rows.Next()
		first()
		for ok && err == nil {
			ok, err = rows.Next()
		}
		stats = rows.Stats()
		return err
	})
	return stats, err
}

// TestLargestValue checks that a string of 110 MiB is too large a result of CONCAT, and that 80 MiB are not.
func TestLargestValue(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(1, 0)))
	params := map[string]value.Value{"s": value.OfString(strings.Repeat("x", 1<<20))}
	const sql = "SELECT LENGTH(CONCAT(t, t, t, t, t, t, t, t, t, t, t)) FROM (SELECT CONCAT(@s, @s, @s, @s, @s, @s, @s, @s, @s, @s) AS t)"
	if _, err := db.cost(sql, params); usererror.CodeOf(err) != codes.OutOfRange {
		t.Errorf("110 MiB: %v, want that it is too large", err)
	}
	if _, err := db.cost(strings.Replace(sql, "t, t, t, ", "", 1), params); err != nil {
		t.Errorf("80 MiB: %v", err)
	}
}

// TestMadeValuesAreCharged checks that a statement is charged for a large value that a function returns for small
// arguments, and that batches with such values have few rows.
func TestMadeValuesAreCharged(t *testing.T) {
	db := newTestDB(t)
	for sql, want := range map[string]int64{
		"SELECT x FROM UNNEST([1000000]) n, UNNEST(GENERATE_ARRAY(1, n)) x":                                                  20 << 20,
		"SELECT LENGTH(CONCAT(t, t, t, t, t, t, t, t, t, t)) FROM (SELECT REPEAT('x', 1000000 - x) t FROM UNNEST([1, 2]) x)": 10_000_000 - 20,
		"SELECT ARRAY_LENGTH(ARRAY_TRANSFORM(GENERATE_ARRAY(1, n), x -> x + 1)) FROM UNNEST([1000000]) n":                    40 << 20,
		"SELECT ARRAY_LENGTH(ARRAY(SELECT x FROM UNNEST(GENERATE_ARRAY(1, n)) x)) FROM UNNEST([1000000]) n":                  40 << 20,
	} {
		stats, err := db.cost(sql, nil)
		if err != nil || stats.MemoryPeak < want {
			t.Errorf("%s: a peak of %d bytes, want %d: %v", sql, stats.MemoryPeak, want, err)
		}
	}
	before := heap()
	var grown int64
	_, err := db.costThen("SELECT REPEAT('x', 1000000 + x) FROM UNNEST(GENERATE_ARRAY(1, 100)) x", nil, func() { grown = heap() - before })
	if err != nil || grown > 8<<20 {
		t.Errorf("%d bytes are in a batch of rows: %v", grown, err)
	}
}

package exec_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/memory"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/plan"
	"github.com/crowfoot-db/crowfoot/sql/spill"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/usererror"
	"github.com/crowfoot-db/crowfoot/value"
)

// spillingQueries has at least one query for each operator that can spill, and for each way in which the operator
// spills. The parameter @n is an array of the integers from 0 to spillingRows-1 in random order.
var spillingQueries = map[string]string{
	"sort":              "SELECT x, MOD(x, 7) FROM UNNEST(@n) x ORDER BY MOD(x, 7)",
	"sort with limit":   "SELECT x FROM UNNEST(@n) x ORDER BY MOD(x, 7) DESC LIMIT 1000",
	"minor sort":        "SELECT a, x FROM (SELECT MOD(x, 3) AS a, x FROM UNNEST(@n) x ORDER BY a LIMIT 900) ORDER BY a, x DESC",
	"group":             "SELECT MOD(x, 500), COUNT(*), SUM(x), MIN(x) FROM UNNEST(@n) x GROUP BY 1",
	"group of one":      "SELECT x, COUNT(*) FROM UNNEST(@n) x GROUP BY x",
	"distinct":          "SELECT DISTINCT MOD(x, 700) FROM UNNEST(@n) x",
	"array_agg":         "SELECT MOD(x, 9), ARRAY_AGG(x) FROM UNNEST(@n) x GROUP BY 1",
	"ordered array_agg": "SELECT MOD(x, 9), ARRAY_AGG(x ORDER BY MOD(x, 5) DESC, x LIMIT 40) FROM UNNEST(@n) x GROUP BY 1",
	"string_agg":        "SELECT MOD(x, 9), STRING_AGG(CAST(x AS STRING), '/') FROM UNNEST(@n) x GROUP BY 1",
	"count distinct":    "SELECT MOD(x, 9), COUNT(DISTINCT MOD(x, 400)), COUNT(*) FROM UNNEST(@n) x GROUP BY 1",
	"one count":         "SELECT COUNT(DISTINCT MOD(x, 400)), SUM(DISTINCT MOD(x, 400)) FROM UNNEST(@n) x",
	"one array":         "SELECT ARRAY_AGG(DISTINCT MOD(x, 100) ORDER BY MOD(x, 100) DESC LIMIT 20), ARRAY_AGG(DISTINCT MOD(x, 100)) FROM UNNEST(@n) x",
	"having":            "SELECT MOD(x, 9), ARRAY_AGG(x HAVING MAX MOD(x, 4)), SUM(x HAVING MIN MOD(x, 4)) FROM UNNEST(@n) x GROUP BY 1",
	"except":            "SELECT MOD(x, 600) FROM UNNEST(@n) x EXCEPT DISTINCT SELECT MOD(x, 300) FROM UNNEST(@n) x",
	"except all":        "SELECT MOD(x, 600) FROM UNNEST(@n) x EXCEPT ALL SELECT MOD(x, 300) FROM UNNEST(@n) x",
	"except few":        "SELECT MOD(x, 600) FROM UNNEST(@n) x EXCEPT DISTINCT SELECT MOD(x, 3) FROM UNNEST(@n) x",
	"intersect":         "SELECT MOD(x, 600) FROM UNNEST(@n) x INTERSECT DISTINCT SELECT MOD(x, 300) + 100 FROM UNNEST(@n) x",
	"intersect all":     "SELECT MOD(x, 600) FROM UNNEST(@n) x INTERSECT ALL SELECT MOD(x, 300) + 100 FROM UNNEST(@n) x",
	"join":              "SELECT x, y FROM UNNEST(@n) x JOIN@{JOIN_METHOD=HASH_JOIN} UNNEST(@n) y ON x = y * 2",
	"left join":         "SELECT x, y FROM UNNEST(@n) x LEFT JOIN@{JOIN_METHOD=HASH_JOIN} UNNEST(@n) y ON x = y * 2 AND MOD(y, 3) = MOD(x, 2)",
	"full join":         "SELECT x, y FROM UNNEST(@n) x FULL JOIN@{JOIN_METHOD=HASH_JOIN} UNNEST(@n) y ON x = IF(MOD(y, 5) = 0, NULL, y * 2)",
	"semi join":         "SELECT x FROM UNNEST(@n) x WHERE x IN (SELECT y * 2 FROM UNNEST(@n) y)",
	"anti join":         "SELECT x FROM UNNEST(@n) x WHERE NOT EXISTS (SELECT 1 FROM UNNEST(@n) y WHERE y * 2 = x)",
	"hot key":           "SELECT x, COUNT(*), SUM(y) FROM UNNEST(@n) x LEFT JOIN@{JOIN_METHOD=HASH_JOIN} UNNEST(@n) y ON IF(x < 20, 0, x) = IF(y < 900, 0, y) GROUP BY x",
	"hot full join":     "SELECT x, y FROM UNNEST(@n) x FULL JOIN@{JOIN_METHOD=HASH_JOIN} UNNEST(@n) y ON IF(x < 3, 0, x) = IF(y < 900, 0, y) AND MOD(y, 2) = x",
	"hot semi join":     "SELECT x FROM UNNEST(@n) x WHERE EXISTS (SELECT 1 FROM UNNEST(@n) y WHERE IF(y < 900, 0, y) = MOD(x, 2) AND y > x - 5)",
	"cross join":        "SELECT COUNT(*), SUM(x * y) FROM (SELECT x FROM UNNEST(@n) x LIMIT 10) CROSS JOIN (SELECT y FROM UNNEST(@n) y)",
	"with":              "WITH w AS (SELECT x, MOD(x, 10) AS m FROM UNNEST(@n) x) SELECT a.x, b.x FROM w a JOIN@{JOIN_METHOD=HASH_JOIN} w b ON a.x = b.x WHERE a.m < 3",
	"all at once":       "WITH w AS (SELECT DISTINCT MOD(x, 900) AS m FROM UNNEST(@n) x) SELECT a.m, COUNT(DISTINCT b.m) FROM w a JOIN@{JOIN_METHOD=HASH_JOIN} w b ON MOD(a.m, 100) = MOD(b.m, 100) GROUP BY 1 ORDER BY 2, 1 DESC",
}

// spillingRows is the number of elements of the array parameter @n of spillingQueries.
const spillingRows = 1000

// spillingProgram plans and compiles a query, which may use the parameter @n (see spillingQueries). It also returns the
// environment for a run, with the value of @n.
func (db *testDB) spillingProgram(t *testing.T, sql string) (*plan.Plan, *exec.Program, exec.Env) {
	t.Helper()
	p, err := db.plan(sql, map[string]*value.Type{"n": value.ArrayOf(value.Int64Type)})
	if err != nil {
		t.Fatal(err)
	}
	program, err := exec.Compile(p, table.NewDescriptors(db.catalog))
	if err != nil {
		t.Fatal(err)
	}
	list := make([]value.Value, spillingRows)
	for i, n := range rand.New(rand.NewPCG(1, 1)).Perm(spillingRows) {
		list[i] = value.OfInt64(int64(n))
	}
	return p, program, exec.Env{Functions: db.functions(), Params: []value.Value{value.OfArray(list)}[:len(p.Params)]}
}

// collect runs a program to its end. It returns the rows as text, and the statistics of the run.
func (db *testDB) collect(ctx context.Context, p *plan.Plan, program *exec.Program, env exec.Env) (lines []string, stats exec.Stats, err error) {
	err = db.read(func(view table.View) error {
		env.View = view
		rows, err := program.Run(ctx, env)
		if err != nil {
			return err
		}
		defer rows.Close()
		for {
			ok, err := rows.Next()
			if err != nil || !ok {
				stats = rows.Stats()
				return errors.Join(err, rows.Close())
			}
			var words []string
			for i, v := range rows.Values(nil) {
				words = append(words, printValue(v, p.Columns[i].Type))
			}
			lines = append(lines, strings.Join(words, " "))
		}
	})
	return lines, stats, err
}

// TestSpilled checks that each query of spillingQueries returns the same rows in the same order in memory and with so
// little memory that it spills.
func TestSpilled(t *testing.T) {
	db := newTestDB(t)
	for name, sql := range spillingQueries {
		t.Run(name, func(t *testing.T) {
			p, program, env := db.spillingProgram(t, sql)
			want, stats, err := db.collect(t.Context(), p, program, env)
			if err != nil || stats.Spilled.Rows > 0 {
				t.Fatalf("in memory: %v, spilled %d rows", err, stats.Spilled.Rows)
			}
			for _, share := range []int64{256, 4 << 10} {
				env.Spill, env.SpillAbove = db.spill, share
				got, stats, err := db.collect(t.Context(), p, program, env)
				if err != nil {
					t.Fatal(err)
				}
				if stats.Spilled.Rows == 0 {
					t.Errorf("nothing was spilled above %d bytes", share)
				}
				if !slices.Equal(got, want) {
					at := 0
					for at < len(got) && at < len(want) && got[at] == want[at] {
						at++
					}
					t.Fatalf("above %d bytes: %d rows, in memory %d; the first that differs is %d: %q %q", share, len(got), len(want), at, got[at:min(at+3, len(got))], want[at:min(at+3, len(want))])
				}
			}
		})
	}
}

// TestSpilledAgain checks that a subquery that spills, and that is opened again for each row of an enclosing query,
// returns the same rows as without spilling.
func TestSpilledAgain(t *testing.T) {
	db := newTestDB(t)
	for _, sql := range []string{
		"SELECT x, ARRAY(SELECT y FROM UNNEST(@n) y WHERE MOD(y, 9) = x ORDER BY MOD(y, 10), y) FROM UNNEST([1, 2, 3]) x",
		"SELECT x, ARRAY(SELECT COUNT(DISTINCT MOD(y, 100)) FROM UNNEST(@n) y WHERE y > x GROUP BY MOD(y, 50)) FROM UNNEST([1, 2, 3]) x",
		"SELECT x, (SELECT COUNT(*) FROM UNNEST(@n) y JOIN@{JOIN_METHOD=HASH_JOIN} UNNEST(@n) z ON y = z WHERE y > x) FROM UNNEST([1, 2, 3]) x",
		"SELECT x, (SELECT COUNT(*) FROM (SELECT MOD(y, x * 100) FROM UNNEST(@n) y EXCEPT DISTINCT SELECT z * 2 FROM UNNEST(@n) z)) FROM UNNEST([1, 2, 3]) x",
	} {
		p, program, env := db.spillingProgram(t, sql)
		want, _, err := db.collect(t.Context(), p, program, env)
		if err != nil {
			t.Fatal(err)
		}
		env.Spill, env.SpillAbove = db.spill, 512
		got, stats, err := db.collect(t.Context(), p, program, env)
		if err != nil || stats.Spilled.Rows == 0 || !slices.Equal(got, want) {
			t.Errorf("%s\nspilled %d rows: %q %v\nin memory: %q", sql, stats.Spilled.Rows, got, err, want)
		}
	}
}

// TestRandomSpilled checks that random queries return the same rows in the same order with and without spilling.
func TestRandomSpilled(t *testing.T) {
	db := randomDB(t, rand.New(rand.NewPCG(*seedFlag, 0)))
	for seed := *seedFlag; seed < *seedFlag+uint64(*roundsFlag); seed++ {
		g := generator{rand.New(rand.NewPCG(seed, 6))}
		sql := g.keeping()
		db.spillAbove = 0
		want := db.rows(t, sql)
		db.spillAbove = int64(1) << g.IntN(14)
		if got := db.rows(t, sql); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %s\nabove %d bytes gives %q\nin memory %q", seed, sql, db.spillAbove, got, want)
		}
	}
}

// keeping returns a random query with an operator that keeps rows in memory, so that it can spill.
func (g generator) keeping() string {
	from := g.pick("T t", "U t", "T t JOIN T x ON t.L = x.L", "T t, U u")
	column := func() string { return "t." + g.pick("A", "B", "S", "N") }
	where := " WHERE t.A " + g.pick("<", ">", "!=") + " " + g.literal("A")
	switch g.IntN(6) {
	case 0:
		return fmt.Sprintf("SELECT %s, %s FROM %s%s ORDER BY %s, %s DESC LIMIT %d", column(), column(), from, where, column(), column(), 1+g.IntN(500))
	case 1:
		agg := g.pick("COUNT(DISTINCT t.N)", "ARRAY_AGG(t.S)", "ARRAY_AGG(DISTINCT t.N ORDER BY t.N DESC)", "STRING_AGG(t.S, '-' ORDER BY t.S LIMIT 5)",
			"ARRAY_AGG(t.S HAVING MAX t.N)", "MAX(t.S), AVG(t.N)", "SUM(DISTINCT t.N), COUNTIF(t.B > 0)", "ARRAY_AGG(t.A IGNORE NULLS LIMIT 3)")
		return fmt.Sprintf("SELECT %s, %s FROM %s%s GROUP @{GROUP_METHOD=HASH_GROUP} BY 1", column(), agg, from, where)
	case 2:
		return fmt.Sprintf("SELECT DISTINCT %s, %s FROM %s%s", column(), column(), from, where)
	case 3:
		op := g.pick("EXCEPT DISTINCT", "EXCEPT ALL", "INTERSECT DISTINCT", "INTERSECT ALL", "UNION DISTINCT")
		c := column()
		return fmt.Sprintf("SELECT %s FROM %s%s %s SELECT %s FROM %s", c, from, where, op, c, g.pick("T t", "U t", "T t, U u"))
	case 4:
		return fmt.Sprintf("WITH w AS (SELECT t.A, t.B, t.S, t.N FROM %s%s) SELECT a.A, b.S FROM w a JOIN@{JOIN_METHOD=HASH_JOIN} T b ON a.N = b.N AND a.A < b.A, (SELECT COUNT(*) FROM w)", from, where)
	}
	c := g.pick("A", "B", "S", "N", "D", "L")
	also := g.pick("", " AND t.A < u.A", " AND t.F > 0")
	if c == "D" || c == "L" {
		return fmt.Sprintf("SELECT t.A, t.B, u.A, u.B FROM T t %s@{JOIN_METHOD=HASH_JOIN} T u ON t.%s = u.%s%s", g.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"), c, c, also)
	}
	return fmt.Sprintf("SELECT t.A, t.B, u.A, u.B, u.C FROM T t %s@{JOIN_METHOD=HASH_JOIN} U u ON t.%s = u.%s%s", g.pick("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"), c, c, also)
}

// TestSpillCancelled checks that a cancelled query returns the error of the context and closes its file. It runs each
// query with a context that is cancelled after 1 call of its method Err, then after 8 calls, 64 calls and so on, until
// the query succeeds.
func TestSpillCancelled(t *testing.T) {
	db := newTestDB(t)
	for name, sql := range spillingQueries {
		p, program, env := db.spillingProgram(t, sql)
		env.Spill, env.SpillAbove = db.spill, 1<<10
		for checks := int64(1); ; checks *= 8 {
			ctx := &endingContext{Context: t.Context(), left: checks}
			_, _, err := db.collect(ctx, p, program, env)
			if err == nil {
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s, ended after %d checks: %v", name, checks, err)
			}
			if n := db.files.open.Load(); n != 0 {
				t.Fatalf("%s, ended after %d checks: %d files are open", name, checks, n)
			}
		}
	}
}

// endingContext is a context that is cancelled after some calls of its method Err. The field left is the number of
// calls that will still return nil.
type endingContext struct {
	context.Context
	left int64
}

func (c *endingContext) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestSpillFails checks that a statement that fails because of a full disk returns RESOURCE_EXHAUSTED, and that every
// statement leaves no file open and no disk space reserved. The test makes call number 1, 6, 31, ... of the file system
// fail as if the disk were full.
func TestSpillFails(t *testing.T) {
	db := newTestDB(t)
	var calls, failing atomic.Int64
	fs := newCountingFS()
	dir, err := spill.Open(errorfs.Wrap(fs, errorfs.InjectorFunc(func(errorfs.Op) error {
		if calls.Add(1) == failing.Load() {
			return syscall.ENOSPC
		}
		return nil
	})), "spill")
	if err != nil {
		t.Fatal(err)
	}
	for name, sql := range spillingQueries {
		p, program, env := db.spillingProgram(t, sql)
		env.Spill, env.SpillAbove = dir, 1<<10
		for at := int64(1); ; at = at*5 + 1 {
			calls.Store(0)
			failing.Store(at)
			_, _, err := db.collect(t.Context(), p, program, env)
			if calls.Load() < at {
				break
			}
			// The statement may succeed although a call fails. For example, if the call that removes the name of an
			// open file fails, Close removes the file later.
			if err != nil && usererror.CodeOf(err) != codes.ResourceExhausted {
				t.Errorf("%s, call %d fails: %v", name, at, err)
			}
			if n := fs.open.Load(); n != 0 || dir.Used() != 0 {
				t.Fatalf("%s, call %d fails: %d files are open, %d bytes claimed", name, at, n, dir.Used())
			}
		}
	}
}

// TestSpillByAccount checks that a run spills when its account refuses more memory, either because of the
// statement's own limit or because other accounts have taken the budget. The run must give back all that it was
// charged.
func TestSpillByAccount(t *testing.T) {
	const sql = "SELECT COUNT(*), SUM(a.x) FROM (SELECT DISTINCT x FROM UNNEST(GENERATE_ARRAY(1, 60000)) x) a JOIN@{JOIN_METHOD=HASH_JOIN} UNNEST(GENERATE_ARRAY(1, 60000)) b ON a.x = b"
	db := newTestDB(t)
	p, program, env := db.spillingProgram(t, sql)
	want, _, err := db.collect(t.Context(), p, program, env)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ budget, reserved int64 }{
		"statement's limit": {budget: 12 << 20},
		"budget taken":      {budget: 256 << 20, reserved: 239 << 20},
		"room":              {budget: 256 << 20},
	} {
		budget := memory.NewBudget(c.budget)
		other, account := budget.Open(memory.Request), budget.Open(memory.Statement)
		if !other.TryGrow(c.reserved) {
			t.Fatalf("%s: there is no room for the other account", name)
		}
		env.Spill, env.Memory = db.spill, account
		before := budget.Usage().Reserved
		got, stats, err := db.collect(t.Context(), p, program, env)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q %v, want %q", name, got, err, want)
		}
		if spilled := stats.Spilled.Rows > 0; spilled != (name != "room") {
			t.Errorf("%s: %d rows were spilled", name, stats.Spilled.Rows)
		}
		if account.Used() != 0 || budget.Usage().Reserved != before {
			t.Errorf("%s: %d bytes are still charged, %d taken", name, account.Used(), budget.Usage().Reserved-before)
		}
	}
}

// TestAccountRefuses checks that a statement fails if its account refuses memory for values that cannot be spilled.
// Nothing may stay charged afterwards.
func TestAccountRefuses(t *testing.T) {
	db := newTestDB(t)
	p, program, env := db.spillingProgram(t, "SELECT ARRAY_LENGTH(ARRAY_AGG(x)) FROM UNNEST(GENERATE_ARRAY(1, 200000)) x")
	account := memory.NewBudget(12 << 20).Open(memory.Statement)
	env.Spill, env.Memory = db.spill, account
	_, _, err := db.collect(t.Context(), p, program, env)
	if usererror.CodeOf(err) != codes.ResourceExhausted || account.Used() != 0 {
		t.Errorf("%v, %d bytes are still charged", err, account.Used())
	}
}

// TestOverdraftIsShared checks that a statement that needs to spill fails if other spilling statements have taken
// all of the overdraft that they share.
func TestOverdraftIsShared(t *testing.T) {
	db := newTestDB(t)
	p, program, env := db.spillingProgram(t, "SELECT x FROM UNNEST(GENERATE_ARRAY(1, 60000)) x ORDER BY MOD(x, 7)")
	budget := memory.NewBudget(12 << 20)
	env.Spill, env.Memory = db.spill, budget.Open(memory.Statement)
	for others := budget.Open(memory.Spilling); others.TryGrow(64 << 10); {
	}
	_, _, err := db.collect(t.Context(), p, program, env)
	if usererror.CodeOf(err) != codes.ResourceExhausted {
		t.Error(err)
	}
}

// TestSpilledDML checks that DML that changes more rows than fit into memory has the same results as with enough
// memory.
func TestSpilledDML(t *testing.T) {
	script := "INSERT INTO U (A, B, C, S) SELECT A, B, 100, S FROM T WHERE B IS NOT NULL THEN RETURN A, B;\n" +
		"UPDATE T SET N = A * 10, S = NULL WHERE A > 1 THEN RETURN A, N;\n" +
		"DELETE FROM U WHERE A < 6 THEN RETURN A, B, C;\n"
	var want string
	for _, share := range []int64{0, 512} {
		db := randomDB(t, rand.New(rand.NewPCG(1, 0)))
		db.spillAbove = share
		got := db.exec(script) + db.query("SELECT A, B, S, N FROM T", false, false) + db.query("SELECT A, B, C, S FROM U", false, false)
		if share == 0 {
			want = got
			continue
		}
		if got != want {
			t.Errorf("spilled:\n%s\nin memory:\n%s", got, want)
		}
		if db.files.opened.Load() == 0 {
			t.Error("nothing was spilled")
		}
	}
}

// TestSpillProfile checks that a profile shows for each operator what the operator itself has spilled, without its
// inputs.
func TestSpillProfile(t *testing.T) {
	db := newTestDB(t)
	p, program, env := db.spillingProgram(t, spillingQueries["sort"])
	env.Spill, env.SpillAbove, env.Profile = db.spill, 1<<10, true
	_, stats, err := db.collect(t.Context(), p, program, env)
	if err != nil {
		t.Fatal(err)
	}
	var total spill.Written
	for _, n := range p.Proto(exec.NodeStatsProto(stats), nil).PlanNodes {
		_, spooled := n.ExecutionStats.GetFields()["Rows Spooled"]
		if spooled != (n.DisplayName == "Sort") {
			t.Errorf("%s: rows were spooled: %v", n.DisplayName, spooled)
		}
	}
	for _, n := range stats.Nodes {
		total = total.Plus(n.Spilled)
	}
	if total != stats.Spilled || total.Rows < spillingRows {
		t.Errorf("operators spilled %v, the query %v", total, stats.Spilled)
	}
}

// countingFS is a file system in memory that counts the files that are open, and the files that were ever opened. Its
// files keep the bytes of each write in a map by their offset. A file of vfs.NewMem would also store the unused bytes
// between the short blocks of a spill file, which would take much memory.
type countingFS struct {
	vfs.FS
	open, opened atomic.Int64
}

func newCountingFS() *countingFS { return &countingFS{FS: vfs.NewMem()} }

func (c *countingFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f, err := c.FS.OpenReadWrite(name, category, opts...)
	if err != nil {
		return nil, err
	}
	c.open.Add(1)
	c.opened.Add(1)
	return countedFile{f, c, map[int64][]byte{}}, nil
}

type countedFile struct {
	vfs.File
	fs      *countingFS
	written map[int64][]byte
}

func (f countedFile) WriteAt(b []byte, at int64) (int, error) {
	f.written[at] = slices.Clone(b)
	return len(b), nil
}

func (f countedFile) ReadAt(b []byte, at int64) (int, error) { return copy(b, f.written[at]), nil }

func (f countedFile) Close() error {
	f.fs.open.Add(-1)
	return f.File.Close()
}

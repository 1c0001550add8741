package exec_test

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// TestOnlyPullCallsNext reads the source code and checks that operators get their input only by run.pull, which
// checks whether the run was cancelled and counts its CPU time. An operator that calls next itself would do
// neither.
func TestOnlyPullCallsNext(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	pulled := false
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) != 1 {
					return true
				}
				if sel, ok := call.Fun.(*ast.SelectorExpr); !ok || sel.Sel.Name != "next" {
					return true
				}
				switch e.Name() + " " + fn.Name.Name {
				case "run.go pull":
					pulled = true
				case "nodestats.go next": // the method next of the type meter only passes on a call from pull
				default:
					t.Errorf("%s: %s calls next; operators are pulled by run.pull", e.Name(), fn.Name.Name)
				}
				return true
			})
		}
	}
	if !pulled {
		t.Error("pull does not call next: the test looks for the wrong thing")
	}
}

// countingContext counts the calls of its method Err.
type countingContext struct {
	context.Context
	asked atomic.Int64
}

func (c *countingContext) Err() error {
	c.asked.Add(1)
	return c.Context.Err()
}

// TestLongWorkIsChecked checks that each kind of operator notices a cancelled run soon: over 100,000 rows, the run
// must check its context at least once for every 2048 rows.
func TestLongWorkIsChecked(t *testing.T) {
	const rows, atLeast = 100_000, 100_000 / 2048
	db := randomDB(t, rand.New(rand.NewPCG(1, 0)))
	list := make([]value.Value, rows)
	for i := range list {
		list[i] = value.OfInt64(int64(i))
	}
	numbers := value.OfArray(list)
	for name, sql := range map[string]string{
		"unnest":              "SELECT x FROM UNNEST(@n) x",
		"filter of all":       "SELECT x FROM UNNEST(@n) x WHERE x < 0",
		"compute":             "SELECT x + 1 FROM UNNEST(@n) x",
		"sort":                "SELECT x FROM UNNEST(@n) x ORDER BY x DESC",
		"limit":               "SELECT x FROM UNNEST(@n) x LIMIT 1 OFFSET 99999",
		"top":                 "SELECT x FROM UNNEST(@n) x ORDER BY x DESC LIMIT 1",
		"aggregate of all":    "SELECT COUNT(*), SUM(x) FROM UNNEST(@n) x",
		"hash aggregate":      "SELECT x, COUNT(*) FROM UNNEST(@n) x GROUP BY x",
		"distinct":            "SELECT DISTINCT x FROM UNNEST(@n) x",
		"union all":           "SELECT x FROM UNNEST(@n) x UNION ALL SELECT x FROM UNNEST(@n) x",
		"except":              "SELECT x FROM UNNEST(@n) x EXCEPT DISTINCT SELECT x FROM UNNEST(@n) x",
		"intersect":           "SELECT x FROM UNNEST(@n) x INTERSECT DISTINCT SELECT x FROM UNNEST(@n) x",
		"hash join":           "SELECT COUNT(*) FROM UNNEST(@n) x JOIN@{JOIN_METHOD=HASH_JOIN} UNNEST(@n) y ON x = y",
		"cross join":          "SELECT COUNT(*) FROM UNNEST(@n) x CROSS JOIN UNNEST([1]) y",
		"with":                "WITH w AS (SELECT x FROM UNNEST(@n) x) SELECT COUNT(*) FROM w a, w b WHERE a.x < 0",
		"array subquery":      "SELECT ARRAY_LENGTH(ARRAY(SELECT x FROM UNNEST(@n) x))",
		"in subquery":         "SELECT 1 IN (SELECT x FROM UNNEST(@n) x WHERE x > 1)",
		"exists":              "SELECT EXISTS(SELECT x FROM UNNEST(@n) x WHERE x < 0)",
		"correlated subquery": "SELECT COUNT(*) FROM UNNEST(@n) x WHERE EXISTS(SELECT 1 FROM UNNEST([1]) y WHERE y = x)",
		"sample":              "SELECT COUNT(*) FROM (SELECT x FROM UNNEST(@n) x) TABLESAMPLE RESERVOIR (10 ROWS)",
	} {
		t.Run(name, func(t *testing.T) {
			p, err := db.plan(sql, map[string]*value.Type{"n": value.ArrayOf(value.Int64Type)})
			if err != nil {
				t.Fatal(err)
			}
			program, err := exec.Compile(p, table.NewDescriptors(db.catalog))
			if err != nil {
				t.Fatal(err)
			}
			ctx := &countingContext{Context: t.Context()}
			env := exec.Env{Functions: db.functions(), Params: []value.Value{numbers}}
			err = db.read(func(view table.View) error {
				env.View = view
				rows, err := program.Run(ctx, env)
				if err != nil {
					return err
				}
				defer rows.Close()
				for ok := true; ok && err == nil; {
					ok, err = rows.Next()
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			if asked := ctx.asked.Load(); asked < atLeast {
				t.Errorf("checked %d times over %d rows, want at least %d", asked, rows, atLeast)
			}
		})
	}
}

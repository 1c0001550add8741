package database

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// probes are queries of all objects that the statements of TestHistory may make. If an object does not exist, the
// answer is the error of its query.
var probes = func() (list []string) {
	for _, t := range []string{"A", "B"} {
		list = append(list, "SELECT * FROM "+t+" ORDER BY K", "SELECT COUNT(*) FROM "+t)
		for _, c := range []string{"X", "Y"} {
			list = append(list, fmt.Sprintf("SELECT K, %s FROM %s ORDER BY K", c, t), fmt.Sprintf("SELECT K FROM %s@{FORCE_INDEX=%sBy%s} ORDER BY K", t, t, c))
		}
	}
	return append(list,
		"SELECT TABLE_NAME, COLUMN_NAME, SPANNER_TYPE, IS_NULLABLE, SPANNER_STATE FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = '' ORDER BY 1, ORDINAL_POSITION",
		"SELECT TABLE_NAME, INDEX_NAME, INDEX_STATE FROM INFORMATION_SCHEMA.INDEXES WHERE TABLE_SCHEMA = '' ORDER BY 1, 2")
}()

// TestHistory makes random changes of schema and rows, and runs the probes after each change. Later, reads at the
// timestamps of these probes must return the same answers.
func TestHistory(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := &past{aged: newAged(t), marks: map[string]mvcc.Timestamp{}}
			rng := rand.New(rand.NewPCG(seed, 0))
			answered := map[mvcc.Timestamp]string{}
			for range 60 {
				p.step(rng)
				at, err := p.bound(txn.Bound{})
				if err != nil {
					t.Fatal(err)
				}
				if c, err := p.db.CatalogAt(at); err != nil || c != p.db.Catalog() {
					t.Fatalf("a strong read has another schema than the newest, %v", err)
				}
				answered[at] = p.probe(at)
				for past, want := range answered {
					if past < p.db.txns.Earliest() {
						delete(answered, past)
					} else if rng.IntN(8) == 0 {
						p.same(past, want)
					}
				}
			}
			for past, want := range answered {
				p.same(past, want)
			}
		})
	}
}

// schemaHistory holds statements that change the schema, and rowHistory holds statements that change rows. The method
// step replaces $T by the name of a table, $C by the name of a column, and $N by a number.
var (
	schemaHistory = []string{
		"CREATE TABLE $T (K INT64) PRIMARY KEY (K)", "CREATE TABLE $T (K INT64, $C INT64) PRIMARY KEY (K)", "DROP TABLE $T",
		"ALTER TABLE $T ADD COLUMN $C INT64", "ALTER TABLE $T ADD COLUMN $C INT64 NOT NULL DEFAULT (4)", "ALTER TABLE $T ADD COLUMN $C STRING(MAX)",
		"ALTER TABLE $T ADD COLUMN $C BYTES(MAX) DEFAULT (b'default')", "ALTER TABLE $T DROP COLUMN $C",
		"ALTER TABLE $T ALTER COLUMN $C INT64 NOT NULL", "ALTER TABLE $T ALTER COLUMN $C STRING(MAX) NOT NULL",
		"CREATE INDEX $TBy$C ON $T($C)", "CREATE UNIQUE INDEX $TBy$C ON $T($C)", "DROP INDEX $TBy$C",
	}
	rowHistory = []string{"INSERT INTO $T (K) VALUES ($N)", "INSERT INTO $T (K, $C) VALUES ($N, $N)", "DELETE FROM $T WHERE K < $N", "UPDATE $T SET $C = $N WHERE TRUE", "UPDATE $T SET $C = NULL WHERE K = $N"}
)

// step advances the clock. Then it runs a random statement, restarts the registry or collects old versions. If that
// fails, the test continues, unless the error is an internal one.
func (p *past) step(rng *rand.Rand) {
	p.now.Add(rng.Int64N((5 * time.Minute).Microseconds()))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	names := strings.NewReplacer("$T", pick("A", "B"), "$C", pick("X", "Y"), "$N", fmt.Sprint(rng.IntN(20)))
	var err error
	switch n := rng.IntN(100); {
	case n < 55:
		err = p.db.UpdateSchema(context.Background(), []string{names.Replace(pick(schemaHistory...))}, nil)
	case n < 90:
		sql := names.Replace(pick(rowHistory...))
		err = p.db.jobs.Transact(context.Background(), func(w table.Writer) error { return p.execute(w, sql) })
	case n < 95:
		p.close()
		p.open()
		p.db, err = p.Database(testName)
	default:
		err = p.db.collect(context.Background())
	}
	if usererror.CodeOf(err) == codes.Internal {
		p.t.Fatal(err)
	}
}

// probe returns the text of the answers to all probes at a timestamp.
func (p *past) probe(at mvcc.Timestamp) string {
	var out strings.Builder
	for _, sql := range probes {
		answer, err := p.answer(at, sql)
		if usererror.CodeOf(err) == codes.Internal {
			p.t.Fatal(sql, err)
		}
		fmt.Fprintf(&out, "%s\n%s%v\n", sql, answer, err)
	}
	return out.String()
}

func (p *past) same(at mvcc.Timestamp, want string) {
	p.t.Helper()
	if got := p.probe(at); got != want {
		p.t.Fatalf("%v before now there is\n%s\nit was\n%s", p.clock().Sub(at.Time()), got, want)
	}
}

package database

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// besideChanges is the number of schema changes that run while random transactions run.
const besideChanges = 60

// changesBeside are the schema changes of TestTransactionsBesideSchemaChanges, and statementsBeside are the statements
// of the transactions that run at the same time. In both, $T stands for the name of a table, $C for that of a column,
// and $N and $M for numbers.
var (
	changesBeside = []string{
		"CREATE INDEX $TBy$C ON $T($C)", "DROP INDEX $TBy$C", "CREATE UNIQUE INDEX $TOnce$C ON $T($C, K)", "DROP INDEX $TOnce$C",
		"ALTER TABLE $T ADD COLUMN D INT64 NOT NULL DEFAULT (4)", "ALTER TABLE $T DROP COLUMN D", "ALTER TABLE $T ADD COLUMN G INT64 AS (X + Y) STORED",
		"ALTER TABLE $T DROP COLUMN G", "ALTER TABLE $T ALTER COLUMN $C INT64 NOT NULL", "ALTER TABLE $T ALTER COLUMN $C INT64",
		"ALTER TABLE $T ADD CONSTRAINT $TSmall CHECK (Y < 15)", "ALTER TABLE $T DROP CONSTRAINT $TSmall",
		"ALTER TABLE B ADD CONSTRAINT BA FOREIGN KEY (X) REFERENCES A (K)", "ALTER TABLE B DROP CONSTRAINT BA",
		"DROP TABLE C", "CREATE TABLE C (K INT64, X INT64, Y INT64) PRIMARY KEY (K)",
	}
	statementsBeside = []string{
		"INSERT INTO $T (K, X, Y) VALUES ($N, $N, $N)", "INSERT INTO $T (K, X) VALUES ($N, $M)", "DELETE FROM $T WHERE K = $N", "UPDATE $T SET $C = $N WHERE K < $M",
		"UPDATE $T SET $C = NULL WHERE K = $N", "SELECT COUNT(*), SUM(X) FROM $T", "SELECT K, $C FROM $T WHERE K < $N", "SELECT K FROM $T@{FORCE_INDEX=$TBy$C} WHERE $C = $N",
		"SELECT K FROM $T@{FORCE_INDEX=$TBy$C} WHERE $C > $N",
	}
)

// broken are queries that count violations of the schema. A query fails if the schema lacks an object that it names.
var broken = []string{
	"SELECT COUNT(*) FROM $T a WHERE X IS NOT NULL AND NOT EXISTS (SELECT 1 FROM $T@{FORCE_INDEX=$TByX} b WHERE b.X = a.X AND b.K = a.K)",
	"SELECT COUNT(*) FROM $T@{FORCE_INDEX=$TByX} a WHERE NOT EXISTS (SELECT 1 FROM $T@{FORCE_INDEX=_BASE_TABLE} b WHERE b.K = a.K AND b.X IS NOT DISTINCT FROM a.X)",
	"SELECT ABS((SELECT COUNT(*) FROM $T@{FORCE_INDEX=$TByY}) - (SELECT COUNT(*) FROM $T@{FORCE_INDEX=_BASE_TABLE}))",
	"SELECT ABS((SELECT COUNT(*) FROM $T@{FORCE_INDEX=$TOnceY}) - (SELECT COUNT(*) FROM $T@{FORCE_INDEX=_BASE_TABLE}))",
	"SELECT COUNT(*) FROM $T WHERE D IS NULL", "SELECT COUNT(*) FROM $T WHERE G IS DISTINCT FROM X + Y",
}

// TestTransactionsBesideSchemaChanges runs transactions and random schema changes at the same time. Indexes must match
// their tables, new columns must have their values, and constraints must hold. What a transaction has read must still
// be true when it commits.
func TestTransactionsBesideSchemaChanges(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			b := create(t, "CREATE TABLE A (K INT64, X INT64, Y INT64) PRIMARY KEY (K)", "CREATE TABLE B (K INT64, X INT64, Y INT64) PRIMARY KEY (K)",
				"CREATE TABLE C (K INT64, X INT64, Y INT64) PRIMARY KEY (K)")
			var committed, aborted atomic.Int64
			var running sync.WaitGroup
			stop := make(chan struct{})
			for i := range uint64(4) {
				running.Go(func() {
					rng := rand.New(rand.NewPCG(seed, i))
					for {
						select {
						case <-stop:
							return
						default:
						}
						switch err := b.randomTransaction(rng); usererror.CodeOf(err) {
						case codes.OK:
							committed.Add(1)
						case codes.Aborted:
							aborted.Add(1)
						case codes.Internal:
							t.Error(err)
							return
						}
					}
				})
			}
			rng := rand.New(rand.NewPCG(seed, 100))
			changed := 0
			for range besideChanges {
				statement := fillIn(rng, changesBeside[rng.IntN(len(changesBeside))])
				switch err := b.db.UpdateSchema(context.Background(), []string{statement}, nil); usererror.CodeOf(err) {
				case codes.OK:
					changed++
				case codes.Internal:
					t.Error(statement, err)
				}
				b.unbroken(statement)
			}
			close(stop)
			running.Wait()
			b.unbroken("the end")
			if committed.Load() == 0 || changed == 0 {
				t.Errorf("%d transactions committed, %d aborted, %d changes", committed.Load(), aborted.Load(), changed)
			}
			t.Logf("%d transactions committed, %d aborted, %d changes", committed.Load(), aborted.Load(), changed)
		})
	}
}

func fillIn(rng *rand.Rand, statement string) string {
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	return strings.NewReplacer("$T", pick("A", "B", "C"), "$C", pick("X", "Y"), "$N", fmt.Sprint(rng.IntN(20)), "$M", fmt.Sprint(rng.IntN(20))).Replace(statement)
}

// unbroken fails the test if one of the queries in the list broken counts a violation.
func (b *bed) unbroken(after string) {
	b.t.Helper()
	for _, name := range []string{"A", "B", "C"} {
		for _, q := range broken {
			q = strings.ReplaceAll(q, "$T", name)
			if n, err := b.count(context.Background(), q); err == nil && n != 0 {
				b.t.Errorf("after %s: %s is %d", after, q, n)
			} else if usererror.CodeOf(err) == codes.Internal {
				b.t.Error(q, err)
			}
		}
	}
}

// randomTransaction runs a few statements, each with the newest catalog. If it has written nothing, it repeats its
// queries before it commits; they must return the same.
func (b *bed) randomTransaction(rng *rand.Rand) error {
	tx := b.db.Transactions().Begin(txn.Options{ReadLock: txn.ReadLock(rng.IntN(3))})
	defer tx.Rollback()
	answers := map[string]string{}
	wrote := false
	for range 1 + rng.IntN(4) {
		sql := fillIn(rng, statementsBeside[rng.IntN(len(statementsBeside))])
		answer, err := b.in(tx, sql)
		if usererror.CodeOf(err) == codes.InvalidArgument {
			continue // the schema lacks an object of the statement now
		}
		if err != nil {
			return err
		}
		if !strings.HasPrefix(sql, "SELECT") {
			wrote = true
		} else if !wrote {
			answers[sql] = answer
		}
	}
	for sql, want := range answers {
		if wrote {
			break
		}
		got, err := b.in(tx, sql)
		if err != nil {
			return err
		}
		if got != want {
			b.t.Errorf("in one transaction %s answered\n%s and then\n%s", sql, want, got)
		}
	}
	_, err := tx.Commit(context.Background(), nil, txn.CommitOptions{})
	return err
}

// in runs a statement in a transaction, as the server does.
func (b *bed) in(tx *txn.Tx, sql string) (string, error) {
	ctx := context.Background()
	c := b.db.Catalog()
	s, err := b.db.Prepare(ctx, c, sql, nil, prepare.Options{Verbatim: true}) // so that literals are not replaced by parameters
	if err != nil {
		return "", err
	}
	if err := tx.DependOn(ctx, s.Dependencies, c); err != nil {
		return "", err
	}
	w := tx.Request()
	w.DML = s.Plan.IsDML()
	run := prepare.Run{View: w}
	if w.DML {
		run = prepare.Run{Writer: w}
	}
	before := tx.Savepoint()
	rows, err := s.Run(ctx, run, time.Now())
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var out []string
	for {
		more, err := rows.Next()
		if err != nil {
			tx.RollbackTo(before)
			return "", err
		}
		if !more {
			slices.Sort(out)
			return strings.Join(out, "\n"), nil
		}
		out = append(out, fmt.Sprint(rows.Values(nil)))
	}
}

package database

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/crowfoot-db/crowfoot/kv/pebble"
	"github.com/crowfoot-db/crowfoot/table"
)

// modelDDL creates the tables of copyModel. modelChanges are statements that change these tables again and again. Some
// of them fail because an object that they name does not exist at that moment.
var (
	modelDDL = []string{
		"ALTER DATABASE test SET OPTIONS (columnar_policy = 'enabled')",
		"CREATE TABLE T (K INT64, S STRING(MAX), N INT64) PRIMARY KEY (K)",
		"CREATE TABLE C (K INT64, L INT64, N INT64) PRIMARY KEY (K, L DESC), INTERLEAVE IN PARENT T ON DELETE CASCADE",
		"CREATE INDEX ByN ON T(N DESC)",
		"CREATE FUNCTION F(n INT64) AS (n + 1)",
		"CREATE FUNCTION H(n INT64) AS (F(n) - 1)",
	}
	modelChanges = []string{
		"ALTER TABLE T SET OPTIONS (columnar_policy = 'disabled')",
		"ALTER TABLE T SET OPTIONS (columnar_policy = NULL)",
		"ALTER INDEX ByN SET OPTIONS (columnar_policy = 'disabled')",
		"ALTER INDEX ByN SET OPTIONS (columnar_policy = 'enabled')",
		"ALTER DATABASE test SET OPTIONS (columnar_policy = 'disabled')",
		"ALTER DATABASE test SET OPTIONS (columnar_policy = 'enabled')",
		"ALTER TABLE T ADD COLUMN A INT64",
		"ALTER TABLE T ADD COLUMN A STRING(MAX) NOT NULL DEFAULT ('x')",
		"ALTER TABLE T ADD COLUMN G INT64 AS (N + 1)",
		"CREATE OR REPLACE FUNCTION F(n INT64) AS (n * 2)",
		"CREATE OR REPLACE FUNCTION F(n INT64) AS (n * 3)",
		"CREATE OR REPLACE FUNCTION H(n INT64) AS (F(n) + 1)",
		"CREATE OR REPLACE FUNCTION H(n INT64) AS (n)",
		"ALTER TABLE T ADD COLUMN G INT64 AS (H(N))",
		"ALTER TABLE T ALTER COLUMN G INT64 AS (F(N))",
		"ALTER TABLE T ALTER COLUMN G INT64 AS (A)",
		"ALTER TABLE T ADD COLUMN E INT64 AS (G + H(N)) STORED",
		"ALTER TABLE T DROP COLUMN E",
		"CREATE INDEX ByG ON T(G) STORING (S)",
		"DROP INDEX ByG",
		"ALTER TABLE T RENAME TO R",
		"ALTER TABLE R RENAME TO T",
		"RENAME TABLE T TO R, C TO T, R TO C",
		"ALTER TABLE T DROP COLUMN A",
		"ALTER TABLE T DROP COLUMN G",
		"ALTER TABLE T ALTER COLUMN S BYTES(MAX)",
		"ALTER TABLE T ALTER COLUMN S STRING(MAX)",
		"CREATE INDEX ByL ON C(K, N), INTERLEAVE IN T",
		"CREATE INDEX ByC ON C(N)",
		"DROP INDEX ByL",
		"DROP INDEX ByC",
		"DROP INDEX ByN",
		"CREATE INDEX ByN ON T(N DESC) STORING (S)",
		"ALTER INDEX ByN ADD STORED COLUMN A",
		"ALTER INDEX ByN DROP STORED COLUMN A",
	}
)

// copyModel does random operations on a database with columnar copies.
type copyModel struct {
	copied
	rng *rand.Rand
}

// step does one random operation, which must not fail.
func (m copyModel) step() {
	m.t.Helper()
	if err := m.tryStep(); err != nil {
		m.t.Fatal(err)
	}
}

func (m copyModel) tryStep() error {
	n := func(below int) int { return m.rng.IntN(below) }
	sql := func(format string, args ...any) {
		_ = m.db.jobs.Transact(context.Background(), func(w table.Writer) error { return m.execute(w, fmt.Sprintf(format, args...)) })
	}
	switch n(12) {
	case 0, 1:
		sql("INSERT OR UPDATE INTO T (K, N) SELECT K, %d FROM UNNEST(GENERATE_ARRAY(%d, %d)) AS K", n(100), n(300), n(300))
	case 2:
		sql("INSERT OR UPDATE INTO C (K, L, N) SELECT K, %d, 7 FROM T WHERE K < %d", n(4), n(300))
	case 3:
		sql("UPDATE T SET N = N + 1 WHERE K BETWEEN %d AND %d", n(300), n(300))
	case 4:
		sql("DELETE FROM T WHERE K BETWEEN %d AND %d", n(300), n(300))
	case 5:
		sql("DELETE FROM C WHERE L = %d", n(4))
	case 6:
		_ = m.db.UpdateSchema(context.Background(), []string{modelChanges[n(len(modelChanges))]}, nil)
	case 7:
		m.now.Add((time.Duration(n(3000)) * time.Second).Microseconds())
	case 8:
		return m.db.collect(context.Background())
	default:
		m.now.Add((time.Duration(n(15)) * time.Second).Microseconds())
		for range n(5) {
			if _, err := m.db.upkeep.Step(context.Background()); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestColumnarModel checks that copies have the same rows as the tables after each of many random steps. The steps
// change rows and the schema, keep the copies up to date and collect old versions. At the end Verify must find no
// error.
func TestColumnarModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := copyModel{newCopied(t, modelDDL...), rand.New(rand.NewPCG(seed, 0))}
			for range 150 {
				m.step()
				compareCopies(t, m.db)
			}
			if err := m.upkeep(); err != nil {
				t.Fatal(err)
			}
			compareCopies(t, m.db)
			for _, p := range m.db.ColumnarPolicies() {
				if p.Missing > 0 {
					t.Errorf("left undone: %+v", p)
				}
			}
			b := &bed{t: t, Registry: m.Registry, db: m.db}
			if found := b.verify(); len(found) > 0 {
				t.Errorf("found %q", found)
			}
		})
	}
}

// TestColumnarCrash checks that after each of several crashes the copies have the same rows as the tables, and the
// stored data is undamaged. The test makes random changes as TestColumnarModel does, and crashes the machine at random
// moments, some of them while a chunk is written. After each crash it opens the files that are left.
func TestColumnarCrash(t *testing.T) {
	fs := vfs.NewCrashableMem()
	store, err := pebble.Open("data", fs)
	if err != nil {
		t.Fatal(err)
	}
	m := copyModel{copied{&aged{t: t, store: store}}, rand.New(rand.NewPCG(7, 0))}
	m.now.Store(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro())
	m.open()
	if m.db, err = m.CreateDatabase(t.Context(), testName, modelDDL); err != nil {
		t.Fatal(err)
	}
	m.hold()
	for range 40 {
		for range 1 + m.rng.IntN(6) {
			m.step()
		}
		var crashed *vfs.MemFS
		moment, cut := make(chan struct{}), vfs.CrashCloneCfg{UnsyncedDataPercent: m.rng.IntN(101), RNG: rand.New(rand.NewPCG(m.rng.Uint64(), 0))}
		go func() { // copies the files that a crash leaves, perhaps while Step writes a chunk
			defer close(moment)
			crashed = fs.CrashClone(cut)
		}()
		_, err := m.db.upkeep.Step(t.Context())
		<-moment
		if err != nil {
			t.Fatal(err)
		}
		m.openCrashed(crashed)
	}
	m.letGo()
	m.close()
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

// openCrashed opens the files that a crash has left, checks the copies, and runs the upkeep.
func (m copyModel) openCrashed(fs vfs.FS) {
	m.t.Helper()
	store, err := pebble.Open("data", fs)
	if err != nil {
		m.t.Fatal(err)
	}
	after := copied{&aged{t: m.t, store: store}}
	after.now.Store(m.now.Load())
	after.open()
	if after.db, err = after.Database(testName); err != nil {
		m.t.Fatal(err)
	}
	after.hold()
	compareCopies(m.t, after.db)
	b := &bed{t: m.t, Registry: after.Registry, db: after.db}
	if found := b.verify(); len(found) > 0 {
		m.t.Errorf("after a crash: %q", found)
	}
	if err := after.upkeep(); err != nil {
		m.t.Error(err)
	}
	compareCopies(m.t, after.db)
	after.letGo()
	after.close()
	if err := store.Close(); err != nil {
		m.t.Error(err)
	}
}

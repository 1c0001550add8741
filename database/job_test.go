package database

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/schemachange"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/kv"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/value"
)

// insertBytes inserts rows of an INT64 and a BYTES column, each row in a commit of its own. size is the number of bytes
// in the BYTES column.
func (b *bed) insertBytes(name string, rows, size int) {
	b.t.Helper()
	t := b.db.Catalog().Table(name)
	for k := range rows {
		m := table.Mutation{Op: table.Insert, Table: t, Columns: t.Columns[:2], Rows: [][]value.Value{{value.OfInt64(int64(k)), value.OfBytes(make([]byte, size))}}}
		err := b.db.jobs.Transact(context.Background(), func(w table.Writer) error {
			_, err := table.Apply(context.Background(), w, table.NewDescriptors(b.db.Catalog()), []table.Mutation{m}, time.Now())
			return err
		})
		if err != nil {
			b.t.Fatal(err)
		}
	}
}

// TestSchemaChangeOfLargeRows checks that a schema change can fill new columns and index entries of rows which together
// are larger than a commit may be.
func TestSchemaChangeOfLargeRows(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V BYTES(MAX)) PRIMARY KEY (K)")
	const rows = 12
	b.insertBytes("T", rows, 10<<20)
	b.alter("ALTER TABLE T ADD COLUMN N INT64 AS (BYTE_LENGTH(V)) STORED", "CREATE INDEX ByN ON T(N) STORING (V)", "ALTER TABLE T ADD CONSTRAINT NotEmpty CHECK (BYTE_LENGTH(V) > 0)")
	if got := b.query("SELECT COUNT(*) FROM T@{FORCE_INDEX=ByN} WHERE N = 10485760 AND BYTE_LENGTH(V) = N"); got != "12\n" {
		t.Errorf("the index has %s entries", got)
	}
}

// TestSchemaChangeProgress checks that the reported percentage rises and is 100 when the statement has taken effect.
func TestSchemaChangeProgress(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	if err := b.insert("T", rowsOf(20*table.ChunkRows)...); err != nil {
		t.Fatal(err)
	}
	b = b.reopen() // moves the rows from memory to files; the percentage is computed from the sizes of files
	var progress []int
	err := b.db.UpdateSchema(context.Background(), []string{"CREATE INDEX ByV ON T(V)", "DROP INDEX ByV"}, &schemachange.Operation{Progress: func(p schemachange.Progress) {
		if p.Percent == 100 != !p.Commit.IsZero() {
			t.Errorf("%+v", p)
		}
		progress = append(progress, 100*p.Statement+p.Percent)
	}})
	if err != nil {
		t.Fatal(err)
	}
	middle := slices.ContainsFunc(progress, func(p int) bool { return p > 20 && p < 80 })
	if !slices.IsSorted(progress) || !middle || progress[len(progress)-2] != 100 || progress[len(progress)-1] != 200 {
		t.Errorf("progress: %v", progress)
	}
}

// TestPartitionedDMLResumes runs a partitioned DML statement that fails half way, and runs it again under the same job
// name, after a restart and in the same process. The runs together must change every row once and count them all. After
// the statement has succeeded, another run must change nothing and return the same count.
func TestPartitionedDMLResumes(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)")
	rows := rowsOf(3 * table.ChunkRows)
	rows[1500][1] = -1
	if err := b.insert("T", rows...); err != nil {
		t.Fatal(err)
	}
	const sql = "UPDATE T SET V = CASE WHEN V < 0 THEN DIV(1, 0) ELSE V + 1 END WHERE TRUE"
	run := func(job string) (Changed, error) {
		return b.db.PartitionedDML(context.Background(), PartitionedDML{Statement: b.partitionedDML(sql), Tracker: new(split.Tracker), Job: job})
	}
	_, err := run("a")
	wantCode(t, err, codes.OutOfRange)
	b = b.reopen()
	if _, err := b.db.PartitionedDML(context.Background(), PartitionedDML{Statement: b.partitionedDML("UPDATE T SET V = 2 WHERE V < 0"), Tracker: new(split.Tracker)}); err != nil {
		t.Fatal(err)
	}
	changed, err := run("a")
	if err != nil || changed.Rows != int64(len(rows)) || changed.Commits != 3 {
		t.Errorf("changed %+v, %v", changed, err)
	}
	if got := b.query("SELECT COUNT(*) FROM T WHERE V = MOD(K, 7) + 1"); got != "3000\n" {
		t.Errorf("%s rows were changed once", got)
	}
	for range 2 {
		if again, err := run("a"); err != nil || again != changed {
			t.Errorf("run again it says %+v, %v", again, err)
		}
		if got := b.query("SELECT COUNT(*) FROM T WHERE V = MOD(K, 7) + 1"); got != "3000\n" {
			t.Errorf("after that, %s rows were changed once", got)
		}
		b = b.reopen()
	}
}

// hooked is a store that calls a function after each synced commit. The field committed holds the function.
type hooked struct {
	kv.Store
	committed func()
}

type hookedBatch struct {
	kv.Batch
	committed func()
}

func (s *hooked) NewBatch() kv.Batch { return &hookedBatch{s.Store.NewBatch(), s.committed} }

func (b *hookedBatch) Commit() error {
	err := b.Batch.Commit()
	b.committed()
	return err
}

// TestRowDeletionResumes ends a pass over expired rows half way and restarts the server. The next pass must continue
// after the checkpoint.
func TestRowDeletionResumes(t *testing.T) {
	a := newAged(t, "CREATE TABLE T (K INT64, Ts TIMESTAMP) PRIMARY KEY (K), ROW DELETION POLICY (OLDER_THAN(Ts, INTERVAL 1 DAY))")
	stamp := value.OfTime(a.clock())
	row := func(i int) []value.Value { return []value.Value{value.OfInt64(int64(i)), stamp} }
	a.fill("T", 1000, row)
	a.now.Add((25 * time.Hour).Microseconds())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var commits atomic.Int64
	commits.Store(math.MinInt64)
	a.reopenOn(&hooked{a.store, func() {
		if commits.Add(1) == 5 {
			cancel()
		}
	}})
	commits.Store(0)
	a.db.expiry.Pass(ctx)
	if left := a.count("SELECT FORMAT('%d/%t', COUNTIF(K = 5), COUNT(*) BETWEEN 1 AND 999) FROM T"); left != "0/true" {
		t.Fatalf("the pass that was interrupted left %s", left)
	}
	// The key of this expired row lies before the checkpoint. So the resumed pass must leave the row, and the pass
	// after that must delete it.
	a.fill("T", 1, func(int) []value.Value { return row(5) })
	a.close()
	a.open()
	var err error
	if a.db, err = a.Database(testName); err != nil {
		t.Fatal(err)
	}
	a.db.expiry.Pass(context.Background())
	if got := a.count("SELECT STRING_AGG(CAST(K AS STRING)) FROM T"); got != "5" {
		t.Errorf("after the pass that went on there are rows %s", got)
	}
	a.db.expiry.Pass(context.Background())
	if got := a.count("SELECT COUNT(*) FROM T"); got != "0" {
		t.Errorf("after the next pass there are %s rows", got)
	}
}

package database

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/crowfoot-db/crowfoot/database/prepare"
	"github.com/crowfoot-db/crowfoot/database/split"
	"github.com/crowfoot-db/crowfoot/usererror"
)

// partitionedDML prepares a statement with the option that a partitioned DML request uses.
func (b *bed) partitionedDML(sql string) *prepare.Statement {
	b.t.Helper()
	s, err := b.db.Prepare(context.Background(), b.db.Catalog(), sql, nil, prepare.Options{Batch: true})
	if err != nil {
		b.t.Fatal(err)
	}
	return s
}

func (b *bed) runPartitioned(s *prepare.Statement) (Changed, error) {
	return b.db.PartitionedDML(context.Background(), PartitionedDML{Statement: s, Tracker: new(split.Tracker)})
}

func hundred() (rows [][2]int64) {
	for k := range int64(100) {
		rows = append(rows, [2]int64{k + 1, k + 1})
	}
	return rows
}

// TestPartitionedDMLChangesOnce runs statements that move rows forward in the index that they scan. No row may be
// changed twice.
func TestPartitionedDMLChangesOnce(t *testing.T) {
	for _, sql := range []string{
		"UPDATE T SET V = V + 1 WHERE V > 0",
		"UPDATE T@{FORCE_INDEX=ByV} SET V = V + 1 WHERE V > 0",
	} {
		b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)", "CREATE INDEX ByV ON T(V)")
		if err := b.insert("T", hundred()...); err != nil {
			t.Fatal(err)
		}
		changed, err := b.runPartitioned(b.partitionedDML(sql))
		if err != nil || changed.Rows != 100 {
			t.Errorf("%s: changed %d rows, %v", sql, changed.Rows, err)
		}
		for _, check := range []string{
			"SELECT COUNT(*) FROM T WHERE V = K + 1",
			"SELECT COUNT(*) FROM T@{FORCE_INDEX=ByV} WHERE V BETWEEN 2 AND 101",
		} {
			if got := b.query(check); got != "100\n" {
				t.Errorf("%s: %s gives %s", sql, check, got)
			}
		}
	}
}

// TestPartitionedDMLOutlivesSchema checks partitioned DML statements that were prepared before a schema change. Such a
// statement must obey the new schema when it runs. If the index that it scans was rebuilt, it must fail with ABORTED
// and change nothing.
func TestPartitionedDMLOutlivesSchema(t *testing.T) {
	b := create(t, "CREATE TABLE T (K INT64, V INT64) PRIMARY KEY (K)", "CREATE INDEX Old ON T(K, V)")
	if err := b.insert("T", hundred()...); err != nil {
		t.Fatal(err)
	}
	update := b.partitionedDML("UPDATE T SET V = V + 1 WHERE TRUE")
	remove := b.partitionedDML("DELETE FROM T@{FORCE_INDEX=Old} WHERE K > 50")
	b.alter("CREATE INDEX ByV ON T(V)", "ALTER TABLE T ADD COLUMN W INT64 AS (V + 1) STORED", "ALTER INDEX Old ADD STORED COLUMN W")
	if _, err := b.runPartitioned(update); err != nil {
		t.Fatal(err)
	}
	if got := b.query("SELECT COUNT(*) FROM T@{FORCE_INDEX=ByV} WHERE V BETWEEN 2 AND 101 AND W = V + 1"); got != "100\n" {
		t.Errorf("%s rows are as they should be", got)
	}
	_, err := b.runPartitioned(remove)
	wantCode(t, err, codes.Aborted)
	if usererror.IsAborted(err) && b.query("SELECT COUNT(*) FROM T") != "100\n" {
		t.Error("something was deleted")
	}
	b.alter("DROP INDEX Old")
	_, err = b.runPartitioned(remove)
	wantCode(t, err, codes.InvalidArgument)
}

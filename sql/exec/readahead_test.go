package exec_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/crowfoot-db/crowfoot/mvcc"
	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/sql/fn"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
)

// aheadView is a snapshot that counts the keys that are read together, for each call of GetEach, and the keys that
// are read one by one.
type aheadView struct {
	*txn.Snapshot
	together []int
	single   int
	since    []mvcc.Timestamp
}

func (v *aheadView) Get(ctx context.Context, key []byte, lock table.Lock) ([]byte, bool, error) {
	v.single++
	return v.Snapshot.Get(ctx, key, lock)
}

func (v *aheadView) GetEach(ctx context.Context, keys [][]byte, since mvcc.Timestamp, found func(i int, val []byte, ok bool) bool) error {
	v.together, v.since = append(v.together, len(keys)), append(v.since, since)
	return v.Snapshot.GetEach(ctx, keys, since, found)
}

// TestReadAhead checks that a join by key reads the rows of its right side together, for a whole batch of rows of its
// left side. A join from an index back to its table must also tell the view the oldest commit timestamp of the index
// entries, because the view then reads the table's rows faster. If there are few rows, they must be read one by one.
func TestReadAhead(t *testing.T) {
	db := newTestDB(t)
	if out := db.ddl("CREATE TABLE T (Id INT64, K INT64, V STRING(9)) PRIMARY KEY (Id);\nCREATE INDEX ByK ON T (K);\nCREATE TABLE U (Id INT64, T INT64) PRIMARY KEY (Id)"); out != "" {
		t.Fatal(out)
	}
	written := map[int64]mvcc.Timestamp{}
	for i := range int64(60) {
		tx := db.txns.Begin(txn.Options{})
		m := []table.Mutation{
			{Op: table.Insert, Table: db.catalog.Table("T"), Columns: db.catalog.Table("T").Columns, Rows: [][]value.Value{{value.OfInt64(i * 37 % 60), value.OfInt64(i), value.OfString("v")}}},
			{Op: table.Insert, Table: db.catalog.Table("U"), Columns: db.catalog.Table("U").Columns, Rows: [][]value.Value{{value.OfInt64(i), value.OfInt64(i * 37 % 60)}}},
		}
		if _, err := table.Apply(t.Context(), tx, table.NewDescriptors(db.catalog), m, db.now); err != nil {
			t.Fatal(err)
		}
		at, err := tx.Commit(t.Context(), nil, txn.CommitOptions{})
		if err != nil {
			t.Fatal(err)
		}
		written[i] = at
	}
	snapshot, err := db.txns.Snapshot(t.Context(), txn.Bound{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, sql string
		together  []int
		single    int
		since     []mvcc.Timestamp
	}{
		{"back to the table", "SELECT * FROM T@{FORCE_INDEX=ByK} WHERE K >= 10 ORDER BY K", []int{16, 32}, 2, []mvcc.Timestamp{written[10], written[26]}},
		{"backwards", "SELECT * FROM T@{FORCE_INDEX=ByK} WHERE K >= 40 ORDER BY K DESC", []int{16}, 4, []mvcc.Timestamp{written[44]}},
		{"to another table", "SELECT U.Id, T.V FROM U JOIN@{JOIN_METHOD=APPLY_JOIN} T ON T.Id = U.T WHERE U.Id < 20", []int{16}, 4, []mvcc.Timestamp{0}},
		{"few rows", "SELECT * FROM T@{FORCE_INDEX=ByK} WHERE K < 5", nil, 5, nil},
	} {
		p, err := db.plan(c.sql, nil)
		if err != nil {
			t.Fatal(err)
		}
		view := &aheadView{Snapshot: snapshot}
		rows, err := db.run(p, exec.Env{View: view, Functions: &fn.Context{}})
		if err != nil {
			t.Fatal(err)
		}
		for {
			ok, err := rows.Next()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				break
			}
		}
		if fmt.Sprint(view.together, view.single, view.since) != fmt.Sprint(c.together, c.single, c.since) {
			t.Errorf("%s: read %v keys together, since %v, and %d by themselves; want %v, since %v, and %d", c.name, view.together, view.since, view.single, c.together, c.since, c.single)
		}
	}
}

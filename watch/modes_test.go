package watch_test

import (
	"context"
	"fmt"
	"math/big"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/clienttest"
	"github.com/crowfoot-db/crowfoot/watch"
)

// TestFixedShards checks, for each type of shard column, that a watcher of one shard value or of a list of values sees
// only the rows with these values.
func TestFixedShards(t *testing.T) {
	now := time.Date(2026, 11, 22, 0, 0, 0, 1000, time.UTC)
	types := []struct {
		typ       string
		one, more any // a shard value, and a list of shard values that begins with it
		other     any
	}{
		{"BOOL", true, []bool{true}, false},
		{"BYTES(MAX)", []byte("a"), [][]byte{[]byte("a"), []byte("b")}, []byte("c")},
		{"DATE", civil.DateOf(now), []civil.Date{civil.DateOf(now)}, civil.Date{Year: 1, Month: 1, Day: 1}},
		{"FLOAT64", 0.5, []float64{0.5, 7}, 0.25},
		{"INT64", int64(1), []int64{1, 2}, int64(3)},
		{"NUMERIC", *big.NewRat(1, 2), []big.Rat{*big.NewRat(1, 2), *big.NewRat(7, 1)}, *big.NewRat(1, 4)},
		{"STRING(MAX)", "a", []string{"a", "b"}, "c"},
		{"TIMESTAMP", now, []time.Time{now}, now.Add(1)},
	}
	var ddl []string
	for i, typ := range types {
		ddl = append(ddl, fmt.Sprintf("CREATE TABLE T%d (Id INT64 NOT NULL, Shard %s, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)", i, typ.typ),
			fmt.Sprintf("CREATE NULL_FILTERED INDEX I%d ON T%d(Shard, Ts)", i, i))
	}
	c := clienttest.Connect(t, ddl...)
	for i, typ := range types {
		table := fmt.Sprintf("T%d", i)
		row := func(id int, shard any) *spanner.Mutation {
			return spanner.Insert(table, []string{"Id", "Shard", "Ts"}, []any{id, shard, spanner.CommitTimestamp})
		}
		apply(t, c, row(1, typ.one), row(2, typ.other), row(3, nil))
		repository := watch.NewMemory()
		for _, shard := range []any{typ.one, typ.more} {
			p, err := watch.FixedShard("Shard", shard)
			if err != nil {
				t.Fatal(err)
			}
			r := newRecorder()
			w, stop := run(t, watch.Options{
				Source: &watch.Tables{Client: c, Include: []string{table}, Default: watch.TableOptions{Shards: p, Hint: fmt.Sprintf("@{FORCE_INDEX=I%d}", i)}}, Handler: r,
				Start: time.Unix(0, 0), Repository: repository,
			})
			if got := text(r.wait(t, atLeast(1))); got != "{"+table+"(1)}" {
				t.Errorf("%s %T: delivered %s", typ.typ, shard, got)
			}
			if stop(); w.Metrics()[0].Rows != 1 {
				t.Errorf("%s %T: %+v", typ.typ, shard, w.Metrics()[0])
			}
		}
	}
}

// TestNotNullShard checks that rows whose shard is NULL are not seen and that all other rows are, even if they take
// several pages of the index.
func TestNotNullShard(t *testing.T) {
	c := clienttest.Connect(t, singers, "CREATE NULL_FILTERED INDEX ByShard ON Singers(Shard, Updated)")
	for id := range 20 {
		shard := spanner.NullInt64{Int64: int64(id % 3), Valid: id%5 > 0}
		apply(t, c, spanner.Insert("Singers", []string{"Id", "Shard", "Updated"}, []any{id, shard, spanner.CommitTimestamp}))
	}
	r := newRecorder()
	run(t, watch.Options{Handler: r, Start: time.Unix(0, 0), Source: &watch.Tables{Client: c, Interval: time.Millisecond,
		Default: watch.TableOptions{Shards: watch.NotNullShard("Shard"), Limit: 3, Hint: "@{FORCE_INDEX=ByShard}"}}})
	want := ""
	for id := range 20 {
		if id%5 > 0 {
			want += fmt.Sprintf(" {Singers(%d):<nil>}", id)
		}
	}
	if got := text(r.wait(t, atLeast(16))); got != want[1:] {
		t.Errorf("delivered %s", got)
	}
}

// TestTimeShard checks that the watcher finds rows whose shard was computed by Interval.Shard, and rows whose shard was
// computed by Interval.Expression in DML.
func TestTimeShard(t *testing.T) {
	c := clienttest.Connect(t, `CREATE TABLE T (Id INT64 NOT NULL, Shard STRING(MAX), Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)`,
		"CREATE NULL_FILTERED INDEX ByShard ON T(Shard, Ts)")
	r := newRecorder()
	run(t, watch.Options{Handler: r, Source: &watch.Tables{Client: c, Interval: time.Millisecond,
		Default: watch.TableOptions{Shards: watch.TimeShard("Shard", watch.MinuteOfHour)}}, Start: time.Now().Add(-time.Minute)})
	for id := range 3 {
		apply(t, c, spanner.Insert("T", []string{"Id", "Shard", "Ts"}, []any{id, watch.MinuteOfHour.Shard(time.Now()), spanner.CommitTimestamp}))
	}
	if _, err := c.ReadWriteTransaction(context.Background(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.NewStatement("INSERT INTO T (Id, Shard, Ts) VALUES (3, "+watch.MinuteOfHour.Expression()+", PENDING_COMMIT_TIMESTAMP())"))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if got := text(r.wait(t, atLeast(4))); got != "{T(0)} {T(1)} {T(2)} {T(3)}" {
		t.Errorf("delivered %s", got)
	}
}

// TestChangeSets checks that tables without commit timestamps can be watched through a table of change sets, and that
// their changes come in the order of the transactions.
func TestChangeSets(t *testing.T) {
	c := clienttest.Connect(t, "CREATE TABLE CHANGE_SETS (CHANGE_SET_ID STRING(MAX), COMMIT_TIMESTAMP TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (CHANGE_SET_ID)",
		"CREATE INDEX ByTime ON CHANGE_SETS(COMMIT_TIMESTAMP)",
		"CREATE TABLE A (Id INT64 NOT NULL, Name STRING(MAX), CHANGE_SET_ID STRING(MAX)) PRIMARY KEY (Id)", "CREATE INDEX ByChangeSet ON A(CHANGE_SET_ID)",
		"CREATE TABLE B (Id INT64 NOT NULL, CHANGE_SET_ID STRING(MAX)) PRIMARY KEY (Id)", "CREATE TABLE Plain (Id INT64 NOT NULL) PRIMARY KEY (Id)")
	sets := &watch.ChangeSets{}
	var last time.Time
	write := func(rows ...*spanner.Mutation) {
		t.Helper()
		at, err := sets.ReadWriteTransaction(context.Background(), c, func(ctx context.Context, tx *spanner.ReadWriteTransaction, id string) error {
			for _, row := range rows {
				if err := tx.BufferWrite([]*spanner.Mutation{row}); err != nil {
					return err
				}
			}
			if _, err := tx.Update(ctx, spanner.Statement{SQL: "INSERT INTO B (Id, CHANGE_SET_ID) SELECT COUNT(*), @id FROM B", Params: map[string]any{"id": id}}); err != nil {
				return err
			}
			_, err := tx.Update(ctx, spanner.Statement{SQL: "INSERT OR UPDATE INTO A (Id, Name, CHANGE_SET_ID) SELECT n, 'x', @id FROM UNNEST([7, 3]) n", Params: map[string]any{"id": id}})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		last = at
	}
	for range 4 {
		write()
	}
	r := newRecorder()
	w, stop := run(t, watch.Options{Handler: r, Start: time.Unix(0, 0), Source: &watch.Tables{Client: c, Interval: time.Millisecond,
		Default: watch.TableOptions{ChangeSets: sets, Limit: 3}}})
	list := r.wait(t, atLeast(6))
	a, b := []*watch.Transaction{}, []*watch.Transaction{}
	for _, tx := range list {
		if tx.Changes[0].Table.Name == "A" {
			a = append(a, tx)
		} else {
			b = append(b, tx)
		}
	}
	if text(a) != "{A(3):x A(7):x}" || text(b) != "{B(0)} {B(1)} {B(2)} {B(3)}" { // the earlier versions of A's rows were overwritten
		t.Errorf("delivered %s and %s", text(a), text(b))
	}
	if at := a[0].Changes[0].CommitTimestamp; !at.Equal(last) || !a[0].CommitTimestamp.Equal(last) {
		t.Errorf("committed at %v, not at %v", at, last)
	}
	write()
	r.wait(t, atLeast(9))
	stop()
	if m := w.Metrics(); len(m) != 2 || m[0].Feed.String() != "CHANGE_SETS shard "+clienttest.Database+"/`A`" {
		t.Errorf("metrics are %+v", m)
	}
}

// TestPrune checks that old commit timestamps of delivered rows become NULL, and that the watcher does not see this as
// a change. A row that is not handled yet must keep its commit timestamp. A pruned row that is written again must be
// delivered again.
func TestPrune(t *testing.T) {
	c := clienttest.Connect(t, singers, "CREATE NULL_FILTERED INDEX ByUpdated ON Singers(Updated)")
	r := newRecorder()
	release := make(chan struct{})
	r.fail = func(tx *watch.Transaction) error {
		if tx.Changes[0].Key.Values[0].GetStringValue() == "2500" {
			<-release
		}
		return nil
	}
	var list []*spanner.Mutation
	for id := range 2500 {
		list = append(list, singer(id, ""))
	}
	apply(t, c, list...)
	apply(t, c, singer(2500, "not handled yet"))
	count := func() (n int64) {
		if err := c.Single().Query(context.Background(), spanner.NewStatement("SELECT COUNT(Updated) FROM Singers")).Do(func(row *spanner.Row) error { return row.Columns(&n) }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	w, _ := run(t, watch.Options{
		Source:  &watch.Tables{Client: c, Interval: time.Millisecond, Default: watch.TableOptions{PruneAfter: time.Nanosecond}},
		Handler: r, Start: time.Unix(0, 0), CheckpointInterval: time.Millisecond,
	})
	eventually(func() bool { return count() == 1 }) // the row that was not handled
	close(release)
	eventually(func() bool { return count() == 0 })
	apply(t, c, singer(0, "again"))
	if got := r.wait(t, atLeast(2502)); text(got[1:]) != "{Singers(2500):not handled yet} {Singers(0):again}" {
		t.Errorf("delivered %s", text(got[1:]))
	}
	eventually(func() bool { return w.Metrics()[0].Pruned == 2502 })
	if m := w.Metrics()[0]; m.Rows != 2502 {
		t.Errorf("metrics are %+v", m)
	}
}

// TestPruneChangeSets checks that Run returns an error if PruneAfter is set for a table that is watched through change
// sets.
func TestPruneChangeSets(t *testing.T) {
	c := clienttest.Connect(t, singers)
	err := runToEnd(t, watch.Options{
		Source:  &watch.Tables{Client: c, Include: []string{"Singers"}, Default: watch.TableOptions{ChangeSets: &watch.ChangeSets{}, PruneAfter: time.Hour}},
		Handler: newRecorder(),
	})
	if code := status.Code(err); code != codes.FailedPrecondition {
		t.Errorf("%v", err)
	}
}

// TestCheckpointOlderThanRetention checks that a checkpoint may have any age when tables are polled, because polls
// read rows as they are now.
func TestCheckpointOlderThanRetention(t *testing.T) {
	c := clienttest.Connect(t, singers)
	apply(t, c, singer(1, "a"))
	m := watch.NewMemory()
	if err := m.Store(context.Background(), watch.FeedID{TableID: watch.TableID{Database: clienttest.Database, Name: "Singers"}},
		watch.Checkpoint{Timestamp: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	run(t, watch.Options{Source: &watch.Tables{Client: c, Include: []string{"Singers"}}, Handler: r, Repository: m})
	if got := text(r.wait(t, atLeast(1))); got != "{Singers(1):a}" {
		t.Errorf("delivered %s", got)
	}
}

package watch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"cloud.google.com/go/spanner/apiv1/spannerpb"

	"github.com/crowfoot-db/crowfoot/clienttest"
)

// pollOnce polls a table once and delivers the rows that it finds.
func (t *tail) pollOnce(ctx context.Context) error {
	t.batches = make(chan batch, cap(t.batches))
	result := make(chan error, 1)
	go func() {
		defer close(t.batches)
		_, err := t.poll1(ctx)
		result <- err
	}()
	if err := t.deliver(ctx); err != nil {
		return err
	}
	return <-result
}

// TestMadeAgain drops a table between two polls and creates it again with another key. The feed must not continue its
// pages in the order of the old key, which would leave rows out, but must begin again with the new table.
func TestMadeAgain(t *testing.T) {
	const table = "CREATE TABLE T (A INT64 NOT NULL, B INT64 NOT NULL, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (%s)"
	c := clienttest.Connect(t, fmt.Sprintf(table, "A"))
	write := func(ids ...int) {
		var list []*spanner.Mutation
		for _, id := range ids {
			list = append(list, spanner.Insert("T", []string{"A", "B", "Ts"}, []any{1, id, spanner.CommitTimestamp}))
		}
		if _, err := c.Apply(t.Context(), list); err != nil {
			t.Fatal(err)
		}
	}
	write(0)
	p := &poll{client: c, table: TableID{Database: clienttest.Database, Name: "T"}, o: TableOptions{Limit: 3}}
	sink := &keptSink{}
	tail, err := p.open(t.Context(), Checkpoint{Timestamp: time.Unix(0, 0)}, sink)
	if err != nil {
		t.Fatal(err)
	}
	if err := tail.pollOnce(t.Context()); err != nil || len(sink.list) != 1 {
		t.Fatalf("%d transactions, %v", len(sink.list), err)
	}
	clienttest.Alter(t, "DROP TABLE T", fmt.Sprintf(table, "A, B DESC"))
	write(1, 2, 3, 4, 5, 6, 7, 8, 9, 10)
	if err := tail.pollOnce(t.Context()); err == nil || !strings.Contains(err.Error(), "table T was made again or altered: its key was A INT64 and is A INT64, B INT64 DESC") {
		t.Errorf("the second poll: %v", err)
	}
	if tail, err = p.open(t.Context(), sink.checkpoint, sink); err != nil {
		t.Fatal(err)
	}
	if err := tail.pollOnce(t.Context()); err != nil || len(sink.list) != 2 || len(sink.list[1].Changes) != 10 || len(sink.list[1].Changes[0].Key.Values) != 2 {
		t.Errorf("%d transactions, %v", len(sink.list), err)
	}
}

// TestMadeAgainWhileStopped starts a feed from a checkpoint with a position within a transaction. The key columns in
// this position differ from those of the table, as if the table had been created again with another key while no
// watcher ran. The feed must then read all rows of the table.
func TestMadeAgainWhileStopped(t *testing.T) {
	c := clienttest.Connect(t, "CREATE TABLE T (Id INT64 NOT NULL, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)")
	if _, err := c.Apply(t.Context(), []*spanner.Mutation{spanner.Insert("T", []string{"Id", "Ts"}, []any{1, spanner.CommitTimestamp})}); err != nil {
		t.Fatal(err)
	}
	p := &poll{client: c, table: TableID{Database: clienttest.Database, Name: "T"}, o: TableOptions{Limit: 3}}
	for _, columns := range []string{"Id STRING", "Id INT64 DESC"} {
		sink := &keptSink{}
		from := Checkpoint{Timestamp: time.Unix(0, 0), Position: `{"timestamp":"2026-01-01T00:00:00Z","key":["a"],"columns":"` + columns + `"}`}
		tail, err := p.open(t.Context(), from, sink)
		if err != nil {
			t.Fatal(err)
		}
		if err := tail.pollOnce(t.Context()); err != nil || len(sink.list) != 1 {
			t.Errorf("%s: %d transactions, %v", columns, len(sink.list), err)
		}
	}
}

// TestCheckedBeforeTheHandlerIsReady checks that before a page, the feed first checks whether the table was created
// again, and only then waits for the handler. The wait may be longer than the database keeps old versions, and a check
// after it would then fail.
func TestCheckedBeforeTheHandlerIsReady(t *testing.T) {
	const table = "CREATE TABLE T (A INT64 NOT NULL, B INT64 NOT NULL, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (%s)"
	c := clienttest.Connect(t, fmt.Sprintf(table, "A"))
	p := &poll{client: c, table: TableID{Database: clienttest.Database, Name: "t"}, o: TableOptions{Limit: 1}}
	from := Checkpoint{Timestamp: time.Unix(0, 0), Position: `{"timestamp":"2026-01-01T00:00:00Z","key":["1"],"columns":"A INT64"}`}
	tail, err := p.open(t.Context(), from, &keptSink{})
	if err != nil {
		t.Fatal(err)
	}
	clienttest.Alter(t, "DROP TABLE T", fmt.Sprintf(table, "B"))
	if tail.newest, err = now(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	tail.pages = make(chan struct{}) // the handler is never ready
	if _, err := tail.poll1(t.Context()); err == nil || !strings.Contains(err.Error(), "table T was made again") {
		t.Errorf("%v", err)
	}
}

// countingSink is a keptSink that also records the number of rows of each page.
type countingSink struct {
	keptSink
	pages []int
}

func (s *countingSink) Observe(r Reading) { s.pages = append(s.pages, r.Rows) }

// TestLargeRows checks that a page ends when it has many bytes, and that the next page continues after it, even within
// a transaction.
func TestLargeRows(t *testing.T) {
	c := clienttest.Connect(t, "CREATE TABLE T (Id INT64 NOT NULL, Text STRING(MAX), Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)")
	var list []*spanner.Mutation
	for id := range 10 {
		list = append(list, spanner.Insert("T", []string{"Id", "Text", "Ts"}, []any{id, strings.Repeat("x", 1000), spanner.CommitTimestamp}))
	}
	if _, err := c.Apply(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	p := &poll{client: c, table: TableID{Database: clienttest.Database, Name: "T"}, o: TableOptions{Limit: 100}}
	sink := &countingSink{}
	tail, err := p.open(t.Context(), Checkpoint{Timestamp: time.Unix(0, 0)}, sink)
	if err != nil {
		t.Fatal(err)
	}
	tail.most = 3500
	if err := tail.pollOnce(t.Context()); err != nil || fmt.Sprint(sink.pages) != "[3 3 3 1]" || len(sink.list) != 1 || len(sink.list[0].Changes) != 10 {
		t.Errorf("pages of %v rows, %d transactions, %v", sink.pages, len(sink.list), err)
	}
}

// TestPartial checks that a transaction with exactly MaxTransactionChanges changes is not Partial, and that a larger
// one is.
func TestPartial(t *testing.T) {
	p := &poll{o: TableOptions{Limit: 1}}
	key := keyOrder{{name: "Id", code: spannerpb.TypeCode_INT64}}
	for more, want := range map[int]string{0: "[80000 false]", 1: "[80000 true] [1 false]"} {
		sink := &keptSink{}
		tail := &tail{poll: p, out: sink, commit: "Ts", query: &pageQuery{key: key}, rows: rowReader{names: []string{"Id"}}, batches: make(chan batch, 2), pages: make(chan struct{}, 1)}
		row, err := spanner.NewRow([]string{"Id", "Ts"}, []any{1, time.Unix(1, 0)})
		if err != nil {
			t.Fatal(err)
		}
		types := &spannerpb.StructType{Fields: []*spannerpb.StructType_Field{{Name: "Id", Type: row.ColumnType(0)}, {Name: "Ts", Type: row.ColumnType(1)}}}
		if err := tail.begin(&spannerpb.ResultSetMetadata{RowType: types}); err != nil {
			t.Fatal(err)
		}
		for range MaxTransactionChanges + more {
			if err := tail.add(row); err != nil {
				t.Fatal(err)
			}
		}
		tail.pages <- struct{}{}
		tail.endPage(false)
		close(tail.batches)
		if err := tail.deliver(t.Context()); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, tx := range sink.list {
			got = append(got, fmt.Sprint([]any{len(tx.Changes), tx.Partial}))
		}
		if text := strings.Join(got, " "); text != want {
			t.Errorf("%d more: %s", more, text)
		}
	}
}

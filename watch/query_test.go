package watch

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/api/iterator"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/crowfoot-db/crowfoot/clienttest"
)

// TestPagesReadWhatTheyReturn checks how much a page reads: from the index only the page's rows and one more row for
// each shard, and from the table only the page's rows. This must hold however far the watcher is behind, and wherever
// in a transaction its position is.
func TestPagesReadWhatTheyReturn(t *testing.T) {
	c := clienttest.Connect(t, `CREATE TABLE T (Id INT64 NOT NULL, Shard INT64, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true), Text STRING(MAX)) PRIMARY KEY (Id)`,
		"CREATE NULL_FILTERED INDEX ByShard ON T(Shard, Ts)")
	ctx := context.Background()
	const shards, limit = 5, 50
	for tx := range 10 {
		var list []*spanner.Mutation
		for i := range 80 {
			id := tx*80 + i
			list = append(list, spanner.Insert("T", []string{"Id", "Shard", "Ts", "Text"}, []any{id, id % shards, spanner.CommitTimestamp, "text"}))
		}
		if _, err := c.Apply(ctx, list); err != nil {
			t.Fatal(err)
		}
	}
	d, err := describe(ctx, c, TableID{Database: clienttest.Database, Name: "t"})
	if err != nil {
		t.Fatal(err)
	}
	for _, hint := range []string{"", "@{FORCE_INDEX=ByShard}"} {
		provider, err := FixedShard("Shard", []int{0, 1, 2, 3, 4})
		if err != nil {
			t.Fatal(err)
		}
		q := newPageQuery(d, "Ts", "*", TableOptions{Shards: provider, Hint: hint, Limit: limit})
		var p position
		total := 0
		for {
			stmt := q.statement(p, time.Now())
			it := c.Single().QueryWithStats(ctx, stmt)
			n := 0
			for {
				row, err := it.Next()
				if err == iterator.Done {
					break
				}
				if err != nil {
					t.Fatalf("%s: %v", stmt.SQL, err)
				}
				n++
				p.Key = []*structpb.Value{row.ColumnValue(0)}
				if p.Timestamp, err = time.Parse(time.RFC3339Nano, row.ColumnValue(2).GetStringValue()); err != nil {
					t.Fatal(err)
				}
			}
			var scanned int
			fmt.Sscan(it.QueryStats["rows_scanned"].(string), &scanned)
			if most := 2*n + shards; scanned > most {
				t.Errorf("%s scanned %d rows, want at most %d", stmt.SQL, scanned, most)
			}
			if total += n; n < limit {
				break
			}
		}
		if total != 800 {
			t.Errorf("with the hint %q there are %d rows", hint, total)
		}
	}
}

// TestBehind checks that the condition for rows after a key agrees with the order of ORDER BY, even with NULL, NaN and
// descending columns.
func TestBehind(t *testing.T) {
	c := clienttest.Connect(t, `CREATE TABLE T (A FLOAT64, B STRING(MAX), C INT64, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (A, B DESC, C)`,
		`CREATE TABLE U (A FLOAT64, B STRING(MAX), C INT64, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (A DESC, B, C DESC)`)
	ctx := context.Background()
	for _, table := range []string{"T", "U"} {
		for _, a := range []string{"NULL", "CAST('nan' AS FLOAT64)", "CAST('-inf' AS FLOAT64)", "0.5", "7"} {
			stmt := spanner.NewStatement(fmt.Sprintf(`INSERT INTO %s (A, B, C, Ts) SELECT %s, b, c, TIMESTAMP '2026-01-01T00:00:00Z'
FROM UNNEST(['x', 'y', NULL]) b, UNNEST([1, 2, NULL]) c`, table, a))
			if _, err := c.ReadWriteTransaction(ctx, func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
				_, err := tx.Update(ctx, stmt)
				return err
			}); err != nil {
				t.Fatal(err)
			}
		}
		d, err := describe(ctx, c, TableID{Database: clienttest.Database, Name: table})
		if err != nil {
			t.Fatal(err)
		}
		read := func(limit int, p position) (all []string, last position) {
			q := newPageQuery(d, "Ts", "*", TableOptions{Limit: limit})
			stmt := q.statement(p, time.Now())
			if err := c.Single().Query(ctx, stmt).Do(func(row *spanner.Row) error {
				last.Key, last.Columns = nil, d.key.text()
				for i := range 3 {
					last.Key = append(last.Key, row.ColumnValue(i))
				}
				last.Timestamp, _ = time.Parse(time.RFC3339Nano, row.ColumnValue(3).GetStringValue())
				all = append(all, fmt.Sprint(last.Key))
				return nil
			}); err != nil {
				t.Fatalf("%s: %v", stmt.SQL, err)
			}
			return all, last
		}
		want, _ := read(1000, position{})
		if len(want) != 45 {
			t.Fatalf("%d rows", len(want))
		}
		var got []string
		for p := (position{}); ; {
			page, last := read(1, p)
			if len(page) == 0 {
				break
			}
			// Convert the position to text and back, as happens if a repository stores it.
			p, err = newPosition(Checkpoint{Position: last.text()}, d.key)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page...)
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("table %s by single rows:\n%s\nwant\n%s", table, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// TestInterval checks that the interval between polls of a table without changes grows to its limit, and that the
// first change resets it.
func TestInterval(t *testing.T) {
	p := poll{interval: time.Second, max: 3 * time.Second}
	interval, got := p.interval, []string{}
	for _, rows := range []int{0, 0, 0, 0, 1, 0} {
		interval = p.next(interval, rows)
		got = append(got, interval.String())
	}
	if text := strings.Join(got, " "); text != "1.5s 2.25s 3s 3s 1s 1.5s" {
		t.Error(text)
	}
}

// TestForeignPosition checks that a checkpoint from another kind of feed, such as a change stream, gives a lasting
// error. The feed must not ignore a position that it cannot read.
func TestForeignPosition(t *testing.T) {
	if _, err := newPosition(Checkpoint{Position: "token"}, nil); !lasting(err) {
		t.Error(err)
	}
}

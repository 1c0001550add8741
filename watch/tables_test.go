package watch_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/clienttest"
	"github.com/crowfoot-db/crowfoot/watch"
)

// TestDatabase checks that without Include, all tables with a commit timestamp are watched, in all schemas, even
// tables that are created later. Excluded tables must not be watched.
func TestDatabase(t *testing.T) {
	c := clienttest.Connect(t, singers, "CREATE TABLE Plain (Id INT64 NOT NULL) PRIMARY KEY (Id)",
		"CREATE TABLE Secret (Id INT64 NOT NULL, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)",
		"CREATE SCHEMA s", "CREATE TABLE s.Singers (Id INT64 NOT NULL, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id, Ts DESC)")
	r := newRecorder()
	w, _ := run(t, watch.Options{
		Source:  &watch.Tables{Client: c, Exclude: []string{"secret"}, Interval: time.Millisecond},
		Handler: r, Start: time.Unix(0, 0), DiscoveryInterval: 10 * time.Millisecond,
	})
	key := func(table string, id int) *spanner.Mutation {
		return spanner.Insert(table, []string{"Id", "Ts"}, []any{id, spanner.CommitTimestamp})
	}
	apply(t, c, singer(1, "a"), key("s.Singers", 1), key("s.Singers", 2),
		spanner.Insert("Plain", []string{"Id"}, []any{1}), spanner.Insert("Secret", []string{"Id", "Ts"}, []any{1, spanner.CommitTimestamp}))
	r.wait(t, atLeast(3))
	clienttest.Alter(t, "CREATE TABLE Later (Id INT64 NOT NULL, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)")
	apply(t, c, key("Later", 1), key("s.Singers", 3))
	tables := map[string]int{}
	for _, tx := range r.wait(t, atLeast(5)) {
		tables[tx.Changes[0].Table.String()] += len(tx.Changes)
	}
	if fmt.Sprint(tables) != "map[Later:1 Singers:1 s.Singers:3]" {
		t.Errorf("delivered %v", tables)
	}
	clienttest.Alter(t, "DROP TABLE Later")
	eventually(func() bool { return len(w.Health().Feeds) == 2 }) // the watcher has removed the feed of Later
	clienttest.Alter(t, "CREATE TABLE Later (Id INT64 NOT NULL, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)")
	apply(t, c, key("Later", 2))
	r.wait(t, atLeast(6))
}

// TestLargeTransaction checks that a transaction whose rows take several pages is delivered as one Transaction. The
// small transactions before and after it must come as Transactions of their own.
func TestLargeTransaction(t *testing.T) {
	c := clienttest.Connect(t, singers)
	r := newRecorder()
	start := apply(t, c, singer(0, ""))
	var list []*spanner.Mutation
	want := ""
	for id := 1; id <= 23; id++ {
		list = append(list, singer(id, "x"))
		want += fmt.Sprintf(" Singers(%d):x", id)
	}
	apply(t, c, singer(100, "before"))
	apply(t, c, list...)
	apply(t, c, singer(101, "after"))
	run(t, watch.Options{Source: &watch.Tables{Client: c, Include: []string{"Singers"}, Default: watch.TableOptions{Limit: 5}, Interval: time.Millisecond}, Handler: r, Start: start})
	want = "{Singers(100):before} {" + want[1:] + "} {Singers(101):after}"
	if got := text(r.wait(t, atLeast(25))); got != want {
		t.Errorf("delivered %s\nwant %s", got, want)
	}
}

// TestHugeTransaction checks that rows with one timestamp come in parts if they exceed the limit of a Transaction. If
// the repository stores positions, a watcher that stops between two parts must continue with the remaining rows.
func TestHugeTransaction(t *testing.T) {
	c := clienttest.Connect(t, singers)
	const rows = watch.MaxTransactionChanges + 10
	for from := 0; from < rows; from += 20_000 {
		if _, err := c.ReadWriteTransaction(context.Background(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
			_, err := tx.Update(ctx, spanner.NewStatement(fmt.Sprintf(
				"INSERT INTO Singers (Id, Updated) SELECT n, TIMESTAMP '2026-01-01T00:00:00Z' FROM UNNEST(GENERATE_ARRAY(%d, %d)) n", from, min(from+20_000, rows)-1)))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	o := watch.Options{Source: &watch.Tables{Client: c, Include: []string{"Singers"}, Default: watch.TableOptions{Columns: []string{"id"}}}, Start: time.Unix(0, 0)}
	o.Repository = watch.NewFile(t.TempDir() + "/checkpoints")
	var sizes []string
	o.Handler = watch.HandlerFunc(func(_ context.Context, tx *watch.Transaction) error {
		if len(sizes) == 1 && sizes[0] != "stopped" {
			sizes = append(sizes, "stopped")
			return watch.Fatal(errTest)
		}
		sizes = append(sizes, fmt.Sprint(len(tx.Changes), tx.Partial))
		return nil
	})
	if err := runToEnd(t, o); !errors.Is(err, errTest) {
		t.Fatal(err)
	}
	r := newRecorder()
	o.Handler = r
	run(t, o)
	list := r.wait(t, atLeast(10))
	first := list[0].Changes[0].Key.Values[0].GetStringValue()
	if got := fmt.Sprint(sizes, len(list[0].Changes), " from ", first); got != "[80000 true stopped] 10 from 80000" {
		t.Errorf("delivered %v", got)
	}
}

// TestEveryType checks that values of all types are the same as those that a query with the official library returns.
// A column that is added to the table later must come with the next poll.
func TestEveryType(t *testing.T) {
	c := clienttest.Connect(t, `CREATE TABLE T (Id STRING(36) NOT NULL, B BOOL, I INT64, F FLOAT64, G FLOAT32, N NUMERIC, S STRING(MAX), Y BYTES(MAX), D DATE, M TIMESTAMP, J JSON, U UUID,
  BA ARRAY<BOOL>, IA ARRAY<INT64>, FA ARRAY<FLOAT64>, GA ARRAY<FLOAT32>, NA ARRAY<NUMERIC>, SA ARRAY<STRING(MAX)>, YA ARRAY<BYTES(MAX)>, DA ARRAY<DATE>, TSA ARRAY<TIMESTAMP>, JA ARRAY<JSON>, UA ARRAY<UUID>,
  Ts TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)`)
	if _, err := c.ReadWriteTransaction(context.Background(), func(ctx context.Context, tx *spanner.ReadWriteTransaction) error {
		_, err := tx.Update(ctx, spanner.NewStatement(`INSERT INTO T (Id, Ts, B, I, F, G, N, S, Y, D, M, J, U, BA, IA, FA, GA, NA, SA, YA, DA, TSA, JA, UA) VALUES
('full', PENDING_COMMIT_TIMESTAMP(), TRUE, -9223372036854775808, CAST('inf' AS FLOAT64), CAST(0.1 AS FLOAT32), NUMERIC '-1.5', 'é', b'\x00\xff', '2024-02-29', '2024-01-01T00:00:00.123456789Z', JSON '{"a":[1,null]}', CAST('00000000-0000-4000-8000-000000000001' AS UUID),
 [TRUE, NULL], [1, NULL], [0.5, NULL], [CAST(0.5 AS FLOAT32), NULL], [NUMERIC '1', NULL], ['', NULL], [b'', NULL], [DATE '0001-01-01', NULL], [TIMESTAMP '9999-12-31T23:59:59Z', NULL], [JSON 'null', NULL], [CAST('00000000-0000-4000-8000-000000000001' AS UUID), NULL]),
('null', PENDING_COMMIT_TIMESTAMP(), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)`))
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r := newRecorder()
	run(t, watch.Options{Source: &watch.Tables{Client: c, Interval: time.Millisecond}, Handler: r, Start: time.Unix(0, 0)})
	got := r.wait(t, atLeast(2))[0].Changes
	want := map[string]*spanner.Row{}
	if err := c.Single().Query(context.Background(), spanner.NewStatement("SELECT * FROM T")).Do(func(row *spanner.Row) error {
		want[row.ColumnValue(0).GetStringValue()] = row
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for _, change := range got {
		row := want[change.Key.Values[0].GetStringValue()]
		for i, column := range change.Values.Columns {
			if row.ColumnName(i) != column.Name || row.ColumnType(i).String() != column.Type.String() || row.ColumnValue(i).String() != change.Values.Values[i].String() {
				t.Errorf("%s: %v %v, want %v %v", column.Name, column.Type, change.Values.Values[i], row.ColumnType(i), row.ColumnValue(i))
			}
		}
		if len(change.Values.Columns) != row.Size() {
			t.Errorf("%d columns, want %d", len(change.Values.Columns), row.Size())
		}
	}
	clienttest.Alter(t, "ALTER TABLE T ADD COLUMN Name STRING(MAX)")
	apply(t, c, spanner.Insert("T", []string{"Id", "Name", "Ts"}, []any{"new", "later", spanner.CommitTimestamp}))
	if list := r.wait(t, atLeast(3)); changeText(list[1].Changes[0]) != "T(new):later" {
		t.Errorf("delivered %s", text(list))
	}
}

// TestColumns checks that the requested columns come with their names as the table spells them, even if
// TableOptions.Columns uses another case. The key and the commit timestamp must come, too, even if they are hidden.
func TestColumns(t *testing.T) {
	c := clienttest.Connect(t, "CREATE TABLE T (Id INT64 NOT NULL HIDDEN, Name STRING(MAX), Other INT64, Ts TIMESTAMP HIDDEN OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)")
	apply(t, c, spanner.Insert("T", []string{"Id", "Name", "Other", "Ts"}, []any{7, "a", 1, spanner.CommitTimestamp}))
	for want, columns := range map[string][]string{"Name Other Id Ts": nil, "Name Id Ts": {"name"}, "Id Other Ts": {"ID", "other"}} {
		r := newRecorder()
		_, stop := run(t, watch.Options{Source: &watch.Tables{Client: c, Default: watch.TableOptions{Columns: columns}}, Handler: r, Start: time.Unix(0, 0)})
		change := r.wait(t, atLeast(1))[0].Changes[0]
		var names []string
		for _, column := range change.Values.Columns {
			names = append(names, column.Name)
		}
		if got := strings.Join(names, " "); got != want || change.Key.Values[0].GetStringValue() != "7" {
			t.Errorf("columns %v of %v: %s", columns, change, got)
		}
		stop()
	}
}

// TestWhatCannotBeWatched checks the code and the text of the error for each kind of mistake in a source. Run must
// return the error, because there is nothing else to watch.
func TestWhatCannotBeWatched(t *testing.T) {
	c := clienttest.Connect(t, singers, "CREATE TABLE Plain (Id INT64 NOT NULL) PRIMARY KEY (Id)",
		`CREATE TABLE Two (Id INT64 NOT NULL, Made TIMESTAMP OPTIONS (allow_commit_timestamp=true), Updated TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)`,
		`CREATE TABLE Required (Id INT64 NOT NULL, Ts TIMESTAMP NOT NULL OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)`)
	for _, test := range []struct {
		table   string
		options watch.TableOptions
		code    codes.Code
		text    string
	}{
		{"Nowhere", watch.TableOptions{}, codes.NotFound, "Table not found: Nowhere"},
		{"s.Nowhere", watch.TableOptions{}, codes.NotFound, "Table not found: s.Nowhere"},
		{"plain", watch.TableOptions{}, codes.FailedPrecondition, "Table Plain does not contain a column with option allow_commit_timestamp=true"},
		{"Two", watch.TableOptions{}, codes.FailedPrecondition, "Table Two contains 2 columns with option allow_commit_timestamp=true (Made, Updated): say which of them every write sets"},
		{"Singers", watch.TableOptions{CommitTimestamp: "Made"}, codes.NotFound, "Column not found in table Singers: Made"},
		{"Singers", watch.TableOptions{CommitTimestamp: "Name"}, codes.FailedPrecondition, "Column Name of table Singers has type STRING(MAX): a commit timestamp has TIMESTAMP"},
		{"Singers", watch.TableOptions{Columns: []string{"Made"}}, codes.NotFound, "Column not found in table Singers: Made"},
		{"Singers", watch.TableOptions{Shards: watch.NotNullShard("Made")}, codes.InvalidArgument, "Unrecognized name: Made"},
		{"Singers", watch.TableOptions{Hint: "@{FORCE_INDEX=Nowhere}"}, codes.InvalidArgument, "Nowhere"},
		{"Required", watch.TableOptions{PruneAfter: time.Hour}, codes.FailedPrecondition, "Cannot prune table Required: its column Ts cannot be NULL"},
		{"Plain", watch.TableOptions{ChangeSets: &watch.ChangeSets{}}, codes.NotFound, "Table not found: CHANGE_SETS"},
		{"Plain", watch.TableOptions{ChangeSets: &watch.ChangeSets{Table: "Singers", ID: "Id", CommitTimestamp: "Updated"}}, codes.NotFound, "Column not found in table Plain: CHANGE_SET_ID"},
	} {
		err := runToEnd(t, watch.Options{Source: &watch.Tables{Client: c, Include: []string{test.table}, Default: test.options}, Handler: newRecorder()})
		if status.Code(err) != test.code || !strings.Contains(fmt.Sprint(err), test.text) {
			t.Errorf("%s %+v: %v", test.table, test.options, err)
		}
	}
}

// TestTablesAreIsolated checks that a table that cannot be read does not stop the feeds of other tables. Health must
// show the error of the failed feed. When the table can be read, all of its changes must come. When all tables are gone,
// Run must return the errors of all feeds.
func TestTablesAreIsolated(t *testing.T) {
	c := clienttest.Connect(t, singers)
	r := newRecorder()
	w, ended := runUntil(t, context.Background(), watch.Options{
		Source:  &watch.Tables{Client: c, Include: []string{"Singers", "Later"}, Interval: time.Millisecond},
		Handler: r, DiscoveryInterval: 10 * time.Millisecond, Start: time.Unix(0, 0),
	})
	apply(t, c, singer(1, "a"))
	r.wait(t, atLeast(1))
	var later watch.FeedHealth
	eventually(func() bool {
		if h := w.Health(); len(h.Feeds) == 2 {
			later = h.Feeds[0]
		}
		return later.State == watch.Failed
	})
	if later.Feed.Name != "Later" || status.Code(later.Err) != codes.NotFound || w.Health().Ready {
		t.Errorf("health is %+v", later)
	}
	clienttest.Alter(t, "CREATE TABLE Later (Id INT64 NOT NULL, Ts TIMESTAMP OPTIONS (allow_commit_timestamp=true)) PRIMARY KEY (Id)")
	apply(t, c, spanner.Insert("Later", []string{"Id", "Ts"}, []any{1, spanner.CommitTimestamp}))
	r.wait(t, atLeast(2))
	eventually(func() bool { return w.Health().Ready })
	clienttest.Alter(t, "DROP TABLE Later", "DROP TABLE Singers")
	if err := ended(); status.Code(err) == codes.OK || !strings.Contains(err.Error(), "Table not found: Later") || !strings.Contains(err.Error(), "Table not found: Singers") {
		t.Errorf("Run ended with %v", err)
	}
}

// TestAbsent checks that the watcher logs the names in a source that match no table. It must also log tables in
// Stream.Include that the stream does not watch, and that a source has no feeds.
func TestAbsent(t *testing.T) {
	c := clienttest.Connect(t, singers, "CREATE TABLE Plain (Id INT64 NOT NULL) PRIMARY KEY (Id)", "CREATE CHANGE STREAM OfSingers FOR Singers", everything)
	for _, test := range []struct {
		source watch.Source
		want   []string
	}{
		{&watch.Tables{Client: c, Exclude: []string{"plain", "Nope"}, Options: map[string]watch.TableOptions{"singers": {}, "No.Such": {}}},
			[]string{"table=No.Such named=Options", "table=Nope named=Exclude"}},
		{&watch.Tables{Client: c, Exclude: []string{"Singers"}}, []string{"there is nothing to watch yet"}},
		{&watch.Stream{Client: c, Name: "ofsingers", Include: []string{"singers", "Plain"}, Exclude: []string{"Plain", "Nope"}}, []string{"table=Nope named=Exclude", "table=Plain named=Include"}},
		{&watch.Stream{Client: c, Name: "Everything", Include: []string{"plain", "No"}}, []string{"table=No named=Include"}},
	} {
		logged := &logLines{lines: make(chan string, 100)}
		_, stop := run(t, watch.Options{Source: test.source, Handler: newRecorder(), Log: slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelWarn}))})
		for _, want := range test.want {
			if got := <-logged.lines; !strings.Contains(got, want) {
				t.Errorf("logged %s, want %s", got, want)
			}
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if len(logged.lines) > 0 {
			t.Errorf("logged %s, too", <-logged.lines)
		}
	}
}

// logLines collects log lines.
type logLines struct{ lines chan string }

func (l *logLines) Write(b []byte) (int, error) {
	l.lines <- string(b)
	return len(b), nil
}

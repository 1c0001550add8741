package watch

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/civil"
	"cloud.google.com/go/spanner"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/crowfoot-db/crowfoot/clienttest"
)

var day = time.Date(2026, 11, 22, 10, 11, 12, 345678000, time.UTC)

// fixedShards lists values of each type of shard column, and the ids that a repository stores for them.
var fixedShards = []struct {
	value any
	id    string
}{
	{true, "BOOL true"},
	{[]byte("\x00\xff"), "BYTES AP8="},
	{civil.DateOf(day), "DATE 2026-11-22"},
	{-0.5, "FLOAT64 -0.5"},
	{int64(-18), "INT64 -18"},
	{7, "INT64 7"},
	{*big.NewRat(-3, 2), "STRING -1.5"},
	{"east", "STRING east"},
	{day, "TIMESTAMP 2026-11-22T10:11:12.345678Z"},
	{[]bool{true, false}, "STRING true,false"},
	{[][]byte{[]byte("a"), []byte("b")}, "STRING YQ==,Yg=="},
	{[]civil.Date{civil.DateOf(day)}, "STRING 2026-11-22"},
	{[]float64{1, 0.001, 1e-4, 12345678, 1e7, -1.5e300, math.Inf(1), 0}, "STRING 1.0,0.001,1.0E-4,1.2345678E7,1.0E7,-1.5E300,Infinity,0.0"},
	{[]int64{-1, 2}, "STRING -1,2"},
	{[]int{3}, "STRING 3"},
	{[]big.Rat{*big.NewRat(10, 1), *big.NewRat(1, 4)}, "STRING 10,0.25"},
	{[]string{"EAST", "WEST"}, "STRING RUFTVA==,V0VTVA=="},
	{[]time.Time{day, day.Truncate(time.Second)}, "STRING 2026-11-22T10:11:12.345678000Z,2026-11-22T10:11:12Z"},
}

// TestFixedShardIDs checks that the ids of fixed shards are those that Google's Java library Spanner Change Watcher
// stores.
func TestFixedShardIDs(t *testing.T) {
	for _, s := range fixedShards {
		p, err := FixedShard("Shard", s.value)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(p.ID().Type, " ", p.ID().Text); got != s.id {
			t.Errorf("%T %v: %s, want %s", s.value, s.value, got, s.id)
		}
	}
	if _, err := FixedShard("Shard", struct{}{}); err == nil {
		t.Error("a struct can be a shard")
	}
}

// TestSpannerTableKeepsShards checks that the table that Check creates can hold a checkpoint for a shard of each type.
// Each checkpoint must be in a row of its own.
func TestSpannerTableKeepsShards(t *testing.T) {
	c := clienttest.Connect(t)
	ctx := context.Background()
	s := &SpannerTable{Client: c}
	for range 2 { // the first Check creates the table, the second finds it
		if err := s.Check(ctx); err != nil {
			t.Fatal(err)
		}
	}
	ids := []FeedID{{TableID: TableID{Database: clienttest.Database, Name: "T"}}, {TableID: TableID{Database: clienttest.Database, Schema: "s", Name: "T"}}}
	for _, f := range fixedShards {
		p, _ := FixedShard("Shard", f.value)
		ids = append(ids, FeedID{ids[0].TableID, p.ID()})
	}
	for i, id := range ids {
		if _, ok, err := s.Load(ctx, id); ok || err != nil {
			t.Fatalf("%s: %v, %v", id, ok, err)
		}
		for n := range 2 {
			if err := s.Store(ctx, id, Checkpoint{Timestamp: day.Add(time.Duration(n*100+i) * time.Microsecond)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i, id := range ids {
		if got, ok, err := s.Load(ctx, id); !ok || err != nil || !got.Timestamp.Equal(day.Add(time.Duration(100+i)*time.Microsecond)) {
			t.Errorf("%s: %v, %v, %v", id, got, ok, err)
		}
	}
	var columns []string
	row := c.Single().Query(ctx, spanner.NewStatement("SELECT * FROM LAST_SEEN_COMMIT_TIMESTAMPS WHERE SHARD_ID_INT64 = -18"))
	if err := row.Do(func(row *spanner.Row) error {
		for i := range row.Size() {
			columns = append(columns, fmt.Sprint(row.ColumnName(i), "=", row.ColumnValue(i).AsInterface()))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := "DATABASE_NAME=" + clienttest.Database + " TABLE_CATALOG= TABLE_SCHEMA= TABLE_NAME=T SHARD_ID_BOOL=<nil> SHARD_ID_BYTES=<nil> SHARD_ID_DATE=<nil> SHARD_ID_FLOAT64=<nil> SHARD_ID_INT64=-18 SHARD_ID_STRING=<nil> SHARD_ID_TIMESTAMP=<nil> LAST_SEEN_COMMIT_TIMESTAMP=2026-11-22T10:11:12.345784Z"
	if got := strings.Join(columns, " "); got != want {
		t.Errorf("the row is %s\nwant %s", got, want)
	}
}

// TestSpannerTableOfWrongShape checks that the error of Check says what is wrong with an existing table.
func TestSpannerTableOfWrongShape(t *testing.T) {
	columns := ""
	for _, c := range lastSeenColumns {
		columns += c.name + " " + c.typ + ", "
	}
	key := strings.Join(lastSeenNames()[:11], ", ")
	c := clienttest.Connect(t,
		"CREATE TABLE A (TABLE_NAME STRING(MAX) NOT NULL, LAST_SEEN_COMMIT_TIMESTAMP TIMESTAMP NOT NULL) PRIMARY KEY (TABLE_NAME)",
		"CREATE TABLE B ("+strings.Replace(columns, "SHARD_ID_INT64 INT64", "SHARD_ID_INT64 STRING(10)", 1)+") PRIMARY KEY ("+key+")",
		"CREATE TABLE C ("+columns+") PRIMARY KEY (DATABASE_NAME)",
		"CREATE TABLE D ("+columns+") PRIMARY KEY ("+key+")")
	for table, want := range map[string]string{
		"A":    "Table A cannot hold commit timestamps: it has no column DATABASE_NAME",
		"B":    "Table B cannot hold commit timestamps: its column SHARD_ID_INT64 is of type STRING(10), not INT64",
		"C":    "Table C cannot hold commit timestamps: its primary key is (DATABASE_NAME), not (" + key + ")",
		"D":    "",
		"None": "Table not found: None",
	} {
		err := (&SpannerTable{Client: c, Table: table, NoCreate: true}).Check(context.Background())
		if want == "" && err == nil {
			continue
		}
		if code := status.Code(err); !strings.Contains(fmt.Sprint(err), want) || code != codes.FailedPrecondition && code != codes.NotFound {
			t.Errorf("%s: %v, want %s", table, err, want)
		}
	}
}

// TestIntervalShards checks that Interval.Shard and the expression for DML give the same shard. The times lie near the
// start and the end of several years and near the end of February, where the numbers of days and weeks are special.
func TestIntervalShards(t *testing.T) {
	c := clienttest.Connect(t)
	var times []time.Time
	for year := 2020; year < 2031; year++ {
		for _, d := range []int{1, 2, 3, 4, 5, 6, 7, 8, 59, 60, 61, 200, 364, 365, 366} {
			times = append(times, time.Date(year, 1, d, year%24, d%60, 59, 0, time.UTC))
		}
	}
	for name, i := range Intervals() {
		text := strings.Replace(i.Expression(), "CURRENT_TIMESTAMP()", "t", 1)
		var got []string
		stmt := spanner.Statement{SQL: "SELECT ARRAY(SELECT " + text + " FROM UNNEST(@times) t WITH OFFSET o ORDER BY o)", Params: map[string]any{"times": times}}
		if err := c.Single().Query(context.Background(), stmt).Do(func(row *spanner.Row) error { return row.Columns(&got) }); err != nil {
			t.Fatal(err)
		}
		for n, at := range times {
			if i.Shard(at) != got[n] {
				t.Errorf("%s at %v: %q has another shard", name, at, i.text(at))
			}
		}
	}
}

// TestCycles checks the intervals whose shards repeat. After a long stop, a watcher must ask for all shards of the
// interval, on every date.
func TestCycles(t *testing.T) {
	for i, count := range map[Interval]int{MinuteOfHour: 60, HourOfDay: 24, DayOfWeek: 7, DayOfMonth: 31, WeekOfYear: 54, DayOfYear: 366} {
		for now := time.Date(2018, 1, 1, 12, 0, 0, 0, time.UTC); now.Year() < 2106; now = now.AddDate(0, 0, 97) {
			if got := len(i.shards(time.Unix(0, 0), now)); got != count {
				t.Fatalf("%s at %v: %d shards, want %d", intervals[i].name, now, got, count)
			}
		}
	}
}

// TestTimeShardFilter checks that a poll asks for the shards of all times since the checkpoint, each once. If these
// shards are too many to list, the poll must ask for all rows whose shard is not NULL.
func TestTimeShardFilter(t *testing.T) {
	for name, i := range Intervals() {
		for _, back := range []time.Duration{0, time.Second, time.Hour, 50 * time.Hour, 200 * 24 * time.Hour, 3000 * 24 * time.Hour} {
			condition, params := TimeShard("Shard", i).Filter(day.Add(-back), day)
			if params == nil {
				if condition != "`Shard` IS NOT NULL" || back < 3000*24*time.Hour {
					t.Errorf("%s, %v back: %s", name, back, condition)
				}
				continue
			}
			asked := map[string]bool{}
			for _, s := range params["shards"].([]string) {
				if asked[s] {
					t.Errorf("%s, %v back: a shard twice", name, back)
				}
				asked[s] = true
			}
			for at := day.Add(-back - clockSlack); !at.After(day.Add(clockSlack)); at = at.Add(max(time.Minute, back/300)) {
				if !asked[i.Shard(at)] {
					t.Fatalf("%s, %v back: no shard of %v", name, back, at)
				}
			}
			if len(asked) > maxTimeShards {
				t.Errorf("%s, %v back: %d shards", name, back, len(asked))
			}
		}
	}
}

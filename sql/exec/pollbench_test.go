package exec_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/crowfoot-db/crowfoot/sql/exec"
	"github.com/crowfoot-db/crowfoot/table"
	"github.com/crowfoot-db/crowfoot/txn"
	"github.com/crowfoot-db/crowfoot/value"
)

// BenchmarkPoll reads a table of pollRows changes. A watcher is a client that polls the table for the changes that it
// has not seen. The column Shard has pollShards different values. The last pollLive changes have a value in the column
// Live. In all earlier changes Live is NULL, which means that the change is pruned. A poll asks for at most pollLimit
// changes. BenchmarkPoll polls for two watchers: one has missed all changes, the other, under light load, has missed
// only the last pollNew changes.
const (
	pollRows   = 1_000_000
	pollShards = 37
	pollLive   = 10_000
	pollLimit  = 10_000
	pollNew    = 100
)

// pollDB returns a database with a table of changes of 200 bytes each, and the time of the first change. There are a
// thousand changes for each second. The table has four indexes, each on one column and the time. The columns are Shard
// (the shard of the change), Live (the shard, but NULL if the change is pruned), Tag (a different value for each
// change) and LiveTag (the value of Tag, but NULL if the change is pruned).
func pollDB(b *testing.B) (*testDB, time.Time) {
	b.Helper()
	db := newTestDB(b)
	ddl := "CREATE TABLE Changes (Id STRING(20) NOT NULL, Shard INT64, Live INT64, Tag INT64, LiveTag INT64, Ts TIMESTAMP OPTIONS (allow_commit_timestamp = true), Text STRING(200)) PRIMARY KEY (Id);\n"
	for _, column := range []string{"Shard", "Live", "Tag", "LiveTag"} {
		ddl += "CREATE NULL_FILTERED INDEX ChangesBy" + column + " ON Changes (" + column + ", Ts);\n"
	}
	if out := db.ddl(ddl); out != "" {
		b.Fatal(out)
	}
	start := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	t := db.catalog.Table("Changes")
	text := value.OfString(strings.Repeat("x", 200))
	for from := int64(0); from < pollRows; from += 1000 {
		m := table.Mutation{Op: table.Insert, Table: t, Columns: t.Columns}
		for i := from; i < from+1000; i++ {
			mixed := uint64(i) * 0x9E3779B97F4A7C15 // spreads the rows over the table as random keys would
			shard, tag := value.OfInt64(int64(mixed>>32%pollShards)-18), value.OfInt64(int64(mixed))
			live, liveTag := value.Null(value.Int64), value.Null(value.Int64)
			if i >= pollRows-pollLive {
				live, liveTag = shard, tag
			}
			ts := start.Add(time.Duration(i) * time.Millisecond)
			m.Rows = append(m.Rows, []value.Value{value.OfString(fmt.Sprintf("%020d", mixed)), shard, live, tag, liveTag, value.OfTimestamp(ts.Unix(), int32(ts.Nanosecond())), text})
		}
		err := db.write(func(w table.Writer) error {
			_, err := table.Apply(context.Background(), w, table.NewDescriptors(db.catalog), []table.Mutation{m}, db.now)
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return db, start
}

// BenchmarkPoll runs the query by which a watcher polls for changes, for a watcher that is pollRows changes behind
// and for one under light load. It reports how many rows are returned per second, and how many index rows are
// scanned for each returned row. The table's row, which is also read for each returned row, is not counted.
func BenchmarkPoll(b *testing.B) {
	db, start := pollDB(b)
	snapshot, err := db.txns.Snapshot(context.Background(), txn.Bound{})
	if err != nil {
		b.Fatal(err)
	}
	last := start.Add((pollRows - pollNew - 1) * time.Millisecond)
	shards := make([]value.Value, pollShards)
	var with, all []string
	params := map[string]value.Value{"limit": value.OfInt64(pollLimit)}
	types := map[string]*value.Type{"after": value.TimestampType, "limit": value.Int64Type, "shards": value.ArrayOf(value.Int64Type)}
	for i := range shards {
		shards[i] = value.OfInt64(int64(i) - 18)
		name := fmt.Sprintf("s%d", i)
		params[name], types[name] = shards[i], value.Int64Type
		with = append(with, fmt.Sprintf("%s AS (SELECT Id, Ts FROM Changes WHERE Ts > @after AND Shard = @%s ORDER BY Ts, Id LIMIT @limit)", name, name))
		all = append(all, "SELECT * FROM "+name)
	}
	params["shards"] = value.OfArray(shards)
	const poll = "SELECT * FROM Changes WHERE Ts > @after AND Shard "
	const order = " ORDER BY Ts, Id LIMIT @limit"
	notNull := func(column string) string {
		return strings.Replace(poll, "Shard", column, 1) + "IS NOT NULL" + order
	}
	for _, q := range []struct {
		name, sql string
		after     time.Time
		rows      int64
	}{
		{"behind/list", poll + "IN UNNEST(@shards)" + order, start, pollLimit},
		{"behind/skip", notNull("Shard"), start, pollLimit},
		{"behind/many", notNull("Tag"), start, pollLimit},
		{"behind/with", "WITH " + strings.Join(with, ", ") + ", A AS (SELECT Id FROM (" + strings.Join(all, " UNION ALL ") + ")" + order + ") " +
			"SELECT Changes.* FROM A JOIN Changes ON Changes.Id = A.Id" + order, start, pollLimit},
		{"light/list", poll + "IN UNNEST(@shards)" + order, last, pollNew},
		{"light/skip", notNull("Shard"), last, pollNew},
		{"light/many", notNull("Tag"), last, pollNew},
		{"light/pruned", notNull("Live"), last, pollNew},
		{"light/pruned-many", notNull("LiveTag"), last, pollNew},
	} {
		b.Run(q.name, func(b *testing.B) {
			p, err := db.plan(q.sql, types)
			if err != nil {
				b.Fatal(err)
			}
			program, err := exec.Compile(p, table.NewDescriptors(db.catalog))
			if err != nil {
				b.Fatal(err)
			}
			params["after"] = value.OfTimestamp(q.after.Unix(), int32(q.after.Nanosecond()))
			env := exec.Env{View: snapshot, Functions: db.functions()}
			for _, param := range p.Params {
				env.Params = append(env.Params, params[param.Name])
			}
			var stats exec.Stats
			b.ReportAllocs()
			for b.Loop() {
				stats = benchRun(b, program, env)
			}
			if stats.RowsReturned != q.rows {
				b.Fatalf("%d rows", stats.RowsReturned)
			}
			b.ReportMetric(float64(stats.RowsReturned)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(stats.RowsScanned-stats.RowsReturned)/float64(stats.RowsReturned), "index-rows/row")
		})
	}
}

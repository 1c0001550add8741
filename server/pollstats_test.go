package server

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/spanner"
)

// pollSQL is exactly the statement with which Google's Spanner Change Watcher polls. The benchmark of that watcher
// computes its results from the statistics of this statement.
const pollSQL = "SELECT *\nFROM `Changes`@{FORCE_INDEX=`ChangesByShard`}\nWHERE `Ts`>@prevCommitTimestamp AND `Shard` IS NOT NULL AND `Shard` IN UNNEST(@shard)" +
	"\nORDER BY `Ts`, `Id`\nLIMIT @limit"

// A poller is a change watcher of a table with shards. According to the column Ts, the rows of the table were committed
// one second after the other.
type poller struct {
	*traffic
	start  time.Time
	shards []int64
	limit  int
}

func newPoller(t *testing.T, rows, shards, limit int) *poller {
	x := newTraffic(t)
	x.alter(`CREATE TABLE Changes (Id INT64 NOT NULL, Shard INT64, Ts TIMESTAMP, Text STRING(MAX)) PRIMARY KEY (Id)`,
		`CREATE NULL_FILTERED INDEX ChangesByShard ON Changes (Shard, Ts)`)
	p := &poller{traffic: x, start: time.Date(2029, 1, 1, 0, 0, 0, 0, time.UTC), limit: limit}
	for s := range shards {
		p.shards = append(p.shards, int64(s))
	}
	var muts []*spanner.Mutation
	for i := range rows {
		// Consecutive rows are in distant shards. So the rows of a short period, which a poll reads, are in many parts
		// of the index.
		muts = append(muts, spanner.Insert("Changes", []string{"Id", "Shard", "Ts", "Text"}, []any{i, i * 11 % shards, p.at(i), "text"}))
	}
	_, err := x.client.Apply(x.ctx, muts)
	x.ok(err)
	return p
}

// at returns the commit time of row i.
func (p *poller) at(i int) time.Time { return p.start.Add(time.Duration(i) * time.Second) }

// poll runs a poll for the rows whose numbers are greater than the parameter after. It checks that the poll returns the
// given number of rows.
func (p *poller) poll(sql string, after, rows int) {
	p.Helper()
	params := map[string]any{"prevCommitTimestamp": p.at(after), "limit": p.limit}
	if strings.Contains(sql, "@shard") {
		params["shard"] = p.shards
	}
	p.rows(rows, p.client.Single().Query(p.ctx, spanner.Statement{SQL: sql, Params: params}))
}

// scanned checks the statistics of the last minute: the number of polls, and the rows that each returned. For each
// returned row a poll scans one index row and one table row. It may scan one more index row for each shard.
func (p *poller) scanned(sql string, polls, rows int) {
	p.Helper()
	p.minute()
	p.shows(fmt.Sprintf(`SELECT EXECUTION_COUNT, AVG_ROWS, AVG_ROWS_SCANNED >= 2 * AVG_ROWS, AVG_ROWS_SCANNED <= 2 * AVG_ROWS + %d, AVG_CPU_SECONDS > 0,
		AVG_CPU_SECONDS < 60, ALL_FAILED_EXECUTION_COUNT
		FROM SPANNER_SYS.QUERY_STATS_TOP_MINUTE WHERE TEXT = %q ORDER BY INTERVAL_END DESC LIMIT 1`, len(p.shards), sql), fmt.Sprintf("%d|%d|true|true|true|true|0", polls, rows))
}

// TestPollStats: the statistics of polls have the exact SQL text, the number of polls, and the number of scanned rows.
// A poll scans as many index rows as it returns, and at most one more for each shard.
func TestPollStats(t *testing.T) {
	p := newPoller(t, 1000, 37, 100)
	for i := range 5 { // polls of a watcher that is far behind: each returns 100 rows, the limit
		p.poll(pollSQL, 100*i, 100)
	}
	p.scanned(pollSQL, 5, 100)
	for range 3 { // polls that return only the last ten of the 1,000 rows
		p.poll(pollSQL, 989, 10)
	}
	p.scanned(pollSQL, 3, 10)
	p.poll(pollSQL, 999, 0)
	p.scanned(pollSQL, 1, 0)

	unhinted := strings.Replace(pollSQL, "@{FORCE_INDEX=`ChangesByShard`}", "", 1)
	p.poll(unhinted, 500, 100)
	p.scanned(unhinted, 1, 100)
}

// TestPollWithoutShardsStats checks the number of scanned rows of a poll that names no shards. Such a poll must first
// find the shards. For that it reads one index row of each shard.
func TestPollWithoutShardsStats(t *testing.T) {
	p := newPoller(t, 1000, 37, 100)
	sql := strings.Replace(pollSQL, " AND `Shard` IN UNNEST(@shard)", "", 1)
	p.poll(sql, 500, 100)
	// For each shard, the poll may scan two index rows in addition to those that it returns: one that finds the shard,
	// and one that is read ahead. The method scanned permits one additional row for each element of p.shards, so the
	// test puts each shard into p.shards twice.
	p.shards = append(p.shards, p.shards...)
	p.scanned(sql, 1, 100)
}

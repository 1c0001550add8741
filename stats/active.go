package stats

import (
	"time"

	"github.com/crowfoot-db/crowfoot/stats/live"
	"github.com/crowfoot-db/crowfoot/value"
)

var oldestColumns = []plainColumn{
	{"START_TIME", value.TimestampType}, {"TEXT_FINGERPRINT", value.Int64Type}, {"TEXT", value.StringType},
	{"TEXT_TRUNCATED", value.BoolType}, {"SESSION_ID", value.StringType}, {"QUERY_ID", value.StringType},
	{"CLIENT_IP_ADDRESS", value.StringType}, {"API_CLIENT_HEADER", value.StringType}, {"USER_AGENT_HEADER", value.StringType},
	{"SERVER_REGION", value.StringType}, {"PRIORITY", value.StringType}, {"TRANSACTION_TYPE", value.StringType},
}

func (c *Collector) oldestRows() [][]value.Value {
	var rows [][]value.Value
	for _, q := range c.cfg.Live.Oldest() {
		shown := cut(q.SQL, maxText)
		rows = append(rows, []value.Value{
			value.OfTime(q.Start),
			value.OfInt64(fingerprintOf(Tag(q.Tag), q.Fingerprint)),
			value.OfString(shown),
			value.OfBool(len(shown) < len(q.SQL)),
			value.OfString(q.Session),
			value.OfString(q.ID()),
			stringOrNull(q.ClientAddress),
			stringOrNull(q.APIClient),
			stringOrNull(q.UserAgent),
			value.Null(value.String), // SERVER_REGION: the server has no region
			stringOrNull(q.Priority),
			stringOrNull(q.Transaction),
		})
	}
	return rows
}

var summaryColumns = []plainColumn{
	{"ACTIVE_COUNT", value.Int64Type}, {"OLDEST_START_TIME", value.TimestampType}, {"COUNT_OLDER_THAN_1S", value.Int64Type},
	{"COUNT_OLDER_THAN_10S", value.Int64Type}, {"COUNT_OLDER_THAN_100S", value.Int64Type},
}

func (c *Collector) summaryRows() [][]value.Value {
	now := c.cfg.Clock()
	var count int64
	var older [3]int64
	oldest := value.Null(value.Timestamp)
	var first time.Time
	c.cfg.Live.EachQuery(func(q *live.Query) {
		if count++; count == 1 || q.Start.Before(first) {
			first = q.Start
			oldest = value.OfTime(first)
		}
		for i, limit := range [...]time.Duration{time.Second, 10 * time.Second, 100 * time.Second} {
			if now.Sub(q.Start) > limit {
				older[i]++
			}
		}
	})
	return [][]value.Value{{value.OfInt64(count), oldest, value.OfInt64(older[0]), value.OfInt64(older[1]), value.OfInt64(older[2])}}
}

func stringOrNull(s string) value.Value {
	if s == "" {
		return value.Null(value.String)
	}
	return value.OfString(s)
}

var partitionedColumns = []plainColumn{
	{"TEXT", value.StringType}, {"TEXT_FINGERPRINT", value.Int64Type}, {"SESSION_ID", value.StringType},
	{"NUM_PARTITIONS_TOTAL", value.Int64Type}, {"NUM_PARTITIONS_COMPLETE", value.Int64Type},
	{"NUM_TRIVIAL_PARTITIONS_COMPLETE", value.Int64Type}, {"PROGRESS", value.Float64Type}, {"ROWS_PROCESSED", value.Int64Type},
	{"START_TIMESTAMP", value.TimestampType}, {"LAST_UPDATE_TIMESTAMP", value.TimestampType},
}

func (c *Collector) partitionedRows() [][]value.Value {
	return rowsOf(c.cfg.Live.Partitioned, func(p live.Progress) []value.Value {
		return []value.Value{
			value.OfString(cut(p.SQL, maxText)),
			value.OfInt64(p.Fingerprint),
			value.OfString(p.Session),
			value.OfInt64(p.Total),
			value.OfInt64(p.Complete),
			value.OfInt64(p.Trivial),
			value.OfFloat64(percentComplete(p)),
			value.OfInt64(p.Rows),
			value.OfTime(p.Start),
			value.OfTime(p.Updated),
		}
	})
}

// percentComplete returns the percentage of the known partitions that are complete. Trivial partitions (completed ones
// in which no row changed) are not counted:
// https://cloud.google.com/spanner/docs/introspection/active-partitioned-dmls#table_schema.
func percentComplete(p live.Progress) float64 {
	if p.Total == p.Trivial {
		return 0
	}
	return 100 * float64(p.Complete-p.Trivial) / float64(p.Total-p.Trivial)
}
